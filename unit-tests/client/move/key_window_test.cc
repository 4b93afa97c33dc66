#include "client/move/key_window.h"

#include <gtest/gtest.h>

#include "client/move/key_bounds.h"

namespace varve {
namespace {

TEST(KeyWindowTest, HoldsTheLastStateOfEachKey) {
  KeyWindow window;
  EXPECT_TRUE(window.empty());
  window.Put("0", {.key = "b", .value = "1"});
  window.Put("0", {.key = "a", .value = "1"});
  window.Put("0", {.key = "a", .value = "22", .expiry_ms = 7, .metadata = "m"});
  window.Delete("0", "b");
  window.Put("users", {.key = "b", .value = "3"});
  ASSERT_EQ(window.spaces().size(), 2U);
  const KeyWindow::Keys& keys = window.spaces().at("0");
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys.at("a"),
            (MovedRecord{.key = "a", .value = "22", .expiry_ms = 7, .metadata = "m"}));
  EXPECT_EQ(keys.at("b"), std::nullopt);
  EXPECT_EQ(window.spaces().at("users").at("b")->value, "3");
  EXPECT_EQ(window.bytes(), 11U);
  window.Clear();
  EXPECT_TRUE(window.empty());
  EXPECT_EQ(window.bytes(), 0U);
}

TEST(KeyBoundsTest, APrefixEndsBeforeTheNextOne) {
  EXPECT_EQ(BoundsOfPrefix("").min, "-");
  EXPECT_EQ(BoundsOfPrefix("").max, "+");
  EXPECT_EQ(BoundsOfPrefix("user:").min, "[user:");
  EXPECT_EQ(BoundsOfPrefix("user:").max, "(user;");
  EXPECT_EQ(BoundsOfPrefix("a\xff\xff").min, "[a\xff\xff");
  EXPECT_EQ(BoundsOfPrefix("a\xff\xff").max, "(b");
  EXPECT_EQ(BoundsOfPrefix("\xff").max, "+");
  EXPECT_EQ(BehindKey("k"), "(k");
}

}  // namespace
}  // namespace varve
