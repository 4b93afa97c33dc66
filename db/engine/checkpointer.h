// The checkpointer makes checkpoints of the store (varve/checkpoint.h).
//
//   1. The log begins a new file and the active write buffer rotates, in one step under the commit
//      lock. So the values that the flushed segments point to lie in files that the log has left,
//      and no file of the checkpoint grows any more.
//   2. The flusher writes the buffers to segments, and the install renames log files with values to
//      value files.
//   3. Under the lock of installs the checkpointer links the files that the manifest names, so that
//      none of them can be removed or replaced meanwhile. It copies the time file, which grows.
//   4. It writes a manifest without log, feeds and retained changes, and syncs the directory.
//
// A crash leaves a part of the directory; the store is as it was.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/commit/commit_pipeline.h"
#include "db/engine/version_set.h"
#include "varve/checkpoint.h"
#include "varve/store.h"

namespace varve {

class Checkpointer {
 public:
  using Write =
      std::function<absl::StatusOr<CommitResult>(const WriteOptions& options, WriteBatch* batch)>;

  // `parts` are those of the version set. `write` commits a batch and waits until it is as durable
  // as its mode promises.
  // Requires: all of them outlive the checkpointer.
  Checkpointer(VersionSetParts parts, VersionSet* version_set, CommitPipeline* pipeline,
               Write write)
      : parts_(std::move(parts)),
        version_set_(*version_set),
        pipeline_(*pipeline),
        write_(std::move(write)) {}

  // Does what CheckpointedStore::CreateCheckpoint() does.
  absl::StatusOr<Checkpoint> Create(const std::string& directory) const;
  const std::string& StoreDirectory() const { return parts_.directory; }

 private:
  absl::Status CheckEmpty(const std::string& directory) const;
  // Steps 1 and 2.
  absl::Status LeaveLogAndFlush() const;
  // Steps 3 and 4. Aborted: a flush came in between that points into the log.
  absl::StatusOr<Checkpoint> Fill(const std::string& directory) const;
  absl::Status LinkFiles(const Manifest& manifest, const Version& version,
                         const std::string& directory, Checkpoint* made) const;
  absl::Status CopyTimes(const TimeFilePlace& place, const std::string& directory,
                         Checkpoint* made) const;
  absl::Status WriteOwnManifest(Manifest manifest, const std::string& directory,
                                Checkpoint* made) const;
  void RemoveAll(const std::string& directory) const;

  const VersionSetParts parts_;
  VersionSet& version_set_;
  CommitPipeline& pipeline_;
  const Write write_;
};

}  // namespace varve
