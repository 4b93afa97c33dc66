// The snapshots that are held, so that merges keep what they can see. Thread-safe.
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
  // Returns the stretch of the tree that `space` lived in at that point; nothing if it did not
  // exist.
  virtual std::optional<NamespaceGeneration> Generation(NamespaceId space) const = 0;
  bool HasNamespace(NamespaceId space) const final { return Generation(space).has_value(); }

  // Requires: a SnapshotList gave `snapshot`.
  static const TreeSnapshot& Of(const Snapshot& snapshot) {
    return static_cast<const TreeSnapshot&>(snapshot);
  }
};

class SnapshotList {
 public:
  // `visible` is read under the list's lock: a merge that takes its list later either sees this
  // snapshot or starts at or before it. `instant_ms`: of the clock, read before. Throws
  // std::bad_alloc; then nothing is held.
  std::shared_ptr<const Snapshot> Take(const std::atomic<SequenceNumber>& visible,
                                       NamespaceTable namespaces, uint64_t instant_ms);

  // Stands for a snapshot for which there was no memory: it holds nothing and knows no namespace.
  // Takes no memory itself.
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
