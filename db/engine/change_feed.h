// The change feed answers the functions of StoreChanges for the engine.
//
// Thread-safety: all functions may be called on any thread. Those that change feeds take the locks
// of a write, and wait for the disk.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/engine/version_set.h"
#include "db/expiry/store_clock.h"
#include "db/version/log_view.h"
#include "db/version/super_versions.h"
#include "varve/changes.h"
#include "varve/options.h"
#include "varve/types.h"
#include "varve/write_batch.h"

namespace varve {

class ChangeFeed {
 public:
  // Commits a batch and waits until it is durable.
  using CommitBatch = std::function<absl::Status(WriteBatch* batch)>;

  // Requires: all of them outlive the feed, and the iterators that it makes.
  ChangeFeed(SuperVersions* versions, VersionSet* version_set, const LogView* log,
             const StoreClock* clock, CommitBatch commit)
      : versions_(*versions),
        version_set_(*version_set),
        log_(*log),
        clock_(*clock),
        commit_(std::move(commit)) {}

  // These do what the functions of StoreChanges do that have their names.
  absl::StatusOr<ChangePositions> GetChangePositions() const;
  absl::StatusOr<std::unique_ptr<ChangeIterator>> NewChangeIterator(
      SequenceNumber since, const ChangeFilter& filter) const;
  absl::Status CreateFeed(const FeedPlace& place);
  absl::Status AckFeed(std::string_view name, SequenceNumber version);
  absl::Status DropFeed(std::string_view name);
  std::vector<FeedPlace> Feeds() const;

  uint64_t AddListener(std::function<void()> listener) const {
    return recorder().thread().AddListener(std::move(listener));
  }
  void RemoveListener(uint64_t token) const { recorder().thread().RemoveListener(token); }

 private:
  // Returns FailedPrecondition if no changes are retained.
  absl::Status CheckOn() const;
  // Commits the creation of a feed, unless the store has no changes behind its position.
  absl::Status CommitFeed(FeedPlace feed);
  ChangeRecorder& recorder() const { return version_set_.changes(); }

  SuperVersions& versions_;
  VersionSet& version_set_;
  const LogView& log_;
  const StoreClock& clock_;
  const CommitBatch commit_;
};

// Returns the newest version that may be delivered: everything up to it is as durable as its writer
// asked.
SequenceNumber DeliverableVersion(const SuperVersions& versions, const LogView& log);

}  // namespace varve
