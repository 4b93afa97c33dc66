// A window that moves over the records of a segment that may be damaged: reads in pieces of 1 MiB, or a record where that is larger.
// Not thread-safe. What it returns stays valid until the next call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "type/record.h"
#include "util/file_system.h"

namespace varve {

class RecordWindow {
 public:
  // Of segment `number` in `file`, which outlives the window.
  RecordWindow(const File& file, uint64_t number) : file_(file), number_(number) {}

  // Has at least `wanted` bytes from `offset` on (fewer only at `end`), and returns all there are.
  [[nodiscard]] absl::StatusOr<std::string_view> Bytes(uint64_t offset, uint64_t wanted, uint64_t end);
  // The record at `offset`, if it is whole and no longer than `longest`; returns its size, 0 if it is not.
  [[nodiscard]] absl::StatusOr<size_t> RecordAt(uint64_t offset, uint64_t longest, uint64_t end, RecordView* record);

 private:
  const File& file_;
  const uint64_t number_;
  std::string bytes_;
  uint64_t begin_ = 0;  // of bytes_, in the file
};

}  // namespace varve
