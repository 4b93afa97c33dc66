#include "db/history/time_file.h"

#include <memory>

#include "db/format/file_header.h"
#include "db/format/file_names.h"
#include "util/base/assert.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr FileKind kKind = {.magic = "VARVETIM", .version = 1, .name = "time file"};
constexpr size_t kBlockHeaderSize = 8;
constexpr size_t kMarkSize = 16;

std::string EncodeBlock(uint64_t number, uint64_t offset, absl::Span<const TimeMark> marks) {
  std::string block(4, '\0');
  PutFixed32(&block, static_cast<uint32_t>(marks.size()));
  for (const TimeMark& mark : marks) {
    PutFixed64(&block, mark.first);
    PutFixed64(&block, mark.instant_ms);
  }
  EncodeFixed32(block.data(), Checksum(std::string_view(block).substr(4), number ^ offset));
  return block;
}

// Reads the block at `offset` of `bytes` and moves `offset` behind it.
absl::Status ReadBlock(std::string_view bytes, const std::string& path, uint64_t number,
                       uint64_t* offset, std::vector<TimeMark>* marks) {
  const std::string_view rest = bytes.substr(*offset);
  if (rest.size() < kBlockHeaderSize) return Corruption(path, *offset, "a block is cut short");
  const uint64_t count = DecodeFixed32(rest.data() + 4);
  if (count == 0 || count > (rest.size() - kBlockHeaderSize) / kMarkSize)
    return Corruption(path, *offset, "a block of marks has a wrong size");
  const size_t size = kBlockHeaderSize + count * kMarkSize;
  if (DecodeFixed32(rest.data()) != Checksum(rest.substr(4, size - 4), number ^ *offset))
    return Corruption(path, *offset, "a block of marks is damaged");
  for (size_t at = kBlockHeaderSize; at < size; at += kMarkSize) {
    const TimeMark mark{DecodeFixed64(rest.data() + at), DecodeFixed64(rest.data() + at + 8)};
    if (!marks->empty() &&
        (mark.first <= marks->back().first || mark.instant_ms <= marks->back().instant_ms)) {
      return Corruption(path, *offset + at, "marks do not ascend");
    }
    marks->push_back(mark);
  }
  *offset += size;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<TimeMark>> ReadTimeFile(FileSystem* file_system,
                                                   const std::string& directory,
                                                   const TimeFilePlace& place) {
  VARVE_ASSERT(place.number != 0);
  const std::string path = TimeFilePath(directory, place.number);
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, file_system->OpenForRead(path));
  std::string bytes(place.size, '\0');
  VARVE_ASSIGN_OR_RETURN(const size_t read, file->Read(0, bytes.size(), bytes.data()));
  if (read < bytes.size()) return Corruption(path, read, "the time file is cut short");
  VARVE_RETURN_IF_ERROR(CheckFileHeader(kKind, bytes, path, place.number));
  std::vector<TimeMark> marks;
  for (uint64_t offset = kFileHeaderSize; offset < bytes.size();)
    VARVE_RETURN_IF_ERROR(ReadBlock(bytes, path, place.number, &offset, &marks));
  return marks;
}

absl::StatusOr<TimeFilePlace> CreateTimeFile(FileSystem* file_system, const std::string& directory,
                                             uint64_t number, absl::Span<const TimeMark> marks) {
  VARVE_ASSERT(number != 0);
  std::string bytes = EncodeFileHeader(kKind, number);
  if (!marks.empty()) bytes += EncodeBlock(number, bytes.size(), marks);
  VARVE_ASSIGN_OR_RETURN(
      const std::unique_ptr<File> file,
      file_system->OpenForWrite(TimeFilePath(directory, number), /*create=*/true));
  VARVE_RETURN_IF_ERROR(file->Write(0, bytes));
  VARVE_RETURN_IF_ERROR(file->Sync());
  VARVE_RETURN_IF_ERROR(file_system->SyncDirectory(directory));
  return TimeFilePlace{number, bytes.size()};
}

absl::StatusOr<TimeFilePlace> AppendToTimeFile(FileSystem* file_system,
                                               const std::string& directory,
                                               const TimeFilePlace& place,
                                               absl::Span<const TimeMark> marks) {
  VARVE_ASSERT(place.number != 0 && place.size >= kFileHeaderSize && !marks.empty());
  VARVE_ASSIGN_OR_RETURN(
      const std::unique_ptr<File> file,
      file_system->OpenForWrite(TimeFilePath(directory, place.number), /*create=*/false));
  const std::string block = EncodeBlock(place.number, place.size, marks);
  VARVE_RETURN_IF_ERROR(file->Write(place.size, block));
  VARVE_RETURN_IF_ERROR(file->Sync());
  return TimeFilePlace{place.number, place.size + block.size()};
}

}  // namespace varve
