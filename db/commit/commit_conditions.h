// Checks of a batch's conditions: the batch may be committed only if no other writer has written
// its keys and ranges since its author read them.
//
// The write buffers tell which keys were written since. If a condition is older than what the
// buffers hold, it counts as not met.
//
// Thread-safety: stateless functions; those whose name ends in Locked need the commit lock.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "db/commit/commit.h"
#include "db/commit/range_check.h"
#include "db/version/super_versions.h"

namespace varve {

// Returns Aborted if a key of the batch's conditions was written since, or may have been.
[[nodiscard]] absl::Status CheckConditionsLocked(const SuperVersions& versions,
                                                 const Commit& commit)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions.mutex());

// Checks the ranges against all writes but the last few, so that CheckRangesLocked() has little to
// do under the lock. Returns Aborted if a range was written into, or may have been.
[[nodiscard]] absl::Status CheckRangesUnlocked(const SuperVersions& versions, RangeCheck* ranges)
    ABSL_LOCKS_EXCLUDED(versions.mutex());

// Checks the ranges against the writes that CheckRangesUnlocked() left. Returns Aborted as above.
[[nodiscard]] absl::Status CheckRangesLocked(const SuperVersions& versions, const Commit& commit,
                                             RangeCheck* ranges)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions.mutex());

}  // namespace varve
