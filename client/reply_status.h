// Functions that turn error replies of the server into statuses with the words of the server.
//
// Thread-safety: The functions are pure.
#pragma once

#include "absl/status/status.h"
#include "type/reply.h"

namespace varve {

// Returns the status for an error reply: DataLoss for damaged records (DATALOSS), ResourceExhausted
// where writes are refused (MISCONF) or a limit is reached (OOM), Unauthenticated and
// PermissionDenied for NOAUTH, WRONGPASS and NOPERM, DeadlineExceeded where a store on other
// machines did not answer in time, so that nobody knows whether a write happened (UNAVAILABLE), and
// FailedPrecondition for all else, such as keys of several groups (CROSSGROUP).
[[nodiscard]] absl::Status StatusOfError(const Reply& error);

// OK for whatever is no error reply.
[[nodiscard]] inline absl::Status StatusOf(const Reply& reply) {
  return reply.is_error() ? StatusOfError(reply) : absl::OkStatus();
}

}  // namespace varve
