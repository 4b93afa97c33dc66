// The refusals that concern readers of old versions.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "varve/types.h"

namespace varve {

// OutOfRange: what the reader asks for is no longer kept; `first` is the oldest version that can be
// read. The message is "first=<version>".
absl::Status Trimmed(SequenceNumber first);
// Returns the oldest version that can be read; nothing if the status says something else.
std::optional<SequenceNumber> FirstOfTrimmed(const absl::Status& status);

// OutOfRange: the version has not been written yet.
absl::Status VersionIsAhead(SequenceNumber version, SequenceNumber newest);

// FailedPrecondition: the store has the format of an earlier version.
absl::Status NoPlaceForHistory();

}  // namespace varve
