// The embedded engine behind StorageEngine. Its parts, one file each: engine_open.cc (open, recovery, close), engine_write.cc
// (commit), engine_read.cc (lookups, iterators), engine_count.cc (the number of keys), engine_background.cc (flush, compaction,
// installing what they made).
//
// Locks, in the order in which they may be taken together:
//   1. install_mutex_   a new Version: manifest on disk, then published. Held across I/O; readers and writers never take it.
//   2. count_mutex_     the number of keys. Held across I/O; readers and writers never take it.
//   3. commit_mutex_    the short critical section of a write, and each replacement of the ReadState. Not held across I/O, but
//                       for Log::Reserve where others keep taking the room that was prepared (docs/decisions.md).
//   4. the log's own    (db/log.h)
//   Apart from these, never together with another: async_mutex_, the snapshot list's.
// Readers take none of them: they pin the ReadState (structure/published.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "db/commit.h"
#include "db/compaction.h"
#include "db/compaction_picker.h"
#include "db/log.h"
#include "db/manifest.h"
#include "db/read_state.h"
#include "db/segment_caches.h"
#include "db/snapshot_list.h"
#include "db/storage_engine.h"
#include "db/throttle.h"
#include "structure/published.h"
#include "util/file_remover.h"
#include "util/file_system.h"

namespace varve {

class Engine final : public StorageEngine {
 public:
  static absl::StatusOr<std::unique_ptr<StorageEngine>> Open(const std::string& directory,
                                                             const EngineOptions& options);
  ~Engine() override;

  absl::StatusOr<ReadResult> Get(const ReadOptions& options, std::string_view key, std::string* value) override;
  absl::Status MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys,
                        absl::Span<MultiGetResult> results) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower, std::string_view upper,
                                        SequenceNumber* gate) override;
  std::shared_ptr<const Snapshot> GetSnapshot() override;
  absl::StatusOr<CountResult> Count(const ReadOptions& options, std::string_view lower,
                                    std::string_view upper) override;

  absl::StatusOr<CommitResult> Write(const WriteOptions& options, WriteBatch* batch) override;
  absl::StatusOr<CommitResult> Submit(const WriteOptions& options, WriteBatch* batch) override;
  absl::Status Push() override { return log_->Push(); }
  absl::Status PushUnsynced() override { return log_->PushUnsynced(); }
  void WriteAsync(const WriteOptions& options, WriteBatch* batch,
                  std::function<void(absl::StatusOr<CommitResult>)> done) override;
  absl::StatusOr<CommitResult> Update(const WriteOptions& options, absl::Span<const std::string_view> keys,
                                      absl::FunctionRef<absl::Status(WriteBatch*)> decide) override;

  SequenceNumber durable_sequence() const override { return log_->durable_sequence(); }
  absl::Status log_status() const override { return log_->status(); }
  uint64_t AddDurabilityListener(std::function<void()> listener) override {
    return log_->AddListener(std::move(listener));
  }
  void RemoveDurabilityListener(uint64_t token) override { log_->RemoveListener(token); }
  absl::Status WaitUntilDurable(SequenceNumber sequence) override;
  absl::Status Sync() override { return log_->Sync(); }

  absl::Status Flush() override;
  absl::Status Compact(std::string_view lower, std::string_view upper) override;
  Pressure pressure() const override { return throttle_.pressure(); }
  std::vector<std::pair<std::string, uint64_t>> Statistics() const override;
  absl::Status Close() override;

 private:
  // A write buffer that takes no more writes, with the namespaces as they were at its end.
  struct FullBuffer {
    std::shared_ptr<WriteBuffer> buffer;
    NamespaceTable namespaces;
  };
  // A generation that its namespace has left. Known until the switch is in segments and no snapshot is older.
  struct LeftGeneration {
    NamespaceId space;
    NamespaceGeneration generation;
    SequenceNumber left_at;
  };
  // A request to merge a range, waiting for the compaction thread.
  struct CompactRequest {
    std::string lower;
    std::string upper;
    bool done = false;  // guarded by commit_mutex_, like status
    absl::Status status;
  };
  // Something that changes many keys at once; the count has to look at it in its turn.
  struct CountEvent {
    SequenceNumber sequence;
    bool clears;  // the namespace; else a range is deleted:
    RangeTombstone range;
  };
  struct Counted {
    uint64_t keys;
    SequenceNumber at;
  };
  // The number of keys as of one sequence, and how far the buffer that holds it has been looked through.
  struct KeyCount {
    bool known = false;
    uint64_t keys = 0;
    SequenceNumber at = kNoSequence;
    std::shared_ptr<WriteBuffer> buffer;
    WriteBuffer::Position position;
    std::map<SequenceNumber, uint64_t> at_buffer_ends;  // what the manifest will say of them
  };
  // What a read sees: the state and a sequence for which that state is complete.
  struct ReadPoint {
    Published<ReadState>::Pin state;
    SequenceNumber sequence;
    NamespaceGeneration generation;
  };
  struct Lookup;

  Engine(std::string directory, const EngineOptions& options);

  // --- engine_open.cc
  absl::Status Recover();
  absl::Status LoadOrCreateManifest();
  absl::Status OpenSegments();
  absl::Status ReplayLog(LogRecovery* recovery);
  absl::Status ApplyRecovered(std::string_view operations, SequenceNumber first, uint32_t count);
  absl::Status StartLog(const LogRecovery& recovery);
  absl::Status RemoveOrphans();
  void StopThreads();

  // --- engine_write.cc
  absl::Status CheckConditions(const Commit& commit) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  absl::Status CheckWritable(const Commit& commit) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // Puts the operations into the active buffer; replaces the ReadState where ranges or namespaces change.
  void ApplyLocked(const std::vector<Commit::Operation>& operations, bool gated)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // Before a batch of so many operations is numbered: one that would overcrowd the active buffer's index gets a buffer made for it.
  void FitActiveBufferLocked(size_t operations) ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  void RotateBufferLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // To change the ReadState: a copy of the present one, to be changed and published.
  std::shared_ptr<ReadState> CopyStateLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  void PublishLocked(std::shared_ptr<const ReadState> next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // Where the log has no room ready for the record: has it made, without the lock meanwhile.
  absl::Status PrepareLogLocked(const Commit& commit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  bool ActiveBufferIsFullLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  absl::Status WaitForRoom(size_t bytes, bool adds_data);
  NamespaceGeneration NewGeneration() { return next_generation_.fetch_add(1); }
  void CompleteAsyncWrites();
  // What the log's progress or failure means to the rest.
  void OnLogProgress();
  void NoteLogFailure() ABSL_LOCKS_EXCLUDED(commit_mutex_);
  void NoteLogFailureLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  // Rotates the active buffer when the log has outgrown what it should hold for it: small synced writes take a page each.
  void BoundLog();

  // --- engine_read.cc
  absl::StatusOr<ReadPoint> BeginRead(const ReadOptions& options) const;
  // The namespaces as they were at `at`, since the store was opened.
  NamespaceTable NamespacesAtLocked(SequenceNumber at) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  SequenceNumber GateOf(SequenceNumber sequence) const;
  // Before a result leaves the library. `unwritten`: it may show something of a mode without sync that isn't with the kernel yet.
  absl::Status AwaitGate(const ReadOptions& options, SequenceNumber gate, bool unwritten = true);
  // Whether a read whose gate will never open can be answered as of what is durable.
  bool WorthReadingAgain(const ReadOptions& options, bool log_had_failed) const;
  bool LookUpBuffers(const ReadState& state, SequenceNumber at, Lookup* lookup) const;
  absl::Status LookUpSegments(const ReadState& state, SequenceNumber at, bool fill_cache, Lookup* lookup) const;
  // Turns what was found into the answer: a newer range tombstone hides it, and its gate is the newest of the two.
  // Sets `*unwritten` when that isn't with the kernel yet.
  void Conclude(const ReadState& state, SequenceNumber at, const Lookup& lookup, ReadResult* result, std::string* value,
                bool* unwritten) const;
  // Bounds are tree keys: [lower, upper), an empty `upper` meaning no end.
  std::unique_ptr<Iterator> MakeIterator(std::shared_ptr<const ReadState> state, SequenceNumber at, bool fill_cache,
                                         std::string lower, std::string upper) const;

  // --- engine_count.cc
  // The number of keys of the default namespace at `target`, which `state` holds completely, or later; looks at what was
  // written since the last time.
  absl::StatusOr<Counted> SettleCount(const std::shared_ptr<const ReadState>& state, SequenceNumber target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(count_mutex_);
  // While a buffer is there, it knows what each write replaced: brings the count to its end. One that isn't known, or fails, is
  // made up for by a scan when somebody asks.
  void SettleCountBeforeFlush(const WriteBuffer& buffer);
  absl::Status SettleBuffer(const std::shared_ptr<const ReadState>& state, const std::shared_ptr<WriteBuffer>& buffer,
                            SequenceNumber end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(count_mutex_);
  absl::Status SettleRecords(const ReadState& state, const WriteBuffer& buffer, SequenceNumber end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(count_mutex_);
  absl::Status SettleEvent(const std::shared_ptr<const ReadState>& state, const CountEvent& event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(count_mutex_);
  absl::StatusOr<uint64_t> CountByScan(const std::shared_ptr<const ReadState>& state, SequenceNumber at,
                                       std::string lower, std::string upper) const;
  // Writes the count as of the end of a buffer, if it is known, into the manifest's row of the default namespace.
  void DescribeCount(SequenceNumber buffer_end, std::vector<ManifestNamespace>* namespaces);
  absl::StatusOr<bool> ExistedAt(const ReadState& state, std::string_view tree_key, SequenceNumber at) const;

  // --- engine_background.cc
  void FlushLoop();
  void CompactionLoop();
  absl::Status FlushOldest();
  absl::Status FlushBuffer(const FullBuffer& full);
  // The next step towards the tree's shape; false: it is in shape, or only a merge could go on.
  absl::StatusOr<bool> CompactStep(bool may_merge);
  absl::Status RunPlan(const Version& version, const CompactionPlan& plan, const CompactionContext& context);
  absl::Status CompactRange(std::string_view lower, std::string_view upper);
  CompactionContext NewContext();
  std::shared_ptr<const Version> PresentVersion() const;
  // Makes `levels` the live tree: manifest first, then every reader. `flushed` (may be null): a buffer whose records it holds now.
  absl::Status Install(std::vector<Level> levels, const FullBuffer* flushed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  // Generations that somebody can see, now or in a snapshot that is held.
  std::function<bool(NamespaceGeneration)> LiveGenerations(const SnapshotList::Held& held) const;
  // After Install() failed: removes what it would have installed, unless a restart could find it named.
  void DropUninstalled(const std::vector<std::shared_ptr<Segment>>& segments) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  void UpdatePressureLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(commit_mutex_);
  void ReclaimStates();
  uint64_t NewFileNumber() { return next_file_number_.fetch_add(1); }

  const std::string directory_;
  const EngineOptions options_;
  FileSystem* const file_system_;
  const std::shared_ptr<const CompactionPicker> picker_;
  std::unique_ptr<FileLock> directory_lock_;
  mutable FileRemover remover_;  // outlives the segments
  SegmentCaches caches_;
  std::unique_ptr<Log> log_;
  uint64_t durability_listener_ = 0;

  std::atomic<uint64_t> next_file_number_{1};
  std::atomic<NamespaceGeneration> next_generation_{1};
  uint64_t store_id_ = 0;

  absl::Mutex install_mutex_ ABSL_ACQUIRED_BEFORE(commit_mutex_);
  Manifest manifest_ ABSL_GUARDED_BY(install_mutex_);  // what is on disk

  mutable absl::Mutex commit_mutex_;
  SequenceNumber last_sequence_ ABSL_GUARDED_BY(commit_mutex_) = kNoSequence;
  std::shared_ptr<const ReadState> present_ ABSL_GUARDED_BY(commit_mutex_);  // what state_ publishes
  std::deque<FullBuffer> flush_queue_ ABSL_GUARDED_BY(commit_mutex_);        // oldest first
  std::atomic<int> full_buffers_{0};                                         // its size, for a look without the lock
  std::vector<RangeTombstone> buffered_tombstones_ ABSL_GUARDED_BY(commit_mutex_);
  std::vector<LeftGeneration> left_generations_ ABSL_GUARDED_BY(commit_mutex_);  // oldest first
  std::deque<CountEvent> count_events_ ABSL_GUARDED_BY(commit_mutex_);           // not yet counted, in order
  bool closed_ ABSL_GUARDED_BY(commit_mutex_) = false;
  std::atomic<SequenceNumber> visible_{kNoSequence};
  SequenceNumber flushed_ ABSL_GUARDED_BY(commit_mutex_) = kNoSequence;
  std::atomic<bool> log_failed_{false};
  std::atomic<uint64_t> log_bytes_at_flush_{0};  // live ones behind the last flush; see BoundLog()
  std::atomic<SequenceNumber> last_clear_{
      kNoSequence};  // of a namespace; merges wait until it is durable. kNoSequence: told them
  Published<ReadState> state_;
  mutable SnapshotList snapshots_;
  Throttle throttle_;
  static constexpr size_t kKeyStripes = 64;
  absl::Mutex key_stripes_[kKeyStripes];  // the last resort of Update against starving

  // The background threads' work, all with commit_mutex_.
  absl::CondVar flush_work_;
  absl::CondVar compaction_work_;
  absl::CondVar room_;  // a buffer was flushed, a request done, or the reason to wait is gone
  bool stopping_ ABSL_GUARDED_BY(commit_mutex_) = false;
  bool reclaim_due_ ABSL_GUARDED_BY(commit_mutex_) = false;
  bool compaction_due_ ABSL_GUARDED_BY(commit_mutex_) = false;
  std::deque<CompactRequest*> compact_requests_ ABSL_GUARDED_BY(commit_mutex_);
  absl::Status background_status_ ABSL_GUARDED_BY(commit_mutex_);  // why flushes fail at present
  std::atomic<bool> cancel_compaction_{false};
  std::thread flush_thread_;
  std::thread compaction_thread_;

  absl::Mutex count_mutex_;  // held while counting, across I/O
  KeyCount count_ ABSL_GUARDED_BY(count_mutex_);
  // End of the last buffer that went into segments uncounted: a count of before can't be brought forward.
  SequenceNumber uncounted_end_ ABSL_GUARDED_BY(count_mutex_) = kNoSequence;

  absl::Mutex async_mutex_;
  std::multimap<SequenceNumber, std::pair<CommitResult, std::function<void(absl::StatusOr<CommitResult>)>>>
      async_writes_ ABSL_GUARDED_BY(async_mutex_);

  struct Counters {
    std::atomic<uint64_t> flushes{0}, compactions{0}, failed_compactions{0}, flushed_bytes{0}, compacted_bytes{0},
        compaction_input_bytes{0};
    ShardedCounter gets, writes, conflicts;
  };
  mutable Counters counters_;
};

}  // namespace varve
