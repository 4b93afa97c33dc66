// The log (WAL) takes batch records in commit order, puts them on disk in groups, and says up to
// which sequence they are there.
//
//   Append -> LogWriter   buffers records, accounts for their room, writes blocks to log files
//               LogFiles    prepares the next file ahead, recycles old ones
//   Push, WaitUntilDurable, TrySync -> GroupCommit   decides who runs a group, and who waits for it
//               GroupWriter   makes a group durable: buffered or direct
//   LogProgress           up to where operations are appended, written, durable; whether it failed
//
// Requests are parked, threads are not: Append() copies a record into the buffer; Push() sends the
// buffer on its way; a log thread writes and syncs whatever arrived while the last group was under
// way, then moves durable_sequence(). Records of modes without sync are written by the pushing
// thread itself (the first one writes for all that wait behind it); the log thread only syncs them,
// each second for kEverySecond.
//
// Large values stay where the log wrote them, for segments to point to: LargeBlocks() tells where
// that is, and Retire() gives up a file that is pointed to instead of recycling it.
//
// A failed write or sync is final: status() stays not OK, durable_sequence() stays, nothing is
// retried (docs/durability.md). A full disk is not final: files are reserved ahead, and Reserve()
// refuses before anything is promised. A lack of memory is not final either: writing and syncing
// need none, and the threads try again. Only Open, AddListener, Adopt and Files throw
// std::bad_alloc.
//
// Thread-safety: all functions may be called from any thread, but for Append() and Reserve(), which
// the caller serializes (the engine's commit lock) so that sequences ascend, and Close(). Lock
// order: the caller's commit lock, then the log's locks. Listeners run on the thread that ran the
// group (the log's, or one in WaitUntilDurable, TrySync or Push) with the lock of their list held,
// so that a listener that was removed runs no more. They may take the caller's locks; so
// AddListener() and RemoveListener() must not be called with a lock that a listener takes, nor by a
// listener.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
  // Makes room for such a record: writes out what waits, waits for the next file, makes it larger.
  // Called without the commit lock, so that others go on meanwhile; they may also take the room.
  // Errors are those of Reserve().
  [[nodiscard]] absl::Status Prepare(size_t bytes, bool for_deletes);
  // Makes sure that `bytes` more fit into what is reserved on disk, with Prepare()'s I/O where they
  // don't. ResourceExhausted (cheap, no side effect): the disk is full; `for_deletes` may use the
  // last reserve, so that space can be won back. Unavailable: the log has failed.
  // Requires: the commit lock is held until Append().
  [[nodiscard]] absl::Status Reserve(size_t bytes, bool for_deletes);
  // Takes one complete batch record holding the operations first..last. ResourceExhausted: there is
  // no memory for it. Unavailable: the log has failed. Then nothing was taken. `offset_in_block`
  // for a record with large operations, else null: where it will lie in the payload of a block,
  // whose place LargeBlocks() tells once it is written.
  // Requires: Reserve() returned OK for record.size(), and `first` follows the last operation.
  [[nodiscard]] absl::Status Append(std::string_view record, SequenceNumber first,
                                    SequenceNumber last, Durability durability,
                                    uint32_t* offset_in_block = nullptr) {
    return writer_.Append(record, first, last, durability, offset_in_block);
  }

  // Sends what was appended on its way: wakes the log thread if something needs a sync, writes the
  // rest to the kernel. Whoever goes on to WaitUntilDurable() need not call it: that syncs by
  // itself where no other thread does.
  [[nodiscard]] absl::Status Push();
  // Does the second half of that alone: hands to the kernel what was appended in a mode without
  // sync before it, if that isn't done. Costs two loads when there is nothing to do. Fails when it
  // can't be done, not because the log has failed otherwise.
  [[nodiscard]] absl::Status PushUnsynced();
  // Waits until everything up to `sequence` is durable. InvalidArgument: it was not appended.
  [[nodiscard]] absl::Status WaitUntilDurable(SequenceNumber sequence) {
    return group_commit_->WaitUntilDurable(sequence);
  }
  // Runs a group on this thread if one is wanted and may begin, and calls the listeners. Returns
  // false, without having waited, if not.
  bool TrySync() { return group_commit_->TrySync(); }
  // Makes everything durable that was appended so far, whatever its mode.
  [[nodiscard]] absl::Status Sync() { return WaitUntilDurable(progress_.appended()); }

  SequenceNumber durable_sequence() const { return progress_.durable(); }
  // Returns the last sequence that is with the kernel, at least.
  SequenceNumber written_sequence() const { return progress_.written(); }
  // Returns the highest sequence appended with Durability::kAlways.
  SequenceNumber last_always_sequence() const { return progress_.last(Durability::kAlways); }
  // Returns OK, or for good the status of the first failure.
  [[nodiscard]] absl::Status status() const { return progress_.status(); }

  // Calls `listener` after each group from now on. Returns the token for RemoveListener().
  uint64_t AddListener(std::function<void()> listener) ABSL_LOCKS_EXCLUDED(listeners_mutex_);
  // Waits for a call of the listener that is under way.
  void RemoveListener(uint64_t token) ABSL_LOCKS_EXCLUDED(listeners_mutex_);

  // Returns number and last sequence of the files that hold operations, oldest first; the last one
  // is being written.
  std::vector<LogEnd> Files() const;
  // Gives up the files of which every operation is <= `sequence`: they are recycled or removed.
  // Where there is no memory for it they are left to the next call. The log forgets the files that
  // `keeps` says are not its alone any more: they stay as they are, and are the caller's.
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

  // Syncs, stops the threads, and returns the clean end. Requires: no Append follows.
  [[nodiscard]] absl::StatusOr<LogEnd> Close();

 private:
  Log(FileSystem* file_system, const LogOptions& options, SequenceNumber last_sequence);
  [[nodiscard]] absl::Status Start(uint64_t file_number);
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
