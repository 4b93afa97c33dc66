#include "db/difference/touched_keys.h"

#include <algorithm>
#include <utility>

#include "db/iterators/merging_iterator.h"
#include "db/iterators/run_iterator.h"
#include "type/tree_key.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// A source steps over so many records one by one; for more it seeks.
constexpr int kStepsBeforeSeek = 4;

std::string EndOf(NamespaceGeneration generation, std::string_view upper) {
  return upper.empty() ? EndTreeKey(generation) : std::string(TreeKey(generation, upper).view());
}

// Returns at least the records of the level in [lower, upper), which are tree keys. `*segments` are
// those that it reads, by run; they outlive it.
std::unique_ptr<InternalIterator> RecordsOf(
    const SuperVersion& state, const DifferingLevel& level, std::string_view lower,
    std::string_view upper, std::vector<std::vector<std::shared_ptr<Segment>>>* segments) {
  std::vector<std::unique_ptr<InternalIterator>> children;
  if (state.active->entries() != 0) children.push_back(state.active->NewIterator());
  for (const std::shared_ptr<WriteBuffer>& buffer : state.full) {
    if (buffer->last_sequence() > level.above) children.push_back(buffer->NewIterator());
  }
  for (const Run* run : state.version->runs()) {
    std::vector<std::shared_ptr<Segment>> newer;
    for (size_t i = run->IndexOf(lower); i < run->segments.size(); ++i) {
      const SegmentInfo& info = run->segments[i]->info();
      if (!upper.empty() && info.smallest >= upper) break;
      if (info.largest_sequence > level.above) newer.push_back(run->segments[i]);
    }
    if (newer.empty()) continue;
    segments->push_back(std::move(newer));
    children.push_back(NewRunIterator(absl::MakeConstSpan(segments->back()), /*fill_cache=*/false));
  }
  return NewMergingIterator(std::move(children));
}

}  // namespace

std::vector<UserKeyRange> Disjoint(std::vector<UserKeyRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const UserKeyRange& a, const UserKeyRange& b) { return a.begin < b.begin; });
  std::vector<UserKeyRange> disjoint;
  for (UserKeyRange& range : ranges) {
    if (disjoint.empty() || !(disjoint.back().end.empty() || range.begin <= disjoint.back().end)) {
      disjoint.push_back(std::move(range));
    } else if (UserKeyRange& last = disjoint.back();
               !last.end.empty() && (range.end.empty() || range.end > last.end)) {
      last.end = std::move(range.end);
    }
  }
  return disjoint;
}

TouchedKeys::TouchedKeys(std::shared_ptr<const SuperVersion> state,
                         const std::vector<DifferingLevel>& levels, std::string_view lower,
                         std::string_view upper)
    : state_(std::move(state)) {
  for (const DifferingLevel& level : levels) {
    const std::string begin(TreeKey(level.generation, lower).view());
    Source source{.level = level};
    source.records =
        RecordsOf(*state_, level, begin, EndOf(level.generation, upper), &source.segments);
    sources_.push_back(std::move(source));
    AddRanges(level, lower, upper);
  }
  ranges_ = Disjoint(std::move(ranges_));
}

void TouchedKeys::AddRanges(const DifferingLevel& level, std::string_view lower,
                            std::string_view upper) {
  const std::string begin(TreeKey(level.generation, lower).view());
  const std::string end = EndOf(level.generation, upper);
  for (const RangeTombstoneList* list :
       {state_->buffered_tombstones.get(), &state_->version->range_tombstones()}) {
    for (const RangeTombstone& tombstone : list->tombstones()) {
      if (tombstone.sequence <= level.above) continue;
      const std::string& first = std::max(begin, tombstone.begin);
      const std::string& last = end.empty() ? tombstone.end : std::min(end, tombstone.end);
      if (first >= last) continue;
      const bool to_the_end = GenerationOf(last) != level.generation;
      ranges_.push_back({std::string(UserKeyOf(first)),
                         to_the_end ? std::string() : std::string(UserKeyOf(last))});
    }
  }
}

bool TouchedKeys::Find(std::string_view from, size_t* steps, bool* found, std::string_view* key) {
  *found = false;
  for (Source& source : sources_) {
    InternalIterator& records = *source.records;
    const TreeKey target(source.level.generation, from);
    const auto is_before = [&] { return records.Valid() && records.record().key < target.view(); };
    for (int i = 0; i < kStepsBeforeSeek && source.begun && is_before(); ++i) records.Next();
    if (!source.begun || is_before()) records.Seek(target.view(), kMaxSequence);
    source.begun = true;
    while (records.Valid() && records.record().sequence <= source.level.above &&
           GenerationOf(records.record().key) == source.level.generation) {
      if (*steps == 0) return false;
      --*steps;
      records.Next();
    }
    if (!records.Valid() || GenerationOf(records.record().key) != source.level.generation) continue;
    const std::string_view next = UserKeyOf(records.record().key);
    if (!*found || next < *key) *key = next;
    *found = true;
  }
  return true;
}

absl::Status TouchedKeys::status() const {
  for (const Source& source : sources_) {
    if (!source.records->status().ok()) return source.records->status();
  }
  return absl::OkStatus();
}

}  // namespace varve
