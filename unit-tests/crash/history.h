// What was sent to a store, what the store acknowledged, and when, counted in changes of the disk: from it follows what a crash at
// any moment may leave. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "type/options.h"
#include "type/sequence.h"

namespace varve::testing {

// All keys and values of a store. Values are shared between the contents of successive moments.
using Contents = std::map<std::string, std::shared_ptr<const std::string>, std::less<>>;

class History {
 public:
  // A crash leaves a state of `least` or later, up to `most`: the sequence after a whole batch.
  struct Bounds {
    SequenceNumber least = kNoSequence;
    SequenceNumber most = kNoSequence;
  };

  // `before`: where the contents at earlier sequences are found.
  explicit History(const History* before = nullptr) : before_(before) {}

  // A batch that left `contents`, with `last` as its last operation's sequence; the disk had seen `sent_at` changes before it was sent.
  void Sent(SequenceNumber last, Durability mode, Contents contents, uint64_t sent_at);
  // All up to `last` was acknowledged, as durable as the mode promises, when the disk had seen `at` changes.
  void Acknowledged(SequenceNumber last, Durability mode, uint64_t at);
  // The batches behind `last` are gone; the store was opened again and goes on from there.
  void Forget(SequenceNumber last);

  SequenceNumber last() const { return batches_.empty() ? kNoSequence : batches_.rbegin()->first; }
  // Of all modes, at any time.
  SequenceNumber last_acknowledged() const;

  // After a crash when the disk had seen `at` changes; where the power was not cut, the kernel still had everything.
  Bounds After(uint64_t at, bool power_was_cut) const;
  // The store's contents after `last`; null where no batch ends.
  const Contents* At(SequenceNumber last) const;

 private:
  struct Batch {
    Contents contents;
    Durability mode;
    uint64_t sent_at;
  };
  struct Acknowledgement {
    uint64_t at;
    SequenceNumber on_disk;    // at least
    SequenceNumber in_kernel;  // at least
  };

  const History* const before_;
  const Contents nothing_;
  std::map<SequenceNumber, Batch> batches_;
  std::vector<Acknowledgement> acknowledgements_;  // in order of time
};

}  // namespace varve::testing
