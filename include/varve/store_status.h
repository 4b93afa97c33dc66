// The refusals of a store whose data is on other machines.
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace varve {

// Unavailable: the other machines did not answer in time, or are away. Other calls may succeed.
// The message tells what was asked for, and whether a write may have happened all the same.
absl::Status StoreUnavailable(const std::string& message);
bool IsStoreUnavailable(const absl::Status& status);

}  // namespace varve
