#include "tools/patchy_files.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "util/base/status.h"
#include "util/os/forwarding_file.h"

namespace varve {
namespace {

constexpr uint64_t kPage = 4096;  // no device fails in smaller pieces

}  // namespace

class PatchyFileSystem::PatchyFile final : public ForwardingFile {
 public:
  PatchyFile(PatchyFileSystem* owner, std::unique_ptr<File> file)
      : ForwardingFile(std::move(file)), owner_(owner) {}

  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    const absl::StatusOr<size_t> whole = ForwardingFile::Read(offset, size, buffer);
    if (!absl::IsInternal(whole.status())) return whole;
    VARVE_ASSIGN_OR_RETURN(const uint64_t file_size, Size());
    const size_t wanted = std::min<uint64_t>(size, file_size - std::min(file_size, offset));
    for (size_t done = 0; done < wanted;) {
      const size_t piece = std::min<uint64_t>(wanted - done, kPage - (offset + done) % kPage);
      const absl::StatusOr<size_t> read = ForwardingFile::Read(offset + done, piece, buffer + done);
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

 private:
  PatchyFileSystem* const owner_;
};

void PatchyFileSystem::Note(const absl::Status& error) {
  absl::MutexLock lock(&mutex_);
  if (std::find(errors_.begin(), errors_.end(), error) == errors_.end())
    errors_.push_back(UnsharedCopy(error));
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
