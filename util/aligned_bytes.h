// Memory that is touched at random: aligned to lines of the processor's cache and, where it is large, in huge pages of the system, so that
// an access rarely has to look up its page first.
#pragma once

#include <cstddef>
#include <memory>

namespace varve {

// Uninitialized bytes, aligned to 64 at least. Movable; empty by default. Throws std::bad_alloc.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(size_t size);

  char* data() const { return data_.get(); }
  size_t size() const { return size_; }
  // Bytes of memory taken, the rest of a huge page included.
  size_t taken() const { return taken_; }

 private:
  struct Free {
    void operator()(char* bytes) const;
  };
  std::unique_ptr<char, Free> data_;
  size_t size_ = 0;
  size_t taken_ = 0;
};

}  // namespace varve
