#include "db/commit/range_watches.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "db/format/range_tombstone.h"
#include "type/tree_key.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "varve/namespace_status.h"

namespace varve {

struct RangeWatches::State {
  State(NamespaceId in, NamespaceGeneration at, std::string_view from, std::string_view to)
      : space(in),
        generation(at),
        lower(TreeKey(at, from).view()),
        upper(to.empty() ? EndTreeKey(at) : std::string(TreeKey(at, to).view())) {}

  const NamespaceId space;
  const NamespaceGeneration generation;
  const std::string lower;  // tree keys: [lower, upper)
  const std::string upper;
  absl::Mutex mutex;
  SequenceNumber looked_up_to ABSL_GUARDED_BY(mutex) = kNoSequence;
  bool changed ABSL_GUARDED_BY(mutex) = false;

  bool Overlaps(std::string_view begin, std::string_view end) const {
    return lower < end && begin < upper;
  }
  SequenceNumber Looked() {
    absl::MutexLock lock(&mutex);
    return changed ? kMaxSequence : looked_up_to;
  }
  void NoteChange() {
    absl::MutexLock lock(&mutex);
    changed = true;
  }
  void NoteLook(SequenceNumber up_to) {
    absl::MutexLock lock(&mutex);
    looked_up_to = std::max(looked_up_to, up_to);
  }
};

class RangeWatches::Watch final : public RangeWatch {
 public:
  Watch(RangeWatches* watches, std::shared_ptr<State> state, std::string_view lower,
        std::string_view upper, uint64_t instant_ms)
      : watches_(*watches),
        state_(std::move(state)),
        lower_(lower),
        upper_(upper),
        begun_ms_(instant_ms) {}
  ~Watch() override {
    absl::MutexLock lock(&watches_.mutex_);
    watches_.states_.erase(state_);
    watches_.count_.store(watches_.states_.size());
  }

  absl::StatusOr<bool> Changed(const WriteOptions& options, uint64_t instant_ms) override {
    return GuardMemory("looking at a watched range", [&]() -> absl::StatusOr<bool> {
      VARVE_ASSIGN_OR_RETURN(const bool written, Written(options));
      if (written) return true;
      VARVE_ASSIGN_OR_RETURN(const bool expired,
                             watches_.parts_.sweeper->AnyExpired({state_->space, lower_, upper_},
                                                                 begun_ms_, instant_ms));
      if (expired) state_->NoteChange();
      return expired;
    });
  }

 private:
  absl::StatusOr<bool> Written(const WriteOptions& options) {
    for (;;) {
      const SequenceNumber looked = state_->Looked();
      if (looked == kMaxSequence) return true;
      WriteBatch condition;
      condition.RequireRangeUnchanged(lower_, upper_, looked, state_->space);
      bool must_check = false;
      const absl::StatusOr<CommitResult> same = watches_.parts_.pipeline->TrySubmit(
          options, &condition, /*checked=*/nullptr, &must_check);
      VARVE_ASSERT(!must_check);  // the batch adds nothing
      const bool gone = IsNoSuchNamespace(same.status()) || !InPlace();
      if (same.ok() && !gone) {
        state_->NoteLook(same->sequence);
        return false;
      }
      if (!gone && !absl::IsAborted(same.status())) return same.status();
      // If a buffer was flushed meanwhile, the flusher has looked through it for this watch.
      if (!gone && state_->Looked() != looked) continue;
      state_->NoteChange();
      return true;
    }
  }
  // Returns whether the namespace is the one that it was, in the same stretch of the tree.
  bool InPlace() const {
    const SuperVersions::Pin state = watches_.parts_.versions->Acquire();
    return state->namespaces.Generation(state_->space) == state_->generation;
  }

  RangeWatches& watches_;
  const std::shared_ptr<State> state_;
  const std::string lower_;  // user keys
  const std::string upper_;
  const uint64_t begun_ms_;  // what had expired by then is no change
};

// A look through one buffer, in the order of arrival. A watch takes part from the first record
// behind the point up to which it has looked until it has found a change.
class RangeWatches::Look {
 public:
  explicit Look(std::vector<std::shared_ptr<State>> watches) {
    for (std::shared_ptr<State>& state : watches) {
      const SequenceNumber looked = state->Looked();
      if (looked != kMaxSequence) waiting_.push_back({std::move(state), looked});
    }
    std::sort(waiting_.begin(), waiting_.end(),
              [](const Waiting& a, const Waiting& b) { return a.looked > b.looked; });
  }

  SequenceNumber begin() const { return waiting_.empty() ? kMaxSequence : waiting_.back().looked; }
  void AtRecord(std::string_view tree_key, SequenceNumber sequence) {
    while (!waiting_.empty() && waiting_.back().looked < sequence) {
      Enter(std::move(waiting_.back().state));
      waiting_.pop_back();
    }
    auto behind = std::upper_bound(
        active_.begin(), active_.end(), tree_key,
        [](std::string_view key, const Active& each) { return key < each.state->lower; });
    for (size_t i = static_cast<size_t>(behind - active_.begin());
         i > 0 && tree_key < active_[i - 1].reach; --i) {
      if (tree_key >= active_[i - 1].state->upper) continue;
      active_[i - 1].state->NoteChange();
      active_.erase(active_.begin() + static_cast<ptrdiff_t>(i - 1));
      RenewReaches(i - 1);
    }
  }

 private:
  struct Waiting {
    std::shared_ptr<State> state;
    SequenceNumber looked;
  };
  // `reach` is the furthest end of the range and of all that begin before it.
  struct Active {
    std::shared_ptr<State> state;
    std::string_view reach;
  };

  void Enter(std::shared_ptr<State> state) {
    const auto place = std::upper_bound(
        active_.begin(), active_.end(), state->lower,
        [](const std::string& lower, const Active& each) { return lower < each.state->lower; });
    const auto index = static_cast<size_t>(place - active_.begin());
    active_.insert(place, {std::move(state), {}});
    RenewReaches(index);
  }
  void RenewReaches(size_t from) {
    for (size_t i = from; i < active_.size(); ++i) {
      active_[i].reach = active_[i].state->upper;
      if (i > 0) active_[i].reach = std::max(active_[i].reach, active_[i - 1].reach);
    }
  }

  std::vector<Waiting> waiting_;  // the one that enters next stands last
  std::vector<Active> active_;    // by their lower ends
};

RangeWatches::~RangeWatches() { VARVE_ASSERT(count_.load() == 0); }

absl::StatusOr<std::unique_ptr<RangeWatch>> RangeWatches::Begin(NamespaceId space,
                                                                std::string_view lower,
                                                                std::string_view upper) {
  // If nothing may be removed now, some EXEC may fail without need.
  if (const absl::Status swept = parts_.sweeper->SweepAll();
      !swept.ok() && !absl::IsCancelled(swept) && !absl::IsAborted(swept))
    return swept;
  const uint64_t instant_ms = parts_.clock->NowMillis();
  // The lock before the sequence: a flush of what comes behind it finds the watch.
  absl::MutexLock lock(&mutex_);
  std::optional<NamespaceGeneration> generation;
  SequenceNumber last = kNoSequence;
  {
    absl::MutexLock commit_lock(&parts_.versions->mutex());
    generation = parts_.versions->PresentLocked()->namespaces.Generation(space);
    last = parts_.versions->visible();
  }
  if (!generation) return NoSuchNamespace(space);
  auto state = std::make_shared<State>(space, *generation, lower, upper);
  state->NoteLook(last);
  auto watch = std::make_unique<Watch>(this, state, lower, upper, instant_ms);
  states_.insert(std::move(state));
  count_.store(states_.size());
  return watch;
}

void RangeWatches::LookThrough(const WriteBuffer& buffer) {
  if (count_.load() == 0) [[likely]]
    return;
  const SequenceNumber last = buffer.last_sequence();
  std::vector<std::shared_ptr<State>> watches;
  {
    absl::MutexLock lock(&mutex_);
    for (const std::shared_ptr<State>& state : states_) {
      if (state->Looked() < last) watches.push_back(state);
    }
  }
  if (watches.empty()) return;
  Look look(watches);
  WriteBuffer::Position position = buffer.PositionNear(look.begin());
  buffer.Walk(&position, last, [&](const RecordView& record, const RecordView*) {
    look.AtRecord(record.key, record.sequence);
  });
  for (const std::shared_ptr<State>& state : watches) {
    const SequenceNumber looked = state->Looked();
    for (const RangeTombstone& tombstone : buffer.range_tombstones()) {
      if (tombstone.sequence > looked && state->Overlaps(tombstone.begin, tombstone.end))
        state->NoteChange();
    }
    state->NoteLook(last);
  }
}

void RangeWatches::NoteIngest(std::string_view lower, std::string_view upper, SequenceNumber last) {
  if (count_.load() == 0) [[likely]]
    return;
  absl::MutexLock lock(&mutex_);
  for (const std::shared_ptr<State>& state : states_)
    state->Overlaps(lower, upper) ? state->NoteChange() : state->NoteLook(last);
}

}  // namespace varve
