// A keep policy says which backups stay and which ones go.
//
//   last=5,hourly=24,daily=7,weekly=4,monthly=12,yearly=3
//
// Of each rule stays the newest backup of each of the last N hours, days, weeks (from Monday on),
// months or years that have one, in UTC; `last` keeps the last N backups. A backup goes if no rule
// keeps it. The newest backup always stays. The backups of each store are looked at by themselves.
//
// Thread-safety: a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/backup/backup_list.h"

namespace varve {

class KeepPolicy {
 public:
  // InvalidArgument says what is wrong with the text.
  [[nodiscard]] static absl::StatusOr<KeepPolicy> Parse(std::string_view text);

  // Returns the ids of the backups that go, oldest first.
  std::vector<std::string> ToRemove(const std::vector<BackupDescription>& backups) const;

 private:
  enum class Period : uint8_t { kLast, kHourly, kDaily, kWeekly, kMonthly, kYearly };
  struct Rule {
    Period period;
    uint64_t count;
  };

  static int64_t PlaceOf(Period period, uint64_t sealed_ms);

  std::vector<Rule> rules_;
};

}  // namespace varve
