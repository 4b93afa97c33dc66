// The table of commands in docs/protocol.md beside what Varve and Redis say they know.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>

#include "server/command_table.h"
#include "unit-tests/differential/differential_run.h"

namespace varve::differential {
namespace {

using Names = std::set<std::string>;
using ::testing::ContainerEq;

// Names (lower case) by what the second column says of them.
std::map<std::string, Names> DocumentedCommands() {
  std::ifstream file(VARVE_SOURCE_DIR "/docs/protocol.md");
  std::map<std::string, Names> commands;
  Names seen;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) inside = line == "## Every command of Redis 7";
    if (!inside || !line.starts_with("| `")) continue;
    const size_t second = line.find('|', 1);
    const size_t third = line.find('|', second + 1);
    const std::string how = line.substr(second + 2, third - second - 3);
    for (size_t at = line.find('`'); at < second; at = line.find('`', line.find('`', at + 1) + 1)) {
      std::string name = line.substr(at + 1, line.find('`', at + 1) - at - 1);
      for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
      EXPECT_TRUE(seen.insert(name).second) << name << " is listed twice";
      commands[how].insert(name);
    }
  }
  return commands;
}

Names Joined(const Names& a, const Names& b) {
  Names joined = a;
  joined.insert(b.begin(), b.end());
  return joined;
}

TEST(CommandListTest, TheTableNamesEveryCommandOfTheServer) {
  std::map<std::string, Names> documented = DocumentedCommands();
  Names known;
  for (const Command& command : AllCommands()) known.insert(std::string(command.name));
  EXPECT_THAT(Joined(Joined(documented["yes"], documented["differs"]), documented["own"]), ContainerEq(known));
  EXPECT_EQ(documented.size(), 4u) << "a row says something else than yes, differs, no or own";
}

TEST(CommandListTest, TheTableNamesEveryCommandOfRedis) {
  std::map<std::string, Names> documented = DocumentedCommands();
  RunOptions options;
  options.varve_server = VARVE_SERVER_MAIN;
  if (!ProgramExists(options.redis_server)) GTEST_SKIP() << "redis-server is not installed";
  const auto run = DifferentialRun::Start(options);
  ASSERT_TRUE(run.ok()) << run.status();
  const absl::StatusOr<Names> redis = (*run)->RedisCommands();
  ASSERT_TRUE(redis.ok()) << redis.status();
  EXPECT_THAT(Joined(Joined(documented["yes"], documented["differs"]), documented["no"]), ContainerEq(*redis));
}

}  // namespace
}  // namespace varve::differential
