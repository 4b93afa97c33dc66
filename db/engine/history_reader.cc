#include "db/engine/history_reader.h"

#include <algorithm>
#include <utility>

#include "db/difference/difference_walk.h"
#include "fmt/format.h"
#include "util/base/status.h"
#include "varve/history_status.h"
#include "varve/namespace_status.h"

namespace varve {

absl::Status HistoryReader::CheckTimes() const {
  return version_set_.times().started() ? absl::OkStatus() : NoPlaceForHistory();
}

SequenceNumber HistoryReader::Newest() const {
  return log_.failed() ? log_->durable_sequence() : versions_.visible();
}

absl::StatusOr<SequenceNumber> HistoryReader::VersionAt(uint64_t instant_ms) const {
  VARVE_RETURN_IF_ERROR(CheckTimes());
  const std::optional<SequenceNumber> version =
      version_set_.times().VersionAt(instant_ms, versions_.visible());
  if (version) return *version;
  return absl::NotFoundError("the store does not know which version was the newest one then");
}

absl::StatusOr<uint64_t> HistoryReader::InstantOf(SequenceNumber version) const {
  VARVE_RETURN_IF_ERROR(CheckTimes());
  if (version > versions_.visible()) return VersionIsAhead(version, versions_.visible());
  if (const std::optional<uint64_t> instant = version_set_.times().InstantOf(version))
    return *instant;
  return absl::NotFoundError("the store does not know when that version was written");
}

absl::StatusOr<SequenceNumber> HistoryReader::FirstVersion(NamespaceId space) const {
  VARVE_RETURN_IF_ERROR(CheckTimes());
  return std::min(FirstKept(space), Newest());
}

SequenceNumber HistoryReader::FirstKept(NamespaceId space) const {
  const SequenceNumber horizon = version_set_.horizons().Of(space);
  if (horizon == kMaxSequence) return kMaxSequence;
  // Without its instant nobody can say which keys of a version had expired.
  return std::max(horizon, version_set_.times().FirstVersion().value_or(kMaxSequence));
}

absl::StatusOr<std::shared_ptr<const Snapshot>> HistoryReader::SnapshotAt(
    NamespaceId space, SequenceNumber version, std::optional<uint64_t> instant_ms) const {
  const SequenceNumber newest = Newest();
  if (version > newest) return VersionIsAhead(version, newest);
  if (!instant_ms) instant_ms = version_set_.times().InstantOf(version);
  if (!instant_ms) instant_ms = clock_.NowMillis();
  NamespaceTable there;  // the namespace alone: the horizons of others may be higher
  {
    absl::MutexLock lock(&versions_.mutex());
    versions_.show_queue().DrainLocked();
    const std::optional<NamespaceGeneration> generation =
        versions_.NamespacesAtLocked(version).Generation(space);
    if (generation) there.Set(space, *generation);
  }
  std::shared_ptr<const Snapshot> snapshot =
      versions_.TakeSnapshotAt(version, std::move(there), *instant_ms);
  // From here on no merge that begins removes what the snapshot sees. One that began before counts
  // with a horizon that shows here.
  if (version < FirstKept(space)) {
    // Where nothing is kept, what nobody has replaced yet can be read.
    const SequenceNumber first = std::min(FirstKept(space), Newest());
    if (version != first) return Trimmed(first);
  }
  if (!snapshot->HasNamespace(space)) return NoSuchNamespace(space);
  return snapshot;
}

absl::StatusOr<std::shared_ptr<const Snapshot>> HistoryReader::CompleteClone(
    NamespaceChange* change) const {
  VARVE_RETURN_IF_ERROR(CheckTimes());
  ClonedPast& past = *change->past;
  past.expired_by_ms = clock_.NowMillis();
  VARVE_ASSIGN_OR_RETURN(std::shared_ptr<const Snapshot> snapshot,
                         SnapshotAt(change->other, past.version, past.expired_by_ms));
  past.parent = *TreeSnapshot::Of(*snapshot).Generation(change->other);
  // The snapshot, or the horizon above which it is, keeps the parent and its forks.
  past.ancestry = versions_.Acquire()->namespaces.forks().AncestryOf({past.parent}).all();
  return snapshot;
}

absl::StatusOr<std::unique_ptr<DifferenceIterator>> HistoryReader::Compare(
    Reader* reader, const ComparedState& a, const ComparedState& b, std::string_view lower,
    std::string_view upper) const {
  const auto new_iterator = [reader](const ReadOptions& options, std::string_view begin,
                                     std::string_view end) {
    return reader->NewIterator(options, begin, end, /*durable_after=*/nullptr);
  };
  return NewDifferenceWalk({.versions = &versions_, .log = &log_, .new_iterator = new_iterator}, a,
                           b, lower, upper);
}

std::vector<DroppedNamespace> HistoryReader::DroppedNamespaces() const {
  std::vector<RetiredGeneration> retired;
  {
    absl::MutexLock lock(&versions_.mutex());
    retired = versions_.RetiredGenerationsLocked();
  }
  std::vector<DroppedNamespace> dropped;
  for (const RetiredGeneration& each : retired) {
    if (each.dropped != nullptr) dropped.push_back({*each.dropped, each.retired_at});
  }
  return dropped;
}

}  // namespace varve
