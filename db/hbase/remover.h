// The remover takes rows out of the tables that nobody can see any more: those of keys that were
// deleted or have expired, and those of namespaces that were emptied or dropped. One server is
// elected to do it; another one takes over when that has shown no life for
// HbaseStoreOptions::dead_after.
//
// A row of a key goes in two sweeps. The first one raises the floor of versions to the row's
// version and waits until every server has seen that; the second one, later than any write that
// was under way then can end, removes the row if it is unchanged. So a key never gets a version
// that it had before.
// The rows of a place that was retired go at once, since no key will ever lie there again.
//
// Thread-safety: One thread at a time takes steps; the other functions may be called by any.
// Requires: The context, the rows, the roster and the writer outlive the remover.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/hbase/hbase_context.h"
#include "db/hbase/namespace_writer.h"
#include "db/hbase/range_removal.h"
#include "db/hbase/server_roster.h"
#include "db/hbase/system_rows.h"
#include "varve/store.h"

namespace varve {

class Remover {
 public:
  Remover(HbaseContext* context, SystemRows* rows, ServerRoster* roster,
          NamespaceWriter* namespaces);

  // Does what is due if this server is elected, until `is_over` says to end.
  absl::Status Step(const std::function<bool()>& is_over);

  // Is told of each key that was removed as its time was over (StoreUpkeep::SetExpiryListener).
  void SetListener(StoreUpkeep::ExpiryListener listener);
  void Pause(std::chrono::milliseconds how_long);

  uint64_t removed_rows() const { return removed_rows_.load(); }
  bool is_elected() const { return is_elected_.load(); }

 private:
  // The rows of one namespace that a sweep removes.
  struct Doomed {
    std::vector<HbaseRowWrite> writes;
    std::vector<std::string> expired;  // the key of each write that goes as its time is over
  };

  absl::Status Elect();
  absl::Status RemoveRetired(const std::function<bool()>& is_over);
  absl::Status Sweep(const std::function<bool()>& is_over);
  absl::StatusOr<bool> SweepSpace(NamespaceId id, const PlacedSpace& place,
                                  const std::function<bool()>& is_over);
  absl::StatusOr<Doomed> FindDoomed(const PlacedSpace& place, const RowSlice& rows);
  absl::Status RemoveDoomed(NamespaceId id, const PlacedSpace& place, Doomed doomed);
  absl::Status RaiseFloor();
  bool IsDue(uint64_t since_nanos, std::chrono::milliseconds span) const;
  // The longest time that a write may be under way, and more.
  std::chrono::milliseconds Settled() const { return 2 * context_->options.deadline; }

  HbaseContext* const context_;
  SystemRows* const rows_;
  ServerRoster* const roster_;
  NamespaceWriter* const namespaces_;
  std::atomic<bool> is_elected_{false};
  std::atomic<uint64_t> removed_rows_{0};
  std::atomic<uint64_t> paused_until_nanos_{0};
  absl::Mutex mutex_;  // calls of the listener
  StoreUpkeep::ExpiryListener listener_ ABSL_GUARDED_BY(mutex_);

  std::string rival_;  // the identity of the elected server's row, and since when it is that
  uint64_t rival_since_nanos_ = 0;
  std::map<HbaseGeneration, uint64_t> retired_since_nanos_;
  bool has_swept_ = false;
  uint64_t swept_at_nanos_ = 0;
  SequenceNumber highest_doomed_ = kNoSequence;  // that the present sweep has found
  SequenceNumber raised_ = kNoSequence;          // the floor that a sweep before has raised
  SequenceNumber ready_ = kNoSequence;           // up to which rows may go in this sweep
  uint64_t raised_at_nanos_ = 0;
};

}  // namespace varve
