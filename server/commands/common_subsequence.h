// The longest common subsequence of two byte strings (LCS): the most bytes that stand in both in
// the same order. If several are equally long, the result is the one that Redis finds: from the
// ends, where the last bytes differ, the end of `b` is given up unless that costs a byte and giving
// up the end of `a` does not.
//
// Computed with bits, 64 cells of the classic table at a time, after Hyyro, "Bit-parallel
// LCS-length computation revisited" (2004). Time (|a|+1) * (|b|+1) / 64 steps; memory one bit a
// cell, where whole bytes are taken for each byte of the longer one.
//
// Thread-safety: The functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace varve {

// A run of bytes that match: a[a_first, a_last] is b[b_first, b_last], both ends included.
struct CommonRun {
  size_t a_first;
  size_t a_last;
  size_t b_first;
  size_t b_last;
  size_t size() const { return a_last - a_first + 1; }
};

struct CommonSubsequence {
  std::string bytes;
  std::vector<CommonRun> runs;  // from the last to the first; together they are `bytes`
};

// Takes no memory that grows with the product of the sizes.
size_t CommonSubsequenceLength(std::string_view a, std::string_view b);

CommonSubsequence FindCommonSubsequence(std::string_view a, std::string_view b);

}  // namespace varve
