#include "db/hbase_rpc/cell_block.h"

#include <cstdint>

#include "util/base/coding.h"

namespace varve {
namespace {

constexpr size_t kTimestampAndType = 9;

// Takes `size` bytes from the front of `*rest`.
bool Take(std::string_view* rest, size_t size, std::string_view* bytes) {
  if (rest->size() < size) return false;
  *bytes = rest->substr(0, size);
  rest->remove_prefix(size);
  return true;
}

bool TakeSize(std::string_view* rest, size_t bytes, size_t* size) {
  std::string_view number;
  if (!Take(rest, bytes, &number)) return false;
  *size = 0;
  for (const char byte : number) *size = *size << 8 | static_cast<unsigned char>(byte);
  return true;
}

bool ReadKey(std::string_view key, AnsweredCell* cell) {
  size_t row_size = 0;
  size_t family_size = 0;
  std::string_view family;
  if (!TakeSize(&key, 2, &row_size) || !Take(&key, row_size, &cell->row)) return false;
  if (!TakeSize(&key, 1, &family_size) || !Take(&key, family_size, &family)) return false;
  if (key.size() < kTimestampAndType) return false;
  cell->qualifier = key.substr(0, key.size() - kTimestampAndType);
  return true;
}

}  // namespace

bool CellBlock::Next(AnsweredCell* cell) {
  size_t size = 0;
  size_t key_size = 0;
  size_t value_size = 0;
  std::string_view body;
  std::string_view key;
  return TakeSize(&rest_, 4, &size) && Take(&rest_, size, &body) && TakeSize(&body, 4, &key_size) &&
         TakeSize(&body, 4, &value_size) && Take(&body, key_size, &key) && ReadKey(key, cell) &&
         Take(&body, value_size, &cell->value);
}

}  // namespace varve
