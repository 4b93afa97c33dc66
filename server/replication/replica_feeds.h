// The replica feeds are what the server reads its followers' changes from: one feed for each
// follower, which stays open between two requests.
//
// Thread-safety: all functions may be called on any thread. Two requests of one follower wait for
// each other.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "varve/replication.h"
#include "varve/types.h"

namespace varve {

class ReplicaFeeds {
 public:
  // Requires: the store, which may be null, outlives the feeds.
  explicit ReplicaFeeds(ReplicatedStore* store) : store_(store) {}

  struct Piece {
    std::string blocks;  // empty: there is nothing yet
    SequenceNumber position = kNoSequence;
  };
  // Returns what follows `since`, about `most_bytes` of it. Trimmed, OutOfRange and DataLoss as the
  // store says.
  [[nodiscard]] absl::StatusOr<Piece> Next(const std::string& id, SequenceNumber since,
                                           size_t most_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Closes the feeds of those who have not asked since `before`.
  void CloseIdle(std::chrono::steady_clock::time_point before) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    absl::Mutex mutex;
    std::unique_ptr<ReplicaFeed> feed ABSL_GUARDED_BY(mutex);
  };
  struct Place {
    std::shared_ptr<Entry> entry;
    std::chrono::steady_clock::time_point used;
  };

  ReplicatedStore* const store_;
  absl::Mutex mutex_;
  std::map<std::string, Place> places_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
