// The read journal has noted reads survive the end of the process (`kill -9`) before the access
// index has them. Every kRound it takes the reads that were noted (NotedReads) and hands them to
// the kernel as they are, in a file. It waits for nobody: neither for the evictor, which may be
// busy with walks and evictions, nor for a write to the store or the index, which may stall. So a
// read is at most kRound and the time of one write older than the file.
//
// What was taken waits in memory, each key once, until the evictor enters it into the access index;
// meanwhile With() tells of it. The index pays for each key that is entered, the journal next to
// nothing, so what is read again and again is entered once every few seconds.
//
// Where more waits than may, because the evictor can't keep up, what was noted is left in place for
// two rounds more. After that, reads of keys that wait are taken, and the others are dropped and
// counted. So a read that is a second old is in the files, or in the count of dropped ones.
//
// Two files in the directory of the index, `reads-0` and `reads-1`, take turns: one grows while
// what the other one holds is entered. A file is a sequence of chunks:
//
//    0  4  magic
//    4  4  checksum of what follows
//    8  8  order
//   16  8  instant in milliseconds since the epoch
//   24  4  number of reads, and of each:
//    .  8    hash of its key
//    .  4    namespace
//    .  4    count, and in the highest 8 bits the least uses (NotedReads)
//
// The order ascends over both files. What follows the last good chunk of a file is a chunk that was
// not written to its end, and is cut off when the journal is opened. The files are never synced.
//
// Thread-safety: all functions but Open(), StartThread() and Stop() may be called on any thread.
// Lock order: file_mutex_, mutex_, then a shard of the noted reads.
// Invariants: what waits is in the files, but for what a write failed to put there; each file holds
// chunks in their order.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/eviction/access_index.h"
#include "server/eviction/noted_reads.h"
#include "util/os/file_system.h"
#include "util/os/steady_condition.h"
#include "varve/types.h"

namespace varve {

// The reads of a key that wait for the index.
struct WaitingRead {
  uint64_t hash = 0;
  uint64_t instant_ms = 0;  // no read of it is newer
  NamespaceId space = kDefaultNamespace;
  uint16_t count = 0;
  uint8_t least_uses = 0;

  // Returns the access after these reads; the same each time, although counts of uses grow by
  // chance.
  KeyAccess After(const KeyAccess& before) const;
};

class ReadJournal {
 public:
  static constexpr std::chrono::milliseconds kRound{250};

  // Opens the journal in `directory`, which exists; what an earlier process left there waits. While
  // the reads of more than `most_waiting` keys wait, those of no further keys are taken; with those
  // that are being entered it may be twice as many.
  // Requires: `files` and `noted` outlive the journal.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<ReadJournal>> Open(
      const std::string& directory, FileSystem* files, NotedReads* noted,
      std::function<uint64_t()> now_ms, size_t most_waiting);
  ~ReadJournal() { Stop(); }

  // Has a thread call TakeReads() every kRound.
  void StartThread() ABSL_LOCKS_EXCLUDED(wake_mutex_);
  // Ends the thread and takes reads once more.
  void Stop() ABSL_LOCKS_EXCLUDED(wake_mutex_, file_mutex_, mutex_);

  // Takes what was noted. Returns an error if the file could not take it; it waits then all the
  // same.
  absl::Status TakeReads() ABSL_LOCKS_EXCLUDED(file_mutex_, mutex_);
  // Returns the access to a key of which the index has `stored`, with what the index has not yet.
  KeyAccess With(const KeyAccess& stored, NamespaceId space, uint64_t hash) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns how many reads the files were given. Those of one key within a round count once.
  uint64_t taken() const { return taken_.load(std::memory_order_acquire); }

  // Returns whether enough waits, or for long enough, that it should be entered into the index.
  bool IsDue() const ABSL_LOCKS_EXCLUDED(file_mutex_, mutex_);
  // Returns what waits, ascending by namespace and hash, each key once. It goes on to wait until
  // EndEntering(). Requires: no entering is under way.
  const std::vector<WaitingRead>& BeginEntering() ABSL_LOCKS_EXCLUDED(file_mutex_, mutex_);
  // Notes that these are in the index, or not wanted any more.
  absl::Status EndEntering() ABSL_LOCKS_EXCLUDED(file_mutex_, mutex_);

 private:
  static constexpr size_t kFiles = 2;
  static constexpr int kMostRefusals = 3;

  struct JournalFile {
    std::unique_ptr<File> file;
    uint64_t size = 0;
    uint64_t last_order = 0;
  };

  ReadJournal(NotedReads* noted, std::function<uint64_t()> now_ms, size_t most_waiting)
      : noted_(*noted), now_ms_(std::move(now_ms)), most_waiting_(most_waiting) {}
  absl::Status Recover(const std::string& directory, FileSystem* files)
      ABSL_LOCKS_EXCLUDED(file_mutex_, mutex_);
  // Has what was noted wait. Returns false if there was nothing, or too much waits.
  bool Take(uint64_t* instant_ms, std::vector<Touch>* touches) ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops reads of keys that do not wait.
  void DropOthersLocked(std::vector<Touch>* touches) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddLocked(absl::Span<const Touch> touches, uint64_t instant_ms)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Loop() ABSL_LOCKS_EXCLUDED(wake_mutex_, file_mutex_, mutex_);

  NotedReads& noted_;
  const std::function<uint64_t()> now_ms_;
  const size_t most_waiting_;
  std::atomic<uint64_t> taken_{0};

  mutable absl::Mutex file_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::array<JournalFile, kFiles> files_ ABSL_GUARDED_BY(file_mutex_);
  size_t active_ ABSL_GUARDED_BY(file_mutex_) = 0;
  uint64_t last_order_ ABSL_GUARDED_BY(file_mutex_) = 0;
  uint64_t entering_order_ ABSL_GUARDED_BY(file_mutex_) = 0;  // the last chunk that is entered
  std::string encoded_ ABSL_GUARDED_BY(file_mutex_);

  mutable absl::Mutex mutex_;
  // Both ascend by namespace and hash.
  std::vector<WaitingRead> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<WaitingRead> entering_ ABSL_GUARDED_BY(mutex_);
  SteadyTime waits_since_ ABSL_GUARDED_BY(mutex_);
  int refusals_ ABSL_GUARDED_BY(mutex_) = 0;  // rounds in a row in which too much waited

  absl::Mutex wake_mutex_;
  SteadyCondition wake_;
  bool is_stopped_ ABSL_GUARDED_BY(wake_mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(wake_mutex_);
};

}  // namespace varve
