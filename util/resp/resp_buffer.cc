#include "util/resp/resp_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "util/base/assert.h"

namespace varve {

ByteBuffer::~ByteBuffer() { std::free(bytes_); }

void ByteBuffer::MakeRoom(size_t bytes) {
  const size_t used = size();
  if (begin_ > 0 && capacity_ - used >= bytes && begin_ >= used) {
    std::memcpy(bytes_, bytes_ + begin_, used);  // begin_ >= used: the two don't overlap
  } else {
    const size_t wanted = std::max({used + bytes, capacity_ + capacity_ / 2, size_t{256}});
    char* grown = static_cast<char*>(std::malloc(wanted));
    if (grown == nullptr) throw std::bad_alloc();
    if (used > 0) std::memcpy(grown, bytes_ + begin_, used);
    std::free(bytes_);
    bytes_ = grown;
    capacity_ = wanted;
  }
  begin_ = 0;
  end_ = used;
  VARVE_ASSERT(room() >= bytes);
}

void ByteBuffer::ShrinkAbove(size_t keep) {
  if (capacity_ <= keep || size() > capacity_ / 4) return;
  VARVE_ASSERT(begin_ <= end_ && end_ <= capacity_);
  const size_t used = size();
  const size_t wanted = std::max(keep, used);
  char* smaller = static_cast<char*>(std::malloc(wanted));
  if (smaller == nullptr) return;  // the larger one serves as well
  if (used > 0) std::memcpy(smaller, bytes_ + begin_, used);
  std::free(bytes_);
  bytes_ = smaller;
  begin_ = 0;
  end_ = used;
  capacity_ = wanted;
}

void ByteBuffer::Swap(ByteBuffer& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(begin_, other.begin_);
  std::swap(end_, other.end_);
  std::swap(capacity_, other.capacity_);
}

}  // namespace varve
