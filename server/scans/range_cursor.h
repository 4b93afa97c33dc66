// A place in ranges of keys at one snapshot, from which a reply is produced in slices: it can be
// left for a while, when it holds the snapshot alone and no files or memory of the store, and found
// again.
//
// Thread-safety: one thread at a time uses a cursor.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/execution/command_context.h"
#include "server/scans/selected_keys.h"

namespace varve {

class RangeCursor {
 public:
  struct Options {
    bool reverse = false;
    bool keys_only = false;                   // value() is not asked for
    uint32_t expected_entries = 0;            // that will be looked at; 0: nobody knows
    SequenceNumber newer_than = kNoSequence;  // keys that were written later
  };
  RangeCursor(SelectedKeys keys, Options options) : keys_(std::move(keys)), options_(options) {}

  // Lives while a slice is produced. The first one takes the snapshot and goes to the first key
  // (the last, in reverse); one after Rest() goes back to where it stood. The reply depends on what
  // was shown; an iterator that is old is given back.
  class Slice {
   public:
    Slice(RangeCursor* cursor, CommandContext& context) : cursor_(cursor), context_(context) {
      cursor->Resume(context);
    }
    ~Slice();

   private:
    RangeCursor* const cursor_;
    CommandContext& context_;
  };
  // Gives the iterator back. Requires: no slice is being produced.
  void Rest();

  const SelectedKeys& keys() const { return keys_; }
  // Returns whether there is no range to go through.
  bool empty() const { return keys_.ranges.empty(); }
  bool Valid() const { return iterator_->Valid(); }
  std::string_view key() const { return iterator_->key(); }
  std::string_view value() const { return iterator_->value(); }
  uint64_t value_size() const { return iterator_->value_size(); }
  std::string_view metadata() const { return iterator_->metadata(); }
  SequenceNumber version() const { return iterator_->version(); }
  uint64_t expiry_ms() const { return iterator_->expiry_ms(); }
  absl::Status status() const { return iterator_->status(); }
  // Returns the cost of this step, as CommandContext::SliceSpent() counts: a key mostly stands with
  // its value under one checksum, and then both are read.
  size_t cost() const {
    return 1 + (Valid() ? (value().size() + metadata().size()) / kBytesPerKey : 0);
  }
  void Step() {
    options_.reverse ? iterator_->Prev() : iterator_->Next();
    if (keys_.ranges.size() > 1) SkipGap();
  }
  // Goes to the first key from `target` on; in reverse to the last one before it.
  void SkipTo(std::string_view target);
  // Goes back to `key`. Requires: it is a key of the range.
  void Return(std::string_view key) { iterator_->Seek(key); }

 private:
  void Resume(CommandContext& context);
  // Goes on to the next key that is in a range, where the iterator stands between two.
  void SkipGap();

  const SelectedKeys keys_;
  const Options options_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::unique_ptr<Iterator> iterator_;
  std::chrono::steady_clock::time_point opened_;
  std::optional<std::string> resume_;  // where a dropped iterator stood
  SequenceNumber durable_after_ = kNoSequence;
};

}  // namespace varve
