// The log writer takes records in the order of commits, buffers them, and writes them as blocks to
// log files. GroupCommit decides when to sync and which thread does it (db/log/group_commit.h), and
// a GroupWriter how a group becomes durable (db/log/group_writer.h).
//
// Blocks leave the writer in one of two ways. WriteOut() and WriteAndSync() write them to the
// kernel. TakeDirectGroup() returns them to the caller, which writes them around the kernel's cache
// and then calls EndDirectGroup(). Several such groups may be under way, and they end in the order
// in which they were taken. A thread that writes to the kernel waits for all of them first.
//
// Invariants: (1) Sequences ascend from block to block and from file to file. (2) Bytes that may be
// acknowledged are not written again: what follows a group begins on a page of its own.
// (3) A block never holds records that the room put into two files.
// Thread-safety: all functions may be called from any thread, except Reserve() and Append(), which
// the caller serializes (by the engine's commit lock). Lock order: write_mutex_ (one writer at a
// time), then the syncer's, then mutex_ (never held across I/O), then those of the files.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/format/log_end.h"
#include "db/log/large_blocks.h"
#include "db/log/log_buffer.h"
#include "db/log/log_files.h"
#include "db/log/log_options.h"
#include "db/log/log_progress.h"
#include "db/log/log_room.h"
#include "db/log/log_syncer.h"
#include "util/os/file_system.h"
#include "util/os/steady_condition.h"
#include "varve/options.h"
#include "varve/types.h"

namespace varve {

class LogWriter {
 public:
  // Requires: `files` and `progress` outlive the writer.
  LogWriter(const LogOptions& options, LogFiles* files, LogProgress* progress);

  // Begins with a new file numbered `first_number`.
  [[nodiscard]] absl::Status Start(uint64_t first_number);

  // The next four are described in db/log/log.h.
  bool HasRoom(size_t bytes, bool for_deletes) const ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] absl::Status Prepare(size_t bytes, bool for_deletes);
  [[nodiscard]] absl::Status Reserve(size_t bytes, bool for_deletes);
  // Requires: Reserve() returned OK for both sizes, and `first` follows the last operation.
  [[nodiscard]] absl::Status Append(std::string_view record, SequenceNumber first,
                                    SequenceNumber last, Durability durability,
                                    uint32_t* offset_in_block, std::string_view mark = {},
                                    LogCopy* later = nullptr) ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<LogBlockPlace> FindLargeBlocks(SequenceNumber first, SequenceNumber last) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void ForgetLargeBlocks(SequenceNumber flushed) ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes at least everything up to `sequence` to the kernel.
  [[nodiscard]] absl::Status WriteOut(SequenceNumber sequence)
      ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);
  // Writes everything that was appended to the kernel, and has the syncer sync it.
  [[nodiscard]] absl::Status WriteAndSync() ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);

  // A group that its caller writes around the kernel's cache.
  struct DirectGroup {
    SequenceNumber previous = kNoSequence;  // last operation before the group
    File* file = nullptr;  // stays open: a change of files waits for direct groups first
    uint64_t offset = 0;
    std::string_view bytes;  // whole pages; empty if there was nothing to take
    size_t records_size = 0;
    SequenceNumber mark = kNoSequence;
    LogEnd end;  // of the log with the group
  };
  // Takes everything that was appended; the bytes lie in `buffer` until EndDirectGroup(). Returns
  // nothing if the group has to be written by WriteAndSync(), because earlier records are written
  // but not durable or the file in use is too small. Requires: `buffer` is empty.
  std::optional<DirectGroup> TakeDirectGroup(LogBuffer* buffer)
      ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);
  // Ends a group whose write returned `written`. Waits for the groups before it; then the group is
  // durable, or the log has failed. Requires: the caller ends each group once, also after a
  // failure.
  [[nodiscard]] absl::Status EndDirectGroup(const DirectGroup& group, const absl::Status& written)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes everything that was appended, ends the file in use, which may hold no record, and goes
  // on in the next one. Returns the number of that file if the writer made it of zeros, 0 if it
  // recycled an old file, and nothing if no next file is ready: the file stays in use then.
  // Requires: the caller keeps Reserve() and Append() from being called.
  [[nodiscard]] absl::StatusOr<std::optional<uint64_t>> LeaveFile()
      ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);

  // Writes a block without records that brings the durable mark on disk up to date, unless another
  // write is under way; with `durably` syncs it. Without such a block nothing on disk would say
  // that the last group was acknowledged, and damage to it would look like a tear.
  void WriteMark(bool durably) ABSL_LOCKS_EXCLUDED(write_mutex_, mutex_);

  // Returns the end of the file in use.
  LogEnd end() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the bytes that the log has taken in its files so far.
  uint64_t bytes_taken() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the bytes of memory that an empty buffer keeps.
  size_t kept_memory() const { return kept_memory_; }

 private:
  // Appends to the buffer. Throws std::bad_alloc, and then nothing was appended.
  void AppendToBufferLocked(std::string_view record, SequenceNumber first, SequenceNumber last,
                            bool new_block, uint32_t* offset_in_block, std::string_view mark,
                            LogCopy* later) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Encodes the headers of the blocks [begin, end) of `buffer`, which will lie from `position` on.
  void EncodeHeaders(LogBuffer* buffer, size_t begin, size_t end, uint64_t position,
                     SequenceNumber mark) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Returns false, without the lock, once everything up to `sequence` is written.
  bool LockUnlessWritten(SequenceNumber sequence)
      ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true, write_mutex_);
  void AwaitDirectGroups() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] absl::Status WriteOutLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_)
      ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] absl::Status WriteBlocksLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  // Writes blocks [begin, end) of writing_ at position_ with one call.
  [[nodiscard]] absl::Status WriteRunLocked(size_t begin, size_t end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);
  [[nodiscard]] absl::Status NextFileLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(write_mutex_);

  const LogOptions options_;
  const size_t kept_memory_;
  const uint64_t delete_reserve_;  // bytes that only deletes may use once the disk is full
  LogFiles* const files_;
  LogProgress* const progress_;
  LogSyncer syncer_;

  // Threads that wait for the one that writes look at the mutex all the time, so it has a cache
  // line of its own; so has what appending changes.
  alignas(64) absl::Mutex write_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  alignas(64) LogFile file_ ABSL_GUARDED_BY(write_mutex_);
  uint64_t position_ ABSL_GUARDED_BY(write_mutex_) = 0;  // of the next block
  // The writer has written blocks or zeros to all pages before this one since it took the file into
  // use.
  uint64_t touched_ ABSL_GUARDED_BY(write_mutex_) = 0;
  SequenceNumber last_written_ ABSL_GUARDED_BY(write_mutex_);  // taken by direct groups or written
  LogBuffer writing_ ABSL_GUARDED_BY(write_mutex_);

  alignas(64) mutable absl::Mutex mutex_;
  SteadyCondition direct_group_ended_;
  LogBuffer active_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> safe_room_{0};  // kept by room_
  LogRoom room_ ABSL_GUARDED_BY(mutex_){delete_reserve_, &safe_room_};
  LogEnd end_ ABSL_GUARDED_BY(mutex_);                 // of file_
  uint64_t taken_before_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes in the files before
  LargeBlocks large_blocks_ ABSL_GUARDED_BY(mutex_);
  // Bytes that were appended since the last change of files, and of these, bytes in records that
  // zeros ahead gain something for (LogFiles::Advance).
  uint64_t file_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t file_gaining_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace varve
