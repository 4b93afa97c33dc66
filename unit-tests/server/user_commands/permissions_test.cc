#include "server/access/permissions.h"

#include <gtest/gtest.h>

#include <string>

#include "unit-tests/server/user_commands/test_catalog.h"

namespace varve {
namespace {

using testing::DenialOf;
using testing::UserWith;

TEST(PermissionsTest, CommandsAndCategories) {
  const User user = UserWith("allkeys +@read -mget +config|get +select|0 +client -client|kill");
  EXPECT_EQ(DenialOf(user, "get a"), "");
  EXPECT_EQ(DenialOf(user, "GET a"), "");
  EXPECT_EQ(DenialOf(user, "mget a"), "command mget");
  EXPECT_EQ(DenialOf(user, "set a b"), "command set");
  EXPECT_EQ(DenialOf(user, "config get a"), "");
  EXPECT_EQ(DenialOf(user, "CONFIG GET a"), "");
  EXPECT_EQ(DenialOf(user, "config set a b"), "command config|set");
  EXPECT_EQ(DenialOf(user, "select 0"), "");
  EXPECT_EQ(DenialOf(user, "select 1"), "command select");
  EXPECT_EQ(DenialOf(user, "client list"), "");
  EXPECT_EQ(DenialOf(user, "client kill x"), "command client|kill");
  EXPECT_EQ(DenialOf(UserWith("-@all"), "auth a b"), "");
  EXPECT_EQ(DenialOf(UserWith("-@all"), "ping"), "command ping");
}

TEST(PermissionsTest, KeysByWhatIsDoneWithThem) {
  const User user = UserWith("+@all ~both:* %R~read:* %W~write:*");
  EXPECT_EQ(DenialOf(user, "get both:1"), "");
  EXPECT_EQ(DenialOf(user, "get read:1"), "");
  EXPECT_EQ(DenialOf(user, "get write:1"), "key write:1");
  EXPECT_EQ(DenialOf(user, "set write:1 x"), "");
  EXPECT_EQ(DenialOf(user, "set write:1 x get"), "key write:1");
  // Their replies tell something about the value.
  EXPECT_EQ(DenialOf(user, "set write:1 x ifeq guess"), "key write:1");
  EXPECT_EQ(DenialOf(user, "set write:1 x IFNE guess"), "key write:1");
  EXPECT_EQ(DenialOf(user, "set write:1 x ifdeq 0123456789abcdef"), "key write:1");
  EXPECT_EQ(DenialOf(user, "set write:1 x ifdne 0123456789abcdef"), "key write:1");
  EXPECT_EQ(DenialOf(user, "put write:1 x ifversion 7"), "key write:1");
  EXPECT_EQ(DenialOf(user, "set both:1 x ifeq guess"), "");
  EXPECT_EQ(DenialOf(user, "set write:1 x nx"), "");
  EXPECT_EQ(DenialOf(user, "set read:1 x"), "key read:1");
  EXPECT_EQ(DenialOf(user, "getset both:1 x"), "");
  EXPECT_EQ(DenialOf(user, "getset write:1 x"), "key write:1");
  EXPECT_EQ(DenialOf(user, "copy read:1 write:1"), "");
  EXPECT_EQ(DenialOf(user, "copy write:1 read:1"), "key write:1");
  EXPECT_EQ(DenialOf(user, "mset both:1 x other y"), "key other");
  EXPECT_EQ(DenialOf(user, "del both:1 both:2 other"), "key other");
  EXPECT_EQ(DenialOf(user, "mget both:1 other"), "key other");
  EXPECT_EQ(DenialOf(user, "object encoding other"), "key other");
  EXPECT_EQ(DenialOf(user, "bitop and write:1 read:1 read:2"), "");
  EXPECT_EQ(DenialOf(user, "exists write:1"), "");
  EXPECT_EQ(DenialOf(user, "watch other"), "key other");
}

TEST(PermissionsTest, ChannelsAndPatternsOfThem) {
  const User user = UserWith("+@all &news:* &a");
  EXPECT_EQ(DenialOf(user, "publish news:1 x"), "");
  EXPECT_EQ(DenialOf(user, "publish b x"), "channel b");
  EXPECT_EQ(DenialOf(user, "subscribe a news:2"), "");
  EXPECT_EQ(DenialOf(user, "subscribe a b"), "channel b");
  EXPECT_EQ(DenialOf(user, "ssubscribe b"), "channel b");
  EXPECT_EQ(DenialOf(user, "spublish b x"), "channel b");
  EXPECT_EQ(DenialOf(user, "psubscribe news:*"), "");
  EXPECT_EQ(DenialOf(user, "psubscribe news:1*"), "channel news:1*");
  EXPECT_EQ(DenialOf(user, "unsubscribe b"), "");
}

TEST(PermissionsTest, OneSelectorHasToAllowAll) {
  const User user = UserWith("~a +get (~b +set) (~c +get)");
  EXPECT_EQ(DenialOf(user, "get a"), "");
  EXPECT_EQ(DenialOf(user, "set b x"), "");
  EXPECT_EQ(DenialOf(user, "get c"), "");
  EXPECT_EQ(DenialOf(user, "get b"), "key b");
  EXPECT_EQ(DenialOf(user, "set a x"), "key a");
  EXPECT_EQ(DenialOf(user, "del a"), "command del");
  EXPECT_EQ(DenialOf(UserWith("+mget ~a (~b +mget)"), "mget a b"), "key b");
}

TEST(PermissionsTest, DatabasesAndNamespaces) {
  const Place second{.database = 2}, app{.database = 99, .name = "app"};
  const User user = UserWith("+@all ~* &* db=1,2 ns=team-* ns=app");
  EXPECT_EQ(DenialOf(user, "get a", second), "");
  EXPECT_EQ(DenialOf(user, "get a", app), "");
  EXPECT_EQ(DenialOf(user, "get a"), "place database '0'");
  EXPECT_EQ(DenialOf(user, "get a", {.database = 99, .name = "apple"}), "place namespace 'apple'");
  EXPECT_EQ(DenialOf(user, "ping"), "");
  EXPECT_EQ(DenialOf(user, "select 1"), "");
  EXPECT_EQ(DenialOf(user, "select 3"), "place database '3'");
  EXPECT_EQ(DenialOf(user, "swapdb 1 3"), "place database '3'");
  EXPECT_EQ(DenialOf(user, "move a 3", second), "place database '3'");
  EXPECT_EQ(DenialOf(user, "copy a b DB 3", second), "place database '3'");
  EXPECT_EQ(DenialOf(user, "flushall", second), "place databases");
  EXPECT_EQ(DenialOf(user, "namespace use team-1"), "");
  EXPECT_EQ(DenialOf(user, "namespace use other"), "place namespace 'other'");
  EXPECT_EQ(DenialOf(user, "namespace use 0"), "place database '0'");
  EXPECT_EQ(DenialOf(user, "namespace clone app other"), "place namespace 'other'");
  EXPECT_EQ(DenialOf(user, "namespace drop other"), "place namespace 'other'");
  EXPECT_EQ(DenialOf(UserWith("+@all ~* db=0"), "namespace use app"), "place namespace 'app'");
}

TEST(PermissionsTest, WhatReachesAllKeysNeedsTheRightToThem) {
  const User part = UserWith("+@all ~a*");
  for (const char* request :
       {"flushdb", "flushall", "swapdb 0 1", "dbsize", "compact", "namespace drop app",
        "namespace create app", "namespace clone app b", "namespace info app"}) {
    EXPECT_EQ(DenialOf(part, request), "key *") << request;
    EXPECT_EQ(DenialOf(UserWith("+@all ~*"), request), "") << request;
  }
  for (const char* request :
       {"range - +", "prefix a", "count - +", "randomkey", "keys *", "scan 0"})
    EXPECT_EQ(DenialOf(part, request), "") << request;
  const User no_prefix = UserWith("+@all ~a*b");
  for (const char* request : {"range - +", "prefix a", "count - +", "randomkey"})
    EXPECT_EQ(DenialOf(no_prefix, request), "key *") << request;
  EXPECT_EQ(DenialOf(no_prefix, "keys *"), "");
  EXPECT_EQ(DenialOf(part, "delrange [a (b"), "");
  EXPECT_EQ(DenialOf(part, "delrange [a [b"), "key [a [b");
  EXPECT_EQ(DenialOf(UserWith("+@all %R~*"), "dbsize"), "");
  EXPECT_EQ(DenialOf(UserWith("+@all %R~*"), "flushdb"), "key *");
}

}  // namespace
}  // namespace varve
