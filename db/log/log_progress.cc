#include "db/log/log_progress.h"

#include <fmt/format.h>

#include <string>

#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {

absl::Status LogProgress::status() const {
  if (!failed()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  return UnsharedCopy(status_);
}

absl::Status LogProgress::Fail(const absl::Status& cause) noexcept {
  VARVE_ASSERT(!cause.ok());
  absl::MutexLock lock(&mutex_);
  if (status_.ok()) {
    status_ = StatusInWords(absl::StatusCode::kUnavailable, [&] {
      return fmt::format(
          "the log failed and takes no more writes; check the disk, then restart: {}",
          std::string(cause.message()));
    });
    failed_.store(true, std::memory_order_release);
  }
  VARVE_ASSERT(!status_.ok());
  return UnsharedCopy(status_);
}

void LogProgress::Appended(SequenceNumber last, Durability durability, size_t bytes) {
  VARVE_ASSERT(last > appended());
  VARVE_ASSERT(this->last(durability) < last);
  // The writer's mutex makes these additions, so they need not be atomic.
  buffered_bytes_.store(buffered_bytes_.load(std::memory_order_relaxed) + bytes,
                        std::memory_order_release);
  bytes_appended_.store(bytes_appended_.load(std::memory_order_relaxed) + bytes,
                        std::memory_order_relaxed);
  appended_.store(last, std::memory_order_release);
  last_[static_cast<size_t>(durability)].sequence.store(last, std::memory_order_release);
}

void LogProgress::Written(SequenceNumber last, size_t bytes) {
  VARVE_ASSERT(last >= written() && last <= appended());
  VARVE_ASSERT(buffered_bytes() >= bytes);
  written_.store(last, std::memory_order_release);
  buffered_bytes_.store(buffered_bytes_.load(std::memory_order_relaxed) - bytes,
                        std::memory_order_release);
}

void LogProgress::Durable(SequenceNumber last) {
  VARVE_ASSERT(last >= durable());
  VARVE_ASSERT(last <= written());
  durable_.store(last, std::memory_order_release);
}

void LogProgress::MarkWritten(SequenceNumber mark) {
  VARVE_ASSERT(mark <= durable());
  written_mark_.store(mark, std::memory_order_relaxed);
}

LogStatistics LogProgress::statistics() const {
  LogStatistics statistics;
  statistics.groups = groups_.load(std::memory_order_relaxed);
  statistics.syncs = syncs_.load(std::memory_order_relaxed);
  statistics.bytes_written = bytes_written_.load(std::memory_order_relaxed);
  statistics.bytes_appended = bytes_appended();
  return statistics;
}

}  // namespace varve
