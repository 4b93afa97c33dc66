// The table of commands in docs/protocol.md beside what Redis says that it knows, and what both say
// of their commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "server/commands/command_table.h"
#include "unit-tests/differential/differential_run.h"
#include "unit-tests/testing/documented_commands.h"

namespace varve::differential {
namespace {

using Names = std::set<std::string>;
using ::testing::ContainerEq;
using testing::DocumentedCommands;

Names Joined(const Names& a, const Names& b) {
  Names joined = a;
  joined.insert(b.begin(), b.end());
  return joined;
}

std::string Text(const Reply& reply) {
  if (reply.type == Reply::Type::kInteger) return std::to_string(reply.integer);
  std::string text = reply.text;
  for (const Reply& element : reply.elements) text += "(" + Text(element) + ")";
  return text;
}

std::unique_ptr<DifferentialRun> StartServers() {
  RunOptions options;
  options.varve_server = VARVE_SERVER_MAIN;
  if (!ProgramExists(options.redis_server)) return nullptr;
  auto run = DifferentialRun::Start(options);
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? *std::move(run) : nullptr;
}

TEST(CommandListTest, TheTableNamesEveryCommandOfRedis) {
  std::map<std::string, Names> documented = DocumentedCommands();
  const std::unique_ptr<DifferentialRun> run = StartServers();
  if (run == nullptr) GTEST_SKIP() << "redis-server is not installed";
  const absl::StatusOr<Names> redis = run->RedisCommands();
  ASSERT_TRUE(redis.ok()) << redis.status();
  Names named;  // a container that Varve doesn't have stands for all its subcommands
  for (const std::string& name : *redis) {
    const std::string container = name.substr(0, name.find('|'));
    if (container == name || !documented["no"].contains(container)) named.insert(name);
  }
  EXPECT_THAT(Joined(Joined(documented["yes"], documented["differs"]), documented["no"]),
              ContainerEq(named));
}

// What routers and libraries go by: Redis' own words for every command that both have.
TEST(CommandListTest, CommandInfoIsThatOfRedis) {
  const std::unique_ptr<DifferentialRun> run = StartServers();
  if (run == nullptr) GTEST_SKIP() << "redis-server is not installed";
  const absl::StatusOr<Names> redis = run->RedisCommands();
  ASSERT_TRUE(redis.ok()) << redis.status();
  size_t compared = 0;
  const auto compare = [&](std::string_view name) {
    // Varve's DBSIZE may take long, so it isn't "fast"; its TIME may have arguments; the
    // stream of changes is no key.
    const bool is_stream = name.starts_with("x") && name != "xinfo" && name != "xinfo|help";
    const bool differs = name == "dbsize" || name == "time" || is_stream;
    if (differs || !redis->contains(std::string(name))) return;
    absl::StatusOr<DifferentialRun::Answers> answers =
        run->Ask({"COMMAND", "INFO", std::string(name)});
    ASSERT_TRUE(answers.ok()) << answers.status();
    for (Reply* reply : {&answers->redis, &answers->varve}) {
      ASSERT_EQ(reply->elements.size(), 1u);
      ASSERT_EQ(reply->elements[0].elements.size(), 10u) << name;
      // The subcommands come in any order, and are looked at one by one.
      reply->elements[0].elements.pop_back();
    }
    EXPECT_EQ(Text(answers->varve), Text(answers->redis));
    ++compared;
  };
  for (const Command& command : AllCommands()) {
    compare(command.name);
    for (const Subcommand& subcommand : command.subcommands) compare(subcommand.name);
  }
  EXPECT_GT(compared, 120u);
}

TEST(CommandListTest, KeysOfRequestsAreThoseThatRedisFinds) {
  const std::unique_ptr<DifferentialRun> run = StartServers();
  if (run == nullptr) GTEST_SKIP() << "redis-server is not installed";
  const CommandLine requests[] = {
      {"SET", "k", "v"},
      {"SET", "k", "v", "GET"},
      {"BITFIELD", "k", "GET", "u8", "0"},
      {"MSET", "a", "1", "b"},
      {"BITFIELD", "k", "SET", "u8", "0", "1"},
      {"COPY", "a", "b"},
      {"BITOP", "AND", "a", "b", "c"},
      {"OBJECT", "ENCODING", "k"},
      {"OBJECT", "HELP", "k"},
      {"MEMORY", "USAGE", "k"},
      {"SPUBLISH", "channel", "text"},
      {"LCS", "a", "b"},
      {"RENAMENX", "a", "b"},
      {"NOSUCH", "a"},
      {"PING", "a"},
      {"GET", "a", "b"},
      {"TOUCH", "a", "b", "c"},
  };
  for (const CommandLine& request : requests) {
    for (const char* which : {"GETKEYS", "GETKEYSANDFLAGS"}) {
      CommandLine line = {"COMMAND", which};
      line.insert(line.end(), request.begin(), request.end());
      const absl::StatusOr<DifferentialRun::Answers> answers = run->Ask(line);
      ASSERT_TRUE(answers.ok()) << answers.status();
      EXPECT_EQ(Text(answers->varve), Text(answers->redis)) << request[0] << " " << request[1];
    }
  }
}

}  // namespace
}  // namespace varve::differential
