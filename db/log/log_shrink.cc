#include "db/log/log_shrink.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "db/format/log_format.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr uint64_t kLeastGain = 64u << 10;
constexpr uint64_t kPartToGain = 4;
constexpr uint64_t kPiece = 256u << 10;

absl::Status Copy(const File& from, uint64_t begin, uint64_t end, File* to) {
  std::string piece(std::min(kPiece, end - begin), '\0');
  for (uint64_t offset = begin; offset < end;) {
    const uint64_t wanted = std::min<uint64_t>(piece.size(), end - offset);
    VARVE_ASSIGN_OR_RETURN(const size_t read, from.Read(offset, wanted, piece.data()));
    if (read == 0) return absl::DataLossError("a log file ends before its last record");
    VARVE_RETURN_IF_ERROR(to->Write(offset, std::string_view(piece).substr(0, read)));
    offset += read;
  }
  return absl::OkStatus();
}

absl::Status WriteShrunk(FileSystem* file_system, const LogOptions& options, uint64_t number,
                         uint64_t size, const File& from, const std::string& temporary) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                         file_system->OpenForWrite(temporary, /*create=*/true));
  VARVE_RETURN_IF_ERROR(
      file->Write(0, EncodeLogHeaderPage(number, options.store_id, size, options.format_version)));
  if (size > kLogPageSize) VARVE_RETURN_IF_ERROR(Copy(from, kLogPageSize, size, file.get()));
  return file->Sync();
}

}  // namespace

absl::Status ShrinkLogFile(FileSystem* file_system, const LogOptions& options, const LogEnd& end) {
  const std::string path = options.directory + "/" + LogFileName(end.file_number);
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, file_system->OpenForRead(path));
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  const uint64_t shrunk = LogPageAlign(end.offset);
  if (size < shrunk + std::max(kLeastGain, shrunk / kPartToGain)) return absl::OkStatus();
  const std::string temporary = options.directory + "/" + LogTemporaryName(end.file_number);
  absl::Status status =
      WriteShrunk(file_system, options, end.file_number, shrunk, *file, temporary);
  if (status.ok()) status = file_system->Rename(temporary, path);
  if (!status.ok()) {
    RemoveFile(file_system, temporary);
    return status;
  }
  return file_system->SyncDirectory(options.directory);
}

}  // namespace varve
