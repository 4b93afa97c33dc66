#include "client/console/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kReadBytes = 256u << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<InputFile>> InputFile::Open(const std::string& path) {
  const int descriptor = path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return IoError(errno, "open", path);
  struct stat info {};
  if (fstat(descriptor, &info) == 0 && S_ISDIR(info.st_mode)) {
    close(descriptor);
    return absl::InvalidArgumentError(fmt::format("{}: is a directory", path));
  }
  const uint64_t size = S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
  return std::unique_ptr<InputFile>(new InputFile(path, descriptor, size));
}

InputFile::~InputFile() { close(descriptor_); }

bool InputFile::Seek(uint64_t offset) {
  if (lseek(descriptor_, static_cast<off_t>(offset), SEEK_SET) < 0) return false;
  offset_ = offset;
  begin_ = end_ = 0;
  at_end_ = false;
  return true;
}

absl::StatusOr<std::string_view> InputFile::Peek(size_t wanted) {
  while (end_ - begin_ < wanted && !at_end_) {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    // Grows with the bytes that are there, not with those that a damaged length announces.
    if (buffer_.size() - end_ < kReadBytes)
      buffer_.resize(std::max(buffer_.size() * 2, end_ + kReadBytes));
    const ssize_t got = read(descriptor_, buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return IoError(errno, "read", path_, offset_ + end_);
    at_end_ = got == 0;
    end_ += static_cast<size_t>(got);
  }
  return std::string_view(buffer_.data() + begin_, end_ - begin_);
}

void InputFile::Consume(size_t bytes) {
  begin_ += bytes;
  offset_ += bytes;
}

absl::StatusOr<std::string_view> InputFile::Line(size_t longest, bool* end) {
  size_t searched = 0;
  while (true) {
    VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, Peek(searched + 1));
    *end = bytes.empty();
    if (*end) return bytes;
    const size_t at = bytes.find('\n', searched);
    const bool is_last = at == std::string_view::npos && bytes.size() <= searched;
    searched = bytes.size();
    if (std::min(at, searched) > longest) {
      return absl::InvalidArgumentError(
          fmt::format("{}: at offset {}: a line of more than {} bytes", path_, offset_, longest));
    }
    if (at == std::string_view::npos && !is_last) continue;
    std::string_view line = bytes.substr(0, at);
    Consume(at == std::string_view::npos ? bytes.size() : at + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }
}

absl::Status InputFile::Damaged(std::string_view what) const {
  return Corruption(path_, offset_, what);
}

}  // namespace varve
