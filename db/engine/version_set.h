// The version set is the one truth about what the store consists of: the manifest, the numbers of
// files and generations, and the way from one tree to the next.
//
// A new tree is installed in the same way by every thread:
//
//   1. The counts follow to the new tree, and the manifest that describes it is written to disk.
//      If that fails, the tree stays, and the manifest on disk, old or new, is good for a restart:
//      everything that either names is still there.
//   2. The readers' super version is replaced under the commit lock.
//   3. Files that no manifest names any more are removed, or kept for readers that hold them; the
//      log forgets what segments hold now.
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
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "db/compaction/compaction.h"
#include "db/counting/key_counter.h"
#include "db/expiry/store_clock.h"
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

// The parts of the engine that the version set stands on. All outlive it.
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
};

// The outcome of a flush or a merge, to be installed.
struct TreeChange {
  std::vector<std::shared_ptr<Segment>> segments;  // that are new
  // Null, or the buffer whose records the segments hold.
  const FullBuffer* flushed = nullptr;
  // Keys that layers above replaced may be gone.
  bool sees_less = false;
};

class VersionSet {
 public:
  explicit VersionSet(VersionSetParts parts) : parts_(std::move(parts)) {}

  // --- Opening ---
  // Reads the manifest, or writes the first one of a new store.
  [[nodiscard]] absl::Status LoadOrCreate() ABSL_LOCKS_EXCLUDED(install_mutex_);
  // Removes what a crash left behind: segments and value files that no manifest names come from a
  // flush or merge that was cut short, spares from a process that was.
  [[nodiscard]] absl::Status RemoveOrphans() ABSL_LOCKS_EXCLUDED(install_mutex_);
  // Opens the segments and makes the first super version of them.
  [[nodiscard]] absl::Status OpenSegments() ABSL_LOCKS_EXCLUDED(install_mutex_);
  // Notes where the recovered log files end, so that this end is not taken for damage later.
  // Requires: no new log file was begun.
  [[nodiscard]] absl::Status NoteRecovery(const LogRecovery& recovery)
      ABSL_LOCKS_EXCLUDED(install_mutex_);
  // `installed` is called with the commit lock held after each install.
  void OnInstalled(std::function<void(bool flushed)> installed) {
    installed_ = std::move(installed);
  }
  // Returns a copy.
  Manifest CurrentManifest() const ABSL_LOCKS_EXCLUDED(install_mutex_);

  // --- Numbers ---
  uint64_t NewFileNumber() { return next_file_number_.fetch_add(1); }
  // Numbers up to `used` are not given again.
  void SkipFileNumbers(uint64_t used);
  // Returns kNoGeneration if none is left.
  NamespaceGeneration NewGeneration();
  void SkipGenerations(NamespaceGeneration used);

  // --- Installing ---
  // Returns what a flush or a merge needs. `cancel` may be null; `hurries` tells whether the merge
  // is waited for by now.
  CompactionContext NewJob(const std::atomic<bool>* cancel, std::function<bool()> hurries);
  // Makes the levels that `apply` makes of the present tree the live tree. `follow` brings the
  // ledger of the present tree to the new one. After an error nothing has changed, and the new
  // segments are removed unless a restart could find them named. Never throws.
  [[nodiscard]] absl::Status LogAndApply(
      const TreeChange& change, absl::FunctionRef<std::vector<Level>(const Version& present)> apply,
      KeyCounter::Follower follow) ABSL_LOCKS_EXCLUDED(install_mutex_);
  // The size of the log behind the last flush.
  uint64_t log_bytes_at_flush() const { return log_bytes_at_flush_.load(); }
  // Writes the manifest of a clean end.
  // Requires: the log is closed and the background threads have stopped.
  [[nodiscard]] absl::Status WriteCleanEnd() ABSL_LOCKS_EXCLUDED(install_mutex_);

 private:
  absl::Status CreateManifest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  absl::StatusOr<std::vector<Level>> OpenLevels() ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  absl::Status Install(const TreeChange& change, std::vector<Level> levels,
                       KeyCounter::Follower follow) ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  // Returns the manifest of the new tree.
  Manifest NextManifest(const TreeChange& change, const Version& version,
                        KeyCounter::Follower follow) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  void CopyNumbersTo(Manifest* manifest) const;
  // Lets readers see what the manifest says.
  void Publish(const std::shared_ptr<const Version>& version, const Manifest& manifest,
               const TreeChange& change, KeyCounter::Follower follow)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  // Lets go of the files that the tree `before` held and `version` does not; `live` are the numbers
  // of its segments. `flushed`: segments hold more of the log now.
  void RemoveUnused(const Version& before, const Version& version,
                    const std::unordered_set<uint64_t>& live, bool flushed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  // The log forgets the files of which segments hold everything; those with separated values stay.
  void RetireLog(SequenceNumber flushed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  // Removes the segments that an install would have made live, unless a restart could find them
  // named: the failure may have come after the rename. On a full disk, retries must not fill it
  // with what they leave behind.
  void DropUninstalled(const std::vector<std::shared_ptr<Segment>>& segments) const noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);
  void DropUnnamed(const std::vector<std::shared_ptr<Segment>>& segments,
                   const Manifest& on_disk) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(install_mutex_);

  const VersionSetParts parts_;
  std::function<void(bool flushed)> installed_;
  std::atomic<uint64_t> next_file_number_{1};
  std::atomic<NamespaceGeneration> next_generation_{1};
  std::atomic<uint64_t> log_bytes_at_flush_{0};
  mutable absl::Mutex install_mutex_;
  // The manifest that is on disk, or the one before it if that could not be published.
  Manifest manifest_ ABSL_GUARDED_BY(install_mutex_);
};

}  // namespace varve
