#include "db/log/log_file_maker.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "db/format/log_format.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

// Zeros are written in small pieces: the kernel keeps what one write brought in as one large folio,
// and every later small write into it walks all of its blocks. Measured for 150 bytes on ext4: 1.3
// us after pieces of 1 MiB, 0.3 us after these.
constexpr uint64_t kZeroWrite = 16u << 10;

}  // namespace

LogFileMaker::LogFileMaker(FileSystem* file_system, const LogOptions& options, Plan plan)
    : file_system_(file_system),
      options_(options),
      plan_(std::move(plan)),
      temporary_(Path(LogTemporaryName(plan_.number))) {
  VARVE_ASSERT(plan_.number != 0);
  VARVE_ASSERT(plan_.size > kLogPageSize && plan_.size % kLogPageSize == 0);
}

LogFileMaker::~LogFileMaker() {
  if (state_ == State::kTaken) return;
  file_.reset();
  // What was begun takes up space that may be missing. A recycled file that is not renamed yet
  // stays as it is, for the next recovery.
  TryWithMemory([this] {
    RemoveFile(file_system_,
               state_ == State::kComplete ? Path(LogFileName(plan_.number)) : temporary_);
  });
}

absl::StatusOr<bool> LogFileMaker::Step() {
  VARVE_ASSERT(state_ == State::kNew || state_ == State::kFilling);
  if (state_ == State::kNew) {
    VARVE_RETURN_IF_ERROR(Begin());
    state_ = State::kFilling;
  } else if (plan_.allocates) {
    VARVE_RETURN_IF_ERROR(file_->Allocate(filled_, plan_.size));
    filled_ = plan_.size;
  } else {
    VARVE_RETURN_IF_ERROR(WriteZeros());
  }
  VARVE_ASSERT(filled_ <= plan_.size);
  if (filled_ < plan_.size) return false;
  VARVE_RETURN_IF_ERROR(Finish());
  return true;
}

absl::Status LogFileMaker::WriteZeros() {
  VARVE_ASSERT(filled_ < plan_.size);
  const uint64_t begin = filled_;
  const uint64_t end = std::min(begin + kStep, plan_.size);
  const std::string zeros(std::min(end - begin, kZeroWrite), '\0');
  while (filled_ < end) {
    const size_t size = std::min<uint64_t>(end - filled_, zeros.size());
    VARVE_RETURN_IF_ERROR(file_->Write(filled_, std::string_view(zeros).substr(0, size)));
    filled_ += size;
  }
  file_->StartWriteback(begin, end - begin);
  return absl::OkStatus();
}

absl::Status LogFileMaker::Begin() {
  const bool recycle = !plan_.recycled_path.empty();
  if (recycle) {
    // The old name is gone for good before the header says another number.
    VARVE_RETURN_IF_ERROR(file_system_->Rename(plan_.recycled_path, temporary_));
    VARVE_RETURN_IF_ERROR(file_system_->SyncDirectory(options_.directory));
  }
  VARVE_ASSIGN_OR_RETURN(file_, file_system_->OpenForWrite(temporary_, /*create=*/!recycle));
  const std::string header =
      EncodeLogHeaderPage(plan_.number, options_.store_id, plan_.size, options_.format_version);
  VARVE_RETURN_IF_ERROR(file_->Write(0, header));
  filled_ = header.size();
  if (!recycle) return absl::OkStatus();
  VARVE_ASSIGN_OR_RETURN(filled_, file_->Size());
  if (filled_ <= plan_.size) return absl::OkStatus();
  filled_ = plan_.size;
  return file_->Truncate(plan_.size);
}

absl::Status LogFileMaker::Finish() {
  const std::string path = Path(LogFileName(plan_.number));
  VARVE_RETURN_IF_ERROR(file_->Sync());
  VARVE_RETURN_IF_ERROR(file_system_->Rename(temporary_, path));
  state_ = State::kComplete;
  VARVE_RETURN_IF_ERROR(file_system_->SyncDirectory(options_.directory));
  // Opened anew, so that its errors name the file by its final name.
  VARVE_ASSIGN_OR_RETURN(file_, file_system_->OpenForWrite(path, /*create=*/false));
  return absl::OkStatus();
}

LogFile LogFileMaker::Take() {
  VARVE_ASSERT(state_ == State::kComplete);
  VARVE_ASSERT(filled_ == plan_.size);
  state_ = State::kTaken;
  return {plan_.number, plan_.size, !plan_.recycled_path.empty(), std::move(file_)};
}

}  // namespace varve
