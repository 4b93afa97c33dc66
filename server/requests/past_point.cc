#include "server/requests/past_point.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string_view>

#include "util/base/letter_case.h"
#include "util/base/size_text.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr char kBadPoint[] =
    "AT takes a version, TIME and milliseconds since 1970, or AGO and seconds";

// Returns the milliseconds of a number of seconds, or of a text such as "10min" or "1d".
std::optional<uint64_t> ParseAgo(std::string_view text) {
  constexpr uint64_t kMillis = 1000;
  if (const std::optional<uint64_t> seconds = ParseCount(text)) {
    if (*seconds > std::numeric_limits<int64_t>::max() / kMillis) return std::nullopt;
    return *seconds * kMillis;
  }
  const absl::StatusOr<std::chrono::nanoseconds> time = ParseDuration(text);
  if (!time.ok()) return std::nullopt;
  return static_cast<uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(*time).count());
}

bool NamesKind(std::string_view word) {
  return EqualsIgnoreCase(word, "time") || EqualsIgnoreCase(word, "ago");
}

}  // namespace

std::optional<uint64_t> ParseCount(std::string_view text) {
  int64_t number = 0;
  if (!ParseRespInteger(text, &number) || number < 0) return std::nullopt;
  return static_cast<uint64_t>(number);
}

absl::StatusOr<PastPoint> ParsePastPoint(Arguments words) {
  if (words.empty()) return absl::InvalidArgumentError(kBadPoint);
  if (!NamesKind(words[0])) {
    if (const std::optional<uint64_t> version = ParseCount(words[0]))
      return PastPoint{PastPoint::Kind::kVersion, *version, 1};
    return absl::InvalidArgumentError(kBadPoint);
  }
  const bool is_instant = EqualsIgnoreCase(words[0], "time");
  std::optional<uint64_t> millis;
  if (words.size() > 1) millis = is_instant ? ParseCount(words[1]) : ParseAgo(words[1]);
  if (!millis) return absl::InvalidArgumentError(kBadPoint);
  return PastPoint{is_instant ? PastPoint::Kind::kInstant : PastPoint::Kind::kAgo, *millis, 2};
}

size_t CountStateWords(Arguments words) {
  if (words.size() < 2 || !EqualsIgnoreCase(words[1], "at"))
    return std::min<size_t>(words.size(), 1);
  const size_t kind = words.size() > 2 && NamesKind(words[2]) ? 1 : 0;
  return std::min(words.size(), 3 + kind);
}

std::optional<size_t> FindPastSuffix(Arguments arguments) {
  const size_t count = arguments.size();
  // An option may have a value such as "at": a version begins with a digit, or a wrong one with -.
  const std::string_view last = count > 0 ? arguments[count - 1] : std::string_view();
  const bool is_number =
      !last.empty() && (last[0] == '-' ? last.size() > 1 : last[0] >= '0' && last[0] <= '9');
  if (count > 2 && is_number && EqualsIgnoreCase(arguments[count - 2], "at")) return count - 2;
  if (count > 3 && EqualsIgnoreCase(arguments[count - 3], "at") && NamesKind(arguments[count - 2]))
    return count - 3;
  return std::nullopt;
}

}  // namespace varve
