// A value read-ahead has memory or the disk fetch the separated values that a scan comes to next.
//
// Separated values lie in the order in which they were written, so that a scan of a store larger
// than memory waits for the disk at each of them. While the scan stands on one record, the
// read-ahead decodes the records behind it and tells the files which values will be read, up to
// half as many as the scan has passed since its seek: a short scan asks for few values that nobody
// reads, and a long one keeps the disk at work on many. Scans of 4 KiB values beyond memory are
// four times as fast (docs/decisions/0263-scans-ask-the-disk.md).
//
// Where one value after the other is in memory, asking is work for nothing: the read-ahead then
// rests for some records, and for twice as many each time that it finds the same again.
//
// Thread-safety: a read-ahead belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "db/format/value_handle.h"
#include "db/segment/value_lookahead.h"
#include "db/values/value_file.h"
#include "structure/clock_cache.h"

namespace varve {

class ValueReadAhead {
 public:
  using Files = std::vector<const ValueFile*>;
  // `cache` is where the reader looks for values, null if nowhere, and `files` has the files of
  // the values by their numbers, ascending, null if the reader does not read them.
  // Requires: both outlive the read-ahead.
  ValueReadAhead(const ClockCache* cache, const Files* files, uint64_t checksum_seed)
      : in_cache_(cache, checksum_seed), cache_(cache), files_(files), seed_(checksum_seed) {}

  // Begins with few values again. What was asked for, and a rest, stay as they are.
  void Restart() { passed_ = 0; }
  // Asks for values behind `next`, where the record behind the current one begins. `window` holds
  // the segment's bytes from `window_begin` on; nothing is verified.
  void Advance(std::string_view window, uint64_t window_begin, uint64_t next) {
    in_cache_.Advance(window, window_begin, next);
    if (files_ == nullptr) return;
    ++passed_;
    if (rests_ != 0) [[likely]] {
      --rests_;
    } else {
      AskAhead(window, window_begin, next);
    }
  }

 private:
  void AskAhead(std::string_view window, uint64_t window_begin, uint64_t next);
  // Decodes the record at asked_until_, and asks for its value. Returns false at the end of the
  // window, and at a record that cannot be decoded.
  bool AskForOne(std::string_view window, uint64_t window_begin);
  // Returns whether the value seems to be in memory.
  bool AskFor(const ValueHandle& handle) const;
  void NoteWhereItIs(bool in_memory);

  ValueLookahead in_cache_;
  const ClockCache* const cache_;
  const Files* const files_;
  const uint64_t seed_;
  uint64_t asked_until_ = 0;  // the end of the records whose values were asked for
  size_t asked_ = 0;          // how many of them lie behind the current record
  size_t passed_ = 0;         // records with separated values since the seek
  size_t in_memory_ = 0;      // values found there, one after the other
  size_t rests_ = 0;          // records to pass before the next value is asked for
  size_t rest_ = 0;           // how many they were the last time
};

}  // namespace varve
