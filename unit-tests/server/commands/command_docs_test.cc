// The tables of commands in docs/protocol.md and docs/stability.md beside the server's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "server/commands/command_table.h"
#include "unit-tests/testing/documented_commands.h"

namespace varve {
namespace {

using Names = std::set<std::string>;
using ::testing::ContainerEq;
using ::testing::HasSubstr;

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

TEST(CommandDocsTest, ThePageOnStabilityNamesEveryCommandThatRedis7DoesNotHave) {
  std::ifstream file(VARVE_SOURCE_DIR "/docs/stability.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  for (const auto& [how, names] : testing::DocumentedCommands()) {
    if (how != "own") continue;
    for (std::string name : names) {
      if (name.starts_with("namespace|")) continue;  // its container is there
      std::replace(name.begin(), name.end(), '|', ' ');
      EXPECT_THAT(page, HasSubstr("`" + absl::AsciiStrToUpper(name) + "`"));
    }
  }
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
