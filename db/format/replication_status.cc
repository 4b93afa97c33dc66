// The refusals of a store that follows a primary, which have a mark of their own.
#include "absl/strings/cord.h"
#include "varve/replication.h"

namespace varve {
namespace {

constexpr const char* kFollows = "varve.store.follows";

}  // namespace

absl::Status FollowsPrimary() {
  absl::Status status = absl::FailedPreconditionError(
      "this store follows a primary, which alone writes to it; write to the primary");
  status.SetPayload(kFollows, absl::Cord());
  return status;
}

bool IsFollowsPrimary(const absl::Status& status) {
  return status.GetPayload(kFollows).has_value();
}

}  // namespace varve
