#include "util/os/file_window.h"

#include <algorithm>

#include "util/base/status.h"

namespace varve {

absl::StatusOr<std::string_view> FileWindow::Bytes(uint64_t offset, uint64_t wanted, uint64_t end) {
  wanted = std::min(wanted, end - offset);
  if (offset < begin_ || offset + wanted > begin_ + bytes_.size()) {
    bytes_.resize(std::min(std::max(wanted, kPiece), end - offset));
    begin_ = offset;
    VARVE_ASSIGN_OR_RETURN(const size_t read, file_.Read(offset, bytes_.size(), bytes_.data()));
    bytes_.resize(read);
  }
  return std::string_view(bytes_).substr(offset - begin_, end - offset);
}

}  // namespace varve
