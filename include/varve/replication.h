// Replication of a store by log shipping: a follower commits every batch of its primary with the
// same versions, so that whatever holds for a version holds in both stores.
//
//   primary                                         follower
//   auto feed = replicated->NewReplicaFeed(since);  replicated->SetFollowing(true);
//   auto blocks = feed->Next(1 << 20);       -->    replicated->ApplyReplicated(blocks);
//
// A follower begins as a copy of a checkpoint of the primary (varve/checkpoint.h) and goes on from
// its own newest version for as long as the primary retains the changes behind that.
//
// The primary sends only what is on its disk, so no crash of the primary leaves a follower ahead of
// it.
//
// Thread-safety: one thread at a time uses a feed, and one at a time calls ApplyReplicated(); all
// other functions may be called on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "varve/types.h"

namespace varve {

class Store;

// Tells which store it is, and how far it has come.
struct StoreIdentity {
  uint64_t store_id = 0;
  uint64_t history_id = 0;                       // 0: the store's format has none
  SequenceNumber newest = kNoSequence;           // the last version that was committed
  SequenceNumber durable = kNoSequence;          // the last one on this disk
  SequenceNumber first_retained = kMaxSequence;  // the oldest from which a follower can go on
};

// A feed for one follower.
class ReplicaFeed {
 public:
  virtual ~ReplicaFeed() = default;

  // Returns what follows, encoded for ApplyReplicated(): a block at least, and no more once they
  // have `most_bytes`. Returns nothing if there is nothing yet. Trimmed (varve/history_status.h):
  // what comes next is no longer retained. DataLoss: it is damaged.
  [[nodiscard]] virtual absl::StatusOr<std::string> Next(size_t most_bytes) = 0;
  // Returns the version up to which everything was returned.
  virtual SequenceNumber position() const = 0;
};

// A store that can be replicated, as the embedded engine can.
class ReplicatedStore {
 public:
  virtual ~ReplicatedStore() = default;

  // Answered locally, without a wait for the disk.
  virtual StoreIdentity Identity() const = 0;

  // --- A primary ---
  // Retains the changes of the last `bytes` bytes for followers from now on, whatever else the
  // options say; 0: not any more. On disk on return. The next start needs EngineOptions::changes to
  // go on with it.
  [[nodiscard]] virtual absl::Status RetainForFollowers(uint64_t bytes) = 0;
  // Trimmed: the changes behind `since` are not retained. OutOfRange: there is no such version.
  // Requires: the store outlives the feed.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<ReplicaFeed>> NewReplicaFeed(
      SequenceNumber since) = 0;
  // No write behind `version` counts as durable; kMaxSequence: there is no bound. Whoever raises
  // the bound tells those who wait.
  virtual void BoundDurable(SequenceNumber version) = 0;

  // --- A follower ---
  // From now on the store takes the batches of a primary and refuses all others with
  // FailedPrecondition. What has expired is hidden, and the primary removes it. False: the store is
  // everybody's again. A follower that is opened again needs EngineOptions::follows, else it may
  // write something of its own before this call.
  virtual void SetFollowing(bool follows) = 0;
  // Commits batches of the primary. They are durable as the store's mode says, after a Push() of
  // the store. OutOfRange: they do not follow the newest version. FailedPrecondition: they cannot
  // be repeated from what they tell (a bulk ingest), and a new copy is needed. DataLoss: they are
  // damaged. After an error, those before are committed.
  // Requires: SetFollowing(true).
  [[nodiscard]] virtual absl::Status ApplyReplicated(std::string_view blocks) = 0;
  // Gives the store's history this id, for a promotion, or for following a promoted primary. On
  // disk on return.
  [[nodiscard]] virtual absl::Status SetHistoryId(uint64_t history_id) = 0;
};

// FailedPrecondition: the store follows a primary and takes nobody else's writes.
absl::Status FollowsPrimary();
bool IsFollowsPrimary(const absl::Status& status);

// Returns whether a file of this name, in a store's directory, belongs to the store.
bool IsStoreFile(std::string_view name);

// Returns the store as one that can be replicated; null: it can't.
ReplicatedStore* ReplicationOf(Store* store);

}  // namespace varve
