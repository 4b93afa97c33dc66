// A read point is what a read sees: a super version, and a sequence for which that super version is
// complete.
//
// Thread-safety: a read point belongs to the thread that began the read, and holds the super
// version in place for the short time of the read; longer users copy shared_from_this().
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

// Begins a read. The order is: the super version first, then the sequence, then a look whether the
// super version still was the present one. So every write up to the sequence is in it, and nothing
// that the sequence needs has been merged away. Once the log has failed, only what is durable is
// read. Fails with NoSuchNamespace, or ResourceExhausted for a snapshot that was not taken.
// Requires: the log has been started.
[[nodiscard]] absl::StatusOr<ReadPoint> BeginRead(const SuperVersions& versions, const LogView& log,
                                                  const ReadOptions& options);

}  // namespace varve
