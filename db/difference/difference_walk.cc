#include "db/difference/difference_walk.h"

#include <algorithm>
#include <utility>

#include "db/difference/lineage.h"
#include "db/format/expiry_index.h"
#include "db/iterators/super_version_iterator.h"
#include "db/version/read_point.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

// With more keys that expired between the two instants the walk looks at all keys.
constexpr size_t kMostExpired = 1u << 16;
// So many entries of the index are looked at, also of other namespaces.
constexpr size_t kMostEntries = 1u << 18;

void Consider(std::string_view key, std::optional<std::string>* first) {
  if (!first->has_value() || key < **first) first->emplace(key);
}

// The instants between which time alone may have made a difference.
struct Window {
  uint64_t after_ms = 0;
  uint64_t up_to_ms = 0;

  bool empty() const { return after_ms >= up_to_ms; }
};

Window WindowOf(const ComparedState& a, const ComparedState& b,
                const std::vector<LineageLevel>& lineages, const NamespaceForks& forks) {
  Window window{std::min(a.snapshot->instant_ms(), b.snapshot->instant_ms()),
                std::max(a.snapshot->instant_ms(), b.snapshot->instant_ms())};
  for (const LineageLevel& level : lineages) {
    if (const NamespaceFork* const fork = forks.Of(level.generation))
      window.up_to_ms = std::max(window.up_to_ms, fork->expired_by_ms);
  }
  return window;
}

// Returns the keys of the generations that the index says to expire in the window, ascending;
// nothing if they are too many.
absl::StatusOr<std::optional<std::vector<std::string>>> ExpiringIn(
    const Window& window, const std::shared_ptr<const SuperVersion>& state, SequenceNumber at,
    const std::vector<LineageLevel>& lineage) {
  std::vector<std::string> keys;
  size_t looked_at = 0;
  const std::unique_ptr<Iterator> entries = NewSuperVersionIterator(
      state, {.at = at, .lower = FirstTreeKey(kExpiryGeneration), .with_values = false});
  for (int width = 0; width < kExpiryWidths; ++width) {
    // A key is due at a multiple of the width, so less than a width after it expires.
    const uint64_t last_due = window.up_to_ms + ((uint64_t{1} << width) - 1);
    for (entries->Seek(ExpiryIndexBound(width, window.after_ms)); entries->Valid();
         entries->Next()) {
      const std::optional<ExpiryIndexEntry> entry = DecodeExpiryIndexKey(entries->key());
      if (!entry || entry->width != width || entry->due_ms > last_due) break;
      if (++looked_at == kMostEntries) return std::nullopt;
      const NamespaceGeneration generation = GenerationOf(entry->tree_key);
      const bool is_shared =
          std::any_of(lineage.begin(), lineage.end(),
                      [&](const LineageLevel& level) { return level.generation == generation; });
      if (!is_shared) continue;
      if (keys.size() == kMostExpired) return std::nullopt;
      keys.emplace_back(UserKeyOf(entry->tree_key));
    }
    VARVE_RETURN_IF_ERROR(entries->status());
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return std::optional(std::move(keys));
}

}  // namespace

DifferenceWalk::DifferenceWalk(Open a, Open b, Candidates candidates, std::string_view lower)
    : a_{.open = std::move(a), .keys = {}, .values = {}},
      b_{.open = std::move(b), .keys = {}, .values = {}},
      candidates_(std::move(candidates)),
      position_(lower) {
  a_.keys = a_.open(/*with_values=*/false);
  b_.keys = b_.open(/*with_values=*/false);
}

SequenceNumber DifferenceWalk::durable_after() const {
  return std::max(a_.keys->durable_after(), b_.keys->durable_after());
}

bool DifferenceWalk::Next(size_t most_steps) {
  bool differs = false;
  const absl::Status status = GuardMemory("comparing two states", [&] {
    for (size_t steps = most_steps; steps > 0 && !differs && !at_end_;) {
      // With one step at least the search comes further.
      const Search search = FindCandidate(&steps);
      if (search == Search::kSpent) break;
      if (steps > 0) --steps;
      at_end_ = search == Search::kNone;
      differs = search == Search::kFound && Differs();
      VARVE_RETURN_IF_ERROR(status_);
      if (search == Search::kFound) position_.assign(candidate_).push_back('\0');
    }
    return absl::OkStatus();
  });
  if (status.ok()) return differs;
  status_ = status;
  at_end_ = true;
  return false;
}

void DifferenceWalk::SeekTo(Iterator* keys, std::string_view target) {
  if (!begun_) return keys->Seek(target);
  if (keys->Valid() && keys->key() < target) keys->Next();
  if (keys->Valid() && keys->key() < target) keys->Seek(target);
}

DifferenceWalk::Search DifferenceWalk::FindCandidate(size_t* steps) {
  std::optional<std::string> first;
  if (!begun_) {
    SeekTo(a_.keys.get(), position_);
    SeekTo(b_.keys.get(), position_);
    begun_ = true;
  }
  if (candidates_.touched != nullptr) {
    bool found = false;
    std::string_view key;
    if (!candidates_.touched->Find(position_, steps, &found, &key)) return Search::kSpent;
    status_ = candidates_.touched->status();
    if (!status_.ok()) return Search::kNone;
    if (found) Consider(key, &first);
  }
  const std::vector<std::string>& expired = candidates_.expired;
  while (next_expired_ < expired.size() && expired[next_expired_] < position_) ++next_expired_;
  if (next_expired_ < expired.size()) Consider(expired[next_expired_], &first);
  if (!ConsiderRanges(&first, steps)) return Search::kSpent;
  if (!status_.ok() || !first) return Search::kNone;
  candidate_ = *std::move(first);
  return Search::kFound;
}

bool DifferenceWalk::ConsiderRanges(std::optional<std::string>* first, size_t* steps) {
  const std::vector<UserKeyRange>& ranges = candidates_.ranges;
  while (next_range_ < ranges.size() && !ranges[next_range_].Reaches(position_)) ++next_range_;
  for (size_t i = next_range_; i < ranges.size(); ++i) {
    const std::string& start = std::max(position_, ranges[i].begin);
    // A cursor must not pass a key that is to be looked at.
    if (first->has_value() && **first <= start) return true;
    if (*steps == 0) {
      next_range_ = i;  // those before it hold no key
      return false;
    }
    --*steps;
    std::optional<std::string> next;
    for (Iterator* const keys : {a_.keys.get(), b_.keys.get()}) {
      SeekTo(keys, start);
      if (keys->Valid()) {
        Consider(keys->key(), &next);
      } else if (status_ = keys->status(); !status_.ok()) {
        return true;
      }
    }
    if (!next) return true;
    if (ranges[i].Reaches(*next)) {
      Consider(*next, first);
      return true;
    }
    // On to the first range that reaches it.
    while (i + 1 < ranges.size() && !ranges[i + 1].Reaches(*next)) ++i;
  }
  return true;
}

bool DifferenceWalk::Differs() {
  Iterator& a = *a_.keys;
  Iterator& b = *b_.keys;
  SeekTo(&a, candidate_);
  SeekTo(&b, candidate_);
  for (const Iterator* const keys : {&a, &b}) {
    if (!keys->status().ok()) status_ = keys->status();
  }
  if (!status_.ok()) return false;
  const bool in_a = a.Valid() && a.key() == candidate_;
  const bool in_b = b.Valid() && b.key() == candidate_;
  if (!in_a || !in_b) return in_a != in_b;
  if (a.version() == b.version()) return false;
  if (a.expiry_ms() != b.expiry_ms() || a.value_size() != b.value_size() ||
      a.metadata() != b.metadata())
    return true;
  return ValuesDiffer();
}

bool DifferenceWalk::ValuesDiffer() {
  for (Side* const side : {&a_, &b_}) {
    if (side->values == nullptr) side->values = side->open(/*with_values=*/true);
    side->values->Seek(candidate_);
    status_ = side->values->status();
    if (!status_.ok()) return false;
    VARVE_ASSERT(side->values->Valid() && side->values->key() == candidate_);
  }
  return a_.values->value() != b_.values->value();
}

namespace {

NamespaceGeneration GenerationOfState(const ComparedState& state) {
  return TreeSnapshot::Of(*state.snapshot).Generation(state.space).value_or(kNoGeneration);
}

// Requires: `state` holds everything up to `at`, and the snapshots were taken before.
absl::StatusOr<DifferenceWalk::Candidates> CandidatesOf(
    const std::shared_ptr<const SuperVersion>& state, SequenceNumber at, const ComparedState& a,
    const ComparedState& b, std::string_view lower, std::string_view upper) {
  const NamespaceForks& forks = state->namespaces.forks();
  std::vector<LineageLevel> lineages =
      LineageOf(GenerationOfState(a), a.snapshot->sequence(), forks);
  const std::vector<LineageLevel> of_b =
      LineageOf(GenerationOfState(b), b.snapshot->sequence(), forks);
  const Meeting meeting = MeetingOf(lineages, of_b);
  lineages.insert(lineages.end(), of_b.begin(), of_b.end());
  const Window window = WindowOf(a, b, lineages, forks);
  std::optional<std::vector<std::string>> expired = std::vector<std::string>();
  if (meeting.related && !window.empty()) {
    if (state->namespaces.NamespacesSeeing(meeting.shared).empty()) {
      expired.reset();
    } else {
      VARVE_ASSIGN_OR_RETURN(expired, ExpiringIn(window, state, at, lineages));
    }
  }
  DifferenceWalk::Candidates candidates;
  if (!meeting.related || !expired) {
    candidates.ranges.push_back({std::string(lower), std::string(upper)});
    return candidates;
  }
  candidates.touched = std::make_unique<TouchedKeys>(state, meeting.levels, lower, upper);
  candidates.ranges = candidates.touched->ranges();
  candidates.expired = *std::move(expired);
  std::erase_if(candidates.expired, [&](const std::string& key) {
    return key < lower || (!upper.empty() && key >= upper);
  });
  return candidates;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DifferenceIterator>> NewDifferenceWalk(const DifferenceParts& parts,
                                                                      const ComparedState& a,
                                                                      const ComparedState& b,
                                                                      std::string_view lower,
                                                                      std::string_view upper) {
  for (const ComparedState* const state : {&a, &b}) {
    if (state->snapshot == SnapshotList::NotTaken()) return OutOfMemory("taking the snapshot");
    if (GenerationOfState(*state) == kNoGeneration) return NoSuchNamespace(state->space);
  }
  std::shared_ptr<const SuperVersion> state;
  SequenceNumber at = kNoSequence;
  {
    VARVE_ASSIGN_OR_RETURN(const ReadPoint point,
                           BeginRead(*parts.versions, *parts.log, {.space = kExpirySpace}));
    state = point.state->shared_from_this();
    at = point.sequence;
  }
  VARVE_ASSIGN_OR_RETURN(DifferenceWalk::Candidates candidates,
                         CandidatesOf(state, at, a, b, lower, upper));
  const auto open = [&](const ComparedState& of) {
    return [new_iterator = parts.new_iterator, of, begin = std::string(lower),
            end = std::string(upper)](bool with_values) {
      ReadOptions options;
      options.snapshot = of.snapshot.get();
      options.space = of.space;
      options.fill_cache = false;
      options.wait_until_durable = false;
      options.without_value = !with_values;
      return new_iterator(options, begin, end);
    };
  };
  return std::make_unique<DifferenceWalk>(open(a), open(b), std::move(candidates), lower);
}

}  // namespace varve
