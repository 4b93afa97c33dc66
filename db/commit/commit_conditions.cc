#include "db/commit/commit_conditions.h"

#include <algorithm>
#include <memory>

#include "fmt/format.h"
#include "type/tree_key.h"
#include "util/base/assert.h"
#include "util/base/hash.h"

namespace varve {
namespace {

constexpr SequenceNumber kFewWrites = 64;  // that may be looked through while other writers wait

absl::Status ConflictOn(const Commit::Condition& condition) {
  return absl::AbortedError(
      fmt::format("a key of {} bytes was written after sequence {}: read it again and retry",
                  condition.tree_key.size() - kGenerationSize, condition.sequence));
}

absl::Status RangeConflict() {
  return absl::AbortedError(
      "a key of a range that was read may have been written since: read it again and retry");
}

// Returns the sequence of the newest write to `tree_key` that `condition` counts as a change, or
// kMaxSequence if the write buffers cannot tell.
SequenceNumber NewestChange(const SuperVersion& state, std::string_view tree_key, uint64_t hash,
                            const Commit::Condition& condition) {
  const auto newest_in = [&](const WriteBuffer& buffer) {
    return condition.puts_alone ? buffer.NewestValueSequence(tree_key, hash)
                                : buffer.NewestSequence(tree_key, hash);
  };
  SequenceNumber newest = newest_in(*state.active);
  SequenceNumber known_from = state.active->first_sequence();
  for (const std::shared_ptr<WriteBuffer>& buffer : state.full) {
    if (known_from <= condition.sequence + 1) break;
    newest = std::max(newest, newest_in(*buffer));
    VARVE_ASSERT(buffer->first_sequence() < known_from);
    known_from = buffer->first_sequence();
  }
  return known_from <= condition.sequence + 1 ? newest : kMaxSequence;
}

}  // namespace

// Every write after the condition's sequence must still be in a buffer for the answer to be sure;
// else it counts as changed.
absl::Status CheckConditionsLocked(const SuperVersions& versions, const Commit& commit) {
  const SuperVersion& present = *versions.PresentLocked();
  versions.show_queue().DrainLocked();
  const SequenceNumber last = versions.LastSequenceLocked();
  const std::vector<RetiredGeneration>& all_retired = versions.RetiredGenerationsLocked();
  for (const Commit::Condition& condition : commit.conditions()) {
    if (condition.sequence >= last) continue;
    SequenceNumber newest = NewestChange(present, condition.tree_key, condition.hash, condition);
    if (!condition.puts_alone) {
      newest = std::max(
          newest, present.buffered_tombstones->CoveringSequence(condition.tree_key, kMaxSequence));
    }
    for (auto retired = all_retired.rbegin();
         retired != all_retired.rend() && retired->retired_at > condition.sequence; ++retired) {
      if (retired->space != condition.space) continue;
      if (condition.puts_alone) {  // what was put before went with the generation
        const TreeKey before(retired->generation, UserKeyOf(condition.tree_key));
        newest = std::max(newest,
                          NewestChange(present, before.view(), HashKey(before.view()), condition));
      } else {
        newest = std::max(newest, retired->retired_at);
      }
    }
    if (newest > condition.sequence) return ConflictOn(condition);
  }
  return absl::OkStatus();
}

// Looking at a write costs a small part of what committing it did, so this catches up.
absl::Status CheckRangesUnlocked(const SuperVersions& versions, RangeCheck* ranges) {
  for (;;) {
    SequenceNumber ahead;
    {
      absl::MutexLock lock(&versions.mutex());
      versions.show_queue().DrainLocked();
      ahead = ranges->SetTarget(versions.PresentLocked(), versions.LastSequenceLocked());
    }
    if (!ranges->Scan()) return RangeConflict();
    if (ahead <= kFewWrites) return absl::OkStatus();
  }
}

absl::Status CheckRangesLocked(const SuperVersions& versions, const Commit& commit,
                               RangeCheck* ranges) {
  versions.show_queue().DrainLocked();
  ranges->SetTarget(versions.PresentLocked(), versions.LastSequenceLocked());
  bool unchanged = ranges->Scan();
  const std::vector<RetiredGeneration>& all_retired = versions.RetiredGenerationsLocked();
  for (const Commit::RangeCondition& condition : commit.range_conditions()) {
    for (auto retired = all_retired.rbegin();
         retired != all_retired.rend() && retired->retired_at > condition.sequence; ++retired) {
      if (retired->space == condition.space) unchanged = false;
    }
  }
  return unchanged ? absl::OkStatus() : RangeConflict();
}

}  // namespace varve
