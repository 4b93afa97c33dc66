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
  uint32_t shared = 0;
  const size_t decoded = DecodeRecord(bytes, number_, ChecksumMode::kVerify, record, &shared);
  if (decoded == 0 || shared == 0) return decoded;
  const size_t readable = record->key.size() + record->value.size();
  return keys_.Join(shared, readable, &record->key) ? decoded : size_t{0};
}

absl::Status RecordWindow::FindKeyBase(uint64_t end) {
  RecordView first;
  VARVE_ASSIGN_OR_RETURN(const size_t size, RecordAt(0, end, end, &first));
  if (size != 0) keys_.SetBase(KeyBaseOf(first.key));
  return absl::OkStatus();
}

}  // namespace varve
