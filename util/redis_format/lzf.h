// Decompression of LZF, in which Redis keeps long strings in its RDB files.
//
//   control byte 000LLLLL                       L + 1 bytes follow as they are
//   control byte LLLooooo, oooooooo             L + 2 bytes (L = 1..6) from o + 1 bytes before the
//                                               end of the output
//   control byte 111ooooo, LLLLLLLL, oooooooo   L + 9 bytes from there
//
// Thread-safety: The functions are pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace varve {

// False: the bytes make no sense, or don't give `size` bytes. Memory grows with what is produced:
// at most 264 bytes for 3.
bool DecompressLzf(std::string_view compressed, size_t size, std::string* out);

}  // namespace varve
