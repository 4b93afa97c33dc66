// LogWriter: the room that is promised before anything is appended (db/log/log_writer.h).
#include <fmt/format.h>

#include "db/format/log_format.h"
#include "db/log/log_writer.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {

bool LogWriter::FitsLocked(uint64_t unit, bool for_deletes) const {
  const uint64_t spare_size = files_.spare_size();
  const uint64_t reserve = for_deletes ? 0 : delete_reserve_;
  if (cursor_.file == file_index_) {
    // The reserve is kept in the last file there is.
    if (cursor_.offset + unit + (spare_size == 0 ? reserve : 0) <= file_size_) return true;
    return kLogPageSize + unit + reserve <= spare_size;
  }
  return cursor_.offset + unit + reserve <= spare_size;
}

void LogWriter::PublishSafeRoom() {
  const uint64_t size = cursor_.file == file_index_ ? file_size_ : files_.spare_size();
  const uint64_t used = cursor_.offset + delete_reserve_ + kLogPageSize;
  safe_room_.store(size > used ? size - used : 0, std::memory_order_release);
}

bool LogWriter::HasRoom(size_t bytes, bool for_deletes) const {
  const uint64_t unit = WorstCase(bytes);
  if (failed() || unit <= safe_room_.load(std::memory_order_acquire)) return true;
  absl::MutexLock lock(&mutex_);
  return !status_.ok() || FitsLocked(unit, for_deletes);
}

absl::Status LogWriter::Prepare(size_t bytes, bool for_deletes) {
  VARVE_RETURN_IF_ERROR(WriteOut(appended_sequence()));
  return HasRoom(bytes, for_deletes) ? absl::OkStatus() : PrepareNextFile(WorstCase(bytes));
}

absl::Status LogWriter::Reserve(size_t bytes, bool for_deletes) {
  const uint64_t unit = WorstCase(bytes);
  if (unit <= safe_room_.load(std::memory_order_acquire) && !failed()) return absl::OkStatus();
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (!status_.ok()) return UnsharedCopy(status_);
      if (FitsLocked(unit, for_deletes)) {
        promised_ = true;
        return absl::OkStatus();
      }
    }
    // What waits in the buffer was accounted for in the worst case; written, it takes what it
    // takes.
    VARVE_RETURN_IF_ERROR(buffered_bytes() > 0 ? WriteOut(appended_sequence())
                                               : PrepareNextFile(unit));
  }
}

absl::Status LogWriter::PrepareNextFile(uint64_t unit) {
  const absl::Status status = files_.spare_size() > 0
                                  ? files_.GrowSpare(kLogPageSize + unit + delete_reserve_)
                                  : files_.WaitForSpare();
  if (status.ok() || absl::IsUnavailable(status)) return status;
  // Whatever keeps the file from being made: nothing was promised in it, and the next try makes it
  // anew.
  return StatusInWords(absl::StatusCode::kResourceExhausted, [&] {
    return fmt::format(
        "no room left in the log, and no file to go on with; making one is tried again, and writes "
        "resume when it is "
        "there: {}",
        WordsOf(status));
  });
}

}  // namespace varve
