#include "server/access/password_hash.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

TEST(PasswordHashTest, IsSha256) {
  EXPECT_EQ(PasswordHash("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(IsPasswordHash(PasswordHash("")));
  EXPECT_FALSE(IsPasswordHash("abc"));
  EXPECT_FALSE(IsPasswordHash(std::string(64, 'A')));
}

TEST(PasswordHashTest, FindsAHashAmongOthers) {
  const std::vector<std::string> hashes = {PasswordHash("a"), PasswordHash("b")};
  EXPECT_TRUE(HasPasswordHash(hashes, PasswordHash("a")));
  EXPECT_TRUE(HasPasswordHash(hashes, PasswordHash("b")));
  EXPECT_FALSE(HasPasswordHash(hashes, PasswordHash("c")));
  EXPECT_FALSE(HasPasswordHash({}, PasswordHash("c")));
}

TEST(PasswordHashTest, RandomDigitsAreAsManyAsTheBitsTake) {
  EXPECT_EQ(RandomHex(256).size(), 64u);
  EXPECT_EQ(RandomHex(5).size(), 2u);
  EXPECT_EQ(RandomHex(1).size(), 1u);
  EXPECT_NE(RandomHex(256), RandomHex(256));
}

}  // namespace
}  // namespace varve
