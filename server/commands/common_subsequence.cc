#include "server/commands/common_subsequence.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace varve {
namespace {

static_assert(std::endian::native == std::endian::little);

// The rows of the table, one for each byte of `longer`. L(row, column) is the length for the first
// `row` bytes of the longer and the first `column` of the shorter; bit c of a row is clear where L
// grows from column c to c + 1.
class Rows {
 public:
  explicit Rows(std::string_view shorter)
      : words_((shorter.size() + 63) / 64), row_(words_, UINT64_MAX) {
    masks_.resize(256 * words_);
    for (size_t i = 0; i < shorter.size(); ++i) {
      masks_[static_cast<uint8_t>(shorter[i]) * words_ + i / 64] |= uint64_t{1} << (i % 64);
    }
  }

  void Next(char byte) {
    const uint64_t* const mask = &masks_[static_cast<uint8_t>(byte) * words_];
    uint64_t carry = 0;
    for (size_t i = 0; i < words_; ++i) {
      const uint64_t row = row_[i];
      const uint64_t matches = row & mask[i];
      const uint64_t partial = row + matches;
      const uint64_t sum = partial + carry;
      carry = (partial < row || sum < partial) ? 1 : 0;
      row_[i] = sum | (row & ~matches);
    }
  }

  const char* bytes() const { return reinterpret_cast<const char*>(row_.data()); }

 private:
  const size_t words_;
  std::vector<uint64_t> row_;
  std::vector<uint64_t> masks_;  // for each byte value, where it stands in the shorter string
};

// L at `column` of a row: its clear bits before that.
size_t LengthAt(const char* row, size_t column) {
  size_t ones = 0;
  size_t bit = 0;
  for (; bit + 64 <= column; bit += 64) {
    uint64_t word = 0;
    std::memcpy(&word, row + bit / 8, sizeof(word));
    ones += static_cast<size_t>(std::popcount(word));
  }
  for (; bit + 8 <= column; bit += 8)
    ones += static_cast<size_t>(std::popcount(static_cast<uint8_t>(row[bit / 8])));
  if (bit < column) {
    const unsigned rest = static_cast<uint8_t>(row[bit / 8]) & ((1u << (column - bit)) - 1);
    ones += static_cast<size_t>(std::popcount(rest));
  }
  return column - ones;
}

// All rows, the first of them (no byte of the longer string) left out.
class Table {
 public:
  Table(std::string_view shorter, std::string_view longer) : row_bytes_((shorter.size() + 7) / 8) {
    Rows rows(shorter);
    cells_.resize(row_bytes_ * longer.size());
    for (size_t i = 0; i < longer.size(); ++i) {
      rows.Next(longer[i]);
      std::memcpy(&cells_[i * row_bytes_], rows.bytes(), row_bytes_);
    }
  }

  size_t Length(size_t row, size_t column) const {
    return row == 0 ? 0 : LengthAt(&cells_[(row - 1) * row_bytes_], column);
  }

 private:
  const size_t row_bytes_;
  std::vector<char> cells_;
};

}  // namespace

size_t CommonSubsequenceLength(std::string_view a, std::string_view b) {
  const std::string_view shorter = a.size() < b.size() ? a : b;
  const std::string_view longer = a.size() < b.size() ? b : a;
  if (shorter.empty()) return 0;
  Rows rows(shorter);
  for (const char byte : longer) rows.Next(byte);
  return LengthAt(rows.bytes(), shorter.size());
}

CommonSubsequence FindCommonSubsequence(std::string_view a, std::string_view b) {
  CommonSubsequence found;
  if (a.empty() || b.empty()) return found;
  const bool a_is_shorter = a.size() < b.size();
  const Table table(a_is_shorter ? a : b, a_is_shorter ? b : a);
  const auto length = [&](size_t i, size_t j) {
    return a_is_shorter ? table.Length(j, i) : table.Length(i, j);
  };
  size_t i = a.size();
  size_t j = b.size();
  bool in_run = false;
  while (i > 0 && j > 0) {
    if (a[i - 1] == b[j - 1]) {
      --i;
      --j;
      found.bytes.push_back(a[i]);
      if (!in_run) found.runs.push_back({i, i, j, j});
      found.runs.back().a_first = i;
      found.runs.back().b_first = j;
      in_run = true;
    } else {
      in_run = false;
      if (length(i - 1, j) > length(i, j - 1)) {
        --i;
      } else {
        --j;
      }
    }
  }
  std::reverse(found.bytes.begin(), found.bytes.end());
  return found;
}

}  // namespace varve
