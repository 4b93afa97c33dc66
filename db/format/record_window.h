// The record window is a window (util/os/file_window.h) over the records of a segment that may be
// damaged.
//
// Thread-safety: a window belongs to one thread. What it returns stays valid until the next call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "db/format/key_base.h"
#include "type/record.h"
#include "util/os/file_window.h"

namespace varve {

class RecordWindow : public FileWindow {
 public:
  // Requires: `file` holds segment `number` and outlives the window.
  RecordWindow(const File& file, uint64_t number) : FileWindow(file), number_(number) {}

  // Says what records share of their keys.
  void UseKeyBase(std::string_view base) { keys_.SetBase(base); }
  // Does what UseKeyBase() does with the base that the first record tells, if that can be read.
  [[nodiscard]] absl::Status FindKeyBase(uint64_t end);

  // Reads the record at `offset`, of data that ends at `end`. Returns its size; 0 if it is not
  // whole, longer than `longest`, or shares more of its key than the base has.
  [[nodiscard]] absl::StatusOr<size_t> RecordAt(uint64_t offset, uint64_t longest, uint64_t end,
                                                RecordView* record);

 private:
  const uint64_t number_;
  KeyJoiner keys_;
};

}  // namespace varve
