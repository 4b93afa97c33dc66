// A short differential run, and the rules by which replies are compared.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit-tests/differential/differential_run.h"

namespace varve::differential {
namespace {

class DifferentialTest : public ::testing::Test {
 protected:
  // Sends the commands to both servers and expects the same of them. Skips the test where there is
  // no redis-server.
  void ExpectNoDifference() {
    if (!ProgramExists(options_.redis_server)) GTEST_SKIP() << "redis-server is not installed";
    options_.varve_server = VARVE_SERVER_MAIN;
    const auto run = DifferentialRun::Start(options_);
    ASSERT_TRUE(run.ok()) << run.status();
    const auto result = (*run)->Run();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->commands, options_.commands);
    for (const std::string& difference : result->differences) ADD_FAILURE() << difference;
    by_command_ = result->by_command;
  }

  RunOptions options_;
  decltype(RunResult::by_command) by_command_;
};

TEST_F(DifferentialTest, AnswersAsRedisDoes) {
  ASSERT_NO_FATAL_FAILURE(ExpectNoDifference());
  if (IsSkipped()) return;
  for (const char* name : {"get", "set", "setbit", "bitfield", "bitop", "lcs", "client", "config",
                           "hello", "multi", "watch", "expire", "setex", "getex"}) {
    EXPECT_GT(by_command_.at(name), 50u) << name;
  }
}

TEST_F(DifferentialTest, AnswersAsRedisDoesInANamespaceOfOneGroup) {
  options_.commands = 4'000;
  options_.grouped = true;
  ASSERT_NO_FATAL_FAILURE(ExpectNoDifference());
  if (IsSkipped()) return;
  for (const char* name : {"mset", "rename", "copy", "bitop", "exec"})
    EXPECT_GT(by_command_.at(name), 10u) << name;
  EXPECT_FALSE(by_command_.contains("select"));
}

// A Redis with other limits refuses what Varve takes. A round has hundreds of commands, a report
// the few that matter.
TEST_F(DifferentialTest, FindsADifferenceAndShortensIt) {
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

TEST_F(DifferentialTest, OnlyTheOrderOfUnorderedRepliesIsForgiven) {
  EXPECT_EQ(Comparable({"KEYS", "*"}, "*2\r\n$1\r\nb\r\n$1\r\na\r\n"),
            Comparable({"keys", "*"}, "*2\r\n$1\r\na\r\n$1\r\nb\r\n"));
  EXPECT_NE(Comparable({"KEYS", "*"}, "*2\r\n$1\r\nb\r\n$1\r\na\r\n"),
            Comparable({"KEYS", "*"}, "*1\r\n$1\r\na\r\n"));
  EXPECT_NE(Comparable({"MGET", "a"}, "*2\r\n$1\r\nb\r\n$1\r\na\r\n"),
            Comparable({"MGET", "a"}, "*2\r\n$1\r\na\r\n$1\r\nb\r\n"));
  EXPECT_NE(Comparable({"SCAN", "0"}, "*2\r\n$1\r\n0\r\n*0\r\n"),
            Comparable({"SCAN", "0"}, "*2\r\n$1\r\n5\r\n*0\r\n"));
  EXPECT_EQ(Comparable({"RANDOMKEY"}, "$1\r\na\r\n"), Comparable({"RANDOMKEY"}, "$1\r\nb\r\n"));
  EXPECT_NE(Comparable({"RANDOMKEY"}, "$1\r\na\r\n"), Comparable({"RANDOMKEY"}, "$-1\r\n"));
}

TEST_F(DifferentialTest, OnlyTheIdentityOfAServerIsForgivenInHello) {
  const std::string redis = "*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:2\r\n";
  const std::string varve = "*4\r\n$6\r\nserver\r\n$5\r\nvarve\r\n$5\r\nproto\r\n:2\r\n";
  const std::string other = "*4\r\n$6\r\nserver\r\n$5\r\nvarve\r\n$5\r\nproto\r\n:3\r\n";
  EXPECT_EQ(Comparable({"HELLO"}, redis), Comparable({"HELLO"}, varve));
  EXPECT_NE(Comparable({"HELLO"}, redis), Comparable({"HELLO"}, other));
  const std::string ab = "*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n";
  EXPECT_EQ(Comparable({"CONFIG", "GET", "a", "b"}, ab),
            Comparable({"CONFIG", "GET", "a", "b"},
                       "*4\r\n$1\r\nb\r\n$1\r\n2\r\n$1\r\na\r\n$1\r\n1\r\n"));
  EXPECT_NE(Comparable({"CONFIG", "GET", "a", "b"}, ab),
            Comparable({"CONFIG", "GET", "a", "b"},
                       "*4\r\n$1\r\na\r\n$1\r\n2\r\n$1\r\nb\r\n$1\r\n1\r\n"));
}

// What random commands leave out, since a wrong password is answered late.
TEST_F(DifferentialTest, PasswordsAreAskedForAlike) {
  RunOptions options;
  options.varve_server = VARVE_SERVER_MAIN;
  if (!ProgramExists(options.redis_server)) GTEST_SKIP() << "redis-server is not installed";
  const auto run = DifferentialRun::Start(options);
  ASSERT_TRUE(run.ok()) << run.status();
  for (const CommandLine& line :
       std::vector<CommandLine>{{"CONFIG", "SET", "requirepass", "secret"},
                                {"GET", "a"},
                                {"AUTH", "wrong"},
                                {"GET", "a"},
                                {"HELLO", "3", "AUTH", "default", "wrong"},
                                {"HELLO", "3", "AUTH", "nobody", "secret", "SETNAME", "n"},
                                {"CLIENT", "GETNAME"},
                                {"RESET"},
                                {"GET", "a"},
                                {"GET"},
                                {"nosuchcommand"},
                                {"HELLO"},
                                {"HELLO", "3"},
                                {"HELLO", "4"},
                                {"AUTH", "nobody", "secret"},
                                {"AUTH", "secret"},
                                {"GET", "a"},
                                {"CONFIG", "GET", "requirepass"},
                                {"RESET"},
                                {"HELLO", "2", "SETNAME", "n", "AUTH", "default", "secret"},
                                {"CLIENT", "GETNAME"},
                                {"CONFIG", "SET", "requirepass", ""},
                                {"RESET"},
                                {"GET", "a"}}) {
    const auto answers = (*run)->Ask(line);
    ASSERT_TRUE(answers.ok()) << answers.status();
    EXPECT_EQ(answers->varve.type, answers->redis.type) << line[0];
    EXPECT_EQ(answers->varve.text, answers->redis.text) << line[0];
    EXPECT_EQ(answers->varve.elements.size(), answers->redis.elements.size()) << line[0];
  }
}

TEST_F(DifferentialTest, TheSameSeedGivesTheSameCommands) {
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
