#include "db/log/log_file_reader.h"

#include "util/base/status.h"

namespace varve {

absl::StatusOr<std::unique_ptr<LogFileReader>> LogFileReader::Open(FileSystem* file_system,
                                                                   const std::string& path,
                                                                   uint64_t number,
                                                                   uint64_t store_id) {
  VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file, file_system->OpenForRead(path));
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  return std::unique_ptr<LogFileReader>(new LogFileReader(std::move(file), size, number, store_id));
}

absl::StatusOr<std::optional<LogBlockHeader>> LogFileReader::HeaderAt(uint64_t offset,
                                                                      uint64_t limit) {
  VARVE_ASSIGN_OR_RETURN(const std::string_view bytes,
                         window_.Bytes(offset, kLogBlockHeaderSize, limit));
  return DecodeLogBlockHeader(bytes, number_, store_id_, offset);
}

absl::Status LogFileReader::VisitHeaders(
    uint64_t from, uint64_t limit, absl::FunctionRef<bool(uint64_t, const LogBlockHeader&)> visit) {
  for (uint64_t offset = LogBlockAlign(from); offset + kLogBlockHeaderSize <= limit;) {
    VARVE_ASSIGN_OR_RETURN(const std::string_view piece,
                           window_.Bytes(offset, kLogBlockHeaderSize, limit));
    if (piece.size() < kLogBlockHeaderSize) break;  // the file has become shorter
    uint64_t at = 0;
    for (; at + kLogBlockHeaderSize <= piece.size(); at += kLogBlockAlignment) {
      const auto block = DecodeLogBlockHeader(piece.substr(at), number_, store_id_, offset + at);
      if (block.has_value() && !visit(offset + at, *block)) return absl::OkStatus();
    }
    offset += at;
  }
  return absl::OkStatus();
}

}  // namespace varve
