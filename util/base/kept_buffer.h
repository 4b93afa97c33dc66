// A kept buffer is a string in which a job works on one value after the other. It keeps its memory
// from value to value, but not what a huge value took: that may be hundreds of MiB, and the job may
// go on for hours.
//
// Thread-safety: stateless functions.
#pragma once

#include <cstddef>
#include <string>

namespace varve {

// A job keeps no longer buffers than this one.
inline constexpr size_t kMostKeptBuffer = size_t{4} << 20;

// Gives the memory of `*buffer` back, and its bytes with it, if these are more than `most`.
inline void GiveBackIfLarge(std::string* buffer, size_t most = kMostKeptBuffer) noexcept {
  if (buffer->size() > most) [[unlikely]]
    std::string().swap(*buffer);
}

}  // namespace varve
