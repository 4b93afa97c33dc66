#include "server/access/user_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/clients/client_rights.h"
#include "unit-tests/server/user_commands/test_catalog.h"

namespace varve {
namespace {

using testing::UserWith;
using testing::Words;

TEST(UserTableTest, BeginsWithTheDefaultUser) {
  const UserTable open(&AccessCatalog(), "");
  EXPECT_FALSE(open.login_needed());
  EXPECT_TRUE(open.LogIn("default", "any") != nullptr);
  const UserTable closed(&AccessCatalog(), "secret");
  EXPECT_TRUE(closed.login_needed());
  EXPECT_TRUE(closed.LogIn("default", "secret") != nullptr);
  for (const char* given : {"", "s", "secre", "secrets", "secretsecret", "Secret"})
    EXPECT_EQ(closed.LogIn("default", given), nullptr) << given;
  EXPECT_EQ(closed.LogIn("nobody", "secret"), nullptr);
}

TEST(UserTableTest, AChangePublishesAnotherUserOfTheSameIdentity) {
  UserTable users(&AccessCatalog(), "");
  const uint64_t epoch = users.epoch();
  ASSERT_TRUE(users.Set("alice", Words("on >pw ~a +get")).ok());
  EXPECT_GT(users.epoch(), epoch);
  const UserPointer before = users.LogIn("alice", "pw");
  ASSERT_NE(before, nullptr);
  ASSERT_TRUE(users.Set("alice", Words("+set")).ok());
  const UserPointer after = users.Find("alice");
  EXPECT_NE(before, after);
  EXPECT_EQ(before->identity, after->identity);
  EXPECT_EQ(DescribeCommands(before->root), "-@all +get");
  EXPECT_EQ(DescribeCommands(after->root), "-@all +get +set");
  EXPECT_TRUE(users.Remove("alice"));
  EXPECT_FALSE(users.Remove("alice"));
  ASSERT_TRUE(users.Set("alice", {}).ok());
  EXPECT_NE(users.Find("alice")->identity, after->identity);
}

TEST(UserTableTest, TheRightsOfAConnectionWhoseUserIsGoneStayStale) {
  UserTable users(&AccessCatalog(), "");
  ASSERT_TRUE(users.Set("alice", Words("on nopass ~* +get")).ok());
  ClientRights rights;
  rights.Begin(&users);
  rights.Become(users.Find("alice"));
  EXPECT_TRUE(rights.LookAgain());
  EXPECT_FALSE(rights.Stale());
  EXPECT_TRUE(users.Remove("alice"));
  ASSERT_TRUE(users.Set("alice", Words("on nopass ~* +@all")).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(rights.Stale());
    EXPECT_FALSE(rights.LookAgain()) << "it is another user of that name";
  }
}

TEST(UserTableTest, AWrongRuleChangesNothing) {
  UserTable users(&AccessCatalog(), "");
  ASSERT_TRUE(users.Set("alice", Words("on +get")).ok());
  const uint64_t epoch = users.epoch();
  EXPECT_FALSE(users.Set("alice", Words("off -get +nosuch")).ok());
  EXPECT_FALSE(users.Set("bob", Words("+get +nosuch")).ok());
  EXPECT_EQ(users.Find("bob"), nullptr);
  EXPECT_TRUE(users.Find("alice")->on);
  EXPECT_EQ(users.epoch(), epoch);
}

TEST(UserTableTest, WhoIsOffCanNotLogIn) {
  UserTable users(&AccessCatalog(), "");
  ASSERT_TRUE(users.Set("alice", Words("on >one >two")).ok());
  EXPECT_NE(users.LogIn("alice", "one"), nullptr);
  EXPECT_NE(users.LogIn("alice", "two"), nullptr);
  ASSERT_TRUE(users.Set("alice", Words("off")).ok());
  EXPECT_EQ(users.LogIn("alice", "one"), nullptr);
  ASSERT_TRUE(users.Set("default", Words("off")).ok());
  EXPECT_TRUE(users.login_needed());
}

TEST(UserTableTest, TheServersPasswordIsThatOfTheDefaultUser) {
  UserTable users(&AccessCatalog(), "one");
  users.SetDefaultPassword("two");
  EXPECT_EQ(users.LogIn("default", "one"), nullptr);
  EXPECT_NE(users.LogIn("default", "two"), nullptr);
  users.SetDefaultPassword("");
  EXPECT_FALSE(users.login_needed());
  EXPECT_TRUE(users.default_nopass());
  const std::string bytes("a\0b\xff", 4);
  users.SetDefaultPassword(bytes);
  EXPECT_NE(users.LogIn("default", bytes), nullptr);
  EXPECT_EQ(users.LogIn("default", "a"), nullptr);
}

TEST(UserTableTest, ReplacedUsersKeepTheirIdentityAndTheDefaultUserStays) {
  UserTable users(&AccessCatalog(), "");
  ASSERT_TRUE(users.Set("alice", Words("on nopass +get")).ok());
  ASSERT_TRUE(users.Set("bob", {}).ok());
  const uint64_t identity = users.Find("alice")->identity;
  users.SetDefaultPassword("kept");
  users.Replace({UserWith("on nopass +set")});
  EXPECT_EQ(users.Find("alice")->identity, identity);
  EXPECT_EQ(DescribeCommands(users.Find("alice")->root), "-@all +set");
  EXPECT_EQ(users.Find("bob"), nullptr);
  EXPECT_TRUE(users.Default()->unrestricted);
  EXPECT_NE(users.LogIn("default", "kept"), nullptr);
  EXPECT_EQ(users.All().size(), 2u);
}

TEST(UserTableTest, WhoLogsInWhileThePasswordChangesFindsOneOfTheTwo) {
  const std::string one(100, '1'), other(100, '2'),
      neither = std::string(50, '1') + other.substr(50);
  UserTable users(&AccessCatalog(), one);
  std::atomic<bool> done{false};
  std::thread setter([&] {
    for (int i = 0; i < 1000; ++i) users.SetDefaultPassword(i % 2 == 0 ? other : one);
    done = true;
  });
  while (!done) ASSERT_EQ(users.LogIn("default", neither), nullptr);
  setter.join();
  EXPECT_NE(users.LogIn("default", one), nullptr);
}

}  // namespace
}  // namespace varve
