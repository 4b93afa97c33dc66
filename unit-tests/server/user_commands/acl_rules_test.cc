#include "server/access/acl_rules.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/access/password_hash.h"
#include "unit-tests/server/user_commands/test_catalog.h"

namespace varve {
namespace {

using testing::DenialOf;
using testing::Rules;
using testing::UserWith;
using testing::Words;

std::string Shown(std::string_view rules) {
  return DescribeUser(UserWith(rules)).substr(std::string_view("user alice ").size());
}

std::string ErrorOf(std::string_view rules) {
  User user = NewUser(Rules(), "alice");
  const absl::Status applied = ApplyUserRules(Rules(), Words(rules), &user);
  return std::string(applied.message().data(), applied.message().size());
}

TEST(AclRulesTest, ANewUserMayDoNothingAndTheDefaultUserAll) {
  EXPECT_EQ(Shown(""), "off resetchannels -@all");
  User user = NewDefaultUser(Rules());
  EXPECT_EQ(DescribeUser(user), "user default on nopass ~* &* +@all");
  EXPECT_TRUE(user.unrestricted);
  EXPECT_FALSE(UserWith("on nopass ~* +@all").unrestricted);
  EXPECT_TRUE(UserWith("on nopass ~* &* +@all").unrestricted);
  EXPECT_TRUE(UserWith("on nopass (~* &* +@all)").unrestricted);
  EXPECT_FALSE(UserWith("on nopass ~* &* +@all db=0").unrestricted);
}

TEST(AclRulesTest, RulesAreShownAsTheyWereGiven) {
  const std::string hash = PasswordHash("pw");
  EXPECT_EQ(Shown("on >pw >pw ~a* %R~b %W~c %RW~d &x +get +@read -set"),
            "on #" + hash + " ~a* %R~b %W~c ~d resetchannels &x -@all +get +@read -set");
  EXPECT_EQ(Shown(">pw nopass"), "off nopass resetchannels -@all");
  EXPECT_EQ(Shown("nopass >pw <pw"), "off resetchannels -@all");
  EXPECT_EQ(Shown("#" + hash + " !" + hash), "off resetchannels -@all");
  EXPECT_EQ(Shown("%R~a %W~a"), "off ~a resetchannels -@all");
  EXPECT_EQ(Shown("~a ~b resetkeys ~c allkeys"), "off ~* resetchannels -@all");
  EXPECT_EQ(Shown("allchannels resetchannels &a &a"), "off resetchannels &a -@all");
  EXPECT_EQ(Shown("skip-sanitize-payload"), "off skip-sanitize-payload resetchannels -@all");
  EXPECT_EQ(Shown("on >pw ~a &b +get (~c +set) reset"), "off sanitize-payload resetchannels -@all");
}

TEST(AclRulesTest, ALaterRuleForACommandTakesThePlaceOfEarlierOnes) {
  EXPECT_EQ(Shown("+get -get +GET"), "off resetchannels -@all +get");
  EXPECT_EQ(Shown("+config|get +config|set +config"), "off resetchannels -@all +config");
  EXPECT_EQ(Shown("+@all -config +config|get"), "off resetchannels +@all -config +config|get");
  EXPECT_EQ(Shown("+get +@read -@read +get"), "off resetchannels -@all +get");
  EXPECT_EQ(Shown("+set +@read -@read +get"), "off resetchannels -@all +set -@read +get");
  EXPECT_EQ(Shown("+get -@all"), "off resetchannels -@all");
  EXPECT_EQ(Shown("-get -@read"), "off resetchannels -@all");
  EXPECT_EQ(Shown("+@all +get -set +client|id"), "off resetchannels +@all -set +client|id");
  EXPECT_EQ(Shown("-get allcommands"), "off resetchannels +@all");
  EXPECT_EQ(Shown("+select|0 +select|1 +select|0"), "off resetchannels -@all +select|1 +select|0");
  EXPECT_EQ(Shown("+select|0 +select"), "off resetchannels -@all +select");
}

TEST(AclRulesTest, CommandsThatOnlyRedisHasAreNoted) {
  EXPECT_EQ(Shown("+eval +hset +debug|object -script"),
            "off resetchannels -@all +eval +hset +debug|object -script");
  EXPECT_TRUE(UserWith("~* &* +@all -debug").unrestricted);
  EXPECT_NE(ErrorOf("+debug|"), "");
  EXPECT_NE(ErrorOf("+nosuch|x"), "");
}

// A file of users could not be read again.
TEST(AclRulesTest, RulesThatAreSeveralWordsAreRefused) {
  for (const std::string_view rule :
       {"+select|a b", "+debug|a b", "~a b", "&a\nb", "ns=a b", "(~a) +get)"}) {
    User user = NewUser(Rules(), "alice");
    EXPECT_FALSE(ApplyUserRules(Rules(), {&rule, 1}, &user).ok()) << rule;
  }
}

TEST(AclRulesTest, SelectorsStandBetweenParentheses) {
  EXPECT_EQ(Shown("~a (~b +get) (%R~c &d -@all +set )"),
            "off ~a resetchannels -@all (~b resetchannels -@all +get) "
            "(%R~c resetchannels &d -@all +set)");
  EXPECT_EQ(Shown("(~a) clearselectors ()"), "off resetchannels -@all (resetchannels -@all)");
  EXPECT_EQ(ErrorOf("(~a +get"), "Unmatched parenthesis in acl selector starting at '(~a'.");
  EXPECT_EQ(ErrorOf("(on)"), "Error in ACL SETUSER modifier '(on)': Syntax error");
  EXPECT_EQ(ErrorOf("(+nosuch)"),
            "Error in ACL SETUSER modifier '(+nosuch)': Unknown command or category name in ACL");
}

TEST(AclRulesTest, PlacesAreAllUntilARuleNamesSome) {
  EXPECT_EQ(Shown("db=0"), "off resetchannels resetdbs db=0 resetns -@all");
  EXPECT_EQ(Shown("db=0,2 db=1 db=2"), "off resetchannels resetdbs db=0 db=2 db=1 resetns -@all");
  EXPECT_EQ(Shown("ns=app ns=team-*"), "off resetchannels resetdbs resetns ns=app ns=team-* -@all");
  EXPECT_EQ(Shown("db=0 allns"), "off resetchannels resetdbs db=0 allns -@all");
  EXPECT_EQ(Shown("alldbs ns=app"), "off resetchannels alldbs resetns ns=app -@all");
  EXPECT_EQ(Shown("ns=app alldbs"), "off resetchannels alldbs resetns ns=app -@all");
  EXPECT_EQ(Shown("db=0 alldbs allns"), "off resetchannels -@all");
  for (const char* wrong : {"db=", "db=x", "db=01", "db=1,", "db=-1", "ns=", "ns=a,,b"})
    EXPECT_NE(ErrorOf(wrong), "") << wrong;
}

TEST(AclRulesTest, ErrorsAreThoseOfRedis) {
  const std::pair<std::string_view, std::string_view> kErrors[] = {
      {"+foo", "Unknown command or category name in ACL"},
      {"+", "Unknown command or category name in ACL"},
      {"+@foo", "Unknown command or category name in ACL"},
      {"-select|1", "Unknown command or category name in ACL"},
      {"+config|foo", "Unknown command or category name in ACL"},
      {"+select|", "Syntax error"},
      {"+config|get|foo", "Allowing first-arg of a subcommand is not supported"},
      {"%~a", "Syntax error"},
      {"%RR~a", "Syntax error"},
      {"%RWfoo", "Syntax error"},
      {"foo", "Syntax error"},
      {"<foo", "The password you are trying to remove from the user does not exist"},
      {"#foo",
       "The password hash must be exactly 64 characters and contain only lowercase hexadecimal "
       "characters"},
  };
  for (const auto& [rule, why] : kErrors) {
    EXPECT_EQ(ErrorOf(rule),
              "Error in ACL SETUSER modifier '" + std::string(rule) + "': " + std::string(why));
  }
  EXPECT_NE(ErrorOf("~* ~a").find("Adding a pattern after the * pattern (or the 'allkeys' flag)"),
            std::string::npos);
  EXPECT_NE(ErrorOf("&* &a").find("'resetchannels' to start with an empty list of channels"),
            std::string::npos);
}

TEST(AclRulesTest, WhatIsShownMakesTheSameUser) {
  std::mt19937 random(7);
  std::istringstream words(
      "on off >a >b nopass resetpass ~a* %R~b %W~c ~* resetkeys &x &y* &* resetchannels +get "
      "-get +set +@read -@read +@write +@all -@all +config -config +config|get -config|set "
      "+select|1 -@dangerous +@fast -@slow clearselectors "
      "db=1 ns=app alldbs resetdbs allns resetns maxclients=2 cidr=10.0.0.0/8 resetcidr expires=9 "
      "expires=0");
  std::vector<std::string> rules(std::istream_iterator<std::string>(words), {});
  rules.emplace_back("(~q +get)");
  for (int run = 0; run < 2000; ++run) {
    User user = NewUser(Rules(), "alice");
    for (int i = 0; i < 12; ++i) {
      User changed = user;
      const std::string_view rule = rules[random() % rules.size()];
      if (ApplyUserRules(Rules(), {&rule, 1}, &changed).ok()) user = std::move(changed);
    }
    const std::string shown = DescribeUser(user);
    const User again = UserWith(std::string_view(shown).substr(11));
    ASSERT_EQ(DescribeUser(again), shown);
    ASSERT_EQ(again.root.commands, user.root.commands) << shown;
    ASSERT_EQ(again.root.first_arguments, user.root.first_arguments) << shown;
    ASSERT_EQ(again.unrestricted, user.unrestricted) << shown;
  }
}

}  // namespace
}  // namespace varve
