// The snapshot list holds the sequences of the snapshots in use, so that merges keep the versions
// that those snapshots see.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "db/namespaces/namespace_table.h"
#include "varve/snapshot.h"

namespace varve {

// A snapshot of the embedded engine.
class TreeSnapshot : public Snapshot {
 public:
  // Returns the generation in which `space` lived when the snapshot was taken; nothing if it did
  // not exist.
  virtual std::optional<NamespaceGeneration> Generation(NamespaceId space) const = 0;
  bool HasNamespace(NamespaceId space) const final { return Generation(space).has_value(); }

  // Requires: a SnapshotList gave `snapshot`.
  static const TreeSnapshot& Of(const Snapshot& snapshot) {
    return static_cast<const TreeSnapshot&>(snapshot);
  }
};

class SnapshotList {
 public:
  // Takes a snapshot at `visible`, which it reads under the list's lock: a merge that calls List()
  // later either sees this snapshot or begins at or before it. The caller has read the clock's
  // `instant_ms` before. Throws std::bad_alloc; then nothing is held.
  std::shared_ptr<const Snapshot> Take(const std::atomic<SequenceNumber>& visible,
                                       NamespaceTable namespaces, uint64_t instant_ms);

  // Returns a placeholder for a snapshot for which there was no memory. It holds nothing, knows no
  // namespace and takes no memory.
  static std::shared_ptr<const Snapshot> NotTaken();

  struct Held {
    std::vector<SequenceNumber> sequences;  // ascending, each once
    SequenceNumber visible = kNoSequence;   // at the same moment
  };
  Held List(const std::atomic<SequenceNumber>& visible) const;

 private:
  class Entry;
  mutable absl::Mutex mutex_;
  std::multiset<SequenceNumber> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
