// The key history reader tells what the versions that the store keeps did to a key, and which keys
// are missing that were there before.
//
// It holds the present super version, in which nothing goes away, takes the horizon afterwards, and
// so finds every version from the horizon on: a merge drops only what is below the horizon that it
// took when it began (db/history/horizons.h).
//
// Thread-safety: all functions may be called on any thread. They take the commit lock.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/engine/history_reader.h"
#include "db/iterators/era_cursor.h"
#include "varve/key_history.h"
#include "varve/options.h"
#include "varve/read_result.h"
#include "varve/snapshot.h"

namespace varve {

class KeyHistoryReader {
 public:
  // Requires: all of them outlive the reader.
  KeyHistoryReader(SuperVersions* versions, const VersionSet* version_set, const LogView* log,
                   const StoreClock* clock)
      : versions_(*versions),
        version_set_(*version_set),
        log_(*log),
        clock_(*clock),
        history_(versions, version_set, log, clock) {}

  // These do what the functions of StoreHistory do that have their names.
  absl::StatusOr<KeyHistory> HistoryOf(NamespaceId space, std::string_view key, size_t most,
                                       const Snapshot* snapshot) const;
  absl::StatusOr<RemovedKeys> FindRemoved(const RemovedKeysRequest& request) const;
  // Says in `*read` what became of the key, of which that is the explained read.
  absl::Status Judge(const ReadOptions& options, std::string_view key, ExplainedRead* read) const;

 private:
  // The point at which a namespace is read.
  struct Point {
    SequenceNumber version = kNoSequence;
    uint64_t instant_ms = 0;  // keys that had expired by then are gone
  };
  // One call sees this of a namespace.
  struct Past {
    std::shared_ptr<const SuperVersion> state;
    Point point;
    SequenceNumber first = kNoSequence;  // the oldest version that can be read
    bool is_whole = false;               // nothing of the namespace is older
    std::vector<NamespaceEra> eras;      // newest first, down to `first`
  };
  class Events;

  // Without a point the past ends with the present.
  absl::StatusOr<Past> Begin(NamespaceId space, std::optional<Point> point) const;
  absl::StatusOr<KeyHistory> HistoryUpTo(std::optional<Point> point, NamespaceId space,
                                         std::string_view key, size_t most) const;

  SuperVersions& versions_;
  const VersionSet& version_set_;
  const LogView& log_;
  const StoreClock& clock_;
  const HistoryReader history_;
};

}  // namespace varve
