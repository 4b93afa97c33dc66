// Keys as people see them.
#include "server/status/survey_documents.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

TEST(ShownKeyTest, TextStaysAsItIs) {
  EXPECT_EQ(ShownKey("user:1/x y"), "user:1/x y");
  EXPECT_EQ(ShownKey("Zürich"), "Zürich");
  EXPECT_EQ(ShownKey(""), "");
}

TEST(ShownKeyTest, OtherBytesAreTold) {
  EXPECT_EQ(ShownKey(std::string("\0\n\x7f", 3)), "\\x00\\x0a\\x7f");
  EXPECT_EQ(ShownKey("a\xff\xc3"), "a\\xff\\xc3");
  EXPECT_EQ(ShownKey("a\\x"), "a\\\\x");
}

TEST(ShownKeyTest, LongKeysAreCut) {
  EXPECT_EQ(ShownKey(std::string(1000, 'k')), std::string(200, 'k') + "...");
}

}  // namespace
}  // namespace varve
