#include "db/format/record_window.h"

#include "db/format/record_format.h"
#include "util/base/status.h"

namespace varve {
absl::StatusOr<size_t> RecordWindow::RecordAt(uint64_t offset, uint64_t longest, uint64_t end,
                                              RecordView* record) {
  VARVE_ASSIGN_OR_RETURN(std::string_view bytes, Bytes(offset, kMaxRecordHeaderSize, end));
  const uint64_t size = RecordSize(bytes);
  if (size == 0 || size > end - offset || size > longest) return size_t{0};
  VARVE_ASSIGN_OR_RETURN(bytes, Bytes(offset, size, end));
  return DecodeRecord(bytes, number_, ChecksumMode::kVerify, record);
}

}  // namespace varve
