// The show queue makes batches visible in the order of their sequences, while the threads that
// wrote them insert their records side by side.
//
// A batch enters the queue under the commit lock, which gives it its place. The thread that wrote
// it calls Finish() without the lock, which applies it and leaves its records in the place. The
// thread whose batch is the oldest that is not visible yet shows it, and those behind it that are
// finished; the others wait until theirs is shown. So a writer whose call returns finds what it
// wrote. After kMostShown batches the turn goes to the thread of the next one.
//
// Threads that wait look at their place, and at one word for all of them, which moves for some
// batches at a time: to tell each of 16 threads by itself takes longer than what they wrote.
//
// A thread that needs the active buffer to hold all that the log has taken holds the commit lock
// and calls DrainLocked(). The leader of a commit group (db/commit/commit_groups.h) offers its own
// batch before it serves others, as theirs are shown behind it, and awaits it at the end. Where
// nobody comes meanwhile, it applies its batch without the lock, too.
//
// Thread-safety: functions whose name ends in Locked need the commit lock; the others may be called
// on any thread.
// Invariants: (1) The visible sequence moves in the order of entering. (2) At most one thread
// shows. (3) A batch is touched by others only until Finish() returns.
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
    alignas(8) HandOver shown_;
  };

  // `visible` is the sequence that the queue moves. Requires: it outlives the queue.
  explicit ShowQueue(std::atomic<SequenceNumber>* visible);
  ShowQueue(const ShowQueue&) = delete;
  ShowQueue& operator=(const ShowQueue&) = delete;

  // Gives the batch the next place. Its owner calls Finish() after this, or OfferLocked().
  void EnterLocked(Batch* batch);
  // Applies the batch of a leader, which has entered, and shows it if it is the oldest. The leader
  // calls TakeOfferedLocked() before it releases the lock.
  void OfferLocked(Batch* batch);
  // Returns the batch that was offered if it may not be visible yet: the caller owes it Await().
  // Returns null otherwise.
  Batch* TakeOfferedLocked();
  // Returns once the batch, which was offered, is visible.
  void Await(Batch* batch) {
    if (!AwaitShown(batch)) ShowFrom(batch->place_);
  }
  // Waits until everything that has entered is visible.
  void DrainLocked();

  // Makes everything up to `last` visible, which was applied under the commit lock. Requires: the
  // queue is drained.
  void ShowLocked(SequenceNumber last);

  // Applies the batch; returns once it is visible.
  // Requires: the caller does not hold the commit lock.
  void Finish(Batch* batch) {
    if (!Offer(batch)) Await(batch);
  }

 private:
  static constexpr uint64_t kPlaces = 256;
  static constexpr int kMostShown = 64;  // by one thread, in a row
  static constexpr int kShownAtOnce = 8;
  enum Word : uint32_t { kShown = HandOver::kFirstWord, kShows };

  // A place's state is one of these, or the address of the hand-over at which its thread sleeps.
  enum : uint64_t {
    kUnfinished = 0,
    kTurn = 1,      // it is being shown, or its thread shows it once it is finished
    kYouShow = 2,   // its thread waits and has to show it
    kFinished = 3,  // with the number of the place, so that no two batches have the same state
  };
  static uint64_t Finished(uint64_t place) { return place << 2 | kFinished; }
  static bool IsAsleep(uint64_t state) { return (state & 3) == 0 && state != kUnfinished; }

  struct alignas(64) Place {
    std::atomic<uint64_t> state{kUnfinished};
    // The batch's, once it is finished.
    WriteBuffer* buffer = nullptr;
    WriteBuffer::Batch records;
    SequenceNumber last = kNoSequence;
  };

  Place& At(uint64_t place) { return places_[place % kPlaces]; }
  // Applies the batch. Returns true if it was the oldest and is shown now.
  bool Offer(Batch* batch);
  // Waits for the batch, which is finished. Returns true once it is shown, and false if the caller
  // has to show it.
  bool AwaitShown(Batch* batch);
  // Shows the batch at `place` and those behind it that are finished.
  // Requires: the caller has the turn, which is that place's.
  void ShowFrom(uint64_t place);
  // Moves the visible sequence, and wakes the thread that waits for it in DrainLocked().
  void MoveVisible(SequenceNumber last);

  std::atomic<SequenceNumber>* const visible_;
  // Guarded by the commit lock: how many batches have entered, the value of shown_ that the thread
  // with the lock read last, the last batch's sequence, and the batch that a leader has offered.
  uint64_t entered_ = 0;
  uint64_t shown_before_ = 0;
  SequenceNumber last_ = kNoSequence;
  Batch* offered_ = nullptr;
  // The places before this one may be used again.
  alignas(64) std::atomic<uint64_t> shown_{0};
  // The sequence that somebody waits for in DrainLocked(); kMaxSequence: nobody does.
  std::atomic<SequenceNumber> awaited_{kMaxSequence};
  std::array<Place, kPlaces> places_;
};

}  // namespace varve
