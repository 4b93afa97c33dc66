// CellBlock reads the cells that a server sends behind a message, as HBase's KeyValueCodec writes
// them:
//
//   | size: 4 | key size: 4 | value size: 4 | row size: 2 | row | family size: 1 | family |
//   | qualifier | timestamp: 8 | type: 1 | value | tags |
//
// All numbers are big-endian; `size` counts what follows it, the key is what stands from the size
// of the row to the type.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <cstddef>
#include <string_view>

namespace varve {

// The views point into the answer.
struct AnsweredCell {
  std::string_view row;
  std::string_view qualifier;
  std::string_view value;
};

class CellBlock {
 public:
  explicit CellBlock(std::string_view bytes) : rest_(bytes) {}

  // Reads the next cell; returns false where there is none, or where the bytes are none.
  bool Next(AnsweredCell* cell);
  bool is_empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace varve
