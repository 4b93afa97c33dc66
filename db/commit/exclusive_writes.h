// Exclusive writes: while a writer holds an ExclusiveWrite, every other batch waits, or fails with
// Cancelled if its options ask for that. Clock marks go on, as the exclusive writer may be counting
// and somebody else see something expire; but HoldMarks() has them wait as well.
//
// Thread-safety: all functions may be called on any thread; those whose name ends in Locked need
// the commit lock (SuperVersions::mutex()).
#pragma once

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "db/version/super_versions.h"
#include "varve/store.h"

namespace varve {

class ExclusiveWrites {
 public:
  // Requires: `versions` outlives this.
  explicit ExclusiveWrites(SuperVersions* versions) : versions_(versions) {}

  // Waits until no other writer writes exclusively, then begins an exclusive write. Never returns
  // null. Requires: this outlives the exclusive write.
  std::unique_ptr<ExclusiveWrite> Begin() ABSL_LOCKS_EXCLUDED(versions_->mutex());
  // Waits until no exclusive write other than `own` is held.
  void AwaitOthers(const ExclusiveWrite* own) ABSL_LOCKS_EXCLUDED(versions_->mutex());
  void AwaitOthersLocked(const ExclusiveWrite* own);
  // Has clock marks of others wait until the exclusive write ends, too. An ingest numbers itself in
  // a manifest before it is in the log, and a crash then lets a recovery leave out whatever the log
  // has under these numbers.
  // Requires: the caller holds the exclusive write, and waits for nobody who may see a key expire.
  void HoldMarks() ABSL_LOCKS_EXCLUDED(versions_->mutex());

  // Returns whether a batch whose writer holds `own` has to wait; `marks_clock`: it is a clock mark
  // and nothing else.
  bool KeepsOutLocked(const ExclusiveWrite* own, bool marks_clock) const {
    versions_->mutex().AssertHeld();
    return held_ != own && (marks_wait_ || !marks_clock);
  }

 private:
  class Held;

  SuperVersions* const versions_;
  const ExclusiveWrite* held_ ABSL_GUARDED_BY(versions_->mutex()) = nullptr;
  bool marks_wait_ ABSL_GUARDED_BY(versions_->mutex()) = false;  // for the exclusive write, too
  absl::CondVar ended_;
};

}  // namespace varve
