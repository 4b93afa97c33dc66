#include "util/os/file_recycler.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/thread_setup.h"

namespace varve {
namespace {

// About 2 GB/s, faster than files come to be.
constexpr uint64_t kStep = uint64_t{2} << 20;
constexpr absl::Duration kPause = absl::Microseconds(500);
constexpr uint64_t kShareOfFreeSpace = 8;
constexpr uint64_t kMostTooLarge = 4;
constexpr absl::Duration kLookAgain = absl::Milliseconds(500);

}  // namespace

FileRecycler::~FileRecycler() {
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
  for (const Spare& spare : spares_) RemoveNow(spare.path);
}

void FileRecycler::Retire(const std::string& path, bool is_sound,
                          std::function<void()> first) noexcept {
  const bool put_off = TryWithMemory([&] {
    absl::MutexLock lock(&mutex_);
    tasks_.push_back({path, is_sound, std::move(first)});
    changed_.SignalAll();
  });
  if (!put_off) return RemoveNow(path);
  TryWithMemory([&] {
    absl::MutexLock lock(&mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  });
}

absl::StatusOr<std::unique_ptr<File>> FileRecycler::Create(const std::string& path,
                                                           uint64_t expected_size,
                                                           uint64_t* old_size) {
  *old_size = 0;
  if (const Spare spare = TakeSpare(expected_size); !spare.path.empty()) {
    // One that can't be had goes, under whichever name.
    absl::Cleanup remove = [&] {
      RemoveNow(spare.path);
      RemoveNow(path);
    };
    absl::Status status = file_system_->Rename(spare.path, path);
    if (status.ok()) {
      absl::StatusOr<std::unique_ptr<File>> file =
          file_system_->OpenForWrite(path, /*create=*/false);
      if (file.ok()) {
        std::move(remove).Cancel();
        *old_size = spare.size;
        return file;
      }
    }
  }
  return file_system_->OpenForWrite(path, /*create=*/true);
}

FileRecycler::Spare FileRecycler::TakeSpare(uint64_t expected_size) {
  absl::MutexLock lock(&mutex_);
  // Of one that is much too large most would have to be cut off.
  const uint64_t largest = std::max(kMostTooLarge * expected_size, kStep);
  const auto distance = [expected_size](const Spare& spare) {
    return std::max(spare.size, expected_size) - std::min(spare.size, expected_size);
  };
  const auto best =
      std::min_element(spares_.begin(), spares_.end(),
                       [&](const Spare& a, const Spare& b) { return distance(a) < distance(b); });
  if (best == spares_.end() || best->size > largest) return {};
  Spare spare = std::move(*best);
  spares_.erase(best);
  spare_bytes_ -= spare.size;
  return spare;
}

absl::Status FileRecycler::CutDown(File* file, uint64_t old_size, uint64_t size) {
  while (old_size > size + kStep && Pause()) {
    old_size -= kStep;
    VARVE_RETURN_IF_ERROR(file->Truncate(old_size));
  }
  return old_size > size ? file->Truncate(size) : absl::OkStatus();
}

bool FileRecycler::Pause() {
  absl::MutexLock lock(&mutex_);
  const SteadyTime end = SteadyNow() + kPause;
  while (!stopping_ && !changed_.WaitWithDeadline(&mutex_, end)) {
  }
  return !stopping_;
}

// --- The thread ----------------------------------------------------------------------------------

void FileRecycler::Run() {
  NameThread("varve-recycle");
  YieldToForeground();
  SteadyTime look_at = kEndOfTime;  // when to look whether spares are still wanted
  mutex_.Lock();
  for (;;) {
    if (SteadyNow() >= look_at) {
      mutex_.Unlock();
      TryWithMemory([&] { RemoveUnwanted(); });
      mutex_.Lock();
      look_at = kEndOfTime;
    } else if (!tasks_.empty()) {
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      const bool in_time = !stopping_;
      mutex_.Unlock();
      if (in_time && task.first) TryWithMemory(task.first);
      bool kept = false;
      if (in_time && task.is_sound && options_.capacity > 0) {
        TryWithMemory([&] { kept = Keep(task.path).ok(); });
      }
      if (!kept) RemoveInSteps(task.path);
      mutex_.Lock();
    } else if (stopping_) {
      break;
    } else {
      if (!spares_.empty()) look_at = std::min(look_at, SteadyNow() + kLookAgain);
      changed_.WaitWithDeadline(&mutex_, look_at);
    }
  }
  mutex_.Unlock();
}

void FileRecycler::RemoveUnwanted() {
  std::string directory;
  {
    absl::MutexLock lock(&mutex_);
    if (spares_.empty()) return;
    directory = ParentDirectory(spares_.front().path);
  }
  const uint64_t room = Room(directory);
  for (;;) {
    Spare spare;
    {
      absl::MutexLock lock(&mutex_);
      if (spares_.empty() || (spare_bytes_ <= room && SteadyNow() < spares_.front().expires))
        return;
      spare = std::move(spares_.front());
      spares_.erase(spares_.begin());
      spare_bytes_ -= spare.size;
    }
    RemoveInSteps(spare.path);
  }
}

uint64_t FileRecycler::Room(const std::string& path) const {
  const absl::StatusOr<uint64_t> free = file_system_->FreeSpace(path);
  return free.ok() ? std::min(options_.capacity, *free / kShareOfFreeSpace) : 0;
}

absl::Status FileRecycler::Keep(const std::string& path) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, file_system_->OpenForRead(path));
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  const uint64_t room = Room(path);
  Spare spare{path + std::string(kSpareSuffix), size, SteadyNow() + options_.lifetime};
  if (size == 0 || size > room || spare_bytes() > room - size)
    return absl::ResourceExhaustedError("no room for a spare");
  {
    absl::MutexLock lock(&mutex_);
    ReserveMore(&spares_, 1);  // here alone spares are added
  }
  VARVE_RETURN_IF_ERROR(file_system_->Rename(path, spare.path));
  absl::MutexLock lock(&mutex_);
  spares_.push_back(std::move(spare));
  spare_bytes_ += size;
  return absl::OkStatus();
}

void FileRecycler::RemoveNow(const std::string& path) {
  TryWithMemory([&] { file_system_->Remove(path).IgnoreError(); });
}

void FileRecycler::RemoveInSteps(const std::string& path) {
  TryWithMemory([&] {
    absl::StatusOr<std::unique_ptr<File>> file = file_system_->OpenForWrite(path, /*create=*/false);
    if (!file.ok()) return;
    const absl::StatusOr<uint64_t> size = (*file)->Size();
    if (size.ok()) CutDown(file->get(), *size, std::min(*size, kStep)).IgnoreError();
  });
  RemoveNow(path);
}

}  // namespace varve
