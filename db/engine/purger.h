// The purger removes one key from the store's directory for good: all of its versions, in segments,
// value files and log files, and its name as far as the store has a choice.
//
// The steps, in this order:
//   1. It refuses if a clone holds the key, or if the key came from the namespace that this one is
//      a clone of.
//   2. It deletes the key durably. From here on the key is hidden, whatever happens.
//   3. It waits for the snapshots that were in use.
//   4. It has the log go on in a file that was made anew, and flushes: the log files that may hold
//      the key are removed and not recycled, or become value files.
//   5. It rewrites the change files that hold an operation on the key (db/changes/change_purge.h).
//   6. It has the compactor rewrite each segment that holds something of the key, the oldest first
//      (db/compaction/purge.h).
//   7. It searches the value files for the key, and has the compactor move the other values out of
//      those that hold it.
//   8. It waits until the old files are removed. Since step 6 none of them is kept to be written
//      over, and of those that were, nothing is left. What the store's own threads are at it awaits
//      however long that takes, since a loaded machine may keep them from the processors; only with
//      readers it has no more than some patience.
//
// What an ingest under way was given is no part of the store yet, and the purge leaves it alone:
// its commit is a write that comes after the purge.
//
// A purge that fails or is cut short by a crash after step 2 leaves the key deleted and part of its
// bytes on disk. Nothing goes on with it by itself: the caller asks again. Steps that were done
// cost little then.
//
// Thread-safety: all functions may be called on any thread. Compactor::purging() is held during a
// purge; it is acquired before the locks of the engine (engine.h).
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "db/commit/commit_pipeline.h"
#include "db/compaction/purge.h"
#include "db/engine/compactor.h"
#include "db/engine/version_set.h"
#include "varve/store.h"
#include "varve/types.h"

namespace varve {

class Purger {
 public:
  using Write =
      std::function<absl::StatusOr<CommitResult>(const WriteOptions& options, WriteBatch* batch)>;

  // The patience with readers that began before the purge: so much time, and so many looks. Where
  // this thread has to wait for a processor between two looks, readers have to wait as well.
  struct Patience {
    absl::Duration time = absl::Seconds(5);
    int looks = 500;
  };

  // `parts` are those of the version set. `write` commits a batch and waits until it is as durable
  // as its mode promises.
  // Requires: all of them outlive the purger.
  Purger(VersionSetParts parts, VersionSet* version_set, CommitPipeline* pipeline,
         Compactor* compactor, Write write)
      : parts_(std::move(parts)),
        version_set_(*version_set),
        pipeline_(*pipeline),
        compactor_(*compactor),
        write_(std::move(write)) {}
  void set_patience(const Patience& patience) { patience_ = patience; }

  // Does what StoreHistory::Purge() does.
  absl::StatusOr<PurgeResult> Purge(NamespaceId space, std::string_view key,
                                    const std::function<void()>& deleted);

 private:
  // Returns the key in all generations of the namespace, as of now, if no clone stands in the way.
  absl::StatusOr<PurgedKey> Resolve(NamespaceId space, std::string_view key) const;
  absl::Status CheckHolders(const SuperVersion& state, const PurgedKey& purged,
                            const std::vector<RetiredGeneration>& retired) const;
  // Returns whether there is any record of the key, also a tombstone.
  absl::StatusOr<bool> HasRecord(const PurgedKey& purged) const;
  // Deletes the key, durably. Returns whether it was there.
  absl::StatusOr<bool> Hide(NamespaceId space, std::string_view key);
  absl::Status AwaitSnapshots(SequenceNumber before) const;
  // Has the log go on in a new file, and flushes. Returns the number of that file: older ones are
  // no log files any more.
  absl::StatusOr<uint64_t> BeginLogAnew();
  absl::Status FlushOldLog(uint64_t fresh);
  // Adds an operation to the log that changes nothing.
  absl::Status MarkLog();
  // Takes the key out of what is retained of the namespace for readers of the change feed. Returns
  // how many operations have gone.
  absl::StatusOr<uint64_t> PurgeChanges(NamespaceId space, const PurgedKey& purged) const;
  // Moves the values of others out of the value files that hold the key. Returns the numbers of
  // these files.
  absl::StatusOr<std::vector<uint64_t>> EmptyValueFiles(std::string_view key);
  // Returns the names of files that no reader needs any more but those that began long ago, and of
  // log files before `fresh`. Leaves out what ingests and merges may be writing: the files of the
  // former, and segments and value files from the number `clean` on.
  absl::StatusOr<std::set<std::string>> StaleFiles(uint64_t fresh, uint64_t clean) const;
  // Waits until the buffers that wait for their flush now are flushed, or flushes fail.
  void AwaitFlushes() const;
  absl::Status AwaitRemoval(std::set<std::string> names) const;

  const VersionSetParts parts_;
  VersionSet& version_set_;
  CommitPipeline& pipeline_;
  Compactor& compactor_;
  const Write write_;
  Patience patience_;
};

}  // namespace varve
