// A log end is the place where a log file ends that the log does not write any more.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>

#include "varve/types.h"

namespace varve {

// The manifest records where the good bytes of such a file end.
struct LogEnd {
  uint64_t file_number = 0;
  uint64_t offset = 0;               // behind the last good block
  SequenceNumber last_sequence = 0;  // the last good operation's
};

}  // namespace varve
