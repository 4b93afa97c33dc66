#include "db/engine/log_tidier.h"

#include <algorithm>
#include <utility>

#include "util/base/memory_guard.h"

namespace varve {
namespace {

constexpr absl::Duration kRest = absl::Seconds(2);
constexpr absl::Duration kBetweenLooks = absl::Seconds(1);
constexpr uint64_t kMostAtRest = uint64_t{16} << 20;
constexpr uint64_t kPartOfTree = 64;

}  // namespace

SteadyTime LogTidier::Look() noexcept {
  const SteadyTime now = SteadyNow();
  if (!log_.started()) return now + kBetweenLooks;
  const uint64_t appended = log_->bytes_appended();
  if (std::exchange(appended_, appended) != appended || versions_.full_buffers() != 0) {
    rests_since_ = now;
  } else if (rests_since_ && now >= *rests_since_ + kRest) {
    rests_since_.reset();  // once a rest
    TryWithMemory([this] {
      if (IsWasteful() && log_->ShedFiles().ok()) pipeline_.LeaveLogFile().IgnoreError();
    });
  }
  return now + kBetweenLooks;
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
