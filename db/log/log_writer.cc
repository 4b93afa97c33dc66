#include "db/log/log_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "db/format/log_format.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

// Room that only deletes may use once the disk is full: at least 256 deletes that are synced one by
// one.
constexpr uint64_t kMaxDeleteReserve = 1u << 20;
constexpr size_t kMinKeptMemory = 256u << 10;

}  // namespace

LogWriter::LogWriter(FileSystem* file_system, const LogOptions& options,
                     SequenceNumber last_sequence)
    : options_(options),
      delete_reserve_(std::min(kMaxDeleteReserve, LogPageAlign(options.file_size / 4))),
      keep_memory_(std::max(kMinKeptMemory, 2 * options.group_max_bytes)),
      files_(file_system, options),
      last_written_(last_sequence),
      appended_(last_sequence),
      written_(last_sequence),
      durable_(last_sequence),
      written_mark_(last_sequence),
      last_of_{last_sequence, last_sequence, last_sequence} {}

absl::Status LogWriter::Start(uint64_t first_number) {
  VARVE_ASSIGN_OR_RETURN(LogFile file, files_.Start(first_number));
  absl::MutexLock write_lock(&write_mutex_);
  file_ = std::move(file);
  position_ = touched_ = kLogPageSize;
  absl::MutexLock lock(&mutex_);
  file_size_ = file_.size;
  cursor_ = {file_index_, position_};
  end_ = {file_.number, position_, last_written_};
  return absl::OkStatus();
}

LogEnd LogWriter::Stop() {
  files_.Stop();
  absl::MutexLock lock(&mutex_);
  return end_;
}

absl::Status LogWriter::Append(std::string_view record, SequenceNumber first, SequenceNumber last,
                               Durability durability, uint32_t* offset_in_block) {
  const uint64_t unit = WorstCase(record.size());
  absl::MutexLock lock(&mutex_);
  promised_ = false;
  if (!status_.ok()) return UnsharedCopy(status_);
  const bool next_file = cursor_.file == file_index_ && cursor_.offset + unit > file_size_;
  const bool new_block =
      next_file || active_.last_block_size() + record.size() > options_.group_max_bytes;
  const bool appended = TryWithMemory([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (offset_in_block == nullptr) {
      active_.Append(record, first, last, new_block);
      return;
    }
    // The place is filled in by the write, which takes no memory.
    large_blocks_.push_back({first, 0, 0});
    absl::Cleanup taken_back = [this]()
                                   ABSL_NO_THREAD_SAFETY_ANALYSIS { large_blocks_.pop_back(); };
    *offset_in_block = static_cast<uint32_t>(active_.Append(record, first, last, new_block));
    large_blocks_.back().first = active_.last_block_first();
    const bool is_known =
        large_blocks_.size() > 1 &&
        large_blocks_[large_blocks_.size() - 2].first == large_blocks_.back().first;
    if (!is_known) std::move(taken_back).Cancel();
  });
  if (!appended) return OutOfMemory("writing to the log");
  if (next_file) cursor_ = {file_index_ + 1, kLogPageSize};
  cursor_.offset += unit;
  active_units_ += unit;
  file_bytes_ += record.size();
  if (offset_in_block != nullptr) file_large_bytes_ += record.size();
  if (durability == Durability::kAlways) file_synced_bytes_ += record.size();
  PublishSafeRoom();
  // Written under the mutex alone: no need for an atomic addition.
  buffered_bytes_.store(buffered_bytes_.load(std::memory_order_relaxed) + record.size(),
                        std::memory_order_release);
  bytes_appended_.store(bytes_appended_.load(std::memory_order_relaxed) + record.size(),
                        std::memory_order_relaxed);
  appended_.store(last, std::memory_order_release);
  last_of_[static_cast<size_t>(durability)].store(last, std::memory_order_release);
  return absl::OkStatus();
}

// --- Writing -------------------------------------------------------------------------------------

absl::Status LogWriter::WriteOut(SequenceNumber sequence) {
  if (written_sequence() >= sequence) return absl::OkStatus();
  absl::MutexLock lock(&write_mutex_);
  AwaitDirectGroups();
  if (written_sequence() >= sequence) return absl::OkStatus();  // somebody wrote it for us
  return WriteOutLocked();
}

absl::Status LogWriter::WriteOutLocked() {
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return UnsharedCopy(status_);
    if (active_.empty()) return absl::OkStatus();
    std::swap(active_, writing_);
    active_units_ = 0;
  }
  const size_t records_size = writing_.records_size();
  const absl::Status status = GuardMemory(
      "writing the log", [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return WriteBlocks(); });
  writing_.Clear(keep_memory_);
  if (!status.ok()) return Fail(status);

  absl::MutexLock lock(&mutex_);
  end_.last_sequence = last_written_;
  BringCursorBackLocked();
  written_.store(last_written_, std::memory_order_release);
  buffered_bytes_.store(buffered_bytes_.load(std::memory_order_relaxed) - records_size,
                        std::memory_order_release);
  return absl::OkStatus();
}

void LogWriter::BringCursorBackLocked() {
  const Cursor used = {file_index_, LogPageAlign(position_)};
  const bool same_file = used.offset + active_units_ <= file_size_;
  const Cursor bound = same_file ? Cursor{used.file, used.offset + active_units_}
                                 : Cursor{used.file + 1, kLogPageSize + active_units_};
  cursor_ = std::min(cursor_, bound);
  PublishSafeRoom();
  files_.NoteUsed(position_);
}

void LogWriter::EncodeHeaders(LogBuffer* buffer, size_t begin, size_t end, uint64_t position,
                              SequenceNumber mark) const {
  const std::vector<LogBuffer::Block>& blocks = buffer->blocks();
  for (size_t i = begin; i < end; ++i) {
    const LogBuffer::Block& block = blocks[i];
    const auto payload_size = static_cast<uint32_t>(block.end - block.begin - kLogBlockHeaderSize);
    EncodeLogBlockHeader(buffer->data() + block.begin,
                         {payload_size, file_.number, block.first, block.last, mark},
                         options_.store_id, position + (block.begin - blocks[begin].begin));
  }
}

absl::Status LogWriter::WriteBlocks() {
  const std::vector<LogBuffer::Block>& blocks = writing_.blocks();
  for (size_t begin = 0; begin < blocks.size();) {
    // As many blocks as fit into what is left of the file.
    size_t end = begin;
    while (end < blocks.size() && position_ + blocks[end].end - blocks[begin].begin <= file_.size)
      ++end;
    if (end > begin) VARVE_RETURN_IF_ERROR(WriteRun(begin, end));
    if (end < blocks.size()) VARVE_RETURN_IF_ERROR(NextFile());
    begin = end;
  }
  return absl::OkStatus();
}

absl::Status LogWriter::WriteRun(size_t begin, size_t end) {
  const std::vector<LogBuffer::Block>& blocks = writing_.blocks();
  const SequenceNumber mark = durable_sequence();
  const size_t run_begin = blocks[begin].begin;
  EncodeHeaders(&writing_, begin, end, position_, mark);
  uint64_t size = blocks[end - 1].end - run_begin;
  const uint64_t run_end = position_ + size;
  // Whoever touches a page of an earlier use first fills it: the kernel need not read it, and no
  // stale bytes stay behind the block. Only the last run may pad, as the next block's bytes follow
  // the others; those that follow go to another file anyway.
  const uint64_t page_end = LogPageAlign(run_end);
  if (file_.is_recycled && end == blocks.size() && page_end > touched_) {
    writing_.PadEnd(page_end - run_end);
    size += page_end - run_end;
  }
  const uint64_t written_at = position_;
  const std::string_view bytes(writing_.data() + run_begin, size);
  VARVE_RETURN_IF_ERROR(file_.file->Write(written_at, bytes));
  bytes_written_.fetch_add(size, std::memory_order_relaxed);
  touched_ = std::max(touched_, LogPageAlign(run_end));
  position_ = LogBlockAlign(run_end);
  last_written_ = blocks[end - 1].last;
  written_mark_.store(mark, std::memory_order_relaxed);
  absl::MutexLock lock(&mutex_);
  end_.offset = position_;
  NotePlaces(blocks, begin, end, written_at);
  return absl::OkStatus();
}

void LogWriter::NotePlaces(const std::vector<LogBuffer::Block>& blocks, size_t begin, size_t end,
                           uint64_t position) {
  if (large_blocks_.empty()) return;
  auto place = large_blocks_.end();  // what is written now was appended last
  while (place != large_blocks_.begin() && std::prev(place)->first >= blocks[begin].first) --place;
  for (size_t i = begin; i < end && place != large_blocks_.end(); ++i) {
    if (place->first != blocks[i].first) continue;  // it has no large operations
    place->file_number = file_.number;
    place->payload_offset =
        position + (blocks[i].begin - blocks[begin].begin) + kLogBlockHeaderSize;
    ++place;
  }
}

std::vector<LogBlockPlace> LogWriter::LargeBlocks(SequenceNumber first, SequenceNumber last) const {
  absl::MutexLock lock(&mutex_);
  auto begin = std::upper_bound(
      large_blocks_.begin(), large_blocks_.end(), first,
      [](SequenceNumber sequence, const LogBlockPlace& block) { return sequence < block.first; });
  if (begin != large_blocks_.begin()) --begin;
  const auto end = std::upper_bound(
      begin, large_blocks_.end(), last,
      [](SequenceNumber sequence, const LogBlockPlace& block) { return sequence < block.first; });
  return {begin, end};
}

void LogWriter::ForgetLargeBlocks(SequenceNumber flushed) {
  absl::MutexLock lock(&mutex_);
  while (large_blocks_.size() > 1 && large_blocks_[1].first <= flushed + 1)
    large_blocks_.pop_front();
}

// Who waits for no sync doesn't wait for one here either: the next sync is of this file, too.
// Blocks in the next file may then be on disk and some of this one not; recovery takes that for a
// tear, as their durable mark says so.
absl::Status LogWriter::NextFile() {
  if (HasManyLeftFiles()) {
    absl::MutexLock lock(&sync_mutex_);
    VARVE_RETURN_IF_ERROR(SyncLocked(file_.file, last_written_));
  }
  LogFile finished;  // closed when the lock is free again
  absl::MutexLock lock(&mutex_);
  end_.last_sequence = last_written_;
  files_.NoteContent(2 * file_large_bytes_ > file_bytes_, 2 * file_synced_bytes_ < file_bytes_);
  file_bytes_ = file_large_bytes_ = file_synced_bytes_ = 0;
  VARVE_ASSIGN_OR_RETURN(LogFile next, files_.Advance(end_));
  finished = std::exchange(file_, std::move(next));
  if (durable_sequence() < last_written_) left_[left_count_++] = {finished.file, last_written_};
  taken_before_ += end_.offset;
  position_ = touched_ = kLogPageSize;
  ++file_index_;
  file_size_ = file_.size;
  end_ = {file_.number, position_, last_written_};
  return absl::OkStatus();
}

absl::Status LogWriter::Sync() {
  write_mutex_.Lock();
  if (const std::optional<DirectGroup> group = BeginDirectGroup()) {
    write_mutex_.Unlock();
    return FinishDirectGroup(*group);
  }
  AwaitDirectGroups();
  const absl::Status written = WriteOutLocked();
  if (!written.ok()) {
    write_mutex_.Unlock();
    return written;
  }
  // From here on these pages may be acknowledged: they are not written again.
  position_ = LogPageAlign(position_);
  const SequenceNumber target = last_written_;
  const std::shared_ptr<File> file = file_.file;
  sync_mutex_.Lock();
  write_mutex_.Unlock();
  const absl::Status synced = SyncLocked(file, target);
  sync_mutex_.Unlock();
  groups_.fetch_add(1, std::memory_order_relaxed);
  return synced;
}

absl::Status LogWriter::SyncLocked(const std::shared_ptr<File>& file, SequenceNumber target) {
  if (failed()) return status();
  if (durable_sequence() >= target) return absl::OkStatus();
  std::array<LeftFile, kMostLeftFiles> synced;  // closed when the lock is free again
  {
    absl::MutexLock lock(&mutex_);
    std::copy_if(left_.begin(), left_.begin() + left_count_, synced.begin(),
                 // Not those that were left since.
                 [target](const LeftFile& left) { return left.last <= target; });
  }
  const absl::Status status = GuardMemory("syncing the log", [&] {
    for (const LeftFile& left : synced) {
      if (left.file == nullptr || left.file == file) continue;
      syncs_.fetch_add(1, std::memory_order_relaxed);
      VARVE_RETURN_IF_ERROR(left.file->Sync());
    }
    syncs_.fetch_add(1, std::memory_order_relaxed);
    return file->Sync();
  });
  if (!status.ok()) return Fail(status);
  durable_.store(target, std::memory_order_release);
  absl::MutexLock lock(&mutex_);
  const auto end = left_.begin() + left_count_;
  const auto kept = std::remove_if(left_.begin(), end,
                                   [target](const LeftFile& left) { return left.last <= target; });
  left_count_ = static_cast<size_t>(kept - left_.begin());
  std::fill(kept, end, LeftFile());
  return absl::OkStatus();
}

void LogWriter::WriteMark() {
  absl::MutexLock write_lock(&write_mutex_);
  const SequenceNumber mark = durable_sequence();
  const uint64_t offset = LogPageAlign(position_);
  {
    absl::MutexLock lock(&mutex_);
    // The reserve is for deletes while there is no next file.
    const uint64_t kept = files_.spare_size() > 0 ? 0 : delete_reserve_;
    const bool room =
        cursor_ == Cursor{file_index_, offset} && offset + kLogPageSize + kept <= file_size_;
    if (!status_.ok() || !active_.empty() || promised_ || mark != last_written_ || !room) return;
    cursor_.offset += kLogPageSize;
    PublishSafeRoom();
  }
  alignas(kDirectAlignment) char page[kLogPageSize] = {};
  EncodeLogBlockHeader(page, {0, file_.number, mark + 1, mark, mark}, options_.store_id, offset);
  File* const file = file_.file.get();
  const std::string_view bytes(page, sizeof(page));
  const absl::Status status = GuardMemory("writing the log", [&] {
    // Nothing else would put it on disk before a direct group behind it, which recovery finds only
    // through it.
    const bool is_last = options_.sync_backend == SyncBackend::kPwrite;
    return is_last ? file->Write(offset, bytes) : file->WriteDurably(offset, bytes);
  });
  if (!status.ok()) {
    Fail(status).IgnoreError();  // status() tells
    return;
  }
  bytes_written_.fetch_add(sizeof(page), std::memory_order_relaxed);
  written_mark_.store(mark, std::memory_order_relaxed);
  position_ = touched_ = offset + kLogPageSize;
  absl::MutexLock lock(&mutex_);
  end_.offset = offset + kLogBlockHeaderSize;
}

// --- State ---------------------------------------------------------------------------------------

absl::Status LogWriter::Fail(const absl::Status& cause) noexcept {
  absl::MutexLock lock(&mutex_);
  FailLocked(cause);
  return UnsharedCopy(status_);
}

void LogWriter::FailLocked(const absl::Status& cause) noexcept {
  if (!status_.ok()) return;
  status_ = StatusInWords(absl::StatusCode::kUnavailable, [&] {
    return fmt::format("the log failed and takes no more writes; check the disk, then restart: {}",
                       std::string(cause.message()));
  });
  active_.Clear(0);
  failed_.store(true, std::memory_order_release);
}

absl::Status LogWriter::status() const {
  if (!failed()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  return UnsharedCopy(status_);
}

std::vector<LogEnd> LogWriter::Files() const {
  absl::MutexLock lock(&mutex_);
  std::vector<LogEnd> ends = files_.Completed();
  ends.push_back(end_);
  return ends;
}

uint64_t LogWriter::live_bytes() const {
  absl::MutexLock lock(&mutex_);
  return files_.completed_bytes() + end_.offset;
}

LogStatistics LogWriter::statistics() const {
  LogStatistics statistics;
  statistics.groups = groups_.load(std::memory_order_relaxed);
  statistics.syncs = syncs_.load(std::memory_order_relaxed);
  statistics.bytes_written = bytes_written_.load(std::memory_order_relaxed);
  statistics.bytes_appended = bytes_appended_.load(std::memory_order_relaxed);
  statistics.files_recycled = files_.recycled();
  absl::MutexLock lock(&mutex_);
  statistics.bytes_taken = taken_before_ + end_.offset;
  return statistics;
}

}  // namespace varve
