// The list of large blocks holds the places of the log's blocks with large operations
// (db/format/large_operation.h), so that segments can point to values where the log wrote them.
//
// Invariants: the blocks ascend by their first operation. A block is listed when its first record
// with a large operation is appended, and gets its place when it is written.
// Thread-safety: none; the log's writer keeps the list under its mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "db/log/log_buffer.h"
#include "varve/types.h"

namespace varve {

// The place of the payload of a block that holds large operations.
struct LogBlockPlace {
  SequenceNumber first = kNoSequence;  // operation of the block
  uint64_t file_number = 0;            // 0: not written yet
  uint64_t payload_offset = 0;
};

class LargeBlocks {
 public:
  // Lists the block that begins with operation `first`. Returns false if it is listed already.
  // Throws std::bad_alloc. Requires: no listed block begins behind `first`.
  bool Add(SequenceNumber first);
  // Undoes the last Add().
  void TakeBack() { blocks_.pop_back(); }

  // Notes the places of those of the blocks [begin, end) of a buffer that are listed. The blocks
  // are being written to file `file_number`, the first of them at `position`. Needs no memory.
  void SetPlaces(const std::vector<LogBuffer::Block>& blocks, size_t begin, size_t end,
                 uint64_t file_number, uint64_t position);

  // Returns the listed blocks among those that hold the operations first..last, ascending.
  std::vector<LogBlockPlace> Find(SequenceNumber first, SequenceNumber last) const;
  // Forgets the blocks that hold no operation behind `flushed`.
  void Forget(SequenceNumber flushed);

 private:
  std::deque<LogBlockPlace> blocks_;
};

}  // namespace varve
