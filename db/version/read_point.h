// A read point is what a read sees: a super version, and a sequence up to which that super version
// is complete.
//
// Thread-safety: a read point belongs to the thread that began the read. It pins the super version
// for the short time of the read; a user who needs it longer copies shared_from_this().
#pragma once

#include "absl/status/statusor.h"
#include "db/version/log_view.h"
#include "db/version/super_versions.h"
#include "varve/options.h"

namespace varve {

struct ReadPoint {
  SuperVersions::Pin state;
  SequenceNumber sequence;
  NamespaceGeneration generation;  // of ReadOptions::space
};

// Begins a read. It acquires the super version first, then reads the sequence, then checks that the
// super version is still the present one. So the super version holds every write up to the
// sequence, and no merge has dropped a version that the sequence needs. Once the log has failed,
// the sequence is the durable one. Returns NoSuchNamespace, or ResourceExhausted for a snapshot
// that was not taken.
// Requires: the log has been started.
[[nodiscard]] absl::StatusOr<ReadPoint> BeginRead(const SuperVersions& versions, const LogView& log,
                                                  const ReadOptions& options);

}  // namespace varve
