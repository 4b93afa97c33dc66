#include "db/iterators/super_version_iterator.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
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

// Returns those of the segments that hold something newer than `newer_than`.
std::vector<std::shared_ptr<Segment>> NewerOf(absl::Span<const std::shared_ptr<Segment>> segments,
                                              SequenceNumber newer_than) {
  std::vector<std::shared_ptr<Segment>> newer;
  std::copy_if(segments.begin(), segments.end(), std::back_inserter(newer),
               [newer_than](const std::shared_ptr<Segment>& segment) {
                 return segment->info().largest_sequence > newer_than;
               });
  return newer;
}

using AddRecords = absl::FunctionRef<void(std::unique_ptr<InternalIterator>, SequenceNumber)>;

// Calls `add` with each source that may hold records of [lower, upper) that are newer than
// `newer_than`, newest first, and with the sequence that none of them is above.
void AddOwnRecords(const SuperVersion& state, SequenceNumber newer_than, CacheUse cache_use,
                   std::string_view lower, std::string_view upper, AddRecords add) {
  if (state.active->entries() != 0) add(state.active->NewIterator(), kMaxSequence);
  for (const std::shared_ptr<WriteBuffer>& buffer : state.full) {
    if (buffer->last_sequence() > newer_than) add(buffer->NewIterator(), buffer->last_sequence());
  }
  for (const Run* run : state.version->runs()) {
    const absl::Span<const std::shared_ptr<Segment>> overlapping = Overlapping(*run, lower, upper);
    if (overlapping.empty()) continue;
    SequenceNumber newest = kNoSequence;
    for (const std::shared_ptr<Segment>& segment : overlapping)
      newest = std::max(newest, segment->info().largest_sequence);
    if (newest <= newer_than) continue;
    add(newer_than == kNoSequence ? NewRunIterator(overlapping, cache_use)
                                  : NewRunIterator(NewerOf(overlapping, newer_than), cache_use),
        newest);
  }
}

// Returns at least the records of [lower, upper) that no range tombstone hides at `versions.at`,
// with those of the parents. What holds nothing newer than `versions.newer_than` is left out: a
// record that is newer is the newest of its key wherever the other ones lie, and range tombstones
// are known without their segments.
std::unique_ptr<InternalIterator> RecordsOf(const SuperVersion& state, VersionRange versions,
                                            CacheUse cache_use, std::string_view lower,
                                            std::string_view upper) {
  const auto [at, newer_than] = versions;
  const bool covered =
      !state.buffered_tombstones->empty() || !state.version->range_tombstones().empty();
  std::vector<std::unique_ptr<InternalIterator>> children;
  const auto add = [&, at = at](std::unique_ptr<InternalIterator> child, SequenceNumber newest) {
    children.push_back(covered ? NewTombstoneFilter(std::move(child), &state, at, newest)
                               : std::move(child));
  };
  AddOwnRecords(state, newer_than, cache_use, lower, upper, add);
  if (const NamespaceFork* const fork = state.namespaces.forks().Of(GenerationOf(lower));
      fork != nullptr && fork->fork_point > newer_than) [[unlikely]] {
    add(NewInheritedIterator(state, *fork, cache_use, lower, upper, newer_than), fork->fork_point);
  }
  return NewMergingIterator(std::move(children));
}

}  // namespace

std::unique_ptr<InternalIterator> NewVersionsIterator(const SuperVersion& state, CacheUse cache_use,
                                                      std::string_view lower,
                                                      std::string_view upper) {
  std::vector<std::unique_ptr<InternalIterator>> children;
  AddOwnRecords(state, kNoSequence, cache_use, lower, upper,
                [&](std::unique_ptr<InternalIterator> child, SequenceNumber) {
                  children.push_back(std::move(child));
                });
  return NewMergingIterator(std::move(children));
}

std::unique_ptr<InternalIterator> NewInheritedIterator(const SuperVersion& state,
                                                       const NamespaceFork& fork,
                                                       CacheUse cache_use, std::string_view lower,
                                                       std::string_view upper,
                                                       SequenceNumber newer_than) {
  const std::string parent_lower = FirstTreeKey(fork.parent).append(UserKeyOf(lower));
  const bool to_the_end = upper.empty() || GenerationOf(upper) != fork.generation;
  const std::string parent_upper =
      to_the_end ? EndTreeKey(fork.parent) : FirstTreeKey(fork.parent).append(UserKeyOf(upper));
  return NewParentIterator(RecordsOf(state.for_parents(), {fork.fork_point, newer_than}, cache_use,
                                     parent_lower, parent_upper),
                           fork);
}

std::unique_ptr<Iterator> NewSuperVersionIterator(std::shared_ptr<const SuperVersion> state,
                                                  SuperVersionRange range, IteratorClock clock) {
  VARVE_ASSERT(range.lower.size() >= kGenerationSize);
  SequenceNumber at = range.at;
  // A reader that sees a clone sees all that it was forked from.
  if (const NamespaceFork* const fork = state->namespaces.forks().Of(GenerationOf(range.lower)))
    at = std::max(at, fork->fork_point);
  ClockCache* const cache =
      range.fill_cache && range.cache != nullptr && range.cache->capacity() > 0 ? range.cache
                                                                                : nullptr;
  std::unique_ptr<InternalIterator> records = RecordsOf(
      *state, {at, range.newer_than},
      CacheUse(range.fill_cache, range.with_values && cache != nullptr, range.with_values),
      range.lower, range.upper);
  return NewStoreIterator(std::move(state), std::move(records), {at, range.newer_than},
                          std::move(range.lower), std::move(range.upper),
                          {range.with_values, cache}, std::move(clock));
}

}  // namespace varve
