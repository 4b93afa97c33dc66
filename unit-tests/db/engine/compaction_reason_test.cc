// The reason of each merge, as the statistics and the program's log tell it.
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>

#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/log_lines.h"
#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::LogLines;
using testing::TestStore;

TEST(CompactionReasonTest, StatisticsAndLogTellWhyEachMergeWasMade) {
  const LogLines lines;
  TestStore store;
  for (int run = 0; run < store.options.runs_per_level; ++run) {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(store->Put(fmt::format("key{}", i), "value").ok());
    ASSERT_TRUE(store->Flush().ok());
  }
  EXPECT_TRUE(Eventually([&] { return store.Statistic("compactions_full_level") == 1; }));
  EXPECT_EQ(store.Statistic("compactions_range"), 0u);
  ASSERT_TRUE(store->Compact({}, {}).ok());
  EXPECT_EQ(store.Statistic("compactions_range"), 1u);
  EXPECT_EQ(store.Statistic("compactions"), 2u) << "no other reason was counted";

  WriteBatch clear;
  clear.ClearNamespace();
  ASSERT_TRUE(store->Write({}, &clear).ok());
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_TRUE(Eventually([&] { return store.Statistic("compactions_dead_segments") >= 1; }));

  store.Close();
  const std::string text = lines.text();
  for (const std::string_view reason : {"full_level", "range", "dead_segments"}) {
    EXPECT_NE(text.find(fmt::format("merge: reason {}, ", reason)), std::string::npos)
        << reason << " in\n"
        << text;
  }
}

}  // namespace
}  // namespace varve
