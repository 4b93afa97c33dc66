// The version set owns the manifest and the next numbers of files and generations, and installs new
// trees. Every thread that flushes or merges installs its tree in the same way:
//
//   1. It brings the key counts to the new tree and writes the manifest of the new tree to disk. If
//      that fails, the old tree stays live. A restart may find either manifest; all files that
//      either of them names are still there.
//   2. It replaces the readers' super version under the commit lock.
//   3. It removes files that no manifest names any more, once no reader holds them, and has the log
//      forget what segments now hold.
//
// Thread-safety: all functions but those under "Opening" may be called on any thread.
// install_mutex_ is held across a whole install and its I/O; it is acquired before the commit lock.
// Readers and writers never take it.
// Invariants: the manifest's flushed sequence, file numbers and generations never decrease.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "db/changes/change_recorder.h"
#include "db/compaction/compaction.h"
#include "db/counting/key_counter.h"
#include "db/expiry/store_clock.h"
#include "db/history/horizons.h"
#include "db/history/time_map.h"
#include "db/log/log.h"
#include "db/log/log_recovery.h"
#include "db/segment/segment_caches.h"
#include "db/version/log_view.h"
#include "db/version/manifest.h"
#include "db/version/super_versions.h"
#include "util/os/file_remover.h"
#include "util/os/file_system.h"
#include "varve/options.h"

namespace varve {

class JobThreads;

// The parts of the engine that the version set depends on. All outlive it.
struct VersionSetParts {
  FileSystem* file_system = nullptr;
  std::string directory;
  const EngineOptions* options = nullptr;
  SuperVersions* versions = nullptr;
  LogView* log = nullptr;
  KeyCounter* counter = nullptr;
  StoreClock* clock = nullptr;
  SegmentCaches* caches = nullptr;
  FileRemover* remover = nullptr;
  JobThreads* jobs = nullptr;  // help flushes and merges; null: none do
};

// An ingested run is what an ingest adds to the history: the operations `first` to `last`, which
// its segments hold.
struct IngestedRun {
  SequenceNumber first = kNoSequence;
  SequenceNumber last = kNoSequence;
  std::string_view operations;  // encoded for the log
  // Appends the operations to the log. It is called with the commit lock held, when the manifest is
  // on disk; an error leaves the tree as it was.
  std::function<absl::Status()> append;
};

// The outcome of a flush, a merge or an ingest, which LogAndApply() installs.
struct TreeChange {
  std::vector<std::shared_ptr<Segment>> segments;  // the new ones
  // The buffer whose records the segments hold; null after a merge.
  const FullBuffer* flushed = nullptr;
  // The merge removed records that newer layers may have replaced, so what was counted of those
  // layers holds no longer.
  bool sees_less = false;
  // The bytes of keys and values that a flush wrote, by generation.
  std::vector<std::pair<NamespaceGeneration, uint64_t>> written;
  const IngestedRun* ingested = nullptr;  // null: it was no ingest
};

class VersionSet {
 public:
  explicit VersionSet(VersionSetParts parts);

  // --- Opening ---
  // Reads the manifest, or writes the first one of a new store.
  [[nodiscard]] absl::Status LoadOrCreate() ABSL_LOCKS_EXCLUDED(install_mutex_);
  // Removes the files that a crash left behind: segments and value files of an unfinished flush or
  // merge, which no manifest names, and log files that were not prepared to the end. Also removes
  // the files that an earlier version of Varve kept for reuse.
  [[nodiscard]] absl::Status RemoveOrphans() ABSL_LOCKS_EXCLUDED(install_mutex_);
  // Opens the segments and makes the first super version of them.
  [[nodiscard]] absl::Status OpenSegments() ABSL_LOCKS_EXCLUDED(install_mutex_);
  // Writes into the manifest where the recovered log files end, so that a later recovery does not
  // take that end for damage.
  // Requires: no new log file was begun.
  [[nodiscard]] absl::Status NoteRecovery(const LogRecovery& recovery)
      ABSL_LOCKS_EXCLUDED(install_mutex_);
  // Sets the function that is called after each install, with the commit lock held.
  void OnInstalled(std::function<void(bool flushed)> installed) {
    installed_ = std::move(installed);
  }
  // Returns the map of what the time file and the log hold; the commit pipeline adds to it.
  TimeMap& times() { return times_; }
  const TimeMap& times() const { return times_; }
  // Returns from which versions on the store keeps every version.
  Horizons& horizons() { return horizons_; }
  const Horizons& horizons() const { return horizons_; }
  // Returns the recorder of retained changes, and the feeds.
  ChangeRecorder& changes() { return changes_; }
  const ChangeRecorder& changes() const { return changes_; }
  // The log has been replayed up to `last`: nothing more comes from it.
  void NoteReplayed(SequenceNumber last) ABSL_LOCKS_EXCLUDED(install_mutex_);
  // Requires: OpenSegments() returned OK.
  struct Ids {
    uint64_t store = 0;
    uint64_t history = 0;
  };
  Ids ids() const { return {store_id_, history_id_.load(std::memory_order_relaxed)}; }
  // Returns whether new segments share keys (Manifest::shares_keys).
  bool shares_keys() const { return shares_keys_; }
  // Returns a copy.
  Manifest CurrentManifest() const ABSL_LOCKS_EXCLUDED(install_mutex_);

  // Calls `visit` with the manifest and the tree that it names. None of their files is removed or
  // replaced meanwhile, as installs wait.
  [[nodiscard]] absl::Status Visit(
      absl::FunctionRef<absl::Status(const Manifest& manifest, const Version& version)> visit) const
      ABSL_LOCKS_EXCLUDED(install_mutex_);

  // --- Numbers ---
  uint64_t NewFileNumber() { return next_file_number_.fetch_add(1); }
  // Makes NewFileNumber() return numbers above `used`. SkipGenerations() does the same for
  // generations.
  void SkipFileNumbers(uint64_t used);
  // Returns kNoGeneration if none is left.
  NamespaceGeneration NewGeneration();
  void SkipGenerations(NamespaceGeneration used);

  // --- Installing ---
  // Returns the context of a flush or a merge. `cancel` may be null. `is_urgent` tells the merge
  // whether writers or a request wait for it by now.
  CompactionContext NewJob(const std::atomic<bool>* cancel, std::function<bool()> is_urgent);
  // Makes the levels that `apply` returns for the present tree the live tree. `follow` brings the
  // segment counts of the present tree to the new one. After an error nothing has changed, and the
  // new segments are removed unless a manifest that a restart could find names them. Never throws.
  // The files of an ingest stay in any case, and the manifest on disk may name them after an error.
  // Requires: an ingest's first sequence is the next one, and nobody takes it meanwhile
  // (ExclusiveWrites::HoldMarks).
  [[nodiscard]] absl::Status LogAndApply(
      const TreeChange& change, absl::FunctionRef<std::vector<Level>(const Version& present)> apply,
      KeyCounter::Follower follow) ABSL_LOCKS_EXCLUDED(install_mutex_);
  // Raises the horizons, and the first version of retained changes, to what limits and time say, as
  // each install does; for a store to which nothing is written.
  [[nodiscard]] absl::Status TrimHistory() ABSL_LOCKS_EXCLUDED(install_mutex_);
  // Installs the present tree once more, for what else the manifest says: what is retained behind
  // an ingest, or nothing of an install that failed. `history_id`: the store's history has this id
  // from now on.
  [[nodiscard]] absl::Status InstallAgain(std::optional<uint64_t> history_id = std::nullopt)
      ABSL_LOCKS_EXCLUDED(install_mutex_);
  // Retains changes from now on, for a feed, or not any more. On disk on return.
  // Requires: ChangeRecorder::feeds_mutex() is held.
  [[nodiscard]] absl::Status SetRetaining(bool retains) ABSL_LOCKS_EXCLUDED(install_mutex_);
  // Returns how many bytes the log had taken in at the last flush.
  uint64_t log_bytes_at_flush() const { return log_bytes_at_flush_.load(); }
  // Writes the manifest of a clean end.
  // Requires: the log is closed and the background threads have stopped.
  [[nodiscard]] absl::Status WriteCleanEnd() ABSL_LOCKS_EXCLUDED(install_mutex_);

 private:
  absl::Status CreateManifest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  absl::StatusOr<std::vector<Level>> OpenLevels() ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  absl::Status Install(const TreeChange& change, std::vector<Level> levels,
                       KeyCounter::Follower follow) ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  // Puts the marks of the batches up to `flushed` into the time file and names it in `next`. Begins
  // a new file where most marks of the old one were thinned out.
  absl::Status KeepTimes(SequenceNumber flushed, Manifest* next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  // Puts retained changes on disk and names them in `next` if something is to do. Returns whether
  // it did.
  bool KeepChanges(const TreeChange& change, bool is_recovery, Manifest* next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  absl::Status LoadTimes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  // Returns the manifest of the new tree.
  Manifest NextManifest(const TreeChange& change, const Version& version,
                        KeyCounter::Follower follow) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  void CopyNumbersTo(Manifest* manifest) const;
  // Raises the horizons of `next`, which `before` are the horizons of, to what limits and time say,
  // and has `next` remember the generations that they keep. `version` is the tree of `next`.
  void RaiseHorizonsOf(const std::vector<Horizon>& before, const TreeChange& change,
                       const Version& version, Manifest* next) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  // Replaces the super version by that of the new tree. Fails for ingests alone.
  absl::Status Publish(const std::shared_ptr<const Version>& version, const Manifest& manifest,
                       const TreeChange& change, KeyCounter::Follower follow)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  // Has the files removed that the tree `before` held and `version` does not; `live` are the
  // numbers of the segments of `version`. `flushed` says that segments hold more of the log now.
  void RemoveUnused(const Version& before, const Version& version,
                    const std::unordered_set<uint64_t>& live, bool flushed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  // Removes the new segments of a failed install, unless the manifest on disk names them, because
  // the failure may have come after its rename. Otherwise retries would fill a full disk further.
  void DropUninstalled(const std::vector<std::shared_ptr<Segment>>& segments) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  // Removes those of in_doubt_ that neither the present manifest nor the one on disk names.
  void DropUnnamed(const Manifest& on_disk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);

  const VersionSetParts parts_;
  std::function<void(bool flushed)> installed_;
  std::atomic<uint64_t> next_file_number_{1};
  std::atomic<NamespaceGeneration> next_generation_{1};
  bool shares_keys_ = false;  // does not change once the store is open
  std::atomic<uint64_t> log_bytes_at_flush_{0};
  uint64_t store_id_ = 0;                // does not change once the store is open
  std::atomic<uint64_t> history_id_{0};  // that the next manifest has
  TimeMap times_;
  Horizons horizons_;
  ChangeRecorder changes_;
  mutable absl::Mutex install_mutex_;
  size_t marks_in_time_file_ ABSL_GUARDED_BY(install_mutex_) = 0;  // thinned-out ones among them
  // A write or a sync of the time file failed: what was written behind its end is never trusted.
  bool time_file_failed_ ABSL_GUARDED_BY(install_mutex_) = false;
  // Segments that could not be installed and that the manifest on disk may name all the same: the
  // next manifest decides.
  std::vector<std::shared_ptr<Segment>> in_doubt_ ABSL_GUARDED_BY(install_mutex_);
  // The manifest that is on disk, or the one before it if that could not be published.
  Manifest manifest_ ABSL_GUARDED_BY(install_mutex_);
};

}  // namespace varve
