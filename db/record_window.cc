#include "db/record_window.h"

#include <algorithm>

#include "db/record_format.h"
#include "util/status.h"

namespace varve {
namespace {

constexpr uint64_t kPiece = uint64_t{1} << 20;

}  // namespace

absl::StatusOr<std::string_view> RecordWindow::Bytes(uint64_t offset, uint64_t wanted, uint64_t end) {
  wanted = std::min(wanted, end - offset);
  if (offset < begin_ || offset + wanted > begin_ + bytes_.size()) {
    bytes_.resize(std::min(std::max(wanted, kPiece), end - offset));
    begin_ = offset;
    VARVE_ASSIGN_OR_RETURN(const size_t read, file_.Read(offset, bytes_.size(), bytes_.data()));
    bytes_.resize(read);
  }
  return std::string_view(bytes_).substr(offset - begin_);
}

absl::StatusOr<size_t> RecordWindow::RecordAt(uint64_t offset, uint64_t longest, uint64_t end, RecordView* record) {
  VARVE_ASSIGN_OR_RETURN(std::string_view bytes, Bytes(offset, kMaxRecordHeaderSize, end));
  const uint64_t size = RecordSize(bytes);
  if (size == 0 || size > end - offset || size > longest) return size_t{0};
  VARVE_ASSIGN_OR_RETURN(bytes, Bytes(offset, size, end));
  return DecodeRecord(bytes, number_, ChecksumMode::kVerify, record);
}

}  // namespace varve
