// The engine puts the parts of an embedded store together and hands each call to the part that
// answers it. memory_guarded_engine.h is its outer boundary, where a lack of memory becomes a
// status. The functions of the engine and of its parts may throw std::bad_alloc and then leave
// everything as it was.
//
//   SuperVersions    what readers see, flush queue, commit lock   db/version/super_versions.h
//   Reader           lookups, scans, counts                       reader.h
//   CommitPipeline   how a batch gets into the store              db/commit/commit_pipeline.h
//   Quotas           how many keys and bytes a namespace may hold db/commit/quotas.h
//   VersionSet       the manifest, and installing a new tree      version_set.h
//   Flusher          the thread that writes buffers to segments   flusher.h
//   Compactor        the thread that merges segments              compactor.h
//   Purger           how a key is removed from all files          purger.h
//   Ingester         commits bulk ingests                         ingester.h
//   Checkpointer     makes copies of the store by hard links      checkpointer.h
//   Replicator       reads for followers, and follows             replicator.h
//   ExpirySweeper    the thread that removes what has expired     db/expiry/expiry_sweeper.h
//   ClockWatermark   the clock that readers have seen             db/expiry/clock_watermark.h
//   TimeMap          when versions were committed                 db/history/time_map.h
//   KeyCounter       the number of keys                           db/counting/key_counter.h
//   DataBound        how many bytes all namespaces hold at most   db/commit/data_bound.h
//
// Thread-safety: all public functions may be called on any thread.
//
// The locks, in the order in which one thread may acquire them:
//   0. Compactor::purging()         a purge; held across I/O and a whole commit
//      ChangeRecorder::feeds_mutex()  a change of a feed; held across I/O and a whole commit
//   1. OptimisticUpdate::stripes_   updates that lost too often; held across a whole commit
//   2. Quotas::quota_mutex_         writes into namespaces with a quota; held across I/O
//      DataBound::count_mutex_      a count of the bytes of all namespaces; held across I/O
//   3. ExpirySweeper::sweep_mutex_  a sweep, or the cloning of a namespace; held across I/O. The
//                                   expiry listener is called under it.
//   4. KeyCounter::count_mutex_     a count of keys; held across I/O
//   5. VersionSet::install_mutex_   an install of a new tree; held across I/O. The threads that
//                                   install hold none of the locks above.
//      ChangeRecorder::work_mutex_  the writing of changes to files; held across I/O, by an install
//                                   or by a reader that catches up
//      ChangeThread::listeners_mutex_  held, without any of the above, while listeners are told
//                                   of changes
//   6. the log's listeners' lock    (db/log/log.h) held while the engine is told of the log's
//                                   progress
//   7. SuperVersions::mutex()       the commit lock: the short critical section of a write, and
//                                   each replacement of the super version
//   8. Compactor::mutex_            the work that waits for the compactor
//   9. the log's other locks        (db/log/log.h)
//  10. locks of leaves, under which no other is acquired: Published::mutex_, SnapshotList::mutex_,
//      AsyncWrites::mutex_, ChangeRecorder::head_mutex_, the write buffers', caches', value files'
//      and the file thread's
// Readers acquire only locks of leaves, and only a cold read acquires those of the caches.
// ABSL_ACQUIRED_BEFORE repeats the order where one class can name both locks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "db/commit/batch_applier.h"
#include "db/commit/commit_pipeline.h"
#include "db/commit/data_bound.h"
#include "db/commit/quotas.h"
#include "db/compaction/value_collection.h"
#include "db/counting/buffer_estimates.h"
#include "db/counting/key_counter.h"
#include "db/counting/key_map.h"
#include "db/engine/async_writes.h"
#include "db/engine/change_feed.h"
#include "db/engine/checkpointer.h"
#include "db/engine/compactor.h"
#include "db/engine/flusher.h"
#include "db/engine/history_reader.h"
#include "db/engine/ingester.h"
#include "db/engine/key_history_reader.h"
#include "db/engine/optimistic_update.h"
#include "db/engine/reader.h"
#include "db/engine/replicator.h"
#include "db/engine/version_set.h"
#include "db/expiry/clock_watermark.h"
#include "db/expiry/expiry_sweeper.h"
#include "db/expiry/store_clock.h"
#include "db/history/time_map.h"
#include "db/log/log_recovery.h"
#include "db/segment/segment_caches.h"
#include "db/version/log_view.h"
#include "db/version/super_versions.h"
#include "structure/job_threads.h"
#include "util/os/file_remover.h"
#include "util/os/file_system.h"
#include "util/os/file_thread.h"
#include "varve/checkpoint.h"
#include "varve/compaction_picker.h"
#include "varve/store.h"

namespace varve {

class Engine {
 public:
  // Opens the store in `directory`: reads the manifest and replays the log. It reads no segment, so
  // the time does not depend on the number of keys. `on_replay` may be null.
  static absl::StatusOr<std::unique_ptr<Engine>> Open(const std::string& directory,
                                                      const EngineOptions& options,
                                                      const ReplayListener& on_replay = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The functions of Store (include/varve/store.h) that need more than one part.
  absl::StatusOr<CommitResult> Write(const WriteOptions& options, WriteBatch* batch);
  // Never throws, unlike the others, since the engine's own threads and readers submit, too.
  absl::StatusOr<CommitResult> Submit(const WriteOptions& options, WriteBatch* batch) noexcept;
  void WriteAsync(const WriteOptions& options, WriteBatch* batch, AsyncWrites::Done done);
  absl::StatusOr<CommitResult> Update(const WriteOptions& options,
                                      absl::Span<const std::string_view> keys,
                                      absl::FunctionRef<absl::Status(WriteBatch*)> decide);
  absl::Status Compact(std::string_view lower, std::string_view upper, NamespaceId space);
  absl::StatusOr<PurgeResult> Purge(NamespaceId space, std::string_view key,
                                    const std::function<void()>& deleted);
  Checkpointer checkpointer();
  Replicator replicator();
  uint64_t ChangeCount() const {
    return versions_.visible() - watermark_.marks() - sweeper_.operations();
  }
  std::vector<std::pair<std::string, uint64_t>> Statistics() const;
  // Takes no lock that is held across I/O.
  StoreObservation Observe() const;
  RangeSize EstimateSize(NamespaceId space, std::string_view lower, std::string_view upper) const;
  // They take no lock that is held across I/O, and read nothing.
  TreeSurvey SurveyTree(size_t most_segments) const;
  KeyMap MapKeys(size_t most_groups);
  StorePositions Positions() const;
  absl::Status Close();

  // The parts that answer the other functions of Store.
  Reader& reader() { return reader_; }
  CommitPipeline& pipeline() { return pipeline_; }
  const LogView& log() const { return log_; }
  const StoreClock& clock() const { return clock_; }
  ChangeFeed changes();
  // Has listeners of the change feed told if there is more to deliver.
  void NoteDeliverable() {
    ChangeThread& thread = version_set_.changes().thread();
    if (thread.has_listeners()) thread.WakeFor(DeliverableVersion(versions_, log_));
  }
  HistoryReader history() { return {&versions_, &version_set_, &log_, &clock_}; }
  KeyHistoryReader key_history() { return {&versions_, &version_set_, &log_, &clock_}; }
  Ingester ingester() {
    return Ingester(
        {Parts(), &version_set_, &pipeline_, &data_bound_, &watches(), compactor_.ingest_files()});
  }
  ExpirySweeper& sweeper() { return sweeper_; }
  DataBound& data_bound() { return data_bound_; }
  RangeWatches& watches() { return flusher_.watches(); }

 private:
  using Figures = std::vector<std::pair<std::string, uint64_t>>;
  struct Estimators {
    BufferEstimates counts;
    KeyMapper keys;
  };

  Engine(std::string directory, const EngineOptions& options);
  VersionSetParts Parts();

  absl::Status Recover(const ReplayListener& on_replay);
  absl::Status ReplayLog(const ReplayListener& on_replay, LogRecovery* recovery);
  // Applies one batch of the log.
  absl::Status ApplyRecovered(std::string_view operations, SequenceNumber first, uint32_t count);
  absl::Status StartLog(const LogRecovery& recovery);
  void StartThreads();
  absl::StatusOr<CommitResult> SubmitUnguarded(const WriteOptions& options, WriteBatch* batch);
  // Submits a batch that clones a namespace. A clone and a step of the sweep of expired keys
  // exclude each other.
  absl::StatusOr<CommitResult> SubmitClone(const WriteOptions& options, WriteBatch* batch);
  // The log calls this when more of it has become durable, or when it has failed.
  void OnLogProgress();
  void AddTreeFigures(const SuperVersion& state, const ValueSpace& values, Figures* figures) const;
  void AddWorkFigures(Figures* figures) const;

  const std::string directory_;
  const EngineOptions options_;
  FileSystem* const file_system_;
  StoreClock clock_;
  std::unique_ptr<FileLock> directory_lock_;
  SegmentCaches caches_;
  struct Threads {
    FileThread files;
    JobThreads jobs;  // help the flusher and the compactor
  };
  Threads threads_;
  FileRemover remover_;  // outlives the segments; has caches forget what it removes
  LogView log_;
  SuperVersions versions_;
  KeyCounter counter_;
  ClockWatermark watermark_;
  ExpirySweeper sweeper_;
  VersionSet version_set_;
  BatchApplier applier_;
  CommitPipeline pipeline_;
  Quotas quotas_;
  DataBound data_bound_;
  Reader reader_;
  Flusher flusher_;
  Compactor compactor_;
  OptimisticUpdate updates_;
  AsyncWrites async_writes_;
  mutable Estimators estimators_;
  struct Recovered {
    SequenceNumber sequence = kNoSequence;  // the newest at the end of Open
    uint64_t log_bytes = 0;                 // of the operations that were replayed
  };
  Recovered recovered_;
};

}  // namespace varve
