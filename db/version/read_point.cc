#include "db/version/read_point.h"

#include <optional>
#include <utility>

#include "util/base/memory_guard.h"
#include "varve/namespace_status.h"

namespace varve {

absl::StatusOr<ReadPoint> BeginRead(const SuperVersions& versions, const LogView& log,
                                    const ReadOptions& options) {
  for (;;) {
    SuperVersions::Pin state = versions.Acquire();
    SequenceNumber sequence;
    std::optional<NamespaceGeneration> generation;
    if (options.snapshot != nullptr) {
      sequence = options.snapshot->sequence();
      generation = TreeSnapshot::Of(*options.snapshot).Generation(options.space);
    } else {
      if (log.failed()) [[unlikely]] {
        // What a failed log did not get to disk is never shown.
        absl::MutexLock lock(&versions.mutex());
        versions.show_queue().DrainLocked();
        sequence = log->durable_sequence();
        generation = versions.NamespacesAtLocked(sequence).Generation(options.space);
      } else {
        sequence = versions.visible();
        generation = state->namespaces.Generation(options.space);
      }
      if (!versions.IsCurrent(state)) continue;
    }
    if (!generation && options.snapshot == SnapshotList::NotTaken().get())
      return OutOfMemory("taking the snapshot");
    if (!generation) return NoSuchNamespace(options.space);
    return ReadPoint{std::move(state), sequence, *generation};
  }
}

}  // namespace varve
