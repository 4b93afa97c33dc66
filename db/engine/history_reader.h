// The history reader gives readers the store as it was at a version, and tells when versions were
// written.
//
// Thread-safety: all functions may be called on any thread. SnapshotAt() takes the commit lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/engine/reader.h"
#include "db/engine/version_set.h"
#include "db/expiry/store_clock.h"
#include "db/format/namespace_change.h"
#include "db/version/log_view.h"
#include "db/version/super_versions.h"
#include "varve/difference.h"
#include "varve/namespace.h"
#include "varve/snapshot.h"
#include "varve/types.h"

namespace varve {

class HistoryReader {
 public:
  // Requires: all of them outlive the reader.
  HistoryReader(SuperVersions* versions, const VersionSet* version_set, const LogView* log,
                const StoreClock* clock)
      : versions_(*versions), version_set_(*version_set), log_(*log), clock_(*clock) {}

  // These do what the functions of StoreHistory do that have their names.
  absl::StatusOr<SequenceNumber> VersionAt(uint64_t instant_ms) const;
  absl::StatusOr<uint64_t> InstantOf(SequenceNumber version) const;
  absl::StatusOr<SequenceNumber> FirstVersion(NamespaceId space) const;
  absl::StatusOr<std::shared_ptr<const Snapshot>> SnapshotAt(
      NamespaceId space, SequenceNumber version, std::optional<uint64_t> instant_ms) const;
  std::vector<DroppedNamespace> DroppedNamespaces() const;
  // As StoreHistory::NewDifferenceIterator. Requires: `reader` outlives the iterator.
  absl::StatusOr<std::unique_ptr<DifferenceIterator>> Compare(Reader* reader,
                                                              const ComparedState& a,
                                                              const ComparedState& b,
                                                              std::string_view lower,
                                                              std::string_view upper) const;

  // Completes the change of a batch that clones a namespace as it was at an older version. The
  // caller holds the snapshot until the batch is committed or refused: from then on the clone
  // itself keeps what it sees. Returns what SnapshotAt() returns.
  // Requires: `change->past` has the version; nobody removes what has expired meanwhile.
  absl::StatusOr<std::shared_ptr<const Snapshot>> CompleteClone(NamespaceChange* change) const;

  // Returns FailedPrecondition if the store keeps no times.
  absl::Status CheckTimes() const;
  // Returns the oldest version that is kept and whose instant is known; kMaxSequence if none is.
  SequenceNumber FirstKept(NamespaceId space) const;

 private:
  // Returns the newest version that readers may see.
  SequenceNumber Newest() const;

  SuperVersions& versions_;
  const VersionSet& version_set_;
  const LogView& log_;
  const StoreClock& clock_;
};

}  // namespace varve
