// Aligned bytes are memory that is touched at random: aligned to lines of the processor's cache
// and, where it is large, in huge pages of the system, so that an access rarely has to look up its
// page first.
//
// Thread-safety: as that of plain memory.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace varve {

// Uninitialized bytes, aligned to kSmallAlignment at least. Movable; empty by default. Throws
// std::bad_alloc.
class AlignedBytes {
 public:
  static constexpr size_t kSmallAlignment = 64;

  AlignedBytes() = default;
  explicit AlignedBytes(size_t size);

  char* data() const { return data_.get(); }
  size_t size() const { return size_; }
  // Bytes that may be used, the rest of a huge page included: so much memory is taken.
  size_t capacity() const { return capacity_; }

 private:
  struct Free {
    std::align_val_t alignment;  // that of the allocation
    void operator()(char* bytes) const { ::operator delete(bytes, alignment); }
  };
  std::unique_ptr<char, Free> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// Touches each page, so that the system provides its memory now and not at the first write to it.
// The contents are unspecified.
void TakeMemory(char* bytes, size_t size);

// Gives the memory of whole pages among the bytes back to the system; they stay readable, as zeros.
void DropMemory(char* bytes, size_t size);

}  // namespace varve
