// Error replies of the server as statuses, with the server's words. Pure functions.
#pragma once

#include "absl/status/status.h"
#include "type/reply.h"

namespace varve {

// Of an error reply: DataLoss for damaged records (DATALOSS), ResourceExhausted where writes are
// refused (MISCONF) or a limit is reached (OOM), Unauthenticated and PermissionDenied for NOAUTH,
// WRONGPASS, NOPERM; FailedPrecondition for all else.
[[nodiscard]] absl::Status StatusOfError(const Reply& error);

// OK for whatever is no error reply.
[[nodiscard]] inline absl::Status StatusOf(const Reply& reply) {
  return reply.is_error() ? StatusOfError(reply) : absl::OkStatus();
}

}  // namespace varve
