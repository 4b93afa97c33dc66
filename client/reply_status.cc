#include "client/reply_status.h"

#include <string_view>

namespace varve {

absl::Status StatusOfError(const Reply& error) {
  const std::string_view text = error.text;
  const std::string_view code = text.substr(0, text.find(' '));
  if (code == "DATALOSS") return absl::DataLossError(error.text);
  if (code == "MISCONF" || code == "OOM") return absl::ResourceExhaustedError(error.text);
  if (code == "NOAUTH" || code == "WRONGPASS") return absl::UnauthenticatedError(error.text);
  if (code == "NOPERM" || code == "DENIED") return absl::PermissionDeniedError(error.text);
  if (code == "UNAVAILABLE") return absl::DeadlineExceededError(error.text);
  return absl::FailedPreconditionError(error.text);
}

}  // namespace varve
