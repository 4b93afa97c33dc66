#include "util/os/file_remover.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"

namespace varve {
namespace {

constexpr absl::Duration kBetweenWakes = absl::Seconds(1);

}  // namespace

FileRemover::FileRemover(FileSystem* file_system, FileThread* thread)
    : file_system_(file_system), thread_(thread) {
  thread_->Add(this);
}

FileRemover::~FileRemover() {
  thread_->Remove(this);
  if (!path_.empty()) RemoveFile(file_system_, path_);
  absl::MutexLock lock(&mutex_);
  for (const std::string& path : paths_) RemoveFile(file_system_, path);
}

void FileRemover::Remove(const std::string& path) noexcept {
  VARVE_ASSERT(!path.empty());
  const bool put_off = TryWithMemory([&] {
    absl::MutexLock lock(&mutex_);
    paths_.push_back(path);
  });
  if (!put_off) return RemoveFile(file_system_, path);
  thread_->Wake(this);
}

void FileRemover::AwaitRemovals() {
  uint64_t awaited = 0;
  {
    absl::MutexLock lock(&mutex_);
    awaited = begun_ + paths_.size();
    if (ended_ == awaited) return;
  }
  for (bool is_done = false; !is_done;) {
    thread_->Wake(this);  // again and again, as there may have been no memory for the thread
    absl::MutexLock lock(&mutex_);
    if (ended_ < awaited) removed_.WaitWithTimeout(&mutex_, kBetweenWakes);
    is_done = ended_ >= awaited;
  }
}

SteadyTime FileRemover::Step() noexcept {
  if (path_.empty() && !Begin()) return kEndOfTime;
  VARVE_ASSERT(!path_.empty());
  if (file_ != nullptr && size_ > kPacer.step_bytes()) {
    const uint64_t shorter = size_ - kPacer.step_bytes();
    bool is_shorter = false;
    TryWithMemory([&] { is_shorter = file_->Truncate(shorter).ok(); });
    if (is_shorter) {
      size_ = shorter;
      return kPacer.NextStep();
    }
  }
  file_.reset();
  RemoveFile(file_system_, path_);
  path_.clear();
  absl::MutexLock lock(&mutex_);
  ++ended_;
  VARVE_ASSERT(ended_ == begun_);
  removed_.SignalAll();
  return SteadyNow();
}

bool FileRemover::Begin() noexcept {
  VARVE_ASSERT(path_.empty() && file_ == nullptr);
  {
    absl::MutexLock lock(&mutex_);
    if (paths_.empty()) return false;
    path_ = std::move(paths_.front());
    paths_.pop_front();
    ++begun_;
  }
  size_ = 0;
  TryWithMemory([&] {
    absl::StatusOr<std::unique_ptr<File>> file =
        file_system_->OpenForWrite(path_, /*create=*/false);
    if (!file.ok()) return;
    // One that has another name, in a checkpoint, stays whole.
    if ((*file)->CountLinks().value_or(2) > 1) return;
    const absl::StatusOr<uint64_t> size = (*file)->Size();
    if (size.ok()) size_ = *size;
    file_ = *std::move(file);
  });
  return true;
}

}  // namespace varve
