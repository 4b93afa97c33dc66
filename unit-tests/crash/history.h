// What was sent to a store, what the store acknowledged, and when, counted in changes of the disk:
// from it follows what a crash at any moment may leave, and what the store's past is.
//
// The store writes operations of its own between those it is sent: it removes what has expired, and
// notes where its clock has been. They have sequences, too, and change nothing that a user sees.
//
// Thread-safety: a history belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "unit-tests/crash/contents.h"
#include "varve/options.h"
#include "varve/types.h"

namespace varve::testing {

class History {
 public:
  // The place of the feed that the user has.
  struct FeedBounds {
    bool must_exist = false;
    bool may_exist = false;
    SequenceNumber least = kNoSequence;
    SequenceNumber most = kNoSequence;
  };
  // A crash leaves a state of `least` or later, up to the batch that ends at `most` and what the
  // store wrote by itself.
  struct Bounds {
    SequenceNumber least = kNoSequence;
    SequenceNumber most = kNoSequence;
    Known known;
    FeedBounds feed = {};
  };
  // What the store held from `version` on, until the next state.
  struct State {
    SequenceNumber version = kNoSequence;
    const Contents* contents = nullptr;
    // The operations of the batch that ends here are not known one by one: between it and the state
    // before, other contents may have been there.
    bool is_opaque = false;
  };

  // `before`: where the contents at earlier sequences are found.
  explicit History(const History* before = nullptr)
      : before_(before), moment_(before == nullptr ? 0 : before->moment_) {}

  // A batch that left `contents`, with `first` and `last` as its first and last operation's
  // sequences; the disk had seen `sent_at` changes before it was sent. `steps` are the contents
  // after each of its operations; none: they are not known.
  void Sent(SequenceNumber first, SequenceNumber last, Durability mode, Contents contents,
            uint64_t sent_at, std::vector<Contents> steps = {});
  // All up to `last` was acknowledged, as durable as the mode promises, when the disk had seen `at`
  // changes.
  void Acknowledged(SequenceNumber last, Durability mode, uint64_t at);
  // Somebody was told that these have expired.
  void SeenGone(const std::vector<Value>& values, uint64_t at);
  // From now on, and until the next call, the store's clock shows `instant_ms` at most.
  void ClockIs(uint64_t instant_ms, uint64_t at);
  // The user's feed is asked to stand at `position`; and the store says that it does.
  void FeedSent(SequenceNumber position, uint64_t at);
  void FeedAcknowledged(SequenceNumber position, uint64_t at);
  // Takes over what was known when all this began.
  void Inherit(const Bounds& bounds);
  // The batches behind `last` are gone; the store was opened again and goes on from there.
  void Forget(SequenceNumber last);

  SequenceNumber last() const { return batches_.empty() ? kNoSequence : batches_.rbegin()->first; }
  // Returns the last write that was acknowledged in any mode, at any time.
  SequenceNumber last_acknowledged() const;
  // Returns the moment of what is written now.
  uint64_t moment() const { return moment_; }

  // After a crash when the disk had seen `at` changes; where the power was not cut, the kernel
  // still had everything.
  Bounds After(uint64_t at, bool power_was_cut) const;
  Known KnownAt(uint64_t at) const;
  // The end of the newest batch that `sequence` holds.
  SequenceNumber BatchAt(SequenceNumber sequence) const;
  // The store's contents at `sequence`; null in the middle of a batch.
  const Contents* At(SequenceNumber sequence) const;
  // Shows the states up to `version`, newest first, until `show` returns false; the last one is
  // that of an empty store.
  void ShowBack(SequenceNumber version, absl::FunctionRef<bool(const State&)> show) const;
  // Returns what the store held at `version`, also in the middle of a batch; null: that is not
  // known.
  const Contents* Exactly(SequenceNumber version) const;

 private:
  struct Batch {
    SequenceNumber first;
    Contents contents;
    Durability mode;
    uint64_t sent_at;
    std::vector<Contents> steps;
  };
  struct Acknowledgement {
    uint64_t at;
    SequenceNumber on_disk;    // at least
    SequenceNumber in_kernel;  // at least
  };
  struct FeedMove {
    uint64_t at;
    SequenceNumber position;
    bool is_acknowledged;
  };
  struct Sight {
    uint64_t at;
    std::vector<Value> gone;
  };
  struct ClockChange {
    uint64_t at;
    Known::Clock clock;
  };

  const History* const before_;
  const Contents nothing_;
  uint64_t moment_;
  std::map<SequenceNumber, Batch> batches_;  // by their ends
  // In order of time:
  std::vector<Acknowledgement> acknowledgements_;
  std::vector<Sight> sights_;
  std::vector<ClockChange> clocks_;
  std::vector<FeedMove> feed_moves_;
};

}  // namespace varve::testing
