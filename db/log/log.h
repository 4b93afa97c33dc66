// The log (WAL): takes batch records in commit order, puts them on disk in groups, and says up to
// which sequence they are there.
//
// Requests are parked, threads are not: Append copies a record into the active buffer; Push sends
// the buffer on its way; a log thread writes and syncs whatever arrived while the last group was
// under way, then publishes durable_sequence(). Records of modes without sync are written by the
// pushing thread itself (the first one writes for all that wait behind it); the log thread only
// syncs them, each second for kEverySecond.
//
// Large values stay where the log wrote them, for segments to point to: so it can tell where that
// is, and a file that is pointed to is given up by Retire(), not recycled.
//
// A failed write or sync is final: status() stays not OK, durable_sequence() stays, nothing is
// retried (contract 5). A full disk is not: files are reserved ahead, Reserve() refuses before
// anything is promised. Nor is a lack of memory: writing and syncing need none, and the threads try
// again. Only what opens the log, adds to its books or copies them (Open, AddListener, Adopt,
// Files) throws std::bad_alloc.
//
// Thread-safe, but for Append, which the caller serializes (the engine's commit lock) so that
// sequences ascend. Lock order: the caller's commit lock, then the log's own. Listeners run on the
// thread that synced (the log's, or one in WaitUntilDurable or Push), with none of these locks
// held; they must not add or remove listeners.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/format/log_end.h"
#include "util/os/file_system.h"
#include "varve/options.h"
#include "varve/types.h"

namespace varve {

// Where the payload of a block lies that holds large operations (db/format/large_operation.h).
struct LogBlockPlace {
  SequenceNumber first = kNoSequence;  // operation of the block
  uint64_t file_number = 0;            // 0: not written yet
  uint64_t payload_offset = 0;
};

struct LogOptions {
  std::string directory;
  uint64_t store_id = 0;
  size_t file_size = 64u << 20;  // bytes of a file; a larger record gets a file of its own size
  size_t group_max_bytes = 4u << 20;
  std::chrono::microseconds group_max_delay{0};
  SyncBackend sync_backend = SyncBackend::kPwrite;  // kPwrite or kDirect
  // Gives the numbers of further files, ascending, from any thread. Unset: the log counts on from
  // its first file.
  std::function<uint64_t()> next_file_number;
};

struct LogStatistics {
  uint64_t groups = 0;  // synced groups
  uint64_t syncs = 0;   // fdatasync calls, and direct writes
  // To log files, with headers and padding; some of it takes the place of earlier padding.
  uint64_t bytes_written = 0;
  uint64_t bytes_taken = 0;     // in log files
  uint64_t bytes_appended = 0;  // records only
  uint64_t files_recycled = 0;
};

class Log {
 public:
  // Starts a new file numbered `file_number` whose first operation will be `last_sequence + 1`;
  // everything up to `last_sequence` is durable.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Log>> Open(FileSystem* file_system,
                                                                 const LogOptions& options,
                                                                 uint64_t file_number,
                                                                 SequenceNumber last_sequence);
  ~Log();

  // Whether Reserve() would answer without I/O.
  bool HasRoom(size_t bytes, bool for_deletes) const;
  // Makes room for such a record: writes out what waits, waits for the next file, makes it larger.
  // Called without the commit lock, so that others go on meanwhile; they may also take the room.
  // Errors as of Reserve().
  [[nodiscard]] absl::Status Prepare(size_t bytes, bool for_deletes);
  // Makes sure that `bytes` more fit into what is reserved on disk, with Prepare()'s I/O where they
  // don't. ResourceExhausted (cheap, no side effect): the disk is full; `for_deletes` may use the
  // last reserve, so that space can be won back. Unavailable: the log has failed. Called under the
  // commit lock right before Append.
  [[nodiscard]] absl::Status Reserve(size_t bytes, bool for_deletes);
  // Takes one complete batch record holding the operations first..last. ResourceExhausted: there is
  // no memory for it. Unavailable: the log has failed. Then nothing was taken. `offset_in_block`
  // for a record with large operations, else null: where it will lie in the payload of a block,
  // whose place LargeBlocks() tells once it is written.
  [[nodiscard]] absl::Status Append(std::string_view record, SequenceNumber first,
                                    SequenceNumber last, Durability durability,
                                    uint32_t* offset_in_block = nullptr);
  // Sends what was appended on its way: wakes the log thread if something needs a sync, writes the
  // rest to the kernel. Who goes on to WaitUntilDurable need not call it: that syncs by itself
  // where nobody else does.
  [[nodiscard]] absl::Status Push();
  // The second half of that alone: hands to the kernel what was appended in a mode without sync
  // before it, if that isn't done. Costs two loads when there is nothing to do. Fails when it can't
  // be done, not because the log has failed otherwise.
  [[nodiscard]] absl::Status PushUnsynced();

  SequenceNumber durable_sequence() const;
  // With the kernel, at least.
  SequenceNumber written_sequence() const;
  // Highest sequence appended with Durability::kAlways.
  SequenceNumber last_always_sequence() const;
  [[nodiscard]] absl::Status status() const;
  [[nodiscard]] absl::Status WaitUntilDurable(SequenceNumber sequence);
  // Runs a group on this thread, if one is wanted and may begin, and calls the listeners. False:
  // not so, and nothing was waited for.
  bool TrySync();
  // Everything appended so far, whatever its mode.
  [[nodiscard]] absl::Status Sync();

  uint64_t AddListener(std::function<void()> listener);
  void RemoveListener(uint64_t token);

  // Number and last sequence of the files that hold operations, oldest first; the last one is being
  // written.
  std::vector<LogEnd> Files() const;
  // Files of which every operation is <= `sequence` are no longer needed: they are recycled or
  // removed. Call only after the manifest that says so is on disk. Where there is no memory for it
  // they are left to the next call. Those that `keeps` says are not the log's alone any more it
  // forgets: they stay as they are, and are the caller's.
  void Retire(SequenceNumber sequence, absl::FunctionRef<bool(const LogEnd&)> keeps);
  void Retire(SequenceNumber sequence) {
    Retire(sequence, [](const LogEnd&) { return false; });
  }
  // The blocks with large operations among those that hold first..last, ascending. Known until
  // Retire() is told of what they hold.
  std::vector<LogBlockPlace> LargeBlocks(SequenceNumber first, SequenceNumber last) const;
  // Files that recovery replayed (they come before this log's own); retired like the others.
  void Adopt(std::vector<LogEnd> recovered);
  // Bytes of live log files: the engine flushes a write buffer when they grow over its bound.
  uint64_t live_bytes() const;
  LogStatistics statistics() const;

  // Syncs, stops the threads, gives the clean end. No Append may follow.
  [[nodiscard]] absl::StatusOr<LogEnd> Close();

 private:
  class Implementation;
  explicit Log(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

// --- Recovery ------------------------------------------------------------------------------------

struct LogRecovery {
  // Of the last operation that was delivered (or `flushed` if none).
  SequenceNumber last_sequence = 0;
  uint64_t last_file_number = 0;  // highest number seen, also of files without content
  // Files that hold operations > `flushed`, oldest first, with their good ends.
  std::vector<LogEnd> files;
  uint64_t torn_bytes = 0;  // cut away behind the end
  std::string torn_path;    // the file that was cut, and where
  uint64_t torn_offset = 0;
  // Files with nothing to recover. They must be gone, and their directory synced, before the log
  // takes new operations, of which some could have the numbers of what was cut away with them.
  std::vector<std::string> obsolete_paths;
};

// Replays all batches with operations after `flushed`, oldest first, from the log files of
// `directory`. `deliver` gets each batch's operations (batch record without its header), first
// sequence and number of operations. `known_ends` come from the manifest: files that were closed
// cleanly or cut by an earlier recovery. What was replayed is on disk when this returns, also where
// only the kernel held it. DataLoss: an acknowledged part is damaged; names file and offset.
[[nodiscard]] absl::StatusOr<LogRecovery> RecoverLog(
    FileSystem* file_system, const std::string& directory, uint64_t store_id,
    SequenceNumber flushed, const std::vector<LogEnd>& known_ends,
    const std::function<absl::Status(std::string_view operations, SequenceNumber first,
                                     uint32_t count)>& deliver);

// Operations that recovery refuses to go on without, but a repair has to.
struct LogGap {
  absl::Status damage;  // DataLoss, which names file and offset
  SequenceNumber first = kNoSequence;
  // First - 1: none is lost; kNoSequence: not known, nothing behind it can be read.
  SequenceNumber last = kNoSequence;
};
struct LogSurvey {
  LogRecovery recovery;  // of what can be read
  std::vector<LogGap> gaps;
};

// As RecoverLog, but changes nothing, and goes on behind damage with the next block that was surely
// acknowledged.
[[nodiscard]] absl::StatusOr<LogSurvey> SurveyLog(
    FileSystem* file_system, const std::string& directory, uint64_t store_id,
    SequenceNumber flushed, const std::vector<LogEnd>& known_ends,
    const std::function<absl::Status(std::string_view operations, SequenceNumber first,
                                     uint32_t count)>& deliver);

}  // namespace varve
