// The replicator makes a store a primary that followers read from, or a follower itself
// (varve/replication.h).
//
// A follower commits one batch for each commit of its primary. Versions that the primary gave to
// operations which nobody else needs, such as clock marks, are clock marks here, too, so that the
// log of a follower has no gap.
//
// Thread-safety: as ReplicatedStore.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/changes/change_block.h"
#include "db/commit/commit_pipeline.h"
#include "db/engine/version_set.h"
#include "db/expiry/expiry_sweeper.h"
#include "db/version/log_view.h"
#include "db/version/super_versions.h"
#include "varve/replication.h"
#include "varve/write_batch.h"

namespace varve {

// The parts of the engine that replication needs. All outlive the replicator.
struct ReplicatorParts {
  SuperVersions* versions = nullptr;
  VersionSet* version_set = nullptr;
  LogView* log = nullptr;
  CommitPipeline* pipeline = nullptr;
  ExpirySweeper* sweeper = nullptr;
  // Commits a batch with a clone of a namespace by calling `commit`, while nobody sweeps. `past` is
  // the older version that it clones; kNoSequence: the present.
  std::function<absl::Status(NamespaceId source, SequenceNumber past,
                             const std::function<absl::Status()>& commit)>
      commit_clone;
};

class Replicator {
 public:
  explicit Replicator(ReplicatorParts parts) : parts_(std::move(parts)) {}

  // These do what the functions of ReplicatedStore do that have their names.
  StoreIdentity Identity() const;
  absl::Status RetainForFollowers(uint64_t bytes) const;
  absl::StatusOr<std::unique_ptr<ReplicaFeed>> NewReplicaFeed(SequenceNumber since) const;
  void BoundDurable(SequenceNumber version) const { parts_.log->SetBound(version); }
  void SetFollowing(bool follows) const;
  absl::Status ApplyReplicated(std::string_view blocks) const;
  absl::Status SetHistoryId(uint64_t history_id) const;

 private:
  const ReplicatorParts parts_;
};

}  // namespace varve
