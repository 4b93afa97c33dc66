// The log (WAL) takes batch records in commit order, writes them to disk in groups, and tells up to
// which sequence they are durable.
//
//   Append -> LogWriter   buffers records, accounts for their room, writes blocks to log files
//               LogFiles    prepares the next file ahead, recycles old ones
//   Push, WaitUntilDurable, TrySync -> GroupCommit   decides who runs a group, and who waits for it
//               GroupWriter   makes a group durable: buffered or direct
//   LogProgress           up to where operations are appended, written, durable; whether it failed
//
// No thread has to wait for the disk: Append() copies a record into the buffer, or leaves that to
// the thread that wrote it (LogCopy), and Push() wakes a log thread. The log thread writes and
// syncs the records that arrived while the last group was under way, then moves durable_sequence().
// Records without sync are written by the thread that calls Push(); the first such thread writes
// for all that wait behind it. Once a second a log thread syncs the records of kEverySecond.
//
// Segments point to large values where the log wrote them: LargeBlocks() tells where that is, and
// Retire() leaves a file that segments point into to the caller instead of recycling it.
//
// A failed write or sync is final: status() stays not OK, durable_sequence() stays, and the log
// retries nothing (docs/durability.md). A full disk is not final: the log reserves files ahead, and
// Reserve() refuses before anything is promised. A lack of memory is not final either: the log
// writes and syncs without taking memory. Only Open, AddListener, Adopt, Files and
// PrepareToLeaveFile throw std::bad_alloc.
//
// Thread-safety: all functions may be called from any thread, except Append() and Reserve(), which
// the caller serializes (by the engine's commit lock) so that sequences ascend, and Close(). Lock
// order: the caller's commit lock, then the log's locks. Listeners run on the thread that ran the
// group (a log thread, or one in WaitUntilDurable, TrySync or Push) with the lock of their list
// held, so that a removed listener is not called any more. A listener may take the caller's locks.
// So no caller may hold a lock that a listener takes when it calls AddListener() or
// RemoveListener(), and no listener may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/format/log_end.h"
#include "db/log/group_commit.h"
#include "db/log/group_writer.h"
#include "db/log/large_blocks.h"
#include "db/log/log_files.h"
#include "db/log/log_options.h"
#include "db/log/log_progress.h"
#include "db/log/log_writer.h"
#include "util/os/file_system.h"
#include "util/os/file_thread.h"
#include "varve/options.h"
#include "varve/types.h"

namespace varve {

class Log {
 public:
  // Starts a new file numbered `file_number` whose first operation will be `last_sequence + 1`;
  // everything up to `last_sequence` is durable.
  // Requires: `file_system` and options.file_thread outlive the log.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Log>> Open(FileSystem* file_system,
                                                                 const LogOptions& options,
                                                                 uint64_t file_number,
                                                                 SequenceNumber last_sequence);
  // Closes the log if Close() was not called.
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Returns whether Reserve() would answer without I/O.
  bool HasRoom(size_t bytes, bool for_deletes) const { return writer_.HasRoom(bytes, for_deletes); }
  // Makes room for such a record: writes out the buffer, waits for the next file, or makes it
  // larger. The caller does not hold the commit lock, so that other writers go on meanwhile; they
  // may take the room. Errors are those of Reserve().
  [[nodiscard]] absl::Status Prepare(size_t bytes, bool for_deletes);
  // Makes sure that `bytes` more bytes fit into what is reserved on disk; does the I/O of Prepare()
  // if they don't. Returns ResourceExhausted, cheaply and without a side effect, if the disk is
  // full; `for_deletes` may use the last reserve, so that deletes can free space. Returns
  // Unavailable if the log has failed.
  // Requires: the commit lock is held until Append().
  [[nodiscard]] absl::Status Reserve(size_t bytes, bool for_deletes);
  // Appends one complete batch record that holds the operations first..last. Returns
  // ResourceExhausted if there is no memory for it and Unavailable if the log has failed; then
  // nothing was appended. `mark` is empty or a time mark, which goes in front of the record
  // (db/format/batch_codec.h). For a record with large operations, `*offset_in_block` gets its
  // offset in the payload of its block, whose place LargeBlocks() tells once it is written; else
  // `offset_in_block` is null. With `later` the record need not be complete, and is not copied:
  // some thread calls later->Make() with the whole record, without waiting for the log before.
  // Requires: Reserve() returned OK for both sizes, and `first` follows the last operation.
  [[nodiscard]] absl::Status Append(std::string_view record, SequenceNumber first,
                                    SequenceNumber last, Durability durability,
                                    uint32_t* offset_in_block = nullptr, std::string_view mark = {},
                                    LogCopy* later = nullptr) {
    return writer_.Append(record, first, last, durability, offset_in_block, mark, later);
  }

  // Prepares LeaveFile(): keeps old files from being recycled from now on until RecycleFiles(), and
  // waits for a next file.
  [[nodiscard]] absl::Status PrepareToLeaveFile();
  // Ends the file in use, which may hold no record, and goes on in the next one. Returns the number
  // of the next file if it was made anew, 0 if it is an old file that was recycled, and nothing if
  // there is no next file. Requires: the commit lock is held.
  [[nodiscard]] absl::StatusOr<std::optional<uint64_t>> LeaveFile() { return writer_.LeaveFile(); }
  // Asks for small files from now on, as LogFiles::Shed() does. Returns whether that has begun.
  bool ShedFiles();
  // Returns the size of the next file; 0 if there is none at the moment.
  uint64_t next_file_size() const { return files_.next_size(); }
  // Returns about how many bytes the log takes on disk.
  uint64_t disk_bytes() const { return files_.disk_bytes(); }
  // Recycles old files again.
  void RecycleFiles() { files_.SetRecycling(true); }

  // Wakes a log thread if appended records need a sync, and writes the others to the kernel. A
  // caller of WaitUntilDurable() need not call this: that function runs a group itself if no other
  // thread does.
  [[nodiscard]] absl::Status Push();
  // Does the same, but of the records without sync writes at least those up to `sequence`, which is
  // the last of the caller's own: the caller need not look at what others append meanwhile.
  // Requires: `sequence` was appended without sync.
  [[nodiscard]] absl::Status PushUpTo(SequenceNumber sequence);
  // Writes the records that were appended without sync before the call to the kernel, unless that
  // was done. Costs two loads if there is nothing to do. Returns an error only if it cannot write
  // them, not because the log has failed otherwise.
  [[nodiscard]] absl::Status PushUnsynced();
  // Waits until everything up to `sequence` is durable. Returns InvalidArgument if `sequence` was
  // not appended.
  [[nodiscard]] absl::Status WaitUntilDurable(SequenceNumber sequence) {
    return group_commit_->WaitUntilDurable(sequence);
  }
  // Runs a group on this thread if one is wanted and may begin, and calls the listeners; otherwise
  // returns false without waiting.
  bool TrySync() { return group_commit_->TrySync(); }
  // Makes everything durable that was appended so far, whatever its mode.
  [[nodiscard]] absl::Status Sync() { return WaitUntilDurable(progress_.appended()); }

  SequenceNumber durable_sequence() const { return progress_.durable(); }
  // Returns a sequence up to which the kernel has all records.
  SequenceNumber written_sequence() const { return progress_.written(); }
  // Returns the highest sequence appended with Durability::kAlways.
  SequenceNumber last_always_sequence() const { return progress_.last(Durability::kAlways); }
  // Returns the highest sequence appended with this durability.
  SequenceNumber last_sequence(Durability durability) const { return progress_.last(durability); }
  // Returns OK or, once the log has failed, the status of the first failure.
  [[nodiscard]] absl::Status status() const { return progress_.status(); }

  // Calls `listener` after each group from now on. Returns the token for RemoveListener().
  uint64_t AddListener(std::function<void()> listener) ABSL_LOCKS_EXCLUDED(listeners_mutex_);
  // Removes a listener, after a call of it that is under way.
  void RemoveListener(uint64_t token) ABSL_LOCKS_EXCLUDED(listeners_mutex_);

  // Returns the ends of the files that hold operations, oldest first; the last file is in use.
  std::vector<LogEnd> Files() const;
  // Recycles or removes the files all of whose operations are <= `sequence`. Without memory for
  // that it leaves them to the next call. A file for which `keeps` returns true stays as it is: the
  // log forgets it, and from then on it is the caller's.
  // Requires: the manifest that does not need them is on disk.
  void Retire(SequenceNumber sequence, absl::FunctionRef<bool(const LogEnd&)> keeps);
  void Retire(SequenceNumber sequence) {
    Retire(sequence, [](const LogEnd&) { return false; });
  }
  // Returns the blocks with large operations among those that hold first..last, ascending. They are
  // known until Retire() is told of what they hold.
  std::vector<LogBlockPlace> LargeBlocks(SequenceNumber first, SequenceNumber last) const {
    return writer_.FindLargeBlocks(first, last);
  }
  // Adds files that recovery replayed (they come before this log's own); they are retired like the
  // others.
  void Adopt(std::vector<LogEnd> recovered);
  // Returns the bytes of live log files: the engine flushes a write buffer when they grow over its
  // bound.
  uint64_t live_bytes() const { return files_.completed_bytes() + writer_.end().offset; }
  LogStatistics statistics() const;
  // Returns LogStatistics::bytes_appended, without a lock.
  uint64_t bytes_appended() const { return progress_.bytes_appended(); }
  const SyncTimes& sync_times() const { return progress_.sync_times(); }
  // Returns whether the last attempt to make a log file found no space.
  bool lacks_space() const { return files_.lacks_space(); }

  // Syncs, stops the threads, and returns the clean end. Requires: no Append follows.
  [[nodiscard]] absl::StatusOr<LogEnd> Close();

 private:
  Log(FileSystem* file_system, const LogOptions& options, SequenceNumber last_sequence);
  [[nodiscard]] absl::Status Start(uint64_t file_number);
  absl::Status WriteOut(SequenceNumber sequence);
  void NotifyListeners() ABSL_LOCKS_EXCLUDED(listeners_mutex_);

  std::unique_ptr<FileThread> own_file_thread_;  // null where the options name one
  LogProgress progress_;
  LogFiles files_;
  LogWriter writer_;
  const std::unique_ptr<GroupWriter> group_writer_;
  const std::unique_ptr<GroupCommit> group_commit_;

  // Held, shared, while listeners run: it stands above the locks that they take.
  absl::Mutex listeners_mutex_;
  std::map<uint64_t, std::function<void()>> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
  uint64_t next_listener_ ABSL_GUARDED_BY(listeners_mutex_) = 1;
  bool closed_ = false;
};

}  // namespace varve
