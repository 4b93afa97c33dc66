// A log file reader reads one log file block by block, or searches a part that may be damaged for
// blocks. It keeps a piece of the file in memory at a time.
//
// Thread-safety: one thread at a time uses a reader.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/format/log_format.h"
#include "util/os/file_system.h"
#include "util/os/file_window.h"

namespace varve {

class LogFileReader {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<LogFileReader>> Open(FileSystem* file_system,
                                                                           const std::string& path,
                                                                           uint64_t number,
                                                                           uint64_t store_id);

  uint64_t size() const { return size_; }

  // Returns the block header at `offset`, if there is one whose block ends before `limit`.
  // Requires: limit <= size().
  [[nodiscard]] absl::StatusOr<std::optional<LogBlockHeader>> HeaderAt(uint64_t offset,
                                                                       uint64_t limit);
  // Returns the bytes of [begin, end), which are valid until the next call.
  [[nodiscard]] absl::StatusOr<std::string_view> Bytes(uint64_t begin, uint64_t end) {
    return window_.Bytes(begin, end - begin, end);
  }
  // Calls `visit` with the offset and the header of each block in [from, limit) until it returns
  // false. It looks at every offset at which a block may begin.
  [[nodiscard]] absl::Status VisitHeaders(
      uint64_t from, uint64_t limit,
      absl::FunctionRef<bool(uint64_t, const LogBlockHeader&)> visit);

 private:
  LogFileReader(std::unique_ptr<File> file, uint64_t size, uint64_t number, uint64_t store_id)
      : file_(std::move(file)), size_(size), number_(number), store_id_(store_id) {}

  const std::unique_ptr<File> file_;
  const uint64_t size_;
  const uint64_t number_;
  const uint64_t store_id_;
  FileWindow window_{*file_};
};

}  // namespace varve
