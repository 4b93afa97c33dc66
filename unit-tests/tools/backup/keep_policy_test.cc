#include "tools/backup/keep_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/time.h"

namespace varve {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

BackupDescription At(const std::string& time, uint64_t store = 1) {
  absl::Time instant;
  std::string error;
  EXPECT_TRUE(absl::ParseTime("%Y-%m-%d %H:%M", time, absl::UTCTimeZone(), &instant, &error));
  BackupDescription backup;
  backup.id = time;
  backup.store_id = store;
  backup.sealed_ms = static_cast<uint64_t>(absl::ToUnixMillis(instant));
  return backup;
}

std::vector<std::string> Gone(const std::string& policy,
                              const std::vector<BackupDescription>& backups) {
  const auto parsed = KeepPolicy::Parse(policy);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed->ToRemove(backups);
}

TEST(KeepPolicyTest, TextThatIsNoPolicyIsRefused) {
  for (const char* text : {"", "daily", "daily=", "daily=0", "daily=-1", "daily=x", "daily=1,",
                           "daily=1,daily=2", "sometimes=3", "daily=1 weekly=2", "=3", "7"})
    EXPECT_TRUE(absl::IsInvalidArgument(KeepPolicy::Parse(text).status())) << text;
  EXPECT_TRUE(KeepPolicy::Parse("last=1,hourly=2,daily=3,weekly=4,monthly=5,yearly=6").ok());
}

TEST(KeepPolicyTest, TheNewestOfEachPeriodStays) {
  const std::vector<BackupDescription> days = {At("2026-11-20 08:00"), At("2026-11-20 23:59"),
                                               At("2026-11-23 00:00"), At("2026-11-23 12:00"),
                                               At("2026-11-24 01:00"), At("2026-11-24 02:00")};
  EXPECT_THAT(Gone("daily=2", days), ElementsAre("2026-11-20 08:00", "2026-11-20 23:59",
                                                 "2026-11-23 00:00", "2026-11-24 01:00"));
  // A day without a backup does not count.
  EXPECT_THAT(Gone("daily=3", days),
              ElementsAre("2026-11-20 08:00", "2026-11-23 00:00", "2026-11-24 01:00"));
  EXPECT_THAT(Gone("last=3", days),
              ElementsAre("2026-11-20 08:00", "2026-11-20 23:59", "2026-11-23 00:00"));
  EXPECT_THAT(Gone("hourly=2", days), ElementsAre("2026-11-20 08:00", "2026-11-20 23:59",
                                                  "2026-11-23 00:00", "2026-11-23 12:00"));
  // 2026-11-23 is a Monday.
  EXPECT_THAT(Gone("weekly=9", days), ElementsAre("2026-11-20 08:00", "2026-11-23 00:00",
                                                  "2026-11-23 12:00", "2026-11-24 01:00"));
  EXPECT_THAT(Gone("daily=1,weekly=2", days), ElementsAre("2026-11-20 08:00", "2026-11-23 00:00",
                                                          "2026-11-23 12:00", "2026-11-24 01:00"));
  const std::vector<BackupDescription> months = {At("2024-12-31 23:59"), At("2025-01-01 00:00"),
                                                 At("2025-12-30 10:00"), At("2026-01-02 10:00"),
                                                 At("2026-01-31 10:00")};
  EXPECT_THAT(Gone("monthly=2", months),
              ElementsAre("2024-12-31 23:59", "2025-01-01 00:00", "2026-01-02 10:00"));
  EXPECT_THAT(Gone("yearly=5", months), ElementsAre("2025-01-01 00:00", "2026-01-02 10:00"));
}

TEST(KeepPolicyTest, TheOrderOfTheBackupsDoesNotMatter) {
  EXPECT_THAT(
      Gone("last=1", {At("2026-11-24 02:00"), At("2026-11-20 08:00"), At("2026-11-22 08:00")}),
      ElementsAre("2026-11-20 08:00", "2026-11-22 08:00"));
  EXPECT_THAT(Gone("daily=3", {}), IsEmpty());
}

TEST(KeepPolicyTest, EachStoreIsLookedAtByItself) {
  EXPECT_THAT(Gone("last=1", {At("2026-01-01 00:00", 1), At("2026-01-02 00:00", 1),
                              At("2026-01-03 00:00", 2), At("2026-01-04 00:00", 2)}),
              ElementsAre("2026-01-01 00:00", "2026-01-03 00:00"));
}

}  // namespace
}  // namespace varve
