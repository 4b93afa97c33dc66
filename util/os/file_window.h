// A file window moves over a file, mostly forwards: it reads pieces of 1 MiB, or what is wanted
// where that is more.
//
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "util/os/file_system.h"

namespace varve {

class FileWindow {
 public:
  static constexpr uint64_t kPiece = uint64_t{1} << 20;

  // `file` outlives the window.
  explicit FileWindow(const File& file) : file_(file) {}

  // Reads at least `wanted` bytes from `offset` on (fewer only at `end` and at the end of the
  // file), and returns all there are before `end`. They stay until the next call.
  // Requires: offset <= end.
  [[nodiscard]] absl::StatusOr<std::string_view> Bytes(uint64_t offset, uint64_t wanted,
                                                       uint64_t end);

 private:
  const File& file_;
  std::string bytes_;
  uint64_t begin_ = 0;  // of bytes_, in the file
};

}  // namespace varve
