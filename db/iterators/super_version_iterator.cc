#include "db/iterators/super_version_iterator.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "db/iterators/merging_iterator.h"
#include "db/iterators/parent_iterator.h"
#include "db/iterators/run_iterator.h"
#include "db/iterators/tombstone_filter.h"
#include "type/tree_key.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// Returns the segments of `run` that may hold keys of [lower, upper); an empty `upper` means no
// end.
absl::Span<const std::shared_ptr<Segment>> Overlapping(const Run& run, std::string_view lower,
                                                       std::string_view upper) {
  const size_t begin = run.IndexOf(lower);
  size_t end = upper.empty() ? run.segments.size() : run.IndexOf(upper);
  if (!upper.empty() && end < run.segments.size() && run.segments[end]->info().smallest < upper)
    ++end;
  return absl::MakeSpan(run.segments).subspan(begin, end - begin);
}

// Returns at least the records of [lower, upper) that no range tombstone hides at `at`, with those
// of the parents.
std::unique_ptr<InternalIterator> RecordsOf(const SuperVersion& state, SequenceNumber at,
                                            bool fill_cache, std::string_view lower,
                                            std::string_view upper) {
  const bool covered =
      !state.buffered_tombstones->empty() || !state.version->range_tombstones().empty();
  std::vector<std::unique_ptr<InternalIterator>> children;
  const auto add = [&](std::unique_ptr<InternalIterator> child, SequenceNumber newest) {
    children.push_back(covered ? NewTombstoneFilter(std::move(child), &state, at, newest)
                               : std::move(child));
  };
  if (state.active->entries() != 0) add(state.active->NewIterator(), kMaxSequence);
  for (const std::shared_ptr<WriteBuffer>& buffer : state.full)
    add(buffer->NewIterator(), buffer->last_sequence());
  for (const Run* run : state.version->runs()) {
    const absl::Span<const std::shared_ptr<Segment>> overlapping = Overlapping(*run, lower, upper);
    if (overlapping.empty()) continue;
    SequenceNumber newest = kNoSequence;
    for (const std::shared_ptr<Segment>& segment : overlapping)
      newest = std::max(newest, segment->info().largest_sequence);
    add(NewRunIterator(overlapping, fill_cache), newest);
  }
  if (const NamespaceFork* const fork = state.namespaces.forks().Of(GenerationOf(lower)))
      [[unlikely]] {
    const std::string parent_lower = FirstTreeKey(fork->parent).append(UserKeyOf(lower));
    const bool to_the_end = upper.empty() || GenerationOf(upper) != fork->generation;
    const std::string parent_upper =
        to_the_end ? EndTreeKey(fork->parent) : FirstTreeKey(fork->parent).append(UserKeyOf(upper));
    add(NewParentIterator(RecordsOf(state.for_parents(), fork->fork_point, fill_cache, parent_lower,
                                    parent_upper),
                          *fork),
        fork->fork_point);
  }
  return NewMergingIterator(std::move(children));
}

}  // namespace

std::unique_ptr<Iterator> NewSuperVersionIterator(std::shared_ptr<const SuperVersion> state,
                                                  SuperVersionRange range, IteratorClock clock) {
  VARVE_ASSERT(range.lower.size() >= kGenerationSize);
  SequenceNumber at = range.at;
  // A reader that sees a clone sees all that it was forked from.
  if (const NamespaceFork* const fork = state->namespaces.forks().Of(GenerationOf(range.lower)))
    at = std::max(at, fork->fork_point);
  std::unique_ptr<InternalIterator> records =
      RecordsOf(*state, at, range.fill_cache, range.lower, range.upper);
  ClockCache* const cache =
      range.fill_cache && range.cache != nullptr && range.cache->capacity() > 0 ? range.cache
                                                                                : nullptr;
  return NewStoreIterator(std::move(state), std::move(records), at, std::move(range.lower),
                          std::move(range.upper), {range.with_values, cache}, std::move(clock));
}

}  // namespace varve
