// LogWriter: direct groups (db/log/log_writer.h), from the buffer around the kernel's cache to the
// disk.
#include <algorithm>
#include <utility>

#include "db/format/log_format.h"
#include "db/log/log_writer.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {

std::optional<LogWriter::DirectGroup> LogWriter::BeginDirectGroup() {
  if (options_.sync_backend != SyncBackend::kDirect || written_sequence() != durable_sequence())
    return std::nullopt;
  absl::MutexLock lock(&mutex_);
  while (issued_ - landed_ == kMostDirectGroups) landing_.Wait(&mutex_);
  DirectGroup group{.number = issued_, .file = file_.file.get()};
  if (active_.empty() || !status_.ok()) return group;
  const uint64_t begin = LogPageAlign(position_);
  const uint64_t size = LogPageAlign(active_.size());
  if (begin + size > file_.size) return std::nullopt;
  LogBuffer& buffer = direct_buffers_[issued_ % kMostDirectGroups];
  std::swap(active_, buffer);
  active_units_ = 0;
  group.mark = durable_sequence();
  EncodeHeaders(&buffer, 0, buffer.blocks().size(), begin, group.mark);
  NotePlaces(buffer.blocks(), 0, buffer.blocks().size(), begin);
  buffer.PadEnd(size - buffer.size());
  position_ = begin + size;
  touched_ = std::max(touched_, position_);
  last_written_ = buffer.blocks().back().last;
  group.offset = begin;
  group.bytes = {buffer.data(), size};
  group.records_size = buffer.records_size();
  group.end = {file_.number, position_, last_written_};
  direct_[issued_ % kMostDirectGroups] = group;
  BringCursorBackLocked();
  ++issued_;
  return group;
}

absl::Status LogWriter::FinishDirectGroup(const DirectGroup& group) {
  uint64_t awaited = group.number;
  if (!group.bytes.empty()) {
    ++awaited;
    syncs_.fetch_add(1, std::memory_order_relaxed);
    groups_.fetch_add(1, std::memory_order_relaxed);
    bytes_written_.fetch_add(group.bytes.size(), std::memory_order_relaxed);
    const absl::Status status = GuardMemory("writing the log", [&group] {
      return group.file->WriteDurably(group.offset, group.bytes);
    });
    direct_buffers_[group.number % kMostDirectGroups].Clear(keep_memory_);
    absl::MutexLock lock(&mutex_);
    if (!status.ok()) FailLocked(status);
    direct_[group.number % kMostDirectGroups].has_landed = true;
    LandDirectGroupsLocked();
  }
  absl::MutexLock lock(&mutex_);
  while (landed_ < awaited) landing_.Wait(&mutex_);
  return UnsharedCopy(status_);
}

void LogWriter::LandDirectGroupsLocked() {
  for (; landed_ < issued_ && direct_[landed_ % kMostDirectGroups].has_landed; ++landed_) {
    if (!status_.ok()) continue;
    const DirectGroup& group = direct_[landed_ % kMostDirectGroups];
    end_ = group.end;
    written_mark_.store(group.mark, std::memory_order_relaxed);
    written_.store(end_.last_sequence, std::memory_order_release);
    durable_.store(end_.last_sequence, std::memory_order_release);
    buffered_bytes_.store(buffered_bytes_.load(std::memory_order_relaxed) - group.records_size,
                          std::memory_order_release);
  }
  landing_.SignalAll();
}

void LogWriter::AwaitDirectGroups() {
  absl::MutexLock lock(&mutex_);
  while (landed_ < issued_) landing_.Wait(&mutex_);
}

}  // namespace varve
