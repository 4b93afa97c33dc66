// Moves between two servers, which are killed, and full of what is odd.
#include "client/move/mover.h"

#include <atomic>
#include <filesystem>
#include <thread>

#include "unit-tests/client/copies/scripted_server.h"
#include "unit-tests/client/move/move_fixture.h"

namespace varve {
namespace {

using ::testing::AllOf;
using testing::Eventually;
using ::testing::HasSubstr;
using testing::MoveTest;
using testing::Words;

using MoverTest = MoveTest;

TEST_F(MoverTest, EverythingIsAtTheTarget) {
  AtSource("0", {"SET", "plain", "1"});
  AtSource("0", {"SET", "", ""});
  AtSource("0", {"SET", std::string("\0\xff\r\n", 4), std::string("\0\n", 2), "META", "image/png"});
  AtSource("0", {"SET", "expires", "1", "PXAT", "99999999999999", "META", "m"});
  AtSource("0", {"SET", "gone", "1", "PX", "1"});
  AtSource("3", {"SET", "three", "3"});
  AtSource("0", {"NAMESPACE", "CREATE", "users", "PX", "123456789"});
  AtSource("users", {"SET", "usual", "1"});
  AtSource("users", {"SET", "stays", "1"});
  AtSource("users", {"PERSIST", "stays"});
  AtSource("0", {"NAMESPACE", "CREATE", "empty"});
  Words many = {"MSET"};
  for (int i = 0; i < 5000; ++i)
    many.insert(many.end(), {fmt::format("key:{:05}", i), std::string(i % 300, 'v')});
  AtSource("3", many);
  MoveOptions options = Options();
  options.verify = true;
  ASSERT_EQ(Move(options), absl::OkStatus());
  ExpectEqual();
  EXPECT_THAT(said_, AllOf(HasSubstr("nothing is behind"), HasSubstr("and 0 differ")));
  EXPECT_EQ(Feeds(), 0U);
  // What is written there from now on expires as at the source.
  AtTarget("users", {"SET", "new", "1"});
  const absl::StatusOr<Reply> left = target_.Connect("users")->Call({"PTTL", "new"});
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_GT(left->integer, 0);
}

TEST_F(MoverTest, WhatIsCommittedMeanwhileComesToo) {
  std::mt19937 random(1);
  WriteSomething(source_.Connect().get(), &random, 500);
  MoveOptions options = Options();
  options.state = dir_.File("state");
  for (int round = 0; round < 4; ++round) {
    ASSERT_EQ(Move(options), absl::OkStatus()) << said_;
    ExpectEqual();
    EXPECT_EQ(Feeds(), 1U);
    WriteSomething(source_.Connect().get(), &random, 300);
  }
  options.finish = true;
  ASSERT_EQ(Move(options), absl::OkStatus());
  ExpectEqual();
  EXPECT_EQ(Feeds(), 0U);
  EXPECT_FALSE(std::filesystem::exists(options.state));
}

TEST_F(MoverTest, WhatConcernsManyKeysAtOnce) {
  AtSource("0", {"NAMESPACE", "CREATE", "users"});
  AtSource("0", {"MSET", "a", "0a", "b", "0b", "c", "0c"});
  AtSource("1", {"MSET", "a", "1a", "d", "1d"});
  AtSource("users", {"MSET", "a", "ua", "b", "ub"});
  MoveOptions options = Options();
  options.state = dir_.File("state");
  ASSERT_EQ(Move(options), absl::OkStatus());
  using Steps = std::vector<std::pair<std::string, Words>>;
  const std::vector<Steps> parts = {
      {{"0", {"SWAPDB", "0", "1"}}},
      {{"0", {"NAMESPACE", "CLONE", "users", "copy"}}, {"copy", {"SET", "b", "copied"}}},
      {{"users", {"FLUSHDB"}}, {"0", {"DELRANGE", "[b", "+"}}},
      {{"0", {"INGEST", "BEGIN", "i", "REPLACE", "[view:", "(view;"}},
       {"0", {"INGEST", "ADD", "i", "view:1", "x", "view:2", "y"}},
       {"0", {"INGEST", "COMMIT", "i"}}},
      {{"0", {"SET", "view:0", "before"}},
       {"0", {"INGEST", "BEGIN", "j", "REPLACE", "[view:", "(view;"}},
       {"0", {"INGEST", "ADD", "j", "view:2", "z", "view:3", "z"}},
       {"0", {"INGEST", "COMMIT", "j"}}},
      {{"0", {"NAMESPACE", "DROP", "users"}},
       {"0", {"NAMESPACE", "CREATE", "users"}},
       {"users", {"SET", "again", "1"}},
       {"0", {"NAMESPACE", "CREATE", "short"}},
       {"short", {"SET", "lived", "1"}},
       {"0", {"NAMESPACE", "DROP", "short"}}},
      {{"0", {"NAMESPACE", "DROP", "copy"}}},
  };
  // One part after the other, and then all of them in one piece.
  for (const Steps& part : parts) {
    for (const auto& [space, words] : part) AtSource(space, words);
    ASSERT_EQ(Move(options), absl::OkStatus()) << said_;
    ExpectEqual();
  }
  for (const Steps& part : parts)
    for (const auto& [space, words] : part) AtSource(space, words);
  ASSERT_EQ(Move(options), absl::OkStatus()) << said_;
  ExpectEqual();
}

TEST_F(MoverTest, AnInterruptedMoveGoesOn) {
  const std::unique_ptr<Client> client = source_.Connect();
  std::mt19937 random(2);
  Words many = {"MSET"};
  for (int i = 0; i < 3000; ++i)
    many.insert(many.end(), {fmt::format("base:{:04}", i), std::string(4000, 'v')});
  AtSource("0", many);
  MoveOptions options = Options();
  options.state = dir_.File("state");
  // It is stopped once the target has so many keys, which are some pages.
  for (const int64_t most : {1, 600, 1200, 1800}) {
    const std::unique_ptr<Client> looks = target_.Connect();
    const absl::Status moved = Move(options, [&] { return *looks->Count("-", "+") >= most; });
    ASSERT_EQ(moved, absl::OkStatus());
    EXPECT_THAT(said_, HasSubstr("stopped at version"));
    WriteSomething(client.get(), &random, 100);
  }
  ASSERT_EQ(Move(options), absl::OkStatus());
  ExpectEqual();
}

TEST_F(MoverTest, WritersGoOnMeanwhile) {
  std::atomic<bool> ends{false};
  std::vector<std::thread> writers;
  for (uint32_t i = 0; i < 3; ++i) {
    writers.emplace_back([this, i, &ends] {
      const std::unique_ptr<Client> client = source_.Connect();
      std::mt19937 random(i);
      while (!ends) WriteSomething(client.get(), &random, 10);
    });
  }
  MoveOptions options = Options();
  options.state = dir_.File("state");
  // It ends although there is always something new.
  EXPECT_EQ(Move(options), absl::OkStatus());
  ends = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(Move(options), absl::OkStatus());
  ExpectEqual();
}

TEST_F(MoverTest, BothServersAreKilledAndStartedAgain) {
  std::mt19937 random(3);
  Words many = {"MSET"};
  for (int i = 0; i < 3000; ++i)
    many.insert(many.end(), {fmt::format("base:{:04}", i), std::string(2000, 'v')});
  AtSource("0", many);
  MoveOptions options = Options();
  options.until_caught_up = false;
  options.state = dir_.File("state");
  options.bytes_per_second = uint64_t{3} << 20;  // so that the servers go in the middle
  std::atomic<bool> ends{false};
  absl::Status moved;
  std::thread mover([&] { moved = Move(options, [&ends] { return ends.load(); }); });
  EXPECT_TRUE(Eventually([&] { return !target_.Stored("0").empty(); }));
  for (int round = 0; round < 3; ++round) {
    target_.Kill();
    WriteSomething(source_.Connect().get(), &random, 100);
    target_.Start();
    source_.Kill();
    source_.Start();
    WriteSomething(source_.Connect().get(), &random, 100);
  }
  ends = true;
  mover.join();
  EXPECT_EQ(moved, absl::OkStatus()) << said_;
  options.until_caught_up = options.verify = true;
  options.bytes_per_second = 0;
  EXPECT_EQ(Move(options), absl::OkStatus());
  ExpectEqual();
}

TEST_F(MoverTest, WhatIsWrittenWhileAServerIsAwayArrives) {
  MoveOptions options = Options();
  options.until_caught_up = false;
  std::atomic<bool> ends{false};
  std::atomic<int> failures{0};
  absl::Status moved;
  std::thread mover([&] {
    Mover working(
        options, [&ends] { return ends.load(); },
        [&failures](const std::string& line) {
          if (line.find("trying again") != std::string::npos) ++failures;
        });
    moved = working.Run();
  });
  AtSource("0", {"SET", "first", "1"});
  EXPECT_TRUE(Eventually([&] { return target_.Stored("0").size() == 1; }));
  size_t keys = 1;
  for (int round = 0; round < 3; ++round) {
    // A window of changes fails at the target, and comes again.
    const int before = failures;
    target_.Kill();
    for (int i = 0; i < 20; ++i) AtSource("0", {"SET", fmt::format("{}:{}", round, i), "1"});
    EXPECT_TRUE(Eventually([&] { return failures > before; }));
    target_.Start();
    keys += 20;
    EXPECT_TRUE(Eventually([&] { return target_.Stored("0").size() == keys; }));
    source_.Kill();
    source_.Start();
    AtSource("0", {"SET", fmt::format("{}:last", round), "1"});
    EXPECT_TRUE(Eventually([&] { return target_.Stored("0").size() == keys + 1; }));
    ++keys;
  }
  ends = true;
  mover.join();
  EXPECT_EQ(moved, absl::OkStatus());
  ExpectEqual();
}

TEST_F(MoverTest, APrefixAloneMoves) {
  AtSource("0", {"MSET", "a:1", "1", "b:1", "1", "b:2", "2", "c:1", "1"});
  AtSource("0", {"NAMESPACE", "CREATE", "n"});
  AtSource("n", {"MSET", "a", "1", "b:n", "1"});
  AtTarget("0", {"SET", "a:0", "stays"});
  MoveOptions options = Options();
  options.prefix = "b:";
  options.state = dir_.File("state");
  ASSERT_EQ(Move(options), absl::OkStatus());
  const auto stored = [&](const std::string& space) {
    std::string keys;
    for (const MovedRecord& record : target_.Stored(space)) keys += record.key + " ";
    return keys;
  };
  EXPECT_EQ(stored("0"), "a:0 b:1 b:2 ");
  EXPECT_EQ(stored("n"), "b:n ");
  AtSource("0", {"FLUSHDB"});
  AtSource("0", {"MSET", "a:2", "1", "b:3", "3"});
  AtSource("0", {"NAMESPACE", "DROP", "n"});
  options.verify = true;
  ASSERT_EQ(Move(options), absl::OkStatus());
  EXPECT_EQ(stored("0"), "a:0 b:3 ");
  EXPECT_EQ(stored("n"), "");
}

TEST_F(MoverTest, OneNamespaceMovesIntoAnotherOne) {
  AtSource("2", {"MSET", "user1:a", "1", "user1:b", "2"});
  AtSource("0", {"SET", "other", "1"});
  MoveOptions options = Options();
  options.space = "2";
  options.into = "users";
  options.groupings["users"] = ":";
  options.verify = true;
  ASSERT_EQ(Move(options), absl::OkStatus());
  EXPECT_EQ(target_.Stored("users"), source_.Stored("2"));
  EXPECT_TRUE(target_.Stored("0").empty());
  EXPECT_TRUE(target_.Stored("2").empty());
  const auto made = target_.Connect()->Call({"NAMESPACE", "INFO", "users"});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(ParseSpaceInfo(*made)->grouping, ":");
  // Its groups are there for good.
  options.groupings["users"] = "together";
  AtTarget("users", {"FLUSHDB"});
  EXPECT_THAT(Move(options).message(), HasSubstr("a grouping never changes"));
}

TEST_F(MoverTest, NamespacesHaveTheirOptionsAtTheTarget) {
  AtSource("0", {"NAMESPACE", "CREATE", "n", "MAXKEYS", "3", "EVICT", "lru", "KEEP", "1h",
                 "COMPRESS", "lz4", "TOGETHER", "yes"});
  AtSource("n", {"MSET", "a", "1", "b", "2", "c", "3"});
  MoveOptions options = Options();
  options.state = dir_.File("state");
  ASSERT_EQ(Move(options), absl::OkStatus());
  const auto info = [&] {
    const auto reply = target_.Connect()->Call({"NAMESPACE", "INFO", "n"});
    EXPECT_TRUE(reply.ok()) << reply.status();
    std::string text;
    const absl::StatusOr<SpaceDescription> description = ParseSpaceInfo(*reply);
    for (const SpaceOptions& each : description->options)
      text += fmt::format("{} ", fmt::join(each.words, " "));
    return text + description->grouping;
  };
  EXPECT_EQ(info(), "COMPRESS lz4 KEEP 1h KEEPBYTES 0 together");
  // Quotas come when the move ends: until then the source decides what goes.
  options.finish = true;
  ASSERT_EQ(Move(options), absl::OkStatus());
  EXPECT_EQ(info(), "COMPRESS lz4 KEEP 1h KEEPBYTES 0 MAXKEYS 3 EVICT lru EVICTABLE all together");
  ExpectEqual();
}

TEST_F(MoverTest, ATargetThatHoldsKeysIsLeftAlone) {
  AtSource("0", {"SET", "a", "new"});
  AtTarget("0", {"MSET", "a", "old", "b", "old"});
  MoveOptions options = Options();
  EXPECT_THAT(Move(options).message(), HasSubstr("the target has keys in 0 already"));
  EXPECT_EQ(Feeds(), 0U);
  EXPECT_EQ(target_.Stored("0").size(), 2U);
  options.replace = true;
  EXPECT_EQ(Move(options), absl::OkStatus());
  ExpectEqual();
}

TEST_F(MoverTest, ANamespaceThatIsDroppedTakesNothingOfOthersAlong) {
  AtSource("0", {"SET", "a", "1"});
  AtTarget("0", {"NAMESPACE", "CREATE", "theirs"});
  AtTarget("theirs", {"SET", "a", "1"});
  MoveOptions options = Options();
  options.state = dir_.File("state");
  ASSERT_EQ(Move(options), absl::OkStatus());
  AtSource("0", {"NAMESPACE", "CREATE", "theirs"});
  EXPECT_THAT(Move(options).message(), HasSubstr("the target has keys in theirs already"));
  AtSource("0", {"NAMESPACE", "DROP", "theirs"});
  EXPECT_THAT(Move(options).message(), HasSubstr("the target has keys in theirs already"));
  EXPECT_EQ(target_.Stored("theirs").size(), 1U);
}

TEST_F(MoverTest, ChangesThatAreGoneAreTold) {
  AtSource("0", {"SET", "a", "1"});
  MoveOptions options = Options();
  options.state = dir_.File("state");
  ASSERT_EQ(Move(options), absl::OkStatus());
  const auto feeds = source_.Connect()->Call({"FEED", "LIST"});
  ASSERT_TRUE(feeds.ok() && feeds->elements.size() == 1);
  AtSource("0", {"FEED", "DROP", feeds->elements[0].text});
  AtSource("0", {"SET", "a", "2"});
  const absl::Status missed = Move(options);
  EXPECT_TRUE(absl::IsFailedPrecondition(missed)) << missed;
  EXPECT_THAT(missed.message(),
              AllOf(HasSubstr("no longer has the changes behind version"), HasSubstr("--replace")));
  std::filesystem::remove(options.state);
  options.replace = true;
  EXPECT_EQ(Move(options), absl::OkStatus());
  ExpectEqual();
}

TEST_F(MoverTest, AStateBelongsToOneMove) {
  MoveOptions options = Options();
  options.state = dir_.File("state");
  ASSERT_EQ(Move(options), absl::OkStatus());
  MoveOptions other = options;
  other.prefix = "p";
  EXPECT_THAT(Move(other).message(), HasSubstr("is the state of another move"));
  const auto lock = PosixFileSystem()->Lock(options.state + ".lock");
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(Move(options)));
}

TEST_F(MoverTest, AKeyThatTheTargetRefusesIsNamed) {
  AtSource("0", {"NAMESPACE", "CREATE", "n"});
  AtSource("n", {"MSET", "a", "1", "large", std::string(5000, 'v'), "z", "1"});
  AtTarget("0", {"NAMESPACE", "CREATE", "n", "MAXBYTES", "1000"});
  MoveOptions options = Options();
  EXPECT_THAT(Move(options).message(),
              AllOf(HasSubstr("refuses the key 'large' of n: QUOTA"), HasSubstr("--skip-refused")));
  options.replace = options.skip_refused = true;
  ASSERT_EQ(Move(options), absl::OkStatus());
  EXPECT_THAT(said_, HasSubstr("1 left out"));
  EXPECT_EQ(target_.Stored("n").size(), 2U);
}

TEST_F(MoverTest, AComparisonNamesWhatDiffers) {
  for (int i = 0; i < 20; ++i) AtSource("0", {"SET", fmt::format("k{:02}", i), "1"});
  MoveOptions options = Options();
  options.state = dir_.File("state");
  ASSERT_EQ(Move(options), absl::OkStatus());
  AtTarget("0", {"DEL", "k03"});
  AtTarget("0", {"SET", "k04", "2"});
  AtTarget("0", {"PEXPIRE", "k05", "100000000"});
  AtTarget("0", {"META", "SET", "k06", "m"});
  AtTarget("0", {"SET", "k061", "1"});
  options.verify = true;
  const absl::Status compared = Move(options);
  EXPECT_TRUE(absl::IsDataLoss(compared)) << compared;
  EXPECT_THAT(
      said_,
      AllOf(HasSubstr("'k03' is missing at the target"), HasSubstr("'k04' has another value"),
            HasSubstr("'k05' expires at another time"), HasSubstr("'k06' has other metadata"),
            HasSubstr("'k061' is at the target alone"),
            HasSubstr("20 keys were compared, and 5 differ")));
}

TEST_F(MoverTest, ATargetThatHasNoAnswerAtPresentIsAskedAgain) {
  for (int i = 0; i < 10; ++i) AtSource("0", {"SET", fmt::format("k{}", i), "old"});
  // A key's writes are refused at first, while those of the others are taken.
  std::map<std::string, std::string> stored;
  int refusals = 5;
  testing::ScriptedServer target([&](const std::string& request) -> std::string {
    if (request.starts_with("RANGE")) return "*0\r\n";
    if (request.starts_with("CONFIG")) return "*0\r\n";
    if (request.starts_with("SET k3 ") && refusals-- > 0)
      return "-UNAVAILABLE the region is away\r\n";
    if (request.starts_with("SET ")) stored[request.substr(4, 2)] = request.substr(7);
    return "+OK\r\n";
  });
  MoveOptions options = Options();
  options.target.port = target.port();
  ASSERT_EQ(Move(options), absl::OkStatus());
  EXPECT_THAT(said_, HasSubstr("UNAVAILABLE the region is away; trying again"));
  EXPECT_LT(refusals, 0);
  EXPECT_EQ(stored.size(), 10U);
  for (const auto& [key, value] : stored) EXPECT_EQ(value, "old") << key;
}

}  // namespace
}  // namespace varve
