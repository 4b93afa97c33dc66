// The view of the namespaces tells a server, without asking anybody, where the rows of a key lie.
// It is a copy of the catalog that the server trusts for a while after it was last compared with
// the cluster's (db/hbase/server_roster.h).
//
// Thread-safety: All functions are thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/hbase/space_catalog.h"
#include "util/os/clock.h"

namespace varve {

// A namespace, and where its keys lie.
struct PlacedSpace {
  PlacedSpace(const std::string& main_table, const KeyPlace& place);

  std::string RowOf(std::string_view key) const { return prefix + std::string(key); }
  // The end of a range of keys; an empty one is the end of the namespace.
  std::string EndOf(std::string_view upper) const { return upper.empty() ? behind : RowOf(upper); }
  std::string_view KeyOf(std::string_view row) const { return row.substr(kRowPrefixSize); }

  std::string table;
  std::string prefix;  // of every row
  std::string behind;  // the first row behind them
  KeyGrouping grouping;
};

class SpaceView {
 public:
  // Requires: `clock` outlives the view.
  SpaceView(std::string table, const Clock* clock) : table_(std::move(table)), clock_(clock) {}

  // Takes over what the cluster's catalog was at this version, unless a newer one is known.
  void Show(SpaceCatalog catalog, SequenceNumber version);
  // The view may be trusted until the monotonic clock has reached this.
  void TrustUntil(uint64_t monotonic_nanos);
  bool IsTrusted() const;

  // Returns NoSuchNamespace, or Unavailable if the view can't be trusted any more.
  absl::StatusOr<PlacedSpace> Find(NamespaceId id) const;
  // Returns the last one that was shown, trusted or not; null before the first one.
  std::shared_ptr<const SpaceCatalog> catalog() const;
  SequenceNumber version() const;
  const std::string& table() const { return table_; }

 private:
  const std::string table_;
  const Clock* const clock_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const SpaceCatalog> catalog_ ABSL_GUARDED_BY(mutex_);
  SequenceNumber version_ ABSL_GUARDED_BY(mutex_) = kNoSequence;
  uint64_t trusted_until_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace varve
