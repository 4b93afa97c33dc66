// Cursors of SCAN are kept within bounds, and those in use longest.
#include "server/execution/scan_cursors.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

TEST(ScanCursorsTest, ACursorGoesWhenTheOneBehindItIsUsed) {
  ScanCursors cursors;
  const uint64_t first = cursors.Add(1, "a", 0);
  const uint64_t second = cursors.Add(1, "b", first);
  EXPECT_NE(first, 0u);
  EXPECT_EQ(cursors.Find(first), "a");
  EXPECT_EQ(cursors.Find(second), "b");
  EXPECT_EQ(cursors.Find(first), std::nullopt);
  EXPECT_EQ(cursors.Find(second), "b");
  EXPECT_EQ(cursors.Find(second + 1), std::nullopt);
  EXPECT_EQ(cursors.bytes(), 1 + ScanCursors::kOverhead);
}

TEST(ScanCursorsTest, AClientTakesItsOwnCursorsAway) {
  ScanCursors cursors({.all_bytes = 1u << 20, .client_bytes = 10 * (ScanCursors::kOverhead + 1)});
  const uint64_t other = cursors.Add(1, "o", 0);
  const uint64_t oldest = cursors.Add(2, "x", 0);
  uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    last = cursors.Add(2, "x", 0);
    ASSERT_TRUE(i >= 9 || cursors.Find(oldest).has_value());
  }
  EXPECT_EQ(cursors.Find(other), "o");
  EXPECT_EQ(cursors.Find(last), "x");
  EXPECT_EQ(cursors.bytes(), 11 * (ScanCursors::kOverhead + 1));
  // Larger than all it may have: kept alone.
  const uint64_t large = cursors.Add(2, std::string(1u << 16, 'k'), 0);
  EXPECT_TRUE(cursors.Find(large).has_value());
  EXPECT_EQ(cursors.Find(last), std::nullopt);
}

TEST(ScanCursorsTest, AllClientsTogetherAreBounded) {
  const size_t bytes = ScanCursors::kOverhead + 1;
  ScanCursors cursors({.all_bytes = 100 * bytes, .client_bytes = 10 * bytes});
  const uint64_t used = cursors.Add(0, "u", 0);
  const uint64_t unused = cursors.Add(0, "v", 0);
  for (uint64_t client = 1; client < 1000; ++client) {
    cursors.Add(client, "x", 0);
    EXPECT_EQ(cursors.Find(used), "u");
  }
  EXPECT_EQ(cursors.Find(unused), std::nullopt);
  EXPECT_EQ(cursors.bytes(), 100 * bytes);
}

}  // namespace
}  // namespace varve
