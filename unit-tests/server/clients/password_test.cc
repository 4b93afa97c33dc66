#include "server/clients/password.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

namespace varve {
namespace {

TEST(PasswordTest, OnlyTheWholePasswordMatches) {
  const Password password("secret");
  EXPECT_TRUE(password.needed());
  EXPECT_TRUE(password.Matches("secret"));
  // A check that repeats the password to the length of what was given must still see the length.
  for (const char* given :
       {"", "s", "secre", "secrets", "secretsecret", "Secret", "secreT", "wrong!"})
    EXPECT_FALSE(password.Matches(given)) << given;
}

TEST(PasswordTest, WithoutAPasswordAnyIsRight) {
  const Password password("");
  EXPECT_FALSE(password.needed());
  EXPECT_TRUE(password.Matches(""));
  EXPECT_TRUE(password.Matches("any"));
}

TEST(PasswordTest, ANewPasswordTakesThePlaceOfTheOld) {
  Password password("old");
  password.Set("new");
  EXPECT_FALSE(password.Matches("old"));
  EXPECT_TRUE(password.Matches("new"));
  password.Set("");
  EXPECT_FALSE(password.needed());
  password.Set("again");
  EXPECT_TRUE(password.needed());
}

TEST(PasswordTest, AnyBytesMakeAPassword) {
  const std::string bytes("a\0b\xff", 4);
  const Password password(bytes);
  EXPECT_TRUE(password.Matches(bytes));
  EXPECT_FALSE(password.Matches(std::string("a\0b\xfe", 4)));
  EXPECT_FALSE(password.Matches("a"));
}

TEST(PasswordTest, WhoAsksWhileItChangesFindsOneOfTheTwo) {
  const std::string one(100, '1'), other(100, '2'),
      neither = std::string(50, '1') + other.substr(50);
  Password password(one);
  std::atomic<bool> done{false};
  std::thread setter([&] {
    for (int i = 0; i < 1000; ++i) password.Set(i % 2 == 0 ? other : one);
    done = true;
  });
  while (!done) ASSERT_FALSE(password.Matches(neither));
  setter.join();
  EXPECT_TRUE(password.Matches(one));
}

}  // namespace
}  // namespace varve
