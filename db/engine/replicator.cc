#include "db/engine/replicator.h"

#include <algorithm>
#include <optional>
#include <string>

#include "db/changes/replica_reader.h"
#include "db/changes/replicated_blocks.h"
#include "db/format/batch_codec.h"
#include "db/format/namespace_change.h"
#include "fmt/format.h"
#include "util/base/status.h"
#include "varve/history_status.h"

namespace varve {
namespace {

using Kind = ChangeOperation::Kind;

// The most clock marks of a batch.
constexpr SequenceNumber kMostMarks = 1024;

absl::Status NotRepeated(SequenceNumber version, std::string_view what) {
  return absl::FailedPreconditionError(fmt::format(
      "version {} of the primary {}, which changes alone can't repeat: a new copy is needed",
      version, what));
}

// A batch of the primary on its way into this store.
class Replay {
 public:
  Replay(const ReplicatorParts& parts, const ChangeBlock& block)
      : parts_(parts), block_(block), position_(parts.versions->visible()) {}

  absl::Status Run() {
    if (block_.after > position_ || block_.last <= position_) {
      return absl::OutOfRangeError(
          fmt::format("the primary sent the versions {} to {}, and this store has come to {}",
                      block_.after + 1, block_.last, position_));
    }
    for (size_t at = 0; at < block_.commits.size();) {
      ChangeCommit commit;
      if (!ReadCommit(block_, &at, &commit))
        return absl::DataLossError(fmt::format("{} make no sense", kFromPrimary));
      if (commit.last > position_) VARVE_RETURN_IF_ERROR(Apply(commit));
    }
    return MarkUpTo(block_.last, block_.last_ms);
  }

 private:
  // Fills the versions up to `version` with clock marks.
  absl::Status MarkUpTo(SequenceNumber version, uint64_t instant_ms) {
    while (position_ < version) {
      const SequenceNumber marks = std::min(version - position_, kMostMarks);
      for (SequenceNumber i = 0; i < marks; ++i) batch_.MarkClock(instant_ms);
      VARVE_RETURN_IF_ERROR(Commit(instant_ms));
    }
    return absl::OkStatus();
  }

  absl::Status Apply(const ChangeCommit& commit) {
    bool is_first = true;
    for (size_t at = 0; at < commit.operations.size();) {
      ChangeRecord record;
      if (!ReadChangeRecord(commit, &at, &record))
        return absl::DataLossError(fmt::format("{} make no sense", kFromPrimary));
      if (record.kind == Kind::kIngest)
        return NotRepeated(commit.last, "added a file of sorted keys (INGEST)");
      // Marks in front of the first operation that was sent may stand in a batch of their own:
      // nobody reads them.
      if (std::exchange(is_first, false))
        VARVE_RETURN_IF_ERROR(MarkUpTo(record.version - 1, commit.instant_ms));
      while (position_ + batch_.size() + 1 < record.version) batch_.MarkClock(commit.instant_ms);
      VARVE_RETURN_IF_ERROR(Add(record));
    }
    while (position_ + batch_.size() < commit.last) batch_.MarkClock(commit.instant_ms);
    return Commit(commit.instant_ms);
  }

  absl::Status Add(const ChangeRecord& record) {
    const NamespaceId space = block_.dictionary[record.space].first;
    switch (record.kind) {
      case Kind::kSet:
        return Put(record, space, WriteCause::kWrite);
      case Kind::kExpire:
        return Put(record, space, WriteCause::kExpiryChange);
      case Kind::kMeta:
        return Put(record, space, WriteCause::kMetadataChange);
      case Kind::kDelete:
        batch_.Delete(record.key, space);
        return absl::OkStatus();
      case Kind::kExpired:
        batch_.Delete(record.key, space, WriteCause::kExpired);
        return absl::OkStatus();
      case Kind::kEvicted:
        batch_.Delete(record.key, space, WriteCause::kEvicted);
        return absl::OkStatus();
      case Kind::kDeleteRange:
        batch_.DeleteRange(record.key, record.value, space);
        return absl::OkStatus();
      default:
        return AddOwn(record);
    }
  }

  absl::Status Put(const ChangeRecord& record, NamespaceId space, WriteCause cause) {
    batch_.Put(record.key, record.value,
               {.expiry_ms = record.expiry_ms, .metadata = record.metadata, .cause = cause}, space);
    return absl::OkStatus();
  }

  // Adds an operation that came as the primary's log has it.
  absl::Status AddOwn(const ChangeRecord& record) {
    RecordView own;
    BatchReader reader(record.metadata);
    if (!reader.Next(&own)) return NotRepeated(record.version, "changed a namespace unseen");
    if (own.kind == RecordKind::kSwitchGeneration) {
      generations_.push_back(GenerationOf(own.value));
      batch_.ClearNamespace(GenerationOf(own.key));
      return absl::OkStatus();
    }
    if (own.kind == RecordKind::kChangeFeed) {
      batch_.ChangeFeed(own.key.substr(kGenerationSize), own.value);
      return absl::OkStatus();
    }
    own.sequence = record.version;
    std::optional<NamespaceChange> change = DecodeNamespaceChange(own);
    if (!change) return absl::DataLossError(fmt::format("{} make no sense", kFromPrimary));
    using Verb = NamespaceChange::Verb;
    if (change->verb == Verb::kCreate || change->verb == Verb::kClone)
      generations_.push_back(change->generation);
    if (change->verb == Verb::kClone) clone_ = change;
    batch_.ChangeNamespace(*change);
    return absl::OkStatus();
  }

  absl::Status Commit(uint64_t instant_ms) {
    const SequenceNumber last = position_ + batch_.size();
    for (const NamespaceGeneration generation : generations_)
      parts_.version_set->SkipGenerations(generation);
    const auto commit = [&]() -> absl::Status {
      return parts_.pipeline
          ->SubmitReplicated(
              {.batch = &batch_, .instant_ms = instant_ms, .generations = generations_})
          .status();
    };
    absl::Status committed =
        clone_ ? parts_.commit_clone(clone_->other,
                                     clone_->past ? clone_->past->version : kNoSequence, commit)
               : commit();
    batch_.Clear();
    generations_.clear();
    clone_.reset();
    VARVE_RETURN_IF_ERROR(committed);
    position_ = last;
    return absl::OkStatus();
  }

  const ReplicatorParts& parts_;
  const ChangeBlock& block_;
  SequenceNumber position_;
  WriteBatch batch_;
  std::vector<NamespaceGeneration> generations_;
  std::optional<NamespaceChange> clone_;
};

}  // namespace

StoreIdentity Replicator::Identity() const {
  const VersionSet::Ids ids = parts_.version_set->ids();
  const ChangeRecorder& changes = parts_.version_set->changes();
  return {.store_id = ids.store,
          .history_id = ids.history,
          .newest = parts_.versions->visible(),
          .durable = (*parts_.log)->durable_sequence(),
          .first_retained = changes.on() ? changes.first() : kMaxSequence};
}

absl::Status Replicator::RetainForFollowers(uint64_t bytes) const {
  ChangeRecorder& changes = parts_.version_set->changes();
  if (!parts_.version_set->times().started()) return NoPlaceForHistory();
  absl::MutexLock lock(&changes.feeds_mutex());
  changes.space().SetFollowerBytes(bytes);
  if (bytes != 0) return changes.on() ? absl::OkStatus() : parts_.version_set->SetRetaining(true);
  if (!changes.on() || changes.space().limits().on() || !changes.feeds().All()->empty())
    return absl::OkStatus();
  return parts_.version_set->SetRetaining(false);
}

absl::StatusOr<std::unique_ptr<ReplicaFeed>> Replicator::NewReplicaFeed(
    SequenceNumber since) const {
  ChangeRecorder& changes = parts_.version_set->changes();
  if (!changes.on())
    return absl::FailedPreconditionError("this store retains no changes for followers");
  if (const SequenceNumber newest = parts_.versions->visible(); since > newest)
    return VersionIsAhead(since, newest);
  if (const SequenceNumber first = changes.first(); since < first) return Trimmed(first);
  return std::make_unique<ReplicaReader>(
      &changes, [log = parts_.log] { return (*log)->durable_sequence(); }, since);
}

void Replicator::SetFollowing(bool follows) const {
  {
    // No write is under way that found it otherwise.
    absl::MutexLock lock(&parts_.versions->mutex());
    parts_.log->SetFollows(follows);
  }
  parts_.sweeper->PauseUntil(follows ? SteadyTime::max() : SteadyTime::min());
}

absl::Status Replicator::ApplyReplicated(std::string_view blocks) const {
  return ForEachBlock(blocks,
                      [&](const ChangeBlock& block) { return Replay(parts_, block).Run(); });
}

absl::Status Replicator::SetHistoryId(uint64_t history_id) const {
  if (!parts_.version_set->times().started()) return NoPlaceForHistory();
  return parts_.version_set->InstallAgain(history_id);
}

}  // namespace varve
