#include "server/access/acl_log.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

AclLog::Entry Denied(const std::string& object, int64_t ms, const std::string& user = "alice") {
  AclLog::Entry entry;
  entry.reason = "key";
  entry.context = "toplevel";
  entry.object = object;
  entry.username = user;
  entry.client = "at " + std::to_string(ms);
  entry.created_ms = ms;
  return entry;
}

TEST(AclLogTest, AlikeDenialsWithinAMinuteAreOneEntry) {
  AclLog log;
  log.Add(Denied("a", 1000));
  log.Add(Denied("b", 2000));
  log.Add(Denied("a", 3000));
  log.Add(Denied("a", 4000, "bob"));
  std::vector<AclLog::Entry> entries = log.Newest(10);
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].username, "bob");
  EXPECT_EQ(entries[1].object, "a");
  EXPECT_EQ(entries[1].count, 2u);
  EXPECT_EQ(entries[1].id, 0u);
  EXPECT_EQ(entries[1].created_ms, 1000);
  EXPECT_EQ(entries[1].updated_ms, 3000);
  EXPECT_EQ(entries[1].client, "at 3000");
  log.Add(Denied("a", 3001 + AclLog::kGroupMs));
  EXPECT_EQ(log.Newest(10).size(), 4u);
  EXPECT_EQ(log.Newest(1).size(), 1u);
  log.Clear();
  EXPECT_TRUE(log.Newest(10).empty());
}

TEST(AclLogTest, TheOldestGo) {
  AclLog log;
  log.set_max_entries(2);
  for (int i = 0; i < 5; ++i) log.Add(Denied(std::to_string(i), i));
  ASSERT_EQ(log.Newest(10).size(), 2u);
  EXPECT_EQ(log.Newest(10)[1].object, "3");
  log.set_max_entries(0);
  log.Add(Denied("x", 9));
  EXPECT_TRUE(log.Newest(10).empty());
}

}  // namespace
}  // namespace varve
