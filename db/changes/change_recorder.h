// The change recorder retains what was committed for readers of the change feed. Each batch takes
// this way:
//
//   queue     the commit pipeline copies the batch, under the commit lock (change_queue.h)
//   block     the recorder translates it into the open block, in memory (change_block.h)
//   pending   a full block, or one that ends with a write buffer, waits to be written
//   file      the block is in a change file, unsynced at first (change_file.h)
//   manifest  a flush has synced the file, and the manifest names it
//
// Four threads take batches out of the queue, one at a time: the change thread when much waits, a
// flush, a reader that has read everything before, and a writer that finds the queue full.
//
// The manifest names no block that ends behind what segments hold, since the log has the rest. When
// the store is opened, the log is replayed through the recorder, which skips what files hold
// already. An ingest is in segments once the manifest names it, before the log has it: that
// manifest names a change file with the ingest alone, until the blocks with it are in files.
//
// The versions behind first() are retained. It rises with an install, by bytes and by time, and by
// whole files: a file goes once the manifest that does not name it is on disk, and nobody reads it.
// Feeds (feed_table.h) hold files back within their bounds. A purge (change_purge.h) puts files
// without a key into the places of files that hold it.
//
// A write that fails is tried again with the next block, in a new file, while no more than
// kMostPending bytes wait. When more wait, and when a sync fails, the recorder gives up all that it
// has retained, says so in the program's log, and goes on with what follows. No write and no flush
// of the store fails or waits because of that.
//
// Thread-safety: all functions may be called on any thread, unless the heading of their group says
// more. work_mutex_ is held across I/O; a thread acquires it before the commit lock, and the commit
// lock before head_mutex_.
// Invariants: blocks follow each other without gaps from first() on, through files, pending blocks
// and the open block.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/changes/change_block.h"
#include "db/changes/change_file.h"
#include "db/changes/change_queue.h"
#include "db/changes/change_thread.h"
#include "db/changes/change_translator.h"
#include "db/changes/feed_table.h"
#include "db/changes/retained_space.h"
#include "db/format/manifest_contents.h"
#include "db/history/time_map.h"
#include "db/namespaces/namespace_table.h"
#include "util/os/file_remover.h"
#include "util/os/file_system.h"
#include "varve/options.h"
#include "varve/types.h"

namespace varve {

// The recorder needs these of the engine. All of them outlive the recorder.
struct ChangeRecorderParts {
  FileSystem* file_system = nullptr;
  std::string directory;
  FileRemover* remover = nullptr;
  const TimeMap* times = nullptr;
  ChangeRetention limits;
  std::function<uint64_t()> new_file_number;
  std::function<uint64_t()> now_ms;
};

// A place of a reader: plain values. It holds no file, so a reader that rests keeps none from being
// removed.
struct ChangeReadPlace {
  ChangeBlock block;         // read last
  uint64_t file_number = 0;  // 0: the block is in no file
  uint64_t next_offset = 0;  // in the file, behind the block
};

struct ChangeFigures {
  bool on = false;
  SequenceNumber first = kNoSequence;
  uint64_t file_bytes = 0;
  uint64_t files = 0;
  uint64_t memory_bytes = 0;  // the queue, pending blocks and the open one
  uint64_t given_up = 0;      // how often the recorder gave up what it had
  uint64_t lost_feeds = 0;    // since the store was opened
};

class ChangeRecorder {
 public:
  static constexpr size_t kMostPending = size_t{32} << 20;

  explicit ChangeRecorder(ChangeRecorderParts parts) : parts_(std::move(parts)) {}
  ~ChangeRecorder() { thread_.Stop(); }
  ChangeRecorder(const ChangeRecorder&) = delete;
  ChangeRecorder& operator=(const ChangeRecorder&) = delete;

  bool on() const { return on_.load(std::memory_order_acquire); }
  // What is retained though no feed holds it back.
  RetainedSpace& space() { return space_; }
  // A thread that makes, moves or drops a feed holds this lock, also across I/O.
  absl::Mutex& feeds_mutex() ABSL_LOCK_RETURNED(feeds_mutex_) { return feeds_mutex_; }
  FeedTable& feeds() { return feeds_; }
  const FeedTable& feeds() const { return feeds_; }
  ChangeThread& thread() { return thread_; }

  // --- Opening ---
  // Retains what comes behind `flushed`, and what the manifest says is retained, unless something
  // between is missing. `namespaces` are those after `flushed`.
  // Requires: nothing is committed meanwhile.
  void Start(const RetainedChanges& on_disk, const NamespaceTable& namespaces,
             SequenceNumber flushed) ABSL_LOCKS_EXCLUDED(work_mutex_, head_mutex_);
  // Retains nothing any more; the files go with the next install.
  // Requires: as Start().
  void Stop() ABSL_LOCKS_EXCLUDED(work_mutex_, head_mutex_);
  void StartThread() {
    thread_.Start([this] { CatchUp(); });
  }
  // StartHeld() and StopHeld() do what Start() and Stop() do while others commit.
  // Requires: the caller acquired work_mutex(), and behind it the commit lock.
  absl::Mutex& work_mutex() ABSL_LOCK_RETURNED(work_mutex_) { return work_mutex_; }
  void StartHeld(const RetainedChanges& on_disk, const NamespaceTable& namespaces,
                 SequenceNumber flushed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_)
      ABSL_LOCKS_EXCLUDED(head_mutex_);
  void StopHeld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_) ABSL_LOCKS_EXCLUDED(head_mutex_);

  // --- Committing: under the commit lock ---
  // Takes the memory for a batch. Throws std::bad_alloc.
  void Reserve(size_t operations_size) { queue_.Reserve(operations_size); }
  // Requires: Reserve() for as many bytes.
  void Add(const ChangeQueue::Batch& batch) noexcept {
    if (queue_.Add(batch)) thread_.Wake();
  }
  // Helps, without the commit lock, if more waits than the queue may hold. The replay of the log
  // calls it, too.
  void WaitForRoom() ABSL_LOCKS_EXCLUDED(work_mutex_, head_mutex_) {
    if (queue_.bytes() > ChangeQueue::kMostBytes) [[unlikely]]
      CatchUp();
  }
  // Takes all batches that were added before the call out of the queue.
  void CatchUp() ABSL_LOCKS_EXCLUDED(work_mutex_, head_mutex_);

  // --- Installing: one thread at a time ---
  // Puts on disk what is committed up to `flushed`, raises first() and gives up feeds as their
  // bounds say. `*next` becomes what the manifest has to say of retained changes. `ahead`: an
  // ingest that is committed behind `flushed` once the manifest is on disk; null: none is. Throws
  // std::bad_alloc; then nothing is lost by it.
  void Persist(SequenceNumber flushed, const ChangeQueue::Batch* ahead, RetainedChanges* next)
      ABSL_LOCKS_EXCLUDED(work_mutex_, head_mutex_);
  // Returns whether Persist() would raise first() or give up a feed, or whether files wait for a
  // manifest that does not name them.
  bool HasToTrim() const ABSL_LOCKS_EXCLUDED(work_mutex_, head_mutex_);
  // Notes that the manifest of the last Persist() is on disk. The files that it does not name go
  // once nobody reads them.
  void NoteInstalled() ABSL_LOCKS_EXCLUDED(work_mutex_, head_mutex_);

  // --- Reading ---
  SequenceNumber first() const ABSL_LOCKS_EXCLUDED(head_mutex_);
  // Reads the block that covers the version behind `position`; of the open block, what lies behind
  // it. Returns false if there is none yet; `*covered` is then the last version that was recorded.
  // Returns Trimmed and DataLoss as ChangeIterator::Next() does.
  [[nodiscard]] absl::StatusOr<bool> Read(SequenceNumber position, ChangeReadPlace* place,
                                          SequenceNumber* covered)
      ABSL_LOCKS_EXCLUDED(work_mutex_, head_mutex_);
  // Returns about how many bytes are retained behind the position.
  uint64_t BytesBehind(SequenceNumber position) const ABSL_LOCKS_EXCLUDED(head_mutex_);
  ChangeFigures Figures() const ABSL_LOCKS_EXCLUDED(head_mutex_);

 private:
  friend class ChangePurge;

  struct Entry {
    std::shared_ptr<ChangeFile> file;
    ChangeFilePlace place;  // as far as it is written
    ChangeFilePlace named;  // as far as a manifest may name it; size 0: not at all
  };
  // The head is what readers see.
  struct Head {
    SequenceNumber first = kNoSequence;
    std::deque<Entry> entries;
    std::deque<ChangeBlock> pending;
    size_t pending_bytes = 0;
    ChangeBlock open;
    // The last commit that readers see is not behind this version.
    SequenceNumber last_shown = kNoSequence;
    // The last version of each commit of the open block, and where it begins.
    std::vector<std::pair<SequenceNumber, size_t>> open_places;
  };
  struct BlockEnd {
    uint64_t number;
    uint64_t offset;
    SequenceNumber last;
    uint64_t last_ms;
  };
  // The thread that holds work_mutex_ uses this.
  struct Work {
    ChangeTranslator translator;
    std::string operations;            // of one commit
    std::shared_ptr<ChangeFile> file;  // in which blocks are written; null: the next begins one
    uint64_t offset = 0;
    uint64_t began_ms = 0;       // the instant of the file's first commit
    bool directory_due = false;  // a file was made since the directory was synced
    bool failing = false;
    std::vector<std::shared_ptr<ChangeFile>> unsynced;
    std::deque<BlockEnd> ends;                         // of blocks that no manifest may name yet
    std::vector<std::shared_ptr<ChangeFile>> dropped;  // given up since the last Persist()
    std::vector<std::shared_ptr<ChangeFile>> unnamed;  // given up before; go with the next install
    std::shared_ptr<ChangeFile> ahead;                 // holds an ingest alone; or null
  };

  void DrainHeld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  void Record(const ChangeQueue::Batch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  void FinishBlock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  void WritePending() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  absl::Status WriteBlock(const ChangeBlock& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  bool NeedsFile(const ChangeBlock& block) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  absl::Status BeginFile(const ChangeBlock& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  // Leaves the file, so that the next block begins another one.
  void LeaveFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  absl::Status SyncFiles() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  // Gives up everything but the open block.
  void GiveUp(const absl::Status& reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  void DropEntriesLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_, head_mutex_);
  // Has the next manifest name the blocks that end at or before `up_to`.
  void NameBlocks(SequenceNumber up_to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  // Returns how many of the oldest files the limits give up, and stores the feeds that lose
  // changes by it, or have lost them, in `*lost`.
  size_t CountToTrimLocked(std::vector<std::string>* lost) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(head_mutex_);
  uint64_t BytesBehindLocked(SequenceNumber position) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(head_mutex_);
  bool FeedExceedsBoundsLocked(const FeedPlace& feed, uint64_t now_ms) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(head_mutex_);
  // Copies what a reader at the position has not read.
  void CopyBlockLocked(const ChangeBlock& block, SequenceNumber position, ChangeBlock* copy) const
      ABSL_SHARED_LOCKS_REQUIRED(head_mutex_);
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);

  const ChangeRecorderParts parts_;
  absl::Mutex feeds_mutex_;
  FeedTable feeds_;
  ChangeQueue queue_;
  std::atomic<bool> on_{false};
  RetainedSpace space_{parts_.limits};
  std::atomic<uint64_t> given_up_{0};
  std::atomic<uint64_t> lost_feeds_{0};
  mutable absl::Mutex work_mutex_;
  Work work_ ABSL_GUARDED_BY(work_mutex_);
  mutable absl::Mutex head_mutex_ ABSL_ACQUIRED_AFTER(work_mutex_);
  Head head_ ABSL_GUARDED_BY(head_mutex_);
  ChangeThread thread_;  // the last, so that it ends first
};

}  // namespace varve
