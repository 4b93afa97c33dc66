// The log room counts the bytes that the log has promised to records in the file in use and in the
// next one, so that it notices a full disk before it accepts a record.
//
// It promises a record the room of a page-aligned block of its own, which is the worst case. Its
// cursor stands where such blocks would end, in the file in use or in the next one; real blocks,
// which share pages, never end behind it. Once blocks are written, BringBack() moves the cursor
// back to the end of the real blocks.
//
// Invariants: the cursor lies within the file in use or the next one, on a page.
// Thread-safety: none; the log's writer keeps the account under its mutex.
#pragma once

#include <algorithm>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "db/format/log_format.h"

namespace varve {

class LogRoom {
 public:
  // The last `delete_reserve` bytes are for deletes alone, once the disk is full. `*safe` always
  // holds how many bytes surely fit: those behind the cursor, less the reserve for deletes and a
  // page for a mark. Requires: `safe` outlives the room.
  LogRoom(uint64_t delete_reserve, std::atomic<uint64_t>* safe)
      : delete_reserve_(delete_reserve), safe_(safe) {}

  // Returns what a record may take in the worst case.
  static uint64_t WorstCase(size_t record_size) {
    return LogPageAlign(kLogBlockHeaderSize + record_size);
  }

  // Begins with an empty file of `size` bytes in use.
  void Begin(uint64_t size);
  // Returns whether a record that takes `unit` bytes fits. `next_size` is the size of the next
  // file; 0 if there is none at the moment.
  bool Fits(uint64_t unit, uint64_t next_size, bool for_deletes) const;
  // Keeps TakeMark() from taking what Fits() has just promised, until the next Take().
  void Promise() { is_promised_ = true; }
  void EndPromise() { is_promised_ = false; }
  // Returns whether a record that takes `unit` bytes goes to the next file.
  bool GoesToNextFile(uint64_t unit) const {
    return cursor_.file == file_index_ && cursor_.offset + unit > file_size_;
  }
  // Notes that a record that takes `unit` bytes was put into the buffer.
  void Take(uint64_t unit, uint64_t next_size);
  // Notes that the writer has taken the contents of the buffer.
  void BufferIsWritten() { buffered_units_ = 0; }
  // Notes that the log is written up to `position` of the file in use, and moves the cursor back.
  void BringBack(uint64_t position, uint64_t next_size);
  // Takes the page at `offset` of the file in use for a block without records. Returns false if
  // something else was promised it, or deletes need it.
  bool TakeMark(uint64_t offset, uint64_t next_size);
  // Notes that the next file, of `size` bytes, is in use.
  void NextFile(uint64_t size);
  // Gives up what is left of the file in use: all further room is that of the next file, which
  // NextFile() is about to put into use.
  // Requires: nothing is buffered, and no commit is under way.
  void SkipRest();

 private:
  struct Cursor {
    uint64_t file = 0;  // files since the log was opened
    uint64_t offset = 0;
    auto operator<=>(const Cursor&) const = default;
  };

  void PublishSafe(uint64_t next_size);

  const uint64_t delete_reserve_;
  std::atomic<uint64_t>* const safe_;
  Cursor cursor_;
  uint64_t file_index_ = 0;  // the file in use, as in Cursor
  uint64_t file_size_ = 0;
  uint64_t buffered_units_ = 0;  // room of what is in the buffer
  bool is_promised_ = false;     // Fits() said yes, Take() is still to come
};

}  // namespace varve
