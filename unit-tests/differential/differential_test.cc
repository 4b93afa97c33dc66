// A short differential run, and the rules by which replies are compared.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit-tests/differential/differential_run.h"

namespace varve::differential {
namespace {

TEST(DifferentialTest, AnswersAsRedisDoes) {
  RunOptions options;
  options.varve_server = VARVE_SERVER_MAIN;
  if (!ProgramExists(options.redis_server)) GTEST_SKIP() << "redis-server is not installed";
  const auto run = DifferentialRun::Start(options);
  ASSERT_TRUE(run.ok()) << run.status();
  const auto result = (*run)->Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->commands, options.commands);
  for (const std::string& difference : result->differences) ADD_FAILURE() << difference;
  for (const char* name : {"get", "set", "setbit", "bitfield", "bitop", "lcs"}) {
    EXPECT_GT(result->by_command.at(name), 50u) << name;
  }
}

// A Redis with other limits refuses what Varve takes. A round has hundreds of commands, a report the few that matter.
TEST(DifferentialTest, FindsADifferenceAndShortensIt) {
  RunOptions options;
  options.varve_server = VARVE_SERVER_MAIN;
  options.redis_arguments = {"--proto-max-bulk-len", "1mb"};
  options.max_differences = 1;
  if (!ProgramExists(options.redis_server)) GTEST_SKIP() << "redis-server is not installed";
  const auto run = DifferentialRun::Start(options);
  ASSERT_TRUE(run.ok()) << run.status();
  const auto result = (*run)->Run();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->differences.size(), 1u);
  const std::string& difference = result->differences[0];
  EXPECT_NE(difference.find("  redis \"-ERR "), std::string::npos) << difference;
  EXPECT_LE(std::count(difference.begin(), difference.end(), '>'), 10) << difference;
}

TEST(DifferentialTest, OnlyTheOrderOfUnorderedRepliesIsForgiven) {
  EXPECT_EQ(Comparable({"KEYS", "*"}, "*2\r\n$1\r\nb\r\n$1\r\na\r\n"),
            Comparable({"keys", "*"}, "*2\r\n$1\r\na\r\n$1\r\nb\r\n"));
  EXPECT_NE(Comparable({"KEYS", "*"}, "*2\r\n$1\r\nb\r\n$1\r\na\r\n"), Comparable({"KEYS", "*"}, "*1\r\n$1\r\na\r\n"));
  EXPECT_NE(Comparable({"MGET", "a"}, "*2\r\n$1\r\nb\r\n$1\r\na\r\n"),
            Comparable({"MGET", "a"}, "*2\r\n$1\r\na\r\n$1\r\nb\r\n"));
  EXPECT_NE(Comparable({"SCAN", "0"}, "*2\r\n$1\r\n0\r\n*0\r\n"), Comparable({"SCAN", "0"}, "*2\r\n$1\r\n5\r\n*0\r\n"));
  EXPECT_EQ(Comparable({"RANDOMKEY"}, "$1\r\na\r\n"), Comparable({"RANDOMKEY"}, "$1\r\nb\r\n"));
  EXPECT_NE(Comparable({"RANDOMKEY"}, "$1\r\na\r\n"), Comparable({"RANDOMKEY"}, "$-1\r\n"));
}

TEST(DifferentialTest, TheSameSeedGivesTheSameCommands) {
  const std::set<std::string> known = {"get", "set", "bitfield", "scan"};
  CommandGenerator first(7, known);
  CommandGenerator second(7, known);
  CommandGenerator other(8, known);
  int equal = 0;
  for (int i = 0; i < 1000; ++i) {
    const CommandLine line = first.Next();
    EXPECT_EQ(line, second.Next());
    ASSERT_FALSE(line.empty());
    equal += line == other.Next() ? 1 : 0;
  }
  EXPECT_LT(equal, 500);
}

}  // namespace
}  // namespace varve::differential
