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

FileRemover::FileRemover(FileSystem* file_system, FileThread* thread, uint64_t most_spare_bytes)
    : file_system_(file_system), thread_(thread), spares_(file_system, most_spare_bytes) {
  thread_->Add(this);
}

FileRemover::~FileRemover() {
  thread_->Remove(this);
  if (!path_.empty()) RemoveFile(file_system_, path_);
  VARVE_ASSERT(spares_.AreClean());
  std::string spare;
  while (!(spare = spares_.TakeExpired(kEndOfTime)).empty()) RemoveFile(file_system_, spare);
  absl::MutexLock lock(&mutex_);
  for (const Task& task : tasks_) RemoveFile(file_system_, task.path);
}

void FileRemover::Remove(const std::string& path, Reuse reuse) noexcept {
  VARVE_ASSERT(!path.empty());
  const bool put_off = TryWithMemory([&] {
    absl::MutexLock lock(&mutex_);
    tasks_.push_back({path, reuse});
  });
  if (!put_off) return RemoveFile(file_system_, path);
  thread_->Wake(this);
}

FileRemover::WithoutSpares::WithoutSpares(FileRemover* remover) : spares_(&remover->spares_) {
  for (const std::string& spare : spares_->Close()) remover->Remove(spare, Reuse::kNever);
}

void FileRemover::AwaitRemovals() {
  const WithoutSpares without(this);
  uint64_t awaited = 0;
  {
    absl::MutexLock lock(&mutex_);
    awaited = begun_ + tasks_.size();
  }
  for (bool is_done = false; !is_done;) {
    thread_->Wake(this);  // again and again, as there may have been no memory for the thread
    absl::MutexLock lock(&mutex_);
    if (ended_ < awaited) removed_.WaitWithTimeout(&mutex_, kBetweenWakes);
    is_done = ended_ >= awaited;
  }
  spares_.AwaitClean();
}

SteadyTime FileRemover::Step() noexcept {
  if (path_.empty() && !Begin()) return spares_.expiry();
  if (path_.empty()) return SteadyNow();
  if (file_ != nullptr && size_ > SpareFiles::kPacer.step_bytes()) {
    const uint64_t shorter = size_ - SpareFiles::kPacer.step_bytes();
    bool is_shorter = false;
    TryWithMemory([&] { is_shorter = file_->Truncate(shorter).ok(); });
    if (is_shorter) {
      size_ = shorter;
      return SpareFiles::kPacer.NextStep();
    }
  }
  file_.reset();
  RemoveFile(file_system_, path_);
  End();
  return SteadyNow();
}

void FileRemover::End() {
  path_.clear();
  file_.reset();
  absl::MutexLock lock(&mutex_);
  ++ended_;
  VARVE_ASSERT(ended_ == begun_);
  removed_.SignalAll();
}

bool FileRemover::Begin() noexcept {
  VARVE_ASSERT(path_.empty() && file_ == nullptr);
  Reuse reuse = Reuse::kNever;
  {
    absl::MutexLock lock(&mutex_);
    if (!tasks_.empty()) {
      path_ = std::move(tasks_.front().path);
      reuse = tasks_.front().reuse;
      tasks_.pop_front();
    } else {
      path_ = spares_.TakeExpired(SteadyNow());
    }
    if (path_.empty()) return false;
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
  if (file_ != nullptr && reuse == Reuse::kAllowed && spares_.Keep(path_, *file_, size_)) End();
  return true;
}

}  // namespace varve
