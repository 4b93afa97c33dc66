// Writes into a file through memory that is mapped from it: for small ones a copy, and a system
// call that only asks whether the file system still takes writes, are faster than one that writes
// (140 bytes: 0.35 instead of 0.8 µs). What was copied is with the kernel, as after pwrite: the end
// of the process takes nothing away, fdatasync puts it on disk.
//
// Where the kernel can't give a page (the disk failed, or is full though room was reserved) it
// sends SIGBUS, which becomes an error here: a handler of the process, installed with the first
// window, ends the copy. Any other SIGBUS goes to the handler that was there before.
//
// Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace varve {

class MappedWindow {
 public:
  // Mapped at a time; it moves with the writes.
  static constexpr size_t kSize = 1u << 20;

  enum class Result : uint8_t {
    kWritten,
    kNotMapped,  // such files aren't mapped here; all of it is to be written in another way
    // The kernel could not give a page, or takes no writes any more; some of it may have been
    // written.
    kFailed,
  };

  MappedWindow() = default;
  MappedWindow(const MappedWindow&) = delete;
  MappedWindow& operator=(const MappedWindow&) = delete;
  ~MappedWindow() { Unmap(); }

  // Writes `data` at `offset` of the file, always the same one, which must reach that far.
  [[nodiscard]] Result Write(int descriptor, uint64_t offset, std::string_view data);

 private:
  bool MapAt(int descriptor, uint64_t begin);
  void Unmap();

  char* memory_ = nullptr;
  uint64_t begin_ = 0;  // in the file
  bool refused_ = false;
};

}  // namespace varve
