#include "db/patchy_files.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "util/status.h"

namespace varve {
namespace {

constexpr uint64_t kPage = 4096;  // no device fails in smaller pieces

}  // namespace

class PatchyFileSystem::PatchyFile final : public File {
 public:
  PatchyFile(PatchyFileSystem* owner, std::unique_ptr<File> file) : owner_(owner), file_(std::move(file)) {}

  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    const absl::StatusOr<size_t> whole = file_->Read(offset, size, buffer);
    if (!absl::IsInternal(whole.status())) return whole;
    VARVE_ASSIGN_OR_RETURN(const uint64_t file_size, file_->Size());
    const size_t wanted = std::min<uint64_t>(size, file_size - std::min(file_size, offset));
    for (size_t done = 0; done < wanted;) {
      const size_t piece = std::min<uint64_t>(wanted - done, kPage - (offset + done) % kPage);
      const absl::StatusOr<size_t> read = file_->Read(offset + done, piece, buffer + done);
      if (absl::IsInternal(read.status())) {
        std::memset(buffer + done, 0, piece);
        owner_->Note(read.status());
      } else {
        VARVE_RETURN_IF_ERROR(read.status());
      }
      done += piece;
    }
    return wanted;
  }
  absl::Status Write(uint64_t offset, std::string_view data) override { return file_->Write(offset, data); }
  absl::Status Sync() override { return file_->Sync(); }
  void StartWriteback(uint64_t offset, uint64_t size) override { file_->StartWriteback(offset, size); }
  absl::Status Truncate(uint64_t size) override { return file_->Truncate(size); }
  absl::StatusOr<uint64_t> Size() const override { return file_->Size(); }
  void Prefetch(uint64_t offset, uint64_t size) const override { file_->Prefetch(offset, size); }
  const std::string& path() const override { return file_->path(); }

 private:
  PatchyFileSystem* const owner_;
  const std::unique_ptr<File> file_;
};

void PatchyFileSystem::Note(const absl::Status& error) {
  absl::MutexLock lock(&mutex_);
  if (std::find(errors_.begin(), errors_.end(), error) == errors_.end()) errors_.push_back(UnsharedCopy(error));
}

std::vector<absl::Status> PatchyFileSystem::errors() const {
  absl::MutexLock lock(&mutex_);
  return errors_;
}

absl::StatusOr<std::unique_ptr<File>> PatchyFileSystem::OpenForRead(const std::string& path) {
  VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file, base_->OpenForRead(path));
  return std::make_unique<PatchyFile>(this, std::move(file));
}

}  // namespace varve
