// The read journal has noted reads survive the end of the process (`kill -9`) before the access
// index has them. Every kRound it takes the reads that were noted (NotedReads) and hands them to
// the kernel as they are, in a file. It waits for nobody: neither for the evictor, which may be
// busy with walks and evictions, nor for a write to the store or the index, which may stall. So a
// read is at most kRound and the time of one write older than the file.
//
// The evictor enters what the journal holds into the index, and tells it by Forget(). Two files in
// the directory of the index, `reads-0` and `reads-1`, take turns, so that one of them can be
// emptied while the other one grows. A file is a sequence of chunks:
//
//   | magic: fixed32 | checksum: fixed32, of what follows | order: fixed64 | instant: fixed64,
//   milliseconds since the epoch | reads: fixed32 | and for each read | hash: fixed64 | space:
//   fixed32 | count: fixed32 |
//
// The order ascends over both files. What follows the last good chunk of a file is a chunk that was
// not written to its end, and is left out. The files are never synced.
//
// Thread-safety: all functions but Open(), StartThread() and Stop() may be called on any thread.
// Lock order: file_mutex_, mutex_, then a shard of the noted reads.
// Invariants: the orders of chunks_ ascend; each file holds chunks in that order.
#pragma once

#include <array>
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
#include "server/eviction/noted_reads.h"
#include "util/os/file_system.h"
#include "util/os/steady_condition.h"
#include "varve/types.h"

namespace varve {

// Reads that were taken together.
struct ReadChunk {
  uint64_t order = 0;
  uint64_t instant_ms = 0;     // none of the reads is newer
  std::vector<Touch> touches;  // ascending by space and hash
};

class ReadJournal {
 public:
  static constexpr std::chrono::milliseconds kRound{250};
  // While more reads than this wait for the index, no further ones are taken.
  static constexpr size_t kMostWaiting = NotedReads::kShards * NotedReads::kSlots;
  // The memory of what waits: as many, and those that are taken last. NotedReads::kBytes has the
  // latter.
  static constexpr size_t kBytes = kMostWaiting * sizeof(Touch);

  // Opens the journal in `directory`, which exists; what an earlier process left is in Waiting().
  // Requires: `files` and `noted` outlive the journal.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<ReadJournal>> Open(
      const std::string& directory, FileSystem* files, NotedReads* noted,
      std::function<uint64_t()> now_ms);
  ~ReadJournal() { Stop(); }

  // Has a thread call TakeReads() every kRound.
  void StartThread() ABSL_LOCKS_EXCLUDED(wake_mutex_);
  // Ends the thread and takes reads once more.
  void Stop() ABSL_LOCKS_EXCLUDED(wake_mutex_, file_mutex_, mutex_);

  // Takes what was noted. Returns an error if the file could not take it; Waiting() has it then all
  // the same.
  absl::Status TakeReads() ABSL_LOCKS_EXCLUDED(file_mutex_, mutex_);
  // Returns the chunks that Forget() was not told of, oldest first.
  std::vector<std::shared_ptr<const ReadChunk>> Waiting() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes that chunks up to `order` are in the index, or not wanted any more.
  absl::Status Forget(uint64_t order) ABSL_LOCKS_EXCLUDED(file_mutex_, mutex_);
  // Returns whether the key was read and that is not in the index yet.
  bool Contains(NamespaceId space, uint64_t hash) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr size_t kFiles = 2;

  struct JournalFile {
    std::unique_ptr<File> file;
    uint64_t size = 0;
    uint64_t last_order = 0;
  };

  ReadJournal(NotedReads* noted, std::function<uint64_t()> now_ms)
      : noted_(*noted), now_ms_(std::move(now_ms)) {}
  absl::Status Recover(const std::string& path, FileSystem* files, JournalFile* journal)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes a chunk of the reads that were noted. Null: there is none.
  std::shared_ptr<const ReadChunk> Take() ABSL_LOCKS_EXCLUDED(mutex_);
  void Loop() ABSL_LOCKS_EXCLUDED(wake_mutex_, file_mutex_, mutex_);

  NotedReads& noted_;
  const std::function<uint64_t()> now_ms_;

  absl::Mutex file_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::array<JournalFile, kFiles> files_ ABSL_GUARDED_BY(file_mutex_);
  size_t active_ ABSL_GUARDED_BY(file_mutex_) = 0;
  std::string encoded_ ABSL_GUARDED_BY(file_mutex_);

  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<const ReadChunk>> chunks_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // reads of all chunks
  uint64_t last_order_ ABSL_GUARDED_BY(mutex_) = 0;

  absl::Mutex wake_mutex_;
  SteadyCondition wake_;
  bool is_stopped_ ABSL_GUARDED_BY(wake_mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(wake_mutex_);
};

}  // namespace varve
