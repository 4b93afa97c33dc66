// The show queue makes batches visible in the order of their sequences, while the threads that
// wrote them insert their records side by side.
//
// A batch enters the queue under the commit lock, which gives it its place. The thread that wrote
// it applies it, without the lock, and calls Finish(). The thread whose batch is the oldest that is
// not visible yet shows it, and those behind it that are finished; the others wait until theirs is
// shown. So a writer whose call returns finds what it wrote. After kMostShown batches the turn goes
// to the thread of the next one.
//
// A thread that needs the active buffer to hold all that the log has taken holds the commit lock
// and calls DrainLocked(). The leader of a commit group (db/commit/commit_groups.h) enters its own
// batch as the leader, so that it can drain the queue before it has come to applying it.
//
// Thread-safety: functions whose name ends in Locked need the commit lock; the others may be called
// on any thread.
// Invariants: (1) visible() moves from batch to batch in the order of entering. (2) At most one
// thread shows. (3) A batch is touched by others only until Finish() returns.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "db/write_buffer/write_buffer.h"
#include "structure/hand_over.h"
#include "varve/types.h"

namespace varve {

class ShowQueue {
 public:
  class Batch {
   public:
    Batch() = default;
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    virtual ~Batch() = default;

    // Inserts the records into `*buffer` and notes them in `*batch`.
    virtual void Apply() noexcept = 0;

   protected:
    WriteBuffer* buffer_ = nullptr;
    WriteBuffer::Batch records_;
    SequenceNumber last_ = kNoSequence;

   private:
    friend class ShowQueue;
    uint64_t place_ = 0;
    HandOver shown_;
  };

  // `visible` is the sequence that the queue moves. Requires: it outlives the queue.
  explicit ShowQueue(std::atomic<SequenceNumber>* visible);
  ShowQueue(const ShowQueue&) = delete;
  ShowQueue& operator=(const ShowQueue&) = delete;

  // Gives the batch the next place. Its owner calls Finish() after this.
  void EnterLocked(Batch* batch);
  // Does so for the batch of the leader, which takes it back by TakeOwnLocked().
  void EnterAsLeaderLocked(Batch* batch);
  // Returns the leader's batch if it still has to be applied; null otherwise.
  Batch* TakeOwnLocked();
  // Waits until everything that has entered is visible.
  void DrainLocked();

  // Makes everything up to `last` visible, which was applied under the commit lock. Requires: the
  // queue is drained.
  void ShowLocked(SequenceNumber last);

  // Applies the batch; returns once it is visible. Requires: the caller does not hold the commit
  // lock, or nobody else can enter before the batch is shown.
  void Finish(Batch* batch);

 private:
  static constexpr uint64_t kPlaces = 256;
  static constexpr int kMostShown = 64;  // by one thread, in a row
  enum Word : uint32_t { kShown = HandOver::kFirstWord, kShows };

  struct alignas(64) Place {
    // Null: the batch is not finished. turn(): nor is it, and its owner shows it.
    std::atomic<Batch*> finished{nullptr};
  };

  Place& At(uint64_t place) { return places_[place % kPlaces]; }
  // Stands for a batch where a place has the turn.
  Batch* turn() { return reinterpret_cast<Batch*>(this); }
  // Moves the visible sequence, and wakes who waits for it.
  void MoveVisible(SequenceNumber last);

  std::atomic<SequenceNumber>* const visible_;
  // Guarded by the commit lock: how many batches have entered, the last one's sequence, and the
  // batch that a leader has not come to applying.
  uint64_t entered_ = 0;
  SequenceNumber last_ = kNoSequence;
  Batch* own_ = nullptr;
  // The sequence that somebody waits for in DrainLocked(); kMaxSequence: nobody does.
  std::atomic<SequenceNumber> awaited_{kMaxSequence};
  alignas(64) std::atomic<uint64_t> shown_{0};  // so many places may be used again
  std::array<Place, kPlaces> places_;
};

}  // namespace varve
