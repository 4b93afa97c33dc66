#include "varve/key_group.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "varve/namespace_status.h"
#include "varve/write_batch.h"

namespace varve {
namespace {

using namespace std::string_literals;

const KeyGrouping kByColon = KeyGrouping::By(':');

TEST(KeyGroupTest, AGroupIsWhatStandsBeforeTheFirstDelimiter) {
  EXPECT_EQ(GroupOf(kByColon, "user17:name:first"), "user17:");
  EXPECT_EQ(GroupOf(kByColon, "user17:"), "user17:");
  EXPECT_EQ(GroupOf(kByColon, "user17"), "user17") << "of its own, not that of user17:";
  EXPECT_EQ(GroupOf(kByColon, ":x"), ":");
  EXPECT_EQ(GroupOf(kByColon, ""), "");
  EXPECT_EQ(GroupOf(KeyGrouping::By('\0'), "a\0b"s), "a\0"s);
  EXPECT_EQ(GroupOf(KeyGrouping::Together(), "any:key"), "");
  EXPECT_EQ(GroupOf(KeyGrouping(), "a:key"), "a:key");
}

TEST(KeyGroupTest, AGroupingIsReadFromItsWords) {
  for (const KeyGrouping& grouping : {KeyGrouping(), KeyGrouping::Together(), kByColon,
                                      KeyGrouping::By('\0'), KeyGrouping::By(' ')})
    EXPECT_EQ(GroupingOfText(GroupingText(grouping)), grouping) << GroupingText(grouping);
  EXPECT_EQ(GroupingText(KeyGrouping()), "");
  EXPECT_EQ(GroupingText(KeyGrouping::Together()), "TOGETHER yes");
  EXPECT_EQ(GroupingText(kByColon), "GROUP :");
  for (const std::string_view none : {"TOGETHER", "TOGETHER no", "GROUP ", "GROUP ::", "group :"})
    EXPECT_EQ(GroupingOfText(none), std::nullopt) << none;
}

TEST(KeyGroupTest, ARangeIsWithinAGroupIfAllKeysAreThatMayBeThere) {
  EXPECT_TRUE(IsWithinGroup(kByColon, "a:b", "a:c"));
  EXPECT_TRUE(IsWithinGroup(kByColon, "a:", "a;"));
  EXPECT_TRUE(IsWithinGroup(kByColon, "b", "a"));
  EXPECT_FALSE(IsWithinGroup(kByColon, "a:", "a;x"));
  EXPECT_FALSE(IsWithinGroup(kByColon, "a:", ""));
  EXPECT_FALSE(IsWithinGroup(kByColon, "a", "a:"));
  const KeyGrouping last = KeyGrouping::By('\xff');
  EXPECT_TRUE(IsWithinGroup(last, "a\xff", "b"));
  EXPECT_FALSE(IsWithinGroup(last, "a\xff", "b\x01"));
  EXPECT_TRUE(IsWithinGroup(last, "\xff", ""));
  EXPECT_TRUE(IsWithinGroup(KeyGrouping::Together(), "a", ""));
  EXPECT_TRUE(IsWithinGroup(KeyGrouping(), "a", "a\0"s));
  EXPECT_FALSE(IsWithinGroup(KeyGrouping(), "a", "b"));
}

class CheckGroupsTest : public ::testing::Test {
 protected:
  // Namespace 1 groups by colons, 2 is together, 3 has a group for each key, others have none.
  absl::Status Check() const {
    return CheckGroups(batch_, [](NamespaceId space) -> std::optional<KeyGrouping> {
      if (space == 1) return kByColon;
      if (space == 2) return KeyGrouping::Together();
      if (space == 3) return KeyGrouping();
      return std::nullopt;
    });
  }
  WriteBatch batch_;
};

TEST_F(CheckGroupsTest, OperationsAndConditionsAreOfOneGroup) {
  EXPECT_TRUE(Check().ok());
  batch_.UseNamespace(1);
  batch_.Put("a:1", "v");
  batch_.Delete("a:2");
  batch_.RequireUnchanged("a:3", SequenceNumber{1});
  batch_.RequireRangeUnchanged("a:4", "a:5", 1);
  EXPECT_TRUE(Check().ok()) << Check();
  batch_.RequireNotPut("a", SequenceNumber{1});
  EXPECT_TRUE(IsCrossGroup(Check()));
}

TEST_F(CheckGroupsTest, NamespacesAreNeverOneGroup) {
  batch_.Put("a:1", "v", 0);
  batch_.Put("a:1", "v", 5);
  EXPECT_TRUE(Check().ok()) << "neither has groups";
  batch_.Put("a:1", "v", 2);
  EXPECT_TRUE(IsCrossGroup(Check()));
}

TEST_F(CheckGroupsTest, ARangeOfSeveralGroupsIsNoConditionAndAChangeOfOneIsAlone) {
  batch_.RequireRangeUnchanged("a:", "b:", 1, 1);
  EXPECT_TRUE(IsCrossGroup(Check()));
  for (const NamespaceId space : {1u, 2u, 3u}) {
    batch_.Clear();
    batch_.DeleteRange("a:1", "a:2", space);
    EXPECT_TRUE(Check().ok());
    batch_.Put("a:1", "v", space);
    EXPECT_TRUE(IsCrossGroup(Check()));
    batch_.Clear();
    batch_.DropNamespace(space);
    EXPECT_TRUE(Check().ok());
    batch_.ClearNamespace(0);
    EXPECT_TRUE(IsCrossGroup(Check()));
  }
}

TEST_F(CheckGroupsTest, EachKeyIsAGroupWhereNothingIsDeclared) {
  batch_.Put("a", "1", 3);
  batch_.Put("a", "2", 3);
  batch_.RequireUnchanged("a", SequenceNumber{1}, 3);
  EXPECT_TRUE(Check().ok());
  batch_.Put("b", "1", 3);
  EXPECT_TRUE(IsCrossGroup(Check()));
}

}  // namespace
}  // namespace varve
