// The place where a log file that is not written any more ends.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>

#include "varve/types.h"

namespace varve {

// The end of a log file's good bytes, as the manifest records it for files that will not be written
// any more.
struct LogEnd {
  uint64_t file_number = 0;
  uint64_t offset = 0;               // behind the last good block
  SequenceNumber last_sequence = 0;  // the last good operation's
};

}  // namespace varve
