// The horizons say of each namespace from which version on the store keeps every version of every
// key. A reader of a version at or above the horizon finds what was there; below it a reader is
// refused.
//
// A merge drops only what is below the horizons on disk: it takes them before it lists the
// snapshots in use, and a horizon counts from when the manifest that holds it is on disk. A reader
// holds its version as a snapshot first and then compares it with the horizon. So either the merge
// sees the reader or the reader sees the merge's horizon.
//
// A namespace's horizon begins with the write that makes the namespace or that asks for a history.
// It rises with installs, to where the namespace's limits say, but not above what segments hold.
//
// Thread-safety: all functions of Horizons may be called on any thread; the free functions are
// pure.
// Invariants: the horizon of a namespace never falls.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "db/format/manifest_contents.h"
#include "db/namespaces/namespace_table.h"
#include "varve/types.h"

namespace varve {

// The versions that a flush or a merge has to keep, by generation.
class KeptVersions {
 public:
  KeptVersions() = default;
  // Requires: `retired` are those that have not been forgotten.
  KeptVersions(const std::vector<Horizon>& horizons, const NamespaceTable& namespaces,
               const std::vector<RetiredGeneration>& retired);

  // Returns the version from which on every version in the generation is kept, and the newest one
  // up to it; kMaxSequence if none is kept for history.
  SequenceNumber From(NamespaceGeneration generation) const;
  // Returns the least of these versions; kMaxSequence if there is none.
  SequenceNumber oldest() const { return oldest_; }

 private:
  std::vector<std::pair<NamespaceGeneration, SequenceNumber>> from_;  // ascending
  SequenceNumber oldest_ = kMaxSequence;
};

// Returns the horizon of the namespace; kMaxSequence if there is none.
SequenceNumber HorizonOf(const std::vector<Horizon>& horizons, NamespaceId space);

// Returns whether some version that can be read saw the generation.
inline bool IsKept(const RetiredGeneration& retired, const std::vector<Horizon>& horizons) {
  const SequenceNumber horizon = HorizonOf(horizons, retired.space);
  return horizon != kMaxSequence && retired.retired_at > horizon;
}

// A horizon rise holds what the new horizons follow from.
struct HorizonRise {
  SequenceNumber flushed = kNoSequence;  // everything up to here is in segments
  // Returns the limits that hold for a namespace; nothing: there is no such namespace any more.
  std::function<std::optional<HistoryLimits>(NamespaceId space)> limits;
  // Returns the newest version that was written so many milliseconds ago or earlier; nothing: the
  // store does not know.
  std::function<std::optional<SequenceNumber>(uint64_t ago_ms)> version_before;
  // The bytes that were written between the flush before and `flushed`.
  std::vector<std::pair<NamespaceId, uint64_t>> written;
};

// Returns the horizons after the rise. Those of namespaces that keep nothing any more are gone.
std::vector<Horizon> RaiseHorizons(std::vector<Horizon> horizons,
                                   const std::vector<RetiredGeneration>& retired,
                                   const HorizonRise& rise);

class Horizons {
 public:
  Horizons() = default;
  Horizons(const Horizons&) = delete;
  Horizons& operator=(const Horizons&) = delete;

  // The store keeps histories from now on: those that are on disk, and those that `namespaces` ask
  // for, from `flushed` on until NoteReplayed() is called. `limits` are those of a namespace that
  // has none of its own.
  void Start(std::vector<Horizon> on_disk, const HistoryLimits& limits,
             const NamespaceTable& namespaces, SequenceNumber flushed) ABSL_LOCKS_EXCLUDED(mutex_);
  // The log was replayed up to `last`. Raises to it the horizons that Start() began in a store that
  // has segments: while these histories were not kept, a flush may have dropped what a later write
  // of the log covers.
  // Requires: nothing was installed since Start().
  void NoteReplayed(SequenceNumber last) ABSL_LOCKS_EXCLUDED(mutex_);
  // Begins the horizons that are missing after the write `at` changed the namespaces and made those
  // in `made`. Throws std::bad_alloc; then none of them has begun.
  void NoteNamespaces(const NamespaceTable& namespaces, SequenceNumber at,
                      const std::vector<NamespaceId>& made = {}) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the limits that hold for the namespace; nothing if the table does not have it.
  std::optional<HistoryLimits> LimitsOf(const NamespaceTable& namespaces, NamespaceId space) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns whether there is a horizon.
  bool any() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the horizon of the namespace; kMaxSequence if its versions are not kept.
  SequenceNumber Of(NamespaceId space) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether the namespace's horizon is where the namespace began.
  bool IsWhole(NamespaceId space) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Horizon> All() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes that the horizons `raised` are on disk; RaiseHorizons() made them of `before`. Horizons
  // that have begun since stay.
  void Install(const std::vector<Horizon>& before, std::vector<Horizon> raised)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::optional<HistoryLimits> LimitsOfLocked(const NamespaceTable& namespaces,
                                              NamespaceId space) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  HistoryLimits limits_ ABSL_GUARDED_BY(mutex_);
  std::vector<Horizon> horizons_ ABSL_GUARDED_BY(mutex_);      // ascending by namespace
  std::vector<NamespaceId> to_raise_ ABSL_GUARDED_BY(mutex_);  // by NoteReplayed()
};

}  // namespace varve
