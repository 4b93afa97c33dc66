// Cursors of SCAN are kept within bounds, and those in use longest.
#include "server/execution/scan_cursors.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

constexpr uint64_t kUser = 7;

TEST(ScanCursorsTest, ACursorIsOfTheUserWhoScans) {
  ScanCursors cursors;
  const uint64_t cursor = cursors.Add(1, kUser, "a", 0);
  EXPECT_EQ(cursors.Find(cursor, kUser + 1), std::nullopt);
  EXPECT_EQ(cursors.Find(cursor, kUser), "a");
}

TEST(ScanCursorsTest, ACursorGoesWhenTheOneBehindItIsUsed) {
  ScanCursors cursors;
  const uint64_t first = cursors.Add(1, kUser, "a", 0);
  const uint64_t second = cursors.Add(1, kUser, "b", first);
  EXPECT_NE(first, 0u);
  EXPECT_EQ(cursors.Find(first, kUser), "a");
  EXPECT_EQ(cursors.Find(second, kUser), "b");
  EXPECT_EQ(cursors.Find(first, kUser), std::nullopt);
  EXPECT_EQ(cursors.Find(second, kUser), "b");
  EXPECT_EQ(cursors.Find(second + 1, kUser), std::nullopt);
  EXPECT_EQ(cursors.bytes(), 1 + ScanCursors::kOverhead);
}

TEST(ScanCursorsTest, AClientTakesItsOwnCursorsAway) {
  ScanCursors cursors({.all_bytes = 1u << 20, .client_bytes = 10 * (ScanCursors::kOverhead + 1)});
  const uint64_t other = cursors.Add(1, kUser, "o", 0);
  const uint64_t oldest = cursors.Add(2, kUser, "x", 0);
  uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    last = cursors.Add(2, kUser, "x", 0);
    ASSERT_TRUE(i >= 9 || cursors.Find(oldest, kUser).has_value());
  }
  EXPECT_EQ(cursors.Find(other, kUser), "o");
  EXPECT_EQ(cursors.Find(last, kUser), "x");
  EXPECT_EQ(cursors.bytes(), 11 * (ScanCursors::kOverhead + 1));
  // Larger than all it may have: kept alone.
  const uint64_t large = cursors.Add(2, kUser, std::string(1u << 16, 'k'), 0);
  EXPECT_TRUE(cursors.Find(large, kUser).has_value());
  EXPECT_EQ(cursors.Find(last, kUser), std::nullopt);
}

TEST(ScanCursorsTest, AllClientsTogetherAreBounded) {
  const size_t bytes = ScanCursors::kOverhead + 1;
  ScanCursors cursors({.all_bytes = 100 * bytes, .client_bytes = 10 * bytes});
  const uint64_t used = cursors.Add(0, kUser, "u", 0);
  const uint64_t unused = cursors.Add(0, kUser, "v", 0);
  for (uint64_t client = 1; client < 1000; ++client) {
    cursors.Add(client, kUser, "x", 0);
    EXPECT_EQ(cursors.Find(used, kUser), "u");
  }
  EXPECT_EQ(cursors.Find(unused, kUser), std::nullopt);
  EXPECT_EQ(cursors.bytes(), 100 * bytes);
}

}  // namespace
}  // namespace varve
