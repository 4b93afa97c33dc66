#include "varve/history_status.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "fmt/format.h"

namespace varve {
namespace {

constexpr const char* kTrimmed = "varve.history.trimmed";

}  // namespace

absl::Status Trimmed(SequenceNumber first) {
  absl::Status status = absl::OutOfRangeError(fmt::format("first={}", first));
  status.SetPayload(kTrimmed, absl::Cord(fmt::to_string(first)));
  return status;
}

std::optional<SequenceNumber> FirstOfTrimmed(const absl::Status& status) {
  const auto payload = status.GetPayload(kTrimmed);
  SequenceNumber first = kNoSequence;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &first)) return std::nullopt;
  return first;
}

absl::Status NoPlaceForHistory() {
  return absl::FailedPreconditionError(
      "this store has the format of an earlier version, which has no place for old versions and "
      "their times: finalize its upgrade (server_main --finalize-upgrade)");
}

absl::Status VersionIsAhead(SequenceNumber version, SequenceNumber newest) {
  return absl::OutOfRangeError(
      fmt::format("version {} was not written yet, the newest one is {}", version, newest));
}

}  // namespace varve
