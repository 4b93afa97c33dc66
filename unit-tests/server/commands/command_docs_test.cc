// The table of commands in docs/protocol.md beside the server's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "server/commands/command_table.h"
#include "unit-tests/testing/documented_commands.h"

namespace varve {
namespace {

using Names = std::set<std::string>;
using ::testing::ContainerEq;

TEST(CommandDocsTest, TheTableNamesEveryCommandOfTheServer) {
  Names known;
  for (const Command& command : AllCommands()) {
    known.insert(std::string(command.name));
    for (const Subcommand& subcommand : command.subcommands) known.insert(subcommand.name);
  }
  Names documented;
  for (const auto& [how, names] : testing::DocumentedCommands()) {
    EXPECT_TRUE(how == "yes" || how == "differs" || how == "own" || how == "no") << how;
    if (how != "no") documented.insert(names.begin(), names.end());
  }
  EXPECT_THAT(documented, ContainerEq(known))
      << "add the command to the table \"Every command of Redis 7\" in docs/protocol.md";
}

// A container leaves its complexity to its subcommands.
TEST(CommandDocsTest, EveryCommandTellsItsComplexityAndItsFirstVersion) {
  for (const Command& command : AllCommands()) {
    const bool container = (command.flags & kContainerCommand) != 0;
    EXPECT_EQ(command.complexity.empty(), container) << command.name;
    EXPECT_FALSE(command.since.empty()) << command.name;
  }
}

}  // namespace
}  // namespace varve
