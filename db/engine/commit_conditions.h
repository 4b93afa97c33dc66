// The conditions under which a batch may be committed: keys and ranges that nobody wrote since the
// batch's author read them.
//
// The write buffers tell which keys were written since. A condition that is older than what the
// buffers hold counts as not met.
//
// Thread-safety: stateless functions; those whose name ends in Locked need the commit lock.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "db/engine/commit.h"
#include "db/engine/range_check.h"
#include "db/version/super_versions.h"

namespace varve {

// Returns Aborted if a key of the batch's conditions was written since, or may have been.
[[nodiscard]] absl::Status CheckConditionsLocked(const SuperVersions& versions,
                                                 const Commit& commit)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions.mutex());

// Looks through all that is new but for the last few writes, so that little is left to look at
// under the lock. Returns Aborted if a range was written into, or may have been.
[[nodiscard]] absl::Status LookAhead(const SuperVersions& versions, RangeCheck* ranges)
    ABSL_LOCKS_EXCLUDED(versions.mutex());

// Looks through the rest.
[[nodiscard]] absl::Status CheckRangesLocked(const SuperVersions& versions, const Commit& commit,
                                             RangeCheck* ranges)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions.mutex());

}  // namespace varve
