// Moves as people make them: client_main between two servers, killed at any moment.
#include <atomic>
#include <fstream>
#include <thread>

#include "unit-tests/client/move/move_fixture.h"

namespace varve {
namespace {

using ::testing::AllOf;
using testing::Eventually;
using ::testing::HasSubstr;
using testing::MoveTest;
using testing::Process;
using testing::ReadFile;
using testing::Words;

class MoveProgramTest : public MoveTest {
 protected:
  Words WithServers(Words flags) const {
    Words words = {fmt::format("--port={}", source_.port()), "move",
                   fmt::format("redis://127.0.0.1:{}", target_.port())};
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
  }
  int Run(const Words& words) {
    const int code = Process(VARVE_CLIENT_MAIN, words, dir_.File("out")).Wait();
    said_ = ReadFile(dir_.File("out"));
    return code;
  }
  std::string State() const { return "--state=" + dir_.File("state"); }
};

TEST_F(MoveProgramTest, FollowsUntilItIsStopped) {
  AtSource("0", {"SET", "a", "1"});
  Process mover(VARVE_CLIENT_MAIN, WithServers({State(), "--progress"}), dir_.File("log"));
  ASSERT_TRUE(Eventually([&] { return target_.Stored("0").size() == 1; }));
  AtSource("0", {"SET", "b", "2"});
  ASSERT_TRUE(Eventually([&] { return target_.Stored("0").size() == 2; }));
  ASSERT_TRUE(Eventually(
      [&] { return ReadFile(dir_.File("log")).find("nothing is behind") != std::string::npos; }));
  mover.Kill(SIGTERM);
  EXPECT_EQ(mover.Wait(), 0) << ReadFile(dir_.File("log"));
  EXPECT_THAT(ReadFile(dir_.File("log")), HasSubstr("the same command goes on from there"));
  AtSource("0", {"SET", "c", "3"});
  EXPECT_EQ(Run(WithServers({State(), "--finish", "--verify"})), 0) << said_;
  EXPECT_THAT(said_, AllOf(HasSubstr("nothing is behind"), HasSubstr("and 0 differ")));
  ExpectEqual();
  EXPECT_EQ(Feeds(), 0U);
}

TEST_F(MoveProgramTest, KilledAtAnyMomentItLosesNothing) {
  std::mt19937 random(7);
  Words many = {"MSET"};
  for (int i = 0; i < 2000; ++i)
    many.insert(many.end(), {fmt::format("base:{:04}", i), std::string(1000, 'v')});
  AtSource("0", many);
  std::atomic<bool> ends{false};
  std::thread writer([&] {
    const std::unique_ptr<Client> writing = source_.Connect();
    std::mt19937 numbers(8);
    while (!ends) WriteSomething(writing.get(), &numbers, 10);
  });
  for (int round = 0; round < 6; ++round) {
    Process mover(VARVE_CLIENT_MAIN, WithServers({State(), "--rate=1MiB"}), dir_.File("log"));
    // Each is killed once it has written something, at another moment behind that.
    const size_t before = target_.Stored("0").size();
    Eventually([&] { return !mover.Running() || target_.Stored("0").size() != before; });
    for (uint32_t looks = random() % 5; looks > 0; --looks) target_.Stored("0");
    EXPECT_TRUE(mover.Running()) << ReadFile(dir_.File("log"));
    mover.Kill(SIGKILL);
    mover.Wait();
    if (round % 2 == 1) {
      target_.Kill();
      target_.Start();
    }
  }
  ends = true;
  writer.join();
  EXPECT_EQ(Run(WithServers({State(), "--verify"})), 0) << said_;
  ExpectEqual();
}

TEST_F(MoveProgramTest, KilledWhileTheTargetIsAwayItLosesNothing) {
  AtSource("0", {"SET", "first", "1"});
  for (int round = 0; round < 3; ++round) {
    Process mover(VARVE_CLIENT_MAIN, WithServers({State()}), dir_.File("log"));
    AtSource("0", {"SET", "round", fmt::to_string(round)});
    ASSERT_TRUE(Eventually([&] { return source_.Stored("0") == target_.Stored("0"); }));
    target_.Kill();
    for (int i = 0; i < 20; ++i) AtSource("0", {"SET", fmt::format("{}:{}", round, i), "1"});
    EXPECT_TRUE(Eventually(
        [&] { return ReadFile(dir_.File("log")).find("trying again") != std::string::npos; }));
    mover.Kill(SIGKILL);
    mover.Wait();
    target_.Start();
  }
  EXPECT_EQ(Run(WithServers({State(), "--verify"})), 0) << said_;
  ExpectEqual();
}

TEST_F(MoveProgramTest, SaysWhatItCannotDo) {
  const std::string url = fmt::format("redis://127.0.0.1:{}", target_.port());
  EXPECT_EQ(Run({"move"}), 2);
  EXPECT_THAT(said_, HasSubstr("move is used as: client_main move TARGET_URL"));
  EXPECT_EQ(Run({"move", "there"}), 2);
  EXPECT_THAT(said_, HasSubstr("the target: "));
  EXPECT_EQ(Run({"move", url + "/3"}), 2);
  EXPECT_THAT(said_, HasSubstr("its URL names none"));
  EXPECT_EQ(Run({"move", url, "--grouping=users"}), 2);
  EXPECT_THAT(said_, HasSubstr("--grouping=users: it is NAME=together"));
  EXPECT_EQ(Run({"move", url, "--into=n"}), 2);
  EXPECT_THAT(said_, HasSubstr("--into needs --db or --namespace"));
  EXPECT_EQ(Run({"get", "k", "--verify"}), 2);
  EXPECT_THAT(said_, HasSubstr("get does not take --verify"));
  const std::string self = fmt::format("redis://127.0.0.1:{}", source_.port());
  EXPECT_EQ(Run({fmt::format("--port={}", source_.port()), "move", self}), 2);
  EXPECT_THAT(said_, HasSubstr("the same server"));
  AtSource("0", {"SET", "a", "1"});
  EXPECT_EQ(Run(WithServers({"--until-caught-up", "--grouping=0=together"})), 2);
  EXPECT_THAT(said_, HasSubstr("database 0 has no groups"));
  std::ofstream(dir_.File("state")) << "something else";
  EXPECT_EQ(Run(WithServers({State()})), 2);
  EXPECT_THAT(said_, HasSubstr("is no state of a move"));
}

TEST_F(MoveProgramTest, SourceAndTargetMayAskForPasswords) {
  AtSource("0", {"SET", "a", "1"});
  AtTarget("0", {"CONFIG", "SET", "requirepass", "secret"});
  EXPECT_EQ(Run(WithServers({"--until-caught-up"})), 2);
  EXPECT_THAT(said_, HasSubstr("NOAUTH"));
  setenv("VARVE_TARGET_PASSWORD", "secret", 1);
  const int code = Run(WithServers({"--until-caught-up"}));
  unsetenv("VARVE_TARGET_PASSWORD");
  EXPECT_EQ(code, 0) << said_;
}

}  // namespace
}  // namespace varve
