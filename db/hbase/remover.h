// The remover takes rows out of the tables that nobody can see any more: those of keys that were
// deleted or have expired, and those of namespaces that were emptied or dropped. One server is
// elected to do it; another one takes over when that has shown no life for
// HbaseStoreOptions::dead_after.
//
// Sweeps over all rows take those of keys that had been gone for kept_when_gone when the sweep
// began, and whose versions are not above the floor of versions. The floor was raised behind an
// earlier sweep, to the versions of the instant kept_when_gone before; since then every server has
// seen it, and every write that was under way then has ended. A row is removed if it is unchanged.
// So a key never gets a version that it had before. The servers of regions look for these rows, and
// send no others. A sweep takes as many steps as it needs. It leaves out regions that do not
// answer, and the rest of a namespace that cannot be read; the next sweep comes to them.
// The rows of a place that was retired go, however long they have been there, once every server has
// seen that it was retired and every write has ended that was under way there then. No key will
// ever lie there again.
//
// Thread-safety: One thread at a time takes steps; the other functions may be called by any.
// Requires: The context, the rows, the roster and the writer outlive the remover.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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

  // Returns the number of retired places that are remembered. Requires: No thread takes a step.
  // For tests.
  size_t remembered_places() const { return retired_since_nanos_.size(); }

 private:
  // The rows of one namespace that a sweep removes.
  struct Doomed {
    std::vector<HbaseRowWrite> writes;
    std::vector<std::string> expired;  // the key of each write that goes as its time is over
  };

  // A sweep, and how far it has come.
  struct Sweep {
    SequenceNumber ready;  // up to which rows go; kNoSequence: none
    uint64_t oldest_ms;    // they were gone at that instant already
    NamespaceId space;     // those before it were done
    HeaderSweep rows;      // of this one
    absl::Status failed;   // the first error; what is behind it was swept all the same
  };

  absl::Status Elect();
  // Forgets the places that the catalog does not name any more, whichever server removed them.
  void ForgetRemovedPlaces();
  // Does what it can, and returns the first error of a place.
  absl::Status RemoveRetired(const std::function<bool()>& ends);
  absl::Status RemoveRetiredPlace(const KeyPlace& place, const std::function<bool()>& ends);
  // Begins a sweep if it is time, and goes on with it. Returns its first error when it has come to
  // the end.
  absl::Status SweepOn(const std::function<bool()>& ends);
  void BeginSweep();
  // Returns whether the sweep has come to the end.
  bool GoOnSweeping(const std::function<bool()>& ends);
  absl::StatusOr<bool> SweepSpace(const PlacedSpace& place, const std::function<bool()>& ends);
  Doomed FindDoomed(const PlacedSpace& place, const RowSlice& rows) const;
  absl::Status RemoveDoomed(const PlacedSpace& place, Doomed doomed);
  absl::Status RaiseFloor();
  // Looks whether every server has seen the floor that was raised last.
  absl::Status LookWhoHasSeen();
  // Returns the instant since which a key has to be gone for its row to go.
  uint64_t OldestMillis() const;
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
  // The retired places that every server has seen to be so, and since when.
  std::map<HbaseGeneration, uint64_t> retired_since_nanos_;
  bool has_swept_ = false;
  uint64_t swept_at_nanos_ = 0;
  std::optional<Sweep> sweep_;            // the present one
  SequenceNumber raising_ = kNoSequence;  // the floor that not all servers have seen yet
  SequenceNumber raised_ = kNoSequence;   // the one that they have, and since when
  uint64_t raised_at_nanos_ = 0;
};

}  // namespace varve
