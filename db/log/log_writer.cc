#include "db/log/log_writer.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "db/format/log_format.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/spin.h"
#include "util/base/status.h"
#include "util/os/disk_wait.h"

namespace varve {
namespace {

// Room that only deletes may use once the disk is full: at least 256 deletes that are synced one by
// one.
constexpr uint64_t kMaxDeleteReserve = 1u << 20;
constexpr size_t kMinKeptMemory = 256u << 10;

// Frees a mutex that the thread has locked before.
class ABSL_SCOPED_LOCKABLE AdoptedLock {
 public:
  explicit AdoptedLock(absl::Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) : mutex_(*mutex) {}
  ~AdoptedLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  AdoptedLock(const AdoptedLock&) = delete;
  AdoptedLock& operator=(const AdoptedLock&) = delete;

 private:
  absl::Mutex& mutex_;
};

}  // namespace

LogWriter::LogWriter(const LogOptions& options, LogFiles* files, LogProgress* progress)
    : options_(options),
      kept_memory_(std::max(kMinKeptMemory, 2 * options.group_max_bytes)),
      delete_reserve_(std::min(kMaxDeleteReserve, LogPageAlign(options.file_size / 4))),
      files_(files),
      progress_(progress),
      syncer_(progress),
      last_written_(progress->written()) {}

absl::Status LogWriter::Start(uint64_t first_number) {
  VARVE_ASSIGN_OR_RETURN(LogFile file, files_->Start(first_number));
  absl::MutexLock write_lock(&write_mutex_);
  file_ = std::move(file);
  position_ = touched_ = kLogPageSize;
  absl::MutexLock lock(&mutex_);
  room_.Begin(file_.size);
  end_ = {file_.number, position_, last_written_};
  return absl::OkStatus();
}

// --- Room and records ----------------------------------------------------------------------------

bool LogWriter::HasRoom(size_t bytes, bool for_deletes) const {
  const uint64_t unit = LogRoom::WorstCase(bytes);
  if (progress_->failed() || unit <= safe_room_.load(std::memory_order_acquire)) return true;
  absl::MutexLock lock(&mutex_);
  return room_.Fits(unit, files_->next_size(), for_deletes);
}

absl::Status LogWriter::Prepare(size_t bytes, bool for_deletes) {
  VARVE_RETURN_IF_ERROR(WriteOut(progress_->appended()));
  if (HasRoom(bytes, for_deletes)) return absl::OkStatus();
  return files_->PrepareNext(kLogPageSize + LogRoom::WorstCase(bytes) + delete_reserve_);
}

absl::Status LogWriter::Reserve(size_t bytes, bool for_deletes) {
  const uint64_t unit = LogRoom::WorstCase(bytes);
  while (true) {
    if (progress_->failed()) return progress_->status();
    if (unit <= safe_room_.load(std::memory_order_acquire)) return absl::OkStatus();
    {
      absl::MutexLock lock(&mutex_);
      if (room_.Fits(unit, files_->next_size(), for_deletes)) {
        room_.Promise();
        return absl::OkStatus();
      }
    }
    // What waits in the buffer was accounted for in the worst case; written, it takes what it
    // takes.
    const DiskWait wait;
    VARVE_RETURN_IF_ERROR(progress_->buffered_bytes() > 0
                              ? WriteOut(progress_->appended())
                              : files_->PrepareNext(kLogPageSize + unit + delete_reserve_));
  }
}

absl::Status LogWriter::Append(std::string_view record, SequenceNumber first, SequenceNumber last,
                               Durability durability, uint32_t* offset_in_block,
                               std::string_view mark, LogCopy* later) {
  VARVE_ASSERT(first <= last);
  const size_t size = mark.size() + record.size();
  const uint64_t unit = LogRoom::WorstCase(size);
  absl::MutexLock lock(&mutex_);
  room_.EndPromise();
  if (progress_->failed()) return progress_->status();
  VARVE_ASSERT(first == progress_->appended() + 1);
  const bool new_block =
      room_.GoesToNextFile(unit) || active_.last_block_size() + size > options_.group_max_bytes;
  const bool appended = TryWithMemory([&] {
    mutex_.AssertHeld();
    AppendToBufferLocked(record, first, last, new_block, offset_in_block, mark, later);
  });
  if (!appended) return OutOfMemory("writing to the log");
  room_.Take(unit, files_->next_size());
  file_bytes_ += size;
  if (durability == Durability::kAlways && offset_in_block == nullptr) file_gaining_bytes_ += size;
  progress_->Appended(last, durability, size);
  return absl::OkStatus();
}

void LogWriter::AppendToBufferLocked(std::string_view record, SequenceNumber first,
                                     SequenceNumber last, bool new_block, uint32_t* offset_in_block,
                                     std::string_view mark, LogCopy* later) {
  mutex_.AssertHeld();
  if (offset_in_block == nullptr) {
    active_.Append(record, first, last, new_block, mark, later);
    return;
  }
  const bool begins_block = new_block || active_.empty();
  const bool is_new = large_blocks_.Add(begins_block ? first : active_.last_block_first());
  absl::Cleanup take_back = [this, is_new] {
    mutex_.AssertHeld();
    if (is_new) large_blocks_.TakeBack();
  };
  *offset_in_block =
      static_cast<uint32_t>(active_.Append(record, first, last, new_block, mark, later));
  std::move(take_back).Cancel();
}

std::vector<LogBlockPlace> LogWriter::FindLargeBlocks(SequenceNumber first,
                                                      SequenceNumber last) const {
  absl::MutexLock lock(&mutex_);
  return large_blocks_.Find(first, last);
}

void LogWriter::ForgetLargeBlocks(SequenceNumber flushed) {
  absl::MutexLock lock(&mutex_);
  large_blocks_.Forget(flushed);
}

// --- Writing to the kernel -----------------------------------------------------------------------

absl::Status LogWriter::WriteOut(SequenceNumber sequence) {
  if (progress_->written() >= sequence) return absl::OkStatus();
  const DiskWait wait;  // for a thread that writes under the lock, too
  if (!LockUnlessWritten(sequence)) return absl::OkStatus();
  const AdoptedLock write_lock(&write_mutex_);
  AwaitDirectGroups();
  return progress_->written() < sequence ? WriteOutLocked() : absl::OkStatus();
}

// The thread that writes mostly takes along what others have appended, and a write to the kernel
// takes a microsecond; to sleep and be woken takes longer.
bool LogWriter::LockUnlessWritten(SequenceNumber sequence) {
  bool has_lock = false;
  const auto is_done = [&] {
    if (progress_->written() >= sequence) return true;
    return has_lock = write_mutex_.TryLock();
  };
  if (SpinUntil(is_done)) return has_lock;
  write_mutex_.Lock();
  return true;
}

absl::Status LogWriter::WriteAndSync() {
  SequenceNumber target;
  std::shared_ptr<File> file;
  {
    absl::MutexLock lock(&write_mutex_);
    AwaitDirectGroups();
    VARVE_RETURN_IF_ERROR(WriteOutLocked());
    // From here on these pages may be acknowledged: they are not written again.
    position_ = LogPageAlign(position_);
    target = last_written_;
    file = file_.file;
  }
  return syncer_.Sync(file, target);
}

void LogWriter::AwaitDirectGroups() {
  write_mutex_.AssertHeld();
  if (progress_->written() >= last_written_) return;
  absl::MutexLock lock(&mutex_);
  // A group that failed makes the log fail; then nothing is written any more.
  while (progress_->written() < last_written_ && !progress_->failed())
    direct_group_ended_.Wait(&mutex_);
}

absl::Status LogWriter::WriteOutLocked() {
  write_mutex_.AssertHeld();
  VARVE_ASSERT(writing_.empty());
  {
    absl::MutexLock lock(&mutex_);
    if (progress_->failed()) return progress_->status();
    if (active_.empty()) return absl::OkStatus();
    std::swap(active_, writing_);
    room_.BufferIsWritten();
  }
  writing_.AwaitCopies();
  const absl::Status status = GuardMemory("writing the log", [this] {
    write_mutex_.AssertHeld();
    return WriteBlocksLocked();
  });
  writing_.Clear(kept_memory_);
  return status.ok() ? status : progress_->Fail(status);
}

void LogWriter::EncodeHeaders(LogBuffer* buffer, size_t begin, size_t end, uint64_t position,
                              SequenceNumber mark) const {
  const std::vector<LogBuffer::Block>& blocks = buffer->blocks();
  VARVE_ASSERT(position % kLogBlockAlignment == 0);
  VARVE_ASSERT(mark < blocks[begin].first);
  for (size_t i = begin; i < end; ++i) {
    const LogBuffer::Block& block = blocks[i];
    const auto payload_size = static_cast<uint32_t>(block.end - block.begin - kLogBlockHeaderSize);
    EncodeLogBlockHeader(buffer->data() + block.begin,
                         {payload_size, file_.number, block.first, block.last, mark},
                         options_.store_id, position + (block.begin - blocks[begin].begin));
  }
}

absl::Status LogWriter::WriteBlocksLocked() {
  const std::vector<LogBuffer::Block>& blocks = writing_.blocks();
  for (size_t begin = 0; begin < blocks.size();) {
    // As many blocks as fit into what is left of the file.
    size_t end = begin;
    while (end < blocks.size() && position_ + blocks[end].end - blocks[begin].begin <= file_.size)
      ++end;
    if (end > begin) VARVE_RETURN_IF_ERROR(WriteRunLocked(begin, end));
    if (end < blocks.size()) VARVE_RETURN_IF_ERROR(NextFileLocked());
    begin = end;
  }
  return absl::OkStatus();
}

absl::Status LogWriter::WriteRunLocked(size_t begin, size_t end) {
  const std::vector<LogBuffer::Block>& blocks = writing_.blocks();
  VARVE_ASSERT(blocks[begin].first == last_written_ + 1);
  const SequenceNumber mark = progress_->durable();
  const size_t run_begin = blocks[begin].begin;
  EncodeHeaders(&writing_, begin, end, position_, mark);
  uint64_t size = blocks[end - 1].end - run_begin;
  const uint64_t run_end = position_ + size;
  VARVE_ASSERT(run_end <= file_.size);
  // The first write to a page of an earlier use fills the page, so that the kernel need not read it
  // and no stale bytes stay behind the block.
  const uint64_t page_end = LogPageAlign(run_end);
  const uint64_t padding = file_.is_recycled && page_end > touched_ ? page_end - run_end : 0;
  const bool is_last_run = end == blocks.size();
  if (is_last_run && padding != 0) {
    writing_.PadEnd(padding);
    size += padding;
  }
  const uint64_t written_at = position_;
  VARVE_RETURN_IF_ERROR(
      file_.file->Write(written_at, std::string_view(writing_.data() + run_begin, size)));
  progress_->CountWrite(size);
  // The buffer holds the next file's blocks behind this run, so the padding is a write of its own.
  if (!is_last_run && padding != 0)
    VARVE_RETURN_IF_ERROR(file_.file->Write(run_end, std::string(padding, '\0')));
  touched_ = std::max(touched_, LogPageAlign(run_end));
  position_ = LogBlockAlign(run_end);
  last_written_ = blocks[end - 1].last;
  absl::MutexLock lock(&mutex_);
  end_.offset = position_;
  end_.last_sequence = last_written_;
  large_blocks_.SetPlaces(blocks, begin, end, file_.number, written_at);
  progress_->MarkWritten(mark);
  progress_->Written(last_written_, writing_.records_size(begin, end));
  if (end < blocks.size()) return absl::OkStatus();  // the next run has its room in the next file
  room_.BringBack(position_, files_->next_size());
  files_->NoteUsed(position_);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<uint64_t>> LogWriter::LeaveFile() {
  absl::MutexLock write_lock(&write_mutex_);
  AwaitDirectGroups();
  VARVE_RETURN_IF_ERROR(WriteOutLocked());
  // Only this thread, with the lock on writes, takes a next file.
  if (files_->next_size() == 0) return std::nullopt;
  {
    absl::MutexLock lock(&mutex_);
    if (progress_->failed()) return progress_->status();
    VARVE_ASSERT(active_.empty());
    room_.SkipRest();
  }
  const absl::Status next = GuardMemory("beginning a log file", [this] {
    write_mutex_.AssertHeld();
    return NextFileLocked();
  });
  if (!next.ok()) return progress_->Fail(next);
  return std::optional<uint64_t>(file_.is_recycled ? 0 : file_.number);
}

absl::Status LogWriter::NextFileLocked() {
  // The file that ends here is synced before the next one, or now; nobody waits for it here.
  VARVE_RETURN_IF_ERROR(syncer_.Leave(file_.file, last_written_));
  LogFile finished;  // closed when the mutex is free again
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(end_.file_number == file_.number && end_.last_sequence == last_written_);
  const bool gains_by_zeros = 2 * file_gaining_bytes_ >= file_bytes_;
  VARVE_ASSIGN_OR_RETURN(LogFile next, files_->Advance(end_, gains_by_zeros));
  VARVE_ASSERT(next.number > file_.number);
  file_bytes_ = file_gaining_bytes_ = 0;
  finished = std::exchange(file_, std::move(next));
  taken_before_ += end_.offset;
  position_ = touched_ = kLogPageSize;
  room_.NextFile(file_.size);
  end_ = {file_.number, position_, last_written_};
  return absl::OkStatus();
}

// --- Writing around the kernel's cache -----------------------------------------------------------

std::optional<LogWriter::DirectGroup> LogWriter::TakeDirectGroup(LogBuffer* buffer) {
  VARVE_ASSERT(buffer->empty());
  absl::MutexLock write_lock(&write_mutex_);
  if (progress_->written() != progress_->durable()) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  DirectGroup group{.previous = last_written_, .file = file_.file.get()};
  if (active_.empty() || progress_->failed()) return group;
  VARVE_ASSERT(active_.blocks().front().first == last_written_ + 1);
  const uint64_t begin = LogPageAlign(position_);
  const uint64_t size = LogPageAlign(active_.size());
  if (begin + size > file_.size) return std::nullopt;
  std::swap(active_, *buffer);
  room_.BufferIsWritten();
  const size_t block_count = buffer->blocks().size();
  group.mark = progress_->durable();
  EncodeHeaders(buffer, 0, block_count, begin, group.mark);
  large_blocks_.SetPlaces(buffer->blocks(), 0, block_count, file_.number, begin);
  buffer->PadEnd(size - buffer->size());
  position_ = begin + size;
  touched_ = std::max(touched_, position_);
  last_written_ = buffer->blocks().back().last;
  group.offset = begin;
  group.bytes = {buffer->data(), size};
  group.records_size = buffer->records_size(0, block_count);
  group.end = {file_.number, position_, last_written_};
  room_.BringBack(position_, files_->next_size());
  files_->NoteUsed(position_);
  return group;
}

absl::Status LogWriter::EndDirectGroup(const DirectGroup& group, const absl::Status& written) {
  if (!written.ok()) progress_->Fail(written).IgnoreError();  // status() tells below
  absl::MutexLock lock(&mutex_);
  while (progress_->written() < group.previous && !progress_->failed())
    direct_group_ended_.Wait(&mutex_);
  if (!group.bytes.empty() && !progress_->failed()) {
    VARVE_ASSERT(progress_->written() == group.previous);
    end_ = group.end;
    progress_->MarkWritten(group.mark);
    progress_->Written(end_.last_sequence, group.records_size);
    progress_->Durable(end_.last_sequence);
  }
  direct_group_ended_.SignalAll();
  return progress_->status();
}

void LogWriter::WriteMark(bool durably) {
  absl::MutexLock write_lock(&write_mutex_);
  const SequenceNumber mark = progress_->durable();
  const uint64_t offset = LogPageAlign(position_);
  {
    absl::MutexLock lock(&mutex_);
    if (progress_->failed() || !active_.empty() || mark != last_written_ ||
        !room_.TakeMark(offset, files_->next_size()))
      return;
  }
  alignas(kDirectAlignment) char page[kLogPageSize] = {};
  EncodeLogBlockHeader(page, {0, file_.number, mark + 1, mark, mark}, options_.store_id, offset);
  File* const file = file_.file.get();
  const std::string_view bytes(page, sizeof(page));
  const absl::Status status = GuardMemory("writing the log", [&] {
    return durably ? file->WriteDurably(offset, bytes) : file->Write(offset, bytes);
  });
  if (!status.ok()) {
    progress_->Fail(status).IgnoreError();  // status() tells
    return;
  }
  progress_->CountWrite(sizeof(page));
  progress_->MarkWritten(mark);
  position_ = touched_ = offset + kLogPageSize;
  absl::MutexLock lock(&mutex_);
  end_.offset = offset + kLogBlockHeaderSize;
}

// --- State ---------------------------------------------------------------------------------------

LogEnd LogWriter::end() const {
  absl::MutexLock lock(&mutex_);
  return end_;
}

uint64_t LogWriter::bytes_taken() const {
  absl::MutexLock lock(&mutex_);
  return taken_before_ + end_.offset;
}

}  // namespace varve
