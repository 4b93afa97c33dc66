// A time mark says when writes were committed: every one from a sequence on, at an instant or
// later. The log holds marks between batches (db/format/batch_codec.h), and db/history/time_map.h
// keeps them.
//
// Thread-safety: a plain value.
#pragma once

#include <cstdint>

#include "varve/types.h"

namespace varve {

struct TimeMark {
  SequenceNumber first = kNoSequence;
  uint64_t instant_ms = 0;  // since the epoch

  friend bool operator==(const TimeMark&, const TimeMark&) = default;
};

// The place of the marks of flushed batches (db/history/time_file.h).
struct TimeFilePlace {
  uint64_t number = 0;  // 0: there is no file
  uint64_t size = 0;    // the bytes that hold

  friend bool operator==(const TimeFilePlace&, const TimeFilePlace&) = default;
};

}  // namespace varve
