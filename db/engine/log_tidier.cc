#include "db/engine/log_tidier.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "db/format/log_format.h"
#include "db/log/log_files.h"
#include "spdlog/spdlog.h"
#include "util/base/memory_guard.h"
#include "util/os/free_memory.h"

namespace varve {
namespace {

constexpr absl::Duration kRest = absl::Seconds(2);
constexpr absl::Duration kBetweenLooks = absl::Seconds(1);
constexpr absl::Duration kBetweenSteps = absl::Milliseconds(50);
constexpr uint64_t kMostAtRest = uint64_t{8} << 20;
constexpr uint64_t kPartOfTree = 64;

}  // namespace

void RetireLog(Log* log, const ValueFiles& values, SequenceNumber flushed) noexcept {
  std::vector<std::pair<std::shared_ptr<ValueFile>, LogEnd>> kept;
  // Without memory the files are left to the next time.
  TryWithMemory([&] {
    kept.reserve(log->Files().size());
    log->Retire(flushed, [&](const LogEnd& end) {
      std::shared_ptr<ValueFile> file = values.Find(end.file_number);
      if (file == nullptr) return false;
      kept.emplace_back(std::move(file), end);
      return true;
    });
  });
  for (const auto& each : kept) {
    const std::shared_ptr<ValueFile>& file = each.first;
    const LogEnd& end = each.second;
    // What fails here is done by the next open; until then the file stays as it is.
    const absl::Status named = GuardMemory("keeping a log file for its values", [&] {
      return file->LeaveLog(LogPageAlign(end.offset));
    });
    if (!named.ok()) TryWithMemory([&] { spdlog::warn("{}", named.ToString()); });
  }
}

SteadyTime LogTidier::Look() noexcept {
  const SteadyTime now = SteadyNow();
  if (!log_.started()) return now + kBetweenLooks;
  const uint64_t appended = log_->bytes_appended();
  const bool appends =
      std::exchange(appended_, appended) != appended || versions_.full_buffers() != 0;
  LookAtMemory(now, appends);
  if (appends) {
    rests_since_ = now;
    tidies_ = false;
  } else if (rests_since_ && now >= *rests_since_ + kRest) {
    rests_since_.reset();  // once a rest
    tidies_ = IsWasteful() && log_->ShedFiles();
  }
  if (tidies_) TryWithMemory([this] { tidies_ = TakeStep(); });
  return now + (tidies_ ? kBetweenSteps : kBetweenLooks);
}

void LogTidier::LookAtMemory(SteadyTime now, bool appends) {
  const Version* const present = versions_.PresentVersion().get();
  const bool merges = std::exchange(seen_, present) != present;
  // A few writes leave nothing to speak of.
  if (merges || (appends && is_still_since_)) {
    is_still_since_ = now;
  } else if (!appends && is_still_since_ && now >= *is_still_since_ + kRest) {
    is_still_since_.reset();
    GiveBackFreeMemory();
  }
}

bool LogTidier::TakeStep() {
  const uint64_t next = log_->next_file_size();
  if (next == 0) return !log_->lacks_space();  // it is being made
  // Before the commit lock is taken, which is held while the file is left.
  if (!log_->Sync().ok()) return false;
  const bool is_small = next <= LogFiles::kSizeAtRest;
  const absl::StatusOr<bool> left = pipeline_.LeaveLogFile(/*rotates=*/is_small);
  if (!left.ok() || !*left) return false;
  // Where the buffer was empty no flush follows that would.
  if (is_small) RetireLog(log_.get(), values_, Flushed());
  return !is_small;
}

SequenceNumber LogTidier::Flushed() const {
  absl::MutexLock lock(&versions_.mutex());
  return versions_.FlushedLocked();
}

bool LogTidier::IsWasteful() const {
  uint64_t tree = 0;
  const std::shared_ptr<const Version> version = versions_.PresentVersion();
  for (const auto* const run : version->runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments) tree += segment->info().file_size;
  }
  return log_->disk_bytes() > std::max(kMostAtRest, tree / kPartOfTree);
}

}  // namespace varve
