// A growable run of raw bytes with a moving front: what a connection reads into and what its
// replies are written to. Bytes are not zeroed on growth, `Reserve` + `Commit` let a writer or
// recv() fill it in place, and `Consume` drops bytes from the front without moving the rest. Not
// thread-safe. Invariant: begin_ <= end_ <= capacity_.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

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

  // Where the next `bytes` bytes may be written; they count after Commit(). Moves the content when
  // it must grow.
  char* Reserve(size_t bytes) {
    if (room() < bytes) MakeRoom(bytes);
    return bytes_ + end_;
  }
  void Commit(size_t bytes) { end_ += bytes; }

  void Append(std::string_view bytes) {
    if (bytes.empty()) return;
    std::memcpy(Reserve(bytes.size()), bytes.data(), bytes.size());
    Commit(bytes.size());
  }

  // Drops `bytes` bytes from the front.
  void Consume(size_t bytes) {
    begin_ += bytes;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  // Keeps the first `size` bytes.
  void Truncate(size_t size) { end_ = begin_ + size; }
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
