// Engine: what keeps a batch from being committed: conditions on keys and ranges that don't hold
// any more, and another's turn.
#include <algorithm>
#include <memory>

#include "absl/time/clock.h"
#include "db/engine/engine.h"
#include "fmt/format.h"
#include "type/tree_key.h"
#include "util/base/hash.h"
#include "util/base/memory_guard.h"

namespace varve {
namespace {

constexpr SequenceNumber kFewWrites = 64;  // that may be looked through while others wait

absl::Status ConflictOn(const Commit::Condition& condition) {
  return absl::AbortedError(
      fmt::format("a key of {} bytes was written after sequence {}: read it again and retry",
                  condition.tree_key.size() - kGenerationSize, condition.sequence));
}

absl::Status RangeConflict() {
  return absl::AbortedError(
      "a key of a range that was read may have been written since: read it again and retry");
}

}  // namespace

// Every write after the condition's sequence must still be in a buffer for the answer to be sure;
// else it counts as changed.
absl::Status Engine::CheckConditions(const Commit& commit) const {
  for (const Commit::Condition& condition : commit.conditions()) {
    if (condition.sequence >= last_sequence_) continue;
    SequenceNumber newest = NewestChange(condition.tree_key, condition.hash, condition);
    if (!condition.puts_alone) {
      newest = std::max(newest, present_->buffered_tombstones->CoveringSequence(condition.tree_key,
                                                                                kMaxSequence));
    }
    for (auto left = left_generations_.rbegin();
         left != left_generations_.rend() && left->left_at > condition.sequence; ++left) {
      if (left->space != condition.space) continue;
      if (condition.puts_alone) {  // what was put before went with the generation
        const TreeKey before(left->generation, UserKeyOf(condition.tree_key));
        newest = std::max(newest, NewestChange(before.view(), HashKey(before.view()), condition));
      } else {
        newest = std::max(newest, left->left_at);
      }
    }
    if (newest > condition.sequence) {
      counters_.conflicts.Add(1);
      return ConflictOn(condition);
    }
  }
  return absl::OkStatus();
}

SequenceNumber Engine::NewestChange(std::string_view tree_key, uint64_t hash,
                                    const Commit::Condition& condition) const {
  const auto newest_in = [&](const WriteBuffer& buffer) {
    return condition.puts_alone ? buffer.NewestValueSequence(tree_key, hash)
                                : buffer.NewestSequence(tree_key, hash);
  };
  SequenceNumber newest = newest_in(*present_->active);
  SequenceNumber known_from = present_->active->first_sequence();
  for (const std::shared_ptr<WriteBuffer>& buffer : present_->full) {
    if (known_from <= condition.sequence + 1) break;
    newest = std::max(newest, newest_in(*buffer));
    known_from = buffer->first_sequence();
  }
  return known_from <= condition.sequence + 1 ? newest : kMaxSequence;
}

// Looking at a write costs a small part of what committing it did, so this catches up.
absl::Status Engine::LookAhead(RangeCheck* ranges) const {
  for (;;) {
    SequenceNumber ahead;
    {
      absl::MutexLock lock(&commit_mutex_);
      ahead = ranges->Aim(present_, last_sequence_);
    }
    if (!ranges->Look()) {
      counters_.conflicts.Add(1);
      return RangeConflict();
    }
    if (ahead <= kFewWrites) return absl::OkStatus();
  }
}

absl::Status Engine::CheckRanges(const Commit& commit, RangeCheck* ranges) const {
  ranges->Aim(present_, last_sequence_);
  bool unchanged = ranges->Look();
  for (const Commit::RangeCondition& condition : commit.range_conditions()) {
    for (auto left = left_generations_.rbegin();
         left != left_generations_.rend() && left->left_at > condition.sequence; ++left) {
      if (left->space == condition.space) unchanged = false;
    }
  }
  if (unchanged) return absl::OkStatus();
  counters_.conflicts.Add(1);
  return RangeConflict();
}

class Engine::Turn final : public ExclusiveWrite {
 public:
  explicit Turn(Engine* engine) : engine_(engine) {}
  ~Turn() override {
    absl::MutexLock lock(&engine_->commit_mutex_);
    if (engine_->turn_ != this) return;
    engine_->turn_ = nullptr;
    engine_->turn_ended_.SignalAll();
  }

 private:
  Engine* const engine_;
};

std::unique_ptr<ExclusiveWrite> Engine::BeginExclusiveWrite() {
  std::unique_ptr<Turn> turn;  // takes some 50 bytes, which are waited for
  while (!TryWithMemory([&] { turn = std::make_unique<Turn>(this); }))
    absl::SleepFor(absl::Milliseconds(1));
  absl::MutexLock lock(&commit_mutex_);
  WaitForTurn(nullptr);
  turn_ = turn.get();
  return turn;
}

void Engine::WaitForTurn(const ExclusiveWrite* own) {
  while (turn_ != nullptr && turn_ != own) turn_ended_.Wait(&commit_mutex_);
}

}  // namespace varve
