// A byte buffer with a moving front: a connection reads into one and writes its replies to one.
// Bytes are not zeroed on growth, `Reserve` + `Commit` let a writer or recv() fill it in place, and
// `Consume` drops bytes from the front without moving the rest.
//
// Thread-safety: One thread at a time uses an object.
//
// Invariant: Begin_ <= end_ <= capacity_.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

#include "util/base/assert.h"

namespace varve {

class ByteBuffer {
 public:
  ByteBuffer() = default;
  ~ByteBuffer();
  ByteBuffer(const ByteBuffer&) = delete;
  ByteBuffer& operator=(const ByteBuffer&) = delete;
  ByteBuffer(ByteBuffer&& other) noexcept { Swap(other); }
  ByteBuffer& operator=(ByteBuffer&& other) noexcept {
    Swap(other);
    return *this;
  }

  char* data() { return bytes_ + begin_; }
  const char* data() const { return bytes_ + begin_; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  size_t capacity() const { return capacity_; }
  // Free bytes behind the content, without growing or moving.
  size_t room() const { return capacity_ - end_; }
  std::string_view view() const { return {data(), size()}; }

  // Returns the place where the next `bytes` bytes may be written; they count after Commit(). It
  // moves the content when it must grow.
  char* Reserve(size_t bytes) {
    if (room() < bytes) MakeRoom(bytes);
    return bytes_ + end_;
  }
  // Requires: Reserve() gave room for them.
  void Commit(size_t bytes) {
    VARVE_ASSERT(bytes <= room());
    end_ += bytes;
  }

  void Append(std::string_view bytes) {
    if (bytes.empty()) return;
    std::memcpy(Reserve(bytes.size()), bytes.data(), bytes.size());
    Commit(bytes.size());
  }

  // Drops `bytes` bytes from the front.
  // Requires: there are so many.
  void Consume(size_t bytes) {
    VARVE_ASSERT(bytes <= size());
    begin_ += bytes;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  // Keeps the first `length` bytes.
  // Requires: there are so many.
  void Truncate(size_t length) {
    VARVE_ASSERT(length <= size());
    end_ = begin_ + length;
  }
  void Clear() { begin_ = end_ = 0; }
  // Gives memory back when the content needs at most a quarter of it and more than `keep` bytes are
  // held.
  void ShrinkAbove(size_t keep);
  void Swap(ByteBuffer& other) noexcept;

 private:
  void MakeRoom(size_t bytes);

  char* bytes_ = nullptr;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t capacity_ = 0;
};

}  // namespace varve
