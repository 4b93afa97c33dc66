#include "util/file_remover.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "util/memory_guard.h"
#include "util/thread_setup.h"

namespace varve {
namespace {

// About 2 GB/s, faster than files come to be.
constexpr uint64_t kStep = uint64_t{2} << 20;
constexpr absl::Duration kPause = absl::Microseconds(500);

}  // namespace

FileRemover::~FileRemover() {
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
  absl::MutexLock lock(&mutex_);
  for (const Task& task : tasks_) RemoveNow(task.path);  // those for which there never was a thread
}

void FileRemover::Remove(const std::string& path, std::function<void()> first) noexcept {
  const bool put_off = TryWithMemory([&] {
    absl::MutexLock lock(&mutex_);
    tasks_.push_back({path, std::move(first)});
    changed_.Signal();
  });
  if (!put_off) return RemoveNow(path);
  TryWithMemory([&] {
    absl::MutexLock lock(&mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  });
}

void FileRemover::RemoveNow(const std::string& path) {
  TryWithMemory([&] { file_system_->Remove(path).IgnoreError(); });
}

void FileRemover::Run() {
  NameThread("varve-remove");
  YieldToForeground();
  mutex_.Lock();
  for (;;) {
    while (tasks_.empty() && !stopping_) changed_.Wait(&mutex_);
    if (tasks_.empty()) break;
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    const bool in_time = !stopping_;
    mutex_.Unlock();
    if (in_time && task.first) TryWithMemory(task.first);
    TryWithMemory([&] { CutDown(task.path); });
    RemoveNow(task.path);
    mutex_.Lock();
  }
  mutex_.Unlock();
}

void FileRemover::CutDown(const std::string& path) {
  absl::StatusOr<std::unique_ptr<File>> file = file_system_->OpenForWrite(path, /*create=*/false);
  if (!file.ok()) return;
  const absl::StatusOr<uint64_t> size = (*file)->Size();
  for (uint64_t left = size.ok() ? *size : 0; left > kStep;) {
    left -= kStep;
    if (!(*file)->Truncate(left).ok() || !Pause()) return;
  }
}

bool FileRemover::Pause() {
  absl::MutexLock lock(&mutex_);
  if (!stopping_) changed_.WaitWithTimeout(&mutex_, kPause);
  return !stopping_;
}

}  // namespace varve
