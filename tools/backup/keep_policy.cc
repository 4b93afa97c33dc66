#include "tools/backup/keep_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace varve {
namespace {

constexpr std::string_view kNames[] = {"last", "hourly", "daily", "weekly", "monthly", "yearly"};

absl::Status Refused(std::string_view rule, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format(
      "keep policy: '{}' {}; a policy is one such as daily=7,weekly=4, of last, hourly, "
      "daily, weekly, monthly and yearly",
      rule, why));
}

}  // namespace

absl::StatusOr<KeepPolicy> KeepPolicy::Parse(std::string_view text) {
  KeepPolicy policy;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view rule = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t sign = std::min(rule.find('='), rule.size());
    const auto* const name = std::find(std::begin(kNames), std::end(kNames), rule.substr(0, sign));
    if (name == std::end(kNames)) return Refused(rule, "names no period");
    const std::string_view number = rule.substr(std::min(sign + 1, rule.size()));
    uint64_t count = 0;
    const auto [behind, error] =
        std::from_chars(number.data(), number.data() + number.size(), count);
    if (error != std::errc() || behind != number.data() + number.size() || count == 0)
      return Refused(rule, "keeps no number of at least 1");
    const auto period = static_cast<Period>(name - std::begin(kNames));
    const bool is_double = std::any_of(policy.rules_.begin(), policy.rules_.end(),
                                       [&](const Rule& each) { return each.period == period; });
    if (is_double) return Refused(rule, "comes a second time");
    policy.rules_.push_back({period, count});
  }
  return policy;
}

int64_t KeepPolicy::PlaceOf(Period period, uint64_t sealed_ms) {
  constexpr uint64_t kHour = uint64_t{3'600'000};
  constexpr uint64_t kDay = 24 * kHour;
  // 1970 began on a Thursday.
  constexpr uint64_t kDaysBefore = 3;
  if (period == Period::kHourly) return static_cast<int64_t>(sealed_ms / kHour);
  if (period == Period::kDaily) return static_cast<int64_t>(sealed_ms / kDay);
  if (period == Period::kWeekly) return static_cast<int64_t>((sealed_ms / kDay + kDaysBefore) / 7);
  const absl::CivilDay day =
      absl::ToCivilDay(absl::FromUnixMillis(static_cast<int64_t>(sealed_ms)), absl::UTCTimeZone());
  return period == Period::kMonthly ? day.year() * 12 + day.month() : day.year();
}

std::vector<std::string> KeepPolicy::ToRemove(const std::vector<BackupDescription>& backups) const {
  std::map<uint64_t, std::vector<const BackupDescription*>> stores;  // newest first
  for (const BackupDescription& backup : backups) stores[backup.store_id].push_back(&backup);
  std::set<const BackupDescription*> kept;
  for (auto& [id, of_store] : stores) {
    std::stable_sort(of_store.begin(), of_store.end(),
                     [](const BackupDescription* a, const BackupDescription* b) {
                       return std::pair(a->sealed_ms, a->version) >
                              std::pair(b->sealed_ms, b->version);
                     });
    kept.insert(of_store.front());
    for (const Rule& rule : rules_) {
      std::set<int64_t> places;
      for (size_t i = 0; i < of_store.size() && places.size() < rule.count; ++i) {
        const int64_t place = rule.period == Period::kLast
                                  ? static_cast<int64_t>(i)
                                  : PlaceOf(rule.period, of_store[i]->sealed_ms);
        if (places.insert(place).second) kept.insert(of_store[i]);
      }
    }
  }
  std::vector<const BackupDescription*> gone;
  for (const BackupDescription& backup : backups) {
    if (!kept.contains(&backup)) gone.push_back(&backup);
  }
  std::stable_sort(gone.begin(), gone.end(),
                   [](const BackupDescription* a, const BackupDescription* b) {
                     return a->sealed_ms < b->sealed_ms;
                   });
  std::vector<std::string> ids;
  for (const BackupDescription* const backup : gone) ids.push_back(backup->id);
  return ids;
}

}  // namespace varve
