// The table that joins the groups of commands: complete, sorted, without doubles, found in either
// case.
#include "server/commands/command_table.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

TEST(CommandTableTest, EveryRowIsFoundOnceAndInEitherCase) {
  std::string_view before;
  ASSERT_GT(AllCommands().size(), 20u);
  for (const Command& command : AllCommands()) {
    EXPECT_LT(before, command.name);
    before = command.name;
    EXPECT_EQ(FindCommand(command.name), &command) << command.name;
    std::string upper(command.name);
    for (char& c : upper) {
      EXPECT_FALSE(c >= 'A' && c <= 'Z') << command.name;
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 0x20);
    }
    EXPECT_EQ(FindCommand(upper), &command) << upper;
    EXPECT_EQ(FindCommand(upper + "x"), nullptr);
    EXPECT_EQ(FindCommand(upper + '\0'), nullptr);
  }
  EXPECT_EQ(FindCommand(""), nullptr);
}

TEST(CommandTableTest, EveryRowIsComplete) {
  for (const Command& command : AllCommands()) {
    EXPECT_NE(command.handler, nullptr) << command.name;
    EXPECT_NE(command.arity, 0) << command.name;
    EXPECT_FALSE(command.group.empty()) << command.name;
    EXPECT_TRUE(command.summary.ends_with('.')) << command.name;
    EXPECT_EQ(command.keys.first == 0, command.keys.step == 0) << command.name;
    // A command with arguments says how they are written, one without says nothing.
    EXPECT_EQ(command.syntax.empty(), command.arity == 1 || command.name == "quit") << command.name;
  }
}

TEST(CommandTableTest, KeysAreCountedByTheirPositions) {
  EXPECT_EQ(KeyCount(*FindCommand("get"), 2), 1u);
  EXPECT_EQ(KeyCount(*FindCommand("get"), 1), 0u);
  EXPECT_EQ(KeyCount(*FindCommand("mget"), 5), 4u);
  EXPECT_EQ(KeyCount(*FindCommand("mset"), 5), 2u);
  EXPECT_EQ(KeyCount(*FindCommand("ping"), 2), 0u);
}

TEST(CommandTableTest, FindsEachCommandInAnyCaseAndNothingElse) {
  std::string_view previous;
  for (const Command& command : AllCommands()) {
    EXPECT_LT(previous, command.name);
    previous = command.name;
    EXPECT_EQ(FindCommand(command.name), &command);
    std::string upper(command.name);
    for (char& c : upper) c = c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
    EXPECT_EQ(FindCommand(upper), &command);
  }
  for (const char* unknown : {"", "ge", "gett", "a-name-of-more-than-sixteen-bytes", "g\xc5t"}) {
    EXPECT_EQ(FindCommand(unknown), nullptr) << unknown;
  }
  EXPECT_EQ(FindCommand(std::string_view("get\0", 4)), nullptr);
}

TEST(CommandTableTest, CountsTheKeysOfARequest) {
  EXPECT_EQ(KeyCount(*FindCommand("get"), 2), 1u);
  EXPECT_EQ(KeyCount(*FindCommand("mget"), 5), 4u);
  EXPECT_EQ(KeyCount(*FindCommand("mset"), 7), 3u);
  EXPECT_EQ(KeyCount(*FindCommand("ping"), 2), 0u);
  EXPECT_EQ(KeyCount(*FindCommand("get"), 1), 0u);
}

}  // namespace
}  // namespace varve
