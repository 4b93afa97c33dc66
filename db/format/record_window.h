// A window (util/os/file_window.h) over the records of a segment that may be damaged. Not
// thread-safe. What it returns stays valid until the next call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "type/record.h"
#include "util/os/file_window.h"

namespace varve {

class RecordWindow : public FileWindow {
 public:
  // Of segment `number` in `file`, which outlives the window.
  RecordWindow(const File& file, uint64_t number) : FileWindow(file), number_(number) {}

  // The record at `offset`, if it is whole and no longer than `longest`; returns its size, 0 if it
  // is not.
  [[nodiscard]] absl::StatusOr<size_t> RecordAt(uint64_t offset, uint64_t longest, uint64_t end,
                                                RecordView* record);

 private:
  const uint64_t number_;
};

}  // namespace varve
