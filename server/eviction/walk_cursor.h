// The cursor of a walk stands at one key after the other of a namespace, at one snapshot. Where the
// store cannot read some keys, the cursor passes them and goes on behind them, so that a bad block
// hides neither all keys behind it nor what a later walk finds.
//
// A place behind them is found by trial: an iterator that begins there can be read. The trials
// narrow it down byte by byte. Keys that can be read may be passed, too: those in the same block,
// and those of other segments that lie between. On a device that fails each read may take seconds,
// so the cursor gives up, and is at its end, once that has failed some dozens of them.
//
// Thread-safety: one thread at a time uses an object.
// Requires: it is destroyed before the store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "varve/iterator.h"
#include "varve/namespace.h"
#include "varve/snapshot.h"
#include "varve/store.h"
#include "varve/types.h"

namespace varve {

class WalkCursor {
 public:
  // Stands at the first of the namespace's keys that are newer than this version.
  WalkCursor(Store* store, NamespaceId space, SequenceNumber newer_than);

  // Returns false at the end, and after an error: then status() says which.
  bool Valid() const { return iterator_ != nullptr && iterator_->Valid(); }
  // Requires: Valid().
  void Next();
  // Requires: Valid().
  std::string_view key() const { return iterator_->key(); }
  SequenceNumber version() const { return iterator_->version(); }
  uint64_t expiry_ms() const { return iterator_->expiry_ms(); }
  absl::Status status() const {
    return iterator_ == nullptr ? absl::OkStatus() : iterator_->status();
  }

  // Returns whether keys were passed.
  bool has_passed_keys() const { return has_passed_keys_; }
  SequenceNumber newer_than() const { return newer_than_; }
  // Returns the newest version that it looks at.
  SequenceNumber sequence() const { return snapshot_->sequence(); }

 private:
  // Returns an iterator over the keys from `first` on, before `end` if that is not empty.
  std::unique_ptr<Iterator> Open(std::string_view first, std::string_view end) const;
  // Goes on behind `last_` if the keys there cannot be read.
  void PassWhatCannotBeRead();
  // Returns the first place behind `last_` at which an iterator can begin; empty: there is none.
  // After many trials that fail it returns the first one that was found until then.
  std::string FindPlaceBehindLast();

  Store& store_;
  const NamespaceId space_;
  const SequenceNumber newer_than_;
  const std::shared_ptr<const Snapshot> snapshot_;
  std::unique_ptr<Iterator> iterator_;  // null: no more can be read
  std::string last_;                    // the key before the present one; empty: there is none
  bool has_passed_keys_ = false;
  int failed_reads_ = 0;  // by the device
};

}  // namespace varve
