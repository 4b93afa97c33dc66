#include "server/statistics/slow_log.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace varve {
namespace {

void Add(SlowLog* log, const std::vector<std::string_view>& arguments, uint64_t nanos = 1'000'000) {
  log->Add(nanos, arguments, "10.0.0.5:4000", "the client");
}

std::vector<uint64_t> Ids(const SlowLog& log, size_t count = 1000) {
  std::vector<uint64_t> ids;
  for (const SlowLog::Entry& entry : log.Newest(count)) ids.push_back(entry.id);
  return ids;
}

TEST(SlowLogTest, WantsWhatReachesTheThreshold) {
  SlowLog log;
  log.set_threshold_micros(5);
  EXPECT_FALSE(log.Wants(4'999));
  EXPECT_TRUE(log.Wants(5'000));
  log.set_threshold_micros(0);
  EXPECT_TRUE(log.Wants(0));
  log.set_threshold_micros(-1);
  EXPECT_FALSE(log.Wants(UINT64_MAX / 2));
}

TEST(SlowLogTest, AnEntrySaysWhatWasAskedByWhomAndHowLongItTook) {
  SlowLog log;
  Add(&log, {"get", "key"}, 12'345'678);
  const std::vector<SlowLog::Entry> entries = log.Newest(1);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].arguments, (std::vector<std::string>{"get", "key"}));
  EXPECT_EQ(entries[0].micros, 12'345);
  EXPECT_EQ(entries[0].client_address, "10.0.0.5:4000");
  EXPECT_EQ(entries[0].client_name, "the client");
  EXPECT_GT(entries[0].unix_seconds, 1'600'000'000);
}

TEST(SlowLogTest, TheNewestStayAndNumbersAreNotGivenAgain) {
  SlowLog log;
  log.set_max_entries(3);
  for (int i = 0; i < 5; ++i) Add(&log, {"ping"});
  EXPECT_EQ(Ids(log), (std::vector<uint64_t>{4, 3, 2}));
  EXPECT_EQ(Ids(log, 2), (std::vector<uint64_t>{4, 3}));
  log.Clear();
  EXPECT_EQ(log.size(), 0u);
  Add(&log, {"ping"});
  EXPECT_EQ(Ids(log), std::vector<uint64_t>{5});
}

TEST(SlowLogTest, ALowerLimitHoldsAtOnce) {
  SlowLog log;
  for (int i = 0; i < 5; ++i) Add(&log, {"ping"});
  log.set_max_entries(2);
  EXPECT_EQ(Ids(log), (std::vector<uint64_t>{4, 3}));
  log.set_max_entries(0);
  Add(&log, {"ping"});
  EXPECT_EQ(log.size(), 0u);
  log.set_max_entries(9);
  Add(&log, {"ping"});
  EXPECT_EQ(log.size(), 1u);
}

TEST(SlowLogTest, LongRequestsAreCutToTheLimitsOfAnEntry) {
  SlowLog log;
  const std::string large(SlowLog::kMaxArgumentBytes + 7, 'x');
  std::vector<std::string_view> arguments(SlowLog::kMaxArguments, "x");
  arguments[1] = large;
  Add(&log, arguments);
  arguments.resize(arguments.size() + 10, "x");
  Add(&log, arguments);
  const std::vector<SlowLog::Entry> entries = log.Newest(2);
  const std::vector<std::string>& whole = entries[1].arguments;
  ASSERT_EQ(whole.size(), SlowLog::kMaxArguments);
  EXPECT_EQ(whole[1], large.substr(7) + "... (7 more bytes)");
  EXPECT_EQ(whole.back(), "x");
  const std::vector<std::string>& cut = entries[0].arguments;
  ASSERT_EQ(cut.size(), SlowLog::kMaxArguments);
  EXPECT_EQ(cut.back(), "... (11 more arguments)");
}

}  // namespace
}  // namespace varve
