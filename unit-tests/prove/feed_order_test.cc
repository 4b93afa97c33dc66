// The order of the change feed against made-up calls: right ones are explained, wrong ones refused.
#include "unit-tests/prove/feed_order.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit-tests/prove/history.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve::prove {
namespace {

using Kind = FeedCall::Kind;

FeedCall Get(int64_t call, int64_t done, const std::string& result) {
  return {.kind = Kind::kGet, .call = call, .done = done, .result = result};
}
FeedCall Set(int64_t call, int64_t done, const std::string& written,
             const std::string& result = "1") {
  return {.kind = Kind::kSet, .call = call, .done = done, .written = written, .result = result};
}
FeedCall Delete(int64_t call, int64_t done, const std::string& result) {
  return {.kind = Kind::kDelete, .call = call, .done = done, .result = result};
}
FeedCall CompareAndSet(int64_t call, int64_t done, const std::string& expected,
                       const std::string& written, const std::string& result = "1") {
  return {.kind = Kind::kCompareAndSet,
          .call = call,
          .done = done,
          .written = written,
          .expected = expected,
          .result = result};
}

// What is wrong with the order; "" if it explains the calls.
std::string Check(const std::vector<FeedCall>& calls, const std::vector<std::string>& order) {
  return std::string(CheckFeedOrder(calls, order).message());
}

TEST(FeedOrderTest, ARightOrderExplainsTheCalls) {
  EXPECT_EQ(Check({}, {}), "");
  EXPECT_EQ(Check({Set(1, 4, "a"), Set(2, 3, "b"), Get(5, 6, "b")}, {"a", "b"}), "");
  EXPECT_EQ(Check({Set(1, 4, "a"), Set(2, 3, "b"), Get(5, 6, "a")}, {"b", "a"}), "");
  EXPECT_EQ(Check({Set(1, 2, "a"), Delete(3, 4, "1"), CompareAndSet(5, 6, "-", "b"),
                   CompareAndSet(7, 8, "b", "c"), Delete(9, 9, "0")},
                  {"a", "-", "b", "c"}),
            "");
  EXPECT_EQ(Check({Set(1, 9, "a", ""), Set(1, 9, "b", ""), Delete(1, 9, "")}, {"b", "-"}), "");
}

TEST(FeedOrderTest, AWrongOneIsRefused) {
  EXPECT_EQ(Check({Set(1, 2, "a")}, {}), "the feed: the value a is missing");
  EXPECT_EQ(Check({Set(1, 2, "a")}, {"a", "a"}), "the feed: the value a was written twice");
  EXPECT_EQ(Check({CompareAndSet(1, 2, "-", "a", "0")}, {"a"}),
            "the feed: the value a was refused");
  EXPECT_EQ(Check({}, {"-"}), "the feed: a deletion of what was not there");
  EXPECT_NE(Check({Set(1, 2, "a"), Set(3, 4, "b")}, {"b", "a"}), "") << "against the time";
  EXPECT_NE(Check({Set(1, 2, "a"), Set(2, 4, "x"), Set(3, 4, "b")}, {"x", "b", "a"}), "");
  EXPECT_NE(Check({Set(1, 9, "a"), CompareAndSet(1, 9, "-", "b")}, {"a", "b"}), "");
  EXPECT_NE(Check({Set(1, 9, "a"), Delete(1, 9, "1")}, {"a"}), "") << "a deletion is missing";
  EXPECT_NE(Check({Set(1, 9, "a"), Delete(1, 9, "0")}, {"a", "-"}), "") << "one too many";
  EXPECT_NE(Check({Get(1, 9, "a")}, {}), "");
  EXPECT_NE(Check({Set(1, 2, "a"), Set(3, 4, "b"), Get(5, 6, "a")}, {"a", "b"}), "") << "stale";
  EXPECT_NE(Check({Get(1, 2, "a"), Set(3, 4, "a")}, {"a"}), "") << "read before it was written";
}

TEST(FeedOrderTest, TheFeedExplainsWhatClientsOfAKilledServerSaw) {
  const testing::TempDir directory;
  const auto lines = RecordHistory(
      {.server = VARVE_SERVER_MAIN, .directory = directory.path(), .seed = 7, .kills = 2});
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_GT(lines->size(), 100u);
}

}  // namespace
}  // namespace varve::prove
