#include "varve/store_status.h"

#include "absl/strings/cord.h"

namespace varve {
namespace {

constexpr const char* kUnavailable = "varve.store.unavailable";

}  // namespace

absl::Status StoreUnavailable(const std::string& message) {
  absl::Status status = absl::UnavailableError(message);
  status.SetPayload(kUnavailable, absl::Cord());
  return status;
}

bool IsStoreUnavailable(const absl::Status& status) {
  return status.GetPayload(kUnavailable).has_value();
}

}  // namespace varve
