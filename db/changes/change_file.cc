#include "db/changes/change_file.h"

#include <algorithm>

#include "db/format/file_names.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr FileKind kKind = {.magic = "VARVECHG", .version = 1, .name = "change file"};
constexpr uint64_t kBytesPerFence = uint64_t{256} << 10;

absl::Status CheckHeader(const File& file, uint64_t number) {
  std::string bytes(kFileHeaderSize, '\0');
  VARVE_ASSIGN_OR_RETURN(const size_t read, file.Read(0, bytes.size(), bytes.data()));
  bytes.resize(read);
  return CheckFileHeader(kKind, bytes, file.path(), number);
}

}  // namespace

ChangeFile::ChangeFile(FileSystem* file_system, const std::string& directory, uint64_t number,
                       FileRemover* remover)
    : file_system_(file_system),
      number_(number),
      path_(ChangeFilePath(directory, number)),
      remover_(remover) {
  VARVE_ASSERT(number != 0);
}

ChangeFile::~ChangeFile() {
  if (!obsolete_.load()) return;
  writing_ = nullptr;
  reading_ = nullptr;
  VARVE_ASSERT(remover_ != nullptr);
  remover_->Remove(path_, FileRemover::Reuse::kNever);
}

// --- Reading -------------------------------------------------------------------------------------

absl::StatusOr<std::shared_ptr<File>> ChangeFile::OpenLocked() {
  if (reading_ != nullptr) return reading_;
  absl::StatusOr<std::unique_ptr<File>> file = file_system_->OpenForRead(path_);
  if (absl::IsNotFound(file.status())) return Corruption(path_, 0, "a file of changes is missing");
  VARVE_RETURN_IF_ERROR(file.status());
  VARVE_RETURN_IF_ERROR(CheckHeader(**file, number_));
  reading_ = *std::move(file);
  return reading_;
}

absl::StatusOr<std::shared_ptr<File>> ChangeFile::OpenForReading() {
  absl::MutexLock lock(&mutex_);
  return OpenLocked();
}

absl::StatusOr<ChangeBlockHeader> ChangeFile::ReadHeader(const File& file, uint64_t offset,
                                                         uint64_t end, std::string* bytes) const {
  bytes->resize(kChangeBlockHeaderSize);
  if (offset > end || end - offset < kChangeBlockHeaderSize)
    return Corruption(path_, offset, "a block of changes is cut short");
  VARVE_ASSIGN_OR_RETURN(const size_t read, file.Read(offset, bytes->size(), bytes->data()));
  if (read < bytes->size()) return Corruption(path_, offset, "a file of changes is cut short");
  VARVE_ASSIGN_OR_RETURN(const ChangeBlockHeader header,
                         DecodeChangeBlockHeader(*bytes, path_, number_, offset));
  if (header.payload_size > end - offset - kChangeBlockHeaderSize)
    return Corruption(path_, offset, "a block of changes is longer than its file");
  return header;
}

absl::StatusOr<uint64_t> ChangeFile::FindBlock(SequenceNumber position, uint64_t end) {
  absl::MutexLock lock(&mutex_);
  VARVE_ASSIGN_OR_RETURN(const std::shared_ptr<File> file, OpenLocked());
  // The last fence whose block ends at or before the position; the walk begins there.
  const auto behind = std::partition_point(
      fences_.begin(), fences_.end(), [&](const Fence& fence) { return fence.last <= position; });
  uint64_t offset = behind == fences_.begin() ? kChangeFileHeaderSize : (behind - 1)->offset;
  std::string bytes;
  while (offset < end) {
    VARVE_ASSIGN_OR_RETURN(const ChangeBlockHeader header, ReadHeader(*file, offset, end, &bytes));
    const uint64_t next = offset + kChangeBlockHeaderSize + header.payload_size;
    if (next > known_end_) {
      known_end_ = next;
      if (offset >= (fences_.empty() ? 0 : fences_.back().offset) + kBytesPerFence)
        fences_.push_back({header.last, offset});
    }
    if (header.last > position) return offset;
    offset = next;
  }
  return Corruption(path_, end, "blocks of changes are missing");
}

absl::StatusOr<uint64_t> ChangeFile::ReadBlock(uint64_t offset, uint64_t end, ChangeBlock* block) {
  VARVE_ASSIGN_OR_RETURN(const std::shared_ptr<File> file, OpenForReading());
  std::string bytes;
  VARVE_ASSIGN_OR_RETURN(const ChangeBlockHeader header, ReadHeader(*file, offset, end, &bytes));
  std::string payload(header.payload_size, '\0');
  const uint64_t at = offset + kChangeBlockHeaderSize;
  VARVE_ASSIGN_OR_RETURN(const size_t read, file->Read(at, payload.size(), payload.data()));
  if (read < payload.size()) return Corruption(path_, offset, "a file of changes is cut short");
  VARVE_RETURN_IF_ERROR(DecodeChangeBlock(header, bytes, payload, path_, number_, offset, block));
  return at + payload.size();
}

absl::StatusOr<SequenceNumber> ChangeFile::LastCommit(uint64_t end, SequenceNumber none) {
  VARVE_ASSIGN_OR_RETURN(const std::shared_ptr<File> file, OpenForReading());
  std::string bytes;
  std::vector<uint64_t> offsets;  // of the blocks with commits
  for (uint64_t offset = kChangeFileHeaderSize; offset < end;) {
    VARVE_ASSIGN_OR_RETURN(const ChangeBlockHeader header, ReadHeader(*file, offset, end, &bytes));
    if (header.count != 0) offsets.push_back(offset);
    offset += kChangeBlockHeaderSize + header.payload_size;
  }
  // Nearly always the last block has one.
  for (; !offsets.empty(); offsets.pop_back()) {
    ChangeBlock block;
    VARVE_RETURN_IF_ERROR(ReadBlock(offsets.back(), end, &block).status());
    SequenceNumber last = kNoSequence;
    ChangeCommit commit;
    for (size_t at = 0; at < block.commits.size();) {
      if (!ReadCommit(block, &at, &commit))
        return Corruption(path_, offsets.back(), "a block of changes makes no sense");
      if (IsSeen(commit)) last = commit.last;
    }
    if (last != kNoSequence) return last;
  }
  return none;
}

absl::Status ChangeFile::Verify(uint64_t end, SequenceNumber after, SequenceNumber last) {
  VARVE_RETURN_IF_ERROR(OpenForReading().status());
  ChangeBlock block;
  for (uint64_t offset = kChangeFileHeaderSize; offset < end;) {
    VARVE_ASSIGN_OR_RETURN(const uint64_t next, ReadBlock(offset, end, &block));
    if (block.after != after)
      return Corruption(path_, offset, "a block of changes does not follow the one before");
    after = block.last;
    offset = next;
  }
  if (after != last) return Corruption(path_, end, "blocks of changes are missing");
  return absl::OkStatus();
}

void ChangeFile::EndReading() {
  absl::MutexLock lock(&mutex_);
  reading_ = nullptr;
}

// --- Writing -------------------------------------------------------------------------------------

absl::Status ChangeFile::OpenForWriting(uint64_t size) {
  VARVE_ASSERT(writing_ == nullptr);
  VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file,
                         file_system_->OpenForWrite(path_, /*create=*/size == 0));
  if (size == 0) {
    VARVE_RETURN_IF_ERROR(file->Write(0, EncodeFileHeader(kKind, number_)));
  } else {
    VARVE_RETURN_IF_ERROR(CheckHeader(*file, number_));
    VARVE_ASSIGN_OR_RETURN(const uint64_t present, file->Size());
    if (present < size) return Corruption(path_, present, "a file of changes is cut short");
    if (present > size) VARVE_RETURN_IF_ERROR(file->Truncate(size));
  }
  writing_ = std::move(file);
  return absl::OkStatus();
}

absl::Status ChangeFile::Write(uint64_t offset, std::string_view bytes) {
  VARVE_ASSERT(writing_ != nullptr);
  return writing_->Write(offset, bytes);
}

absl::Status ChangeFile::Sync() {
  VARVE_ASSERT(writing_ != nullptr);
  return writing_->Sync();
}

}  // namespace varve
