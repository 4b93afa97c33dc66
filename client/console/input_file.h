// An input file, or standard input, is read from front to back through a buffer that holds little
// more than one record. Errors name the file and the offset. Views are valid until the next call.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "util/redis_format/rdb_input.h"

namespace varve {

class InputFile final : public RdbInput {
 public:
  // `path` "-": standard input.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<InputFile>> Open(const std::string& path);
  ~InputFile() override;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t offset() const override { return offset_; }
  uint64_t size() const { return size_; }  // 0 where it is not known
  // False on what can't be read from a place in the middle, such as a pipe.
  bool Seek(uint64_t offset);

  [[nodiscard]] absl::StatusOr<std::string_view> Peek(size_t wanted) override;
  void Consume(size_t bytes) override;
  // The buffered bytes again, for a reader that changes them in place.
  char* data() { return buffer_.data() + begin_; }

  // The next line, without LF and a CR before it, and consumes it. Sets *end at the end of the
  // file. InvalidArgument: it is longer than `longest` bytes.
  [[nodiscard]] absl::StatusOr<std::string_view> Line(size_t longest, bool* end);

  // DataLoss, with the file and the present offset.
  absl::Status Damaged(std::string_view what) const override;

 private:
  InputFile(std::string path, int descriptor, uint64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

  const std::string path_;
  const int descriptor_;
  const uint64_t size_;
  uint64_t offset_ = 0;
  std::string buffer_;
  size_t begin_ = 0;  // of what was not consumed, in buffer_
  size_t end_ = 0;    // of what was read
  bool at_end_ = false;
};

}  // namespace varve
