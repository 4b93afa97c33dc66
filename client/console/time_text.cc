#include "client/console/time_text.h"

#include "absl/time/time.h"
#include "fmt/format.h"

namespace varve {

absl::StatusOr<uint64_t> ParseTimeText(std::string_view text) {
  absl::Time time;
  std::string why;
  const bool is_time =
      absl::ParseTime(absl::RFC3339_full, absl::string_view(text.data(), text.size()), &time, &why);
  if (!is_time || time == absl::InfiniteFuture() || time < absl::UnixEpoch()) {
    return absl::InvalidArgumentError(
        fmt::format("`{}` is no time with its offset, such as 2026-11-25T19:33:00Z or "
                    "2026-11-25T20:33:00+01:00",
                    text));
  }
  return static_cast<uint64_t>(absl::ToUnixMillis(time));
}

std::string TimeText(uint64_t ms) {
  constexpr uint64_t kMillisASecond = 1000;
  const absl::Time time = absl::FromUnixMillis(static_cast<int64_t>(ms));
  const char* const format =
      ms % kMillisASecond == 0 ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%dT%H:%M:%E3SZ";
  return absl::FormatTime(format, time, absl::UTCTimeZone());
}

}  // namespace varve
