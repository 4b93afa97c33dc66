// Puts records into log files: buffers them, accounts for the room that was promised, writes
// blocks, syncs, changes files. Who syncs when, and who waits for it, is decided in db/log/log.cc.
//
// Room: Reserve() promises that a record fits even if it ends up alone in a page-aligned block. A
// cursor is kept where such blocks would lie, in the file in use or in the spare; real blocks,
// which share pages, never lie behind it. A block never holds records that the cursor put into two
// files. After each write the cursor is brought back to what was really used.
//
// Direct groups (SyncBackend::kDirect): where all that was written before is on disk or on its way
// there in the same manner, a group is one write around the kernel's cache, which returns when it
// is on disk. Up to two are under way at once; they count as there in the order in which they were
// issued. Whoever writes in another way waits for them first.
//
// A full file is left unsynced where nobody waits for it; each sync begins with such files. So a
// block may be on disk while one in an earlier file is not; its durable mark doesn't reach that far
// then, and recovery takes what is missing for a tear.
//
// Thread-safe, but for Reserve and Append, which the caller serializes. Lock order: write_mutex_
// (one writer at a time; a direct group leaves it before its I/O), then sync_mutex_ (one sync at a
// time: the kernel reports an error to one of them only), then mutex_ (never held across I/O).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "db/format/log_format.h"
#include "db/log/log.h"
#include "db/log/log_buffer.h"
#include "db/log/log_files.h"
#include "util/os/file_system.h"
#include "util/os/steady_condition.h"
#include "varve/options.h"
#include "varve/types.h"

namespace varve {

class LogWriter {
 public:
  LogWriter(FileSystem* file_system, const LogOptions& options, SequenceNumber last_sequence);

  [[nodiscard]] absl::Status Start(uint64_t first_number);
  // Stops preparing files and says where the last one ends. Not before everything is synced.
  LogEnd Stop();

  bool HasRoom(size_t bytes, bool for_deletes) const;
  [[nodiscard]] absl::Status Prepare(size_t bytes, bool for_deletes);
  [[nodiscard]] absl::Status Reserve(size_t bytes, bool for_deletes);
  [[nodiscard]] absl::Status Append(std::string_view record, SequenceNumber first,
                                    SequenceNumber last, Durability durability,
                                    uint32_t* offset_in_block);
  // As Log::LargeBlocks; and no longer those of operations up to `flushed` alone.
  std::vector<LogBlockPlace> LargeBlocks(SequenceNumber first, SequenceNumber last) const;
  void ForgetLargeBlocks(SequenceNumber flushed);

  // Hands everything up to `sequence`, at least, to the kernel.
  [[nodiscard]] absl::Status WriteOut(SequenceNumber sequence);
  // Writes everything appended before the call, syncs it, moves durable_sequence(). Waits for a
  // sync that is under way, but for direct groups, of which kMostDirectGroups may be.
  [[nodiscard]] absl::Status Sync();
  static constexpr uint64_t kMostDirectGroups = 2;
  // Writes a block that only brings the durable mark on disk up to date, if nothing else is going
  // on. Without it nothing behind the last group would say that it was acknowledged, and damage
  // there would look like a tear.
  void WriteMark();
  bool mark_is_behind() const {
    return written_mark_.load(std::memory_order_relaxed) < durable_sequence() &&
           durable_sequence() == appended_sequence();
  }

  // Final: the status of the first failure, from then on.
  absl::Status status() const;
  bool failed() const { return failed_.load(std::memory_order_acquire); }

  SequenceNumber appended_sequence() const { return appended_.load(std::memory_order_acquire); }
  SequenceNumber written_sequence() const { return written_.load(std::memory_order_acquire); }
  SequenceNumber durable_sequence() const { return durable_.load(std::memory_order_acquire); }
  // Highest sequence appended in a mode that is synced at once; each second; not at all.
  SequenceNumber last_always() const { return last_of_[0].load(std::memory_order_acquire); }
  SequenceNumber last_every_second() const { return last_of_[1].load(std::memory_order_acquire); }
  SequenceNumber last_unsynced() const { return last_of_[2].load(std::memory_order_acquire); }
  // Appended, but not with the kernel yet.
  size_t buffered_bytes() const { return buffered_bytes_.load(std::memory_order_acquire); }

  std::vector<LogEnd> Files() const;
  LogFiles& files() { return files_; }
  uint64_t live_bytes() const;
  LogStatistics statistics() const;

 private:
  struct Cursor {
    uint64_t file = 0;  // files since Start
    uint64_t offset = 0;
    auto operator<=>(const Cursor&) const = default;
  };

  // A file that was in use before, of which not all was synced.
  struct LeftFile {
    std::shared_ptr<File> file;
    SequenceNumber last = kNoSequence;
  };
  static constexpr size_t kMostLeftFiles = 4;

  // A group on its way to the disk around the kernel's cache.
  struct DirectGroup {
    uint64_t number = 0;
    File* file = nullptr;  // stays open: who changes files waits for direct groups first
    uint64_t offset = 0;
    std::string_view bytes;  // none: there was nothing to take, those before are waited for
    size_t records_size = 0;
    SequenceNumber mark = kNoSequence;
    LogEnd end;  // of the log once it is there
    bool has_landed = false;
  };

  // What a record may take in the worst case: a page-aligned block of its own.
  static uint64_t WorstCase(size_t record_size) {
    return LogPageAlign(kLogBlockHeaderSize + record_size);
  }
  bool FitsLocked(uint64_t unit, bool for_deletes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PublishSafeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sees to it that the next file is there and has room for `unit`.
  [[nodiscard]] absl::Status PrepareNextFile(uint64_t unit);
  // After a write: back to what was really used.
  void BringCursorBackLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_, mutex_);
  // For the blocks [begin, end) of `buffer`, which will lie from `position` on.
  void EncodeHeaders(LogBuffer* buffer, size_t begin, size_t end, uint64_t position,
                     SequenceNumber mark) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Takes what was appended; nothing: it has to go the other way.
  std::optional<DirectGroup> BeginDirectGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Writes the group, and waits for those before it.
  [[nodiscard]] absl::Status FinishDirectGroup(const DirectGroup& group);
  // Those that are there, and all before them, count as there.
  void LandDirectGroupsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitDirectGroups() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  [[nodiscard]] absl::Status WriteOutLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  [[nodiscard]] absl::Status WriteBlocks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Writes blocks [begin, end) of writing_ at position_ with one call.
  [[nodiscard]] absl::Status WriteRun(size_t begin, size_t end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  bool HasManyLeftFiles() const {
    absl::MutexLock lock(&mutex_);
    return left_count_ == kMostLeftFiles;
  }
  [[nodiscard]] absl::Status NextFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Syncs `file`, and before it those that were left unsynced: then all up to `target` is durable.
  [[nodiscard]] absl::Status SyncLocked(const std::shared_ptr<File>& file, SequenceNumber target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sync_mutex_);
  // Of the blocks [begin, end), which are written from `position` on, those with large operations.
  void NotePlaces(const std::vector<LogBuffer::Block>& blocks, size_t begin, size_t end,
                  uint64_t position) ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_, mutex_);
  absl::Status Fail(const absl::Status& cause) noexcept;
  void FailLocked(const absl::Status& cause) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LogOptions options_;
  const uint64_t delete_reserve_;
  const size_t keep_memory_;
  LogFiles files_;

  absl::Mutex write_mutex_ ABSL_ACQUIRED_BEFORE(sync_mutex_);
  LogFile file_ ABSL_GUARDED_BY(write_mutex_);
  uint64_t position_ ABSL_GUARDED_BY(write_mutex_) = 0;  // of the next block
  // Pages before this hold blocks or zeros of this life.
  uint64_t touched_ ABSL_GUARDED_BY(write_mutex_) = 0;
  SequenceNumber last_written_ ABSL_GUARDED_BY(write_mutex_);
  LogBuffer writing_ ABSL_GUARDED_BY(write_mutex_);

  absl::Mutex sync_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);

  mutable absl::Mutex mutex_;
  LogBuffer active_ ABSL_GUARDED_BY(mutex_);
  uint64_t active_units_ ABSL_GUARDED_BY(mutex_) = 0;  // room promised to what is in active_
  Cursor cursor_ ABSL_GUARDED_BY(mutex_);
  bool promised_ ABSL_GUARDED_BY(mutex_) = false;    // Reserve said yes, Append is still to come
  uint64_t file_index_ ABSL_GUARDED_BY(mutex_) = 0;  // of file_, as in Cursor
  uint64_t file_size_ ABSL_GUARDED_BY(mutex_) = 0;
  LogEnd end_ ABSL_GUARDED_BY(mutex_);                                 // of file_
  std::array<LeftFile, kMostLeftFiles> left_ ABSL_GUARDED_BY(mutex_);  // oldest first
  size_t left_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t taken_before_ ABSL_GUARDED_BY(mutex_) = 0;  // in the files before
  // Blocks that hold large operations, ascending, from the oldest that may not be in segments on.
  std::deque<LogBlockPlace> large_blocks_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  // Direct groups [landed_, issued_) are under way, by number % kMostDirectGroups.
  uint64_t issued_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t landed_ ABSL_GUARDED_BY(mutex_) = 0;
  DirectGroup direct_[kMostDirectGroups] ABSL_GUARDED_BY(mutex_);
  LogBuffer direct_buffers_[kMostDirectGroups];  // of whoever writes the group
  SteadyCondition landing_;

  std::atomic<bool> failed_{false};
  std::atomic<SequenceNumber> appended_;
  std::atomic<SequenceNumber> written_;
  std::atomic<SequenceNumber> durable_;
  std::atomic<SequenceNumber> written_mark_;
  std::atomic<SequenceNumber> last_of_[3];
  // Behind the cursor, less the reserve for deletes and a page for a mark: what Reserve can promise
  // without looking closer.
  std::atomic<uint64_t> safe_room_{0};
  std::atomic<size_t> buffered_bytes_{0};
  // Appended since the last change of files,.
  uint64_t file_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of these in batches with large operations,.
  uint64_t file_large_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t file_synced_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // and in such as are synced at once
  std::atomic<uint64_t> syncs_{0}, groups_{0}, bytes_written_{0}, bytes_appended_{0};
};

}  // namespace varve
