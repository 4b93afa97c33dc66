#include "client/move/move_errors.h"

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace varve {

bool MayPass(const absl::Status& status) {
  if (absl::IsUnavailable(status) || absl::IsUnknown(status) || absl::IsDeadlineExceeded(status) ||
      absl::IsResourceExhausted(status))
    return true;
  const absl::string_view text = status.message();
  return absl::StartsWith(text, "LOADING") || absl::StartsWith(text, "UNAVAILABLE") ||
         absl::StrContains(text, "max number of clients");
}

bool IsNoNamespace(const absl::Status& status) {
  return absl::StrContains(status.message(), "there is no namespace") ||
         absl::StrContains(status.message(), "the namespace in use was dropped");
}

bool IsGap(const absl::Status& status) {
  return absl::StartsWith(status.message(), "TRIMMED") ||
         absl::StrContains(status.message(), "retains no changes");
}

}  // namespace varve
