// A value lookahead has memory or the disk fetch what a scan is about to read when it takes the
// separated values of records from the block cache or from their files.
//
// A look into the cache waits for memory three times: for the slot of the cache's table, for the
// header of the entry, and for the value. While the scan stands on one record, the lookahead
// decodes the record two places behind it and prefetches the slot of its value; for the record in
// between, whose slot has arrived meanwhile, it prefetches header and value. Scans of 4 KiB values
// in the cache gain 45 %.
//
// A value that the scan copies out of a mapping of its file is asked for one record ahead. Where the
// reads of the thread go to the disk (util/os/disk_sense.h), the disk is told of the values of up to
// 16 records, of few behind a seek and of twice as many with each step, so that it reads them at
// the same time.
//
// Thread-safety: a lookahead belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "db/format/value_handle.h"
#include "db/segment/segment_caches.h"
#include "structure/clock_cache.h"

namespace varve {

class Segment;

class ValueLookahead {
 public:
  // Requires: `segment`, whose records the scan reads, outlives the lookahead.
  ValueLookahead(Segment* segment, ValuesFrom from);

  // Notes that the scan begins anew elsewhere.
  void Restart() { depth_ = 0; }
  // Asks for the value of the record that a seek has found. `from_disk` says whether the reads of
  // the thread go to the disk.
  // Requires: the record is separated.
  void Begin(const RecordView& record, bool from_disk);
  // Asks for the values of the records behind `next`, where the record behind the current one
  // begins. `window` holds the segment's bytes from `window_begin` on; nothing is verified.
  // Requires: the current record is separated.
  void Advance(std::string_view window, uint64_t window_begin, uint64_t next, bool from_disk);

 private:
  // Decodes the record at decoded_until_. Returns false if the window does not hold it.
  bool DecodeOne(std::string_view window, uint64_t window_begin);
  // Asks the cache's memory for the value, or else its file.
  void Ask(const ValueHandle& handle, bool from_disk);
  // Returns null if the segment does not know the file.
  const ValueFile* FileOf(uint64_t number);

  Segment* const segment_;         // null: no value is wanted
  const ClockCache* const cache_;  // null: values are not looked for there
  const uint64_t seed_;
  uint64_t decoded_until_ = 0;  // the end of the records whose values were asked for
  ValueHandle last_;            // of the last of them; its file number is 0 if it has none
  size_t ahead_ = 0;            // separated values among them that the scan has not come to
  size_t depth_ = 0;            // so many of them there should be
  size_t file_ = 0;             // index of the file that was asked last
};

}  // namespace varve
