#include "util/os/spare_files.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/spare_name.h"

namespace varve {
namespace {

// A store that writes much flushes and merges more often, and one at rest gives its log back then.
constexpr absl::Duration kLifetime = absl::Seconds(2);
// What nobody takes for so long has a size that nobody wants.
constexpr absl::Duration kLongest = absl::Seconds(30);
constexpr uint64_t kShareOfFreeSpace = 8;
constexpr uint64_t kMostTooLarge = 2;

}  // namespace

uint64_t SpareFiles::MostBytes(const std::string& path) const {
  const absl::StatusOr<uint64_t> free = file_system_->FreeSpace(ParentDirectory(path));
  return free.ok() ? std::min(most_bytes_, *free / kShareOfFreeSpace) : 0;
}

bool SpareFiles::Keep(const std::string& path, const File& file, uint64_t size) noexcept {
  if (size == 0 || size > most_bytes_) return false;
  bool is_kept = false;
  TryWithMemory([&] {
    const uint64_t most = MostBytes(path);
    Spare spare{path + std::string(kSpareSuffix), size, SteadyNow()};
    // The lock is held while the file is renamed, so that Close() finds all spares.
    absl::MutexLock lock(&mutex_);
    if (closed_ != 0 || size > most) return;
    expired_.reserve(expired_.size() + spares_.size());
    spares_.reserve(spares_.size() + 1);
    if (!file_system_->Rename(path, spare.path).ok()) return;
    is_kept = true;
    // Nobody gives a spare another name, so this count is the last one.
    if (file.CountLinks().value_or(2) > 1) return RemoveFile(file_system_, spare.path);
    while (bytes_ + size > most) {
      VARVE_ASSERT(!spares_.empty());
      expired_.push_back(std::move(spares_.front().path));
      LeaveOut(0);
    }
    bytes_ += size;
    last_use_ = spare.kept;
    spares_.push_back(std::move(spare));
  });
  return is_kept;
}

void SpareFiles::LeaveOut(size_t index) {
  VARVE_ASSERT(index < spares_.size() && bytes_ >= spares_[index].size);
  bytes_ -= spares_[index].size;
  spares_.erase(spares_.begin() + static_cast<ptrdiff_t>(index));
}

SpareFiles::Spare SpareFiles::TakeNearest(uint64_t expected_size) {
  absl::MutexLock lock(&mutex_);
  if (closed_ != 0) return {};
  const auto distance = [expected_size](const Spare& spare) {
    return std::max(spare.size, expected_size) - std::min(spare.size, expected_size);
  };
  const auto best =
      std::min_element(spares_.begin(), spares_.end(),
                       [&](const Spare& a, const Spare& b) { return distance(a) < distance(b); });
  if (best == spares_.end() || best->size > kMostTooLarge * expected_size) return {};
  Spare taken = std::move(*best);
  LeaveOut(static_cast<size_t>(best - spares_.begin()));
  ++written_over_;
  last_use_ = SteadyNow();
  return taken;
}

SpareFiles::Taken SpareFiles::Take(const std::string& path, uint64_t expected_size) noexcept {
  const Spare spare = TakeNearest(expected_size);
  if (spare.path.empty()) return {};
  Taken taken;
  TryWithMemory([&] {
    if (!file_system_->Rename(spare.path, path).ok()) return;
    absl::StatusOr<std::unique_ptr<File>> file = file_system_->OpenForWrite(path, /*create=*/false);
    if (file.ok()) taken = {*std::move(file), spare.size};
  });
  if (taken.file == nullptr) {
    // The spare goes, under whichever name it has.
    RemoveFile(file_system_, spare.path);
    RemoveFile(file_system_, path);
    IsClean();
  }
  return taken;
}

absl::Status SpareFiles::CutDown(File* file, uint64_t old_size, uint64_t size) {
  VARVE_ASSERT(size <= old_size);
  while (old_size > size) {
    old_size -= std::min(old_size - size, kPacer.step_bytes());
    VARVE_RETURN_IF_ERROR(file->Truncate(old_size));
    if (old_size > size) std::this_thread::sleep_until(kPacer.NextStep());
  }
  return absl::OkStatus();
}

void SpareFiles::IsClean() {
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(written_over_ > 0);
  if (--written_over_ == 0) cleaned_.SignalAll();
}

std::string SpareFiles::TakeExpired(SteadyTime now) {
  absl::MutexLock lock(&mutex_);
  std::string path;
  if (!expired_.empty()) {
    path = std::move(expired_.back());
    expired_.pop_back();
  } else if (!spares_.empty() &&
             (now >= last_use_ + kLifetime || now >= spares_.front().kept + kLongest)) {
    path = std::move(spares_.front().path);
    LeaveOut(0);
  }
  return path;
}

SteadyTime SpareFiles::expiry() const {
  absl::MutexLock lock(&mutex_);
  if (!expired_.empty()) return SteadyNow();
  if (spares_.empty()) return kEndOfTime;
  return std::min(last_use_ + kLifetime, spares_.front().kept + kLongest);
}

std::vector<std::string> SpareFiles::Close() {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> paths = std::move(expired_);
  expired_.clear();
  paths.reserve(paths.size() + spares_.size());
  for (Spare& spare : spares_) paths.push_back(std::move(spare.path));
  spares_.clear();
  bytes_ = 0;
  ++closed_;
  return paths;
}

void SpareFiles::Open() {
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(closed_ > 0);
  --closed_;
}

bool SpareFiles::AreClean() const {
  absl::MutexLock lock(&mutex_);
  return written_over_ == 0;
}

void SpareFiles::AwaitClean() {
  absl::MutexLock lock(&mutex_);
  while (written_over_ != 0) cleaned_.Wait(&mutex_);
}

}  // namespace varve
