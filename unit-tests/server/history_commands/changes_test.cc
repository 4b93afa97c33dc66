// CHANGES: what was committed, whole and in order.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

using testing::Ask;
using testing::Eventually;
using testing::ManualClock;
using testing::RawConnection;
using testing::ReplyText;
using testing::Resp;
using testing::TestServer;
using Words = std::vector<std::string>;

class ChangesTest : public ::testing::Test {
 protected:
  static EngineOptions Retaining(uint64_t bytes = 256u << 20) {
    EngineOptions options = TestServer::SmallEngine();
    options.changes.bytes = bytes;
    options.history.time_ms = 86'400'000;
    return options;
  }
  std::string Do(const Words& arguments) { return Ask(*client_, arguments); }
  static void Start(Client& client, const Words& arguments) {
    const std::vector<std::string_view> views(arguments.begin(), arguments.end());
    ASSERT_TRUE(client.Send(views).ok());
    client.pipeline().Flush();
  }
  Reply Get(Client& client, const Words& arguments) {
    const std::vector<std::string_view> views(arguments.begin(), arguments.end());
    const absl::Status sent = client.Send(views);
    EXPECT_TRUE(sent.ok()) << sent;
    absl::StatusOr<Reply> reply = client.Receive();
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *std::move(reply) : Reply();
  }
  // The commits without their versions and times: "{(set 0 a 1 0 nil)} {...}". An error as it is.
  std::string Operations(const Reply& reply) {
    if (reply.elements.size() != 4) return ReplyText(reply);
    std::string text;
    for (const Reply& commit : reply.elements[3].elements) {
      EXPECT_EQ(commit.elements.size(), 3u);
      text += text.empty() ? "{" : " {";
      for (const Reply& operation : commit.elements[2].elements)
        text += (&operation == &commit.elements[2].elements[0] ? "" : " ") + ReplyText(operation);
      text += "}";
    }
    return text;
  }
  std::string Changes(Words words) {
    words.insert(words.begin(), "CHANGES");
    return Operations(Get(*client_, words));
  }
  // The newest position.
  std::string Now() {
    const Reply reply = Get(*client_, {"CHANGES", "NOW"});
    EXPECT_EQ(reply.elements.size(), 4u) << ReplyText(reply);
    return reply.elements.size() == 4 ? std::to_string(reply.elements[1].integer) : "0";
  }
  void Restart() {
    client_.reset();
    server_.Restart();
    client_ = server_.Connect();
  }
  bool SomeoneIsBlocked() {
    return Eventually([&] {
      return Do({"INFO", "clients"}).find("blocked_clients:1\r") != std::string::npos;
    });
  }

  TestServer server_{{}, Retaining()};
  std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(ChangesTest, EveryCommitIsThereWholeAndInOrder) {
  const std::string before = Now();
  ASSERT_EQ(Do({"SET", "a", "1"}), "OK");
  ASSERT_EQ(Do({"MSET", "b", "2", "c", "3"}), "OK");
  ASSERT_EQ(Do({"INCR", "a"}), "2");
  ASSERT_EQ(Do({"APPEND", "b", "x"}), "2");
  ASSERT_EQ(Do({"SET", "d", "4", "PXAT", "99999999999999"}), "OK");
  ASSERT_EQ(Do({"DEL", "c", "nothing"}), "1");
  ASSERT_EQ(Do({"DELRANGE", "[a", "(c"}), "OK");
  ASSERT_EQ(Do({"DELRANGE", "[x", "+"}), "OK");
  ASSERT_EQ(Do({"MULTI"}), "OK");
  ASSERT_EQ(Do({"SET", "e", "5"}), "QUEUED");
  ASSERT_EQ(Do({"DEL", "d"}), "QUEUED");
  ASSERT_EQ(Do({"EXEC"}), "(OK 1)");
  ASSERT_EQ(Do({"PEXPIREAT", "e", "99999999999999"}), "1");
  ASSERT_EQ(Do({"FLUSHDB"}), "OK");
  const std::string expected =
      "{(set 0 a 1 0 nil)} {(set 0 b 2 0 nil) (set 0 c 3 0 nil)} {(set 0 a 2 0 nil)} "
      "{(set 0 b 2x 0 nil)} {(set 0 d 4 99999999999999 nil)} {(del 0 c nil 0 nil)} "
      "{(delrange 0 a c 0 nil)} {(delrange 0 x  0 nil)} "
      "{(del 0 d nil 0 nil) (set 0 e 5 0 nil)} {(expire 0 e 5 99999999999999 nil)} "
      "{(flush 0 nil nil 0 nil)}";
  EXPECT_EQ(Changes({"SINCE", before}), expected);
  Restart();
  EXPECT_EQ(Changes({"SINCE", before}), expected);
  EXPECT_EQ(Changes({"SINCE", Now()}), "");
}

TEST_F(ChangesTest, EachReplyLeadsToTheNext) {
  std::string position = Now();
  for (int i = 0; i < 10; ++i) ASSERT_EQ(Do({"SET", "k" + std::to_string(i), "v"}), "OK");
  int64_t version = 0;
  for (int i = 0; i < 10; ++i) {
    const Reply reply = Get(*client_, {"CHANGES", "SINCE", position, "COUNT", "1"});
    ASSERT_EQ(reply.elements.size(), 4u);
    for (size_t part : {0, 1, 2}) EXPECT_EQ(reply.elements[part].type, Reply::Type::kInteger);
    ASSERT_EQ(reply.elements[3].elements.size(), 1u);
    const Reply& commit = reply.elements[3].elements[0];
    EXPECT_GT(commit.elements[0].integer, version);
    version = commit.elements[0].integer;
    EXPECT_EQ(reply.elements[1].integer, version);
    EXPECT_GT(commit.elements[1].integer, 1'600'000'000'000);
    EXPECT_EQ(ReplyText(commit.elements[2].elements[0].elements[2]), "k" + std::to_string(i));
    position = std::to_string(version);
  }
  const Reply end = Get(*client_, {"CHANGES", "SINCE", position});
  EXPECT_EQ(std::to_string(end.elements[1].integer), position);
  EXPECT_TRUE(end.elements[3].elements.empty());
}

TEST_F(ChangesTest, WhatAFilterLeavesOutMovesThePositionAllTheSame) {
  const std::string before = Now();
  ASSERT_EQ(Do({"MSET", "a:1", "x", "b:1", "y", "a:2", "z"}), "OK");
  ASSERT_EQ(Do({"SET", "b:2", "q"}), "OK");
  ASSERT_EQ(Do({"DELRANGE", "[a", "[b:9"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "other"}), "OK");
  ASSERT_EQ(Do({"SELECT", "3"}), "OK");
  ASSERT_EQ(Do({"SET", "a:3", "w"}), "OK");
  ASSERT_EQ(Do({"SELECT", "0"}), "OK");
  const std::string last = Now();
  EXPECT_EQ(Changes({"SINCE", before, "PREFIX", "a:"}),
            "{(set 0 a:1 x 0 nil) (set 0 a:2 z 0 nil)} {(delrange 0 a: a; 0 nil)}");
  EXPECT_EQ(
      Changes({"SINCE", before, "RANGE", "(a:2", "[b:1", "KEYS"}),
      std::string("{(set 0 b:1 nil 0 nil)} {(delrange 0 a:2") + '\0' + " b:1" + '\0' + " 0 nil)}");
  EXPECT_EQ(Changes({"SINCE", before, "PREFIX", "zz"}), "");
  const Reply none = Get(*client_, {"CHANGES", "SINCE", before, "PREFIX", "zz"});
  EXPECT_EQ(std::to_string(none.elements[1].integer), last);
  const std::string all = Changes({"SINCE", before, "NAMESPACE", "ALL", "PREFIX", "a:3"});
  EXPECT_NE(all.find("{(create other nil nil 0 nil)}"), std::string::npos) << all;
  EXPECT_NE(all.find("{(set 3 a:3 w 0 nil)}"), std::string::npos) << all;
  EXPECT_EQ(all.find("b:"), std::string::npos) << all;
  EXPECT_NE(Changes({"SINCE", before, "NAMESPACE", "3"}).find("{(set 3 a:3 w 0 nil)}"),
            std::string::npos);
  EXPECT_EQ(Changes({"SINCE", before, "NAMESPACE", "none"}), "!ERR there is no namespace 'none'");
}

TEST_F(ChangesTest, NamespacesAreCreatedClonedSwappedAndDropped) {
  const std::string before = Now();
  ASSERT_EQ(Do({"SET", "k", "v"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "CLONE", "0", "copy"}), "OK");
  ASSERT_EQ(Do({"SELECT", "1"}), "OK");
  ASSERT_EQ(Do({"SWAPDB", "0", "1"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "DROP", "copy"}), "OK");
  const std::string all = Changes({"SINCE", before, "NAMESPACE", "ALL"});
  EXPECT_NE(all.find("{(clone copy 0 nil 0 nil)}"), std::string::npos) << all;
  EXPECT_NE(all.find("(swap 0 1 nil 0 nil)"), std::string::npos) << all;
  EXPECT_NE(all.find("{(drop copy nil nil 0 nil)}"), std::string::npos) << all;
}

TEST_F(ChangesTest, TheGroupsOfANewNamespaceAreShown) {
  const std::string before = Now();
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "users", "GROUP", ":"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "all", "TOGETHER", "yes"}), "OK");
  EXPECT_EQ(Changes({"SINCE", before, "NAMESPACE", "ALL"}),
            "{(create users nil GROUP : 0 nil)} {(create all nil TOGETHER yes 0 nil)}");
}

TEST_F(ChangesTest, AVersionInsideACommitLeadsToItsBeginning) {
  ASSERT_EQ(Do({"MSET", "a", "1", "b", "2", "c", "3"}), "OK");
  const Reply first = Get(*client_, {"GET", "a", "WITHVERSION"});
  const Reply last = Get(*client_, {"GET", "c", "WITHVERSION"});
  ASSERT_EQ(first.elements[1].integer + 2, last.elements[1].integer);
  const Reply reply =
      Get(*client_, {"CHANGES", "SINCE", std::to_string(first.elements[1].integer)});
  EXPECT_EQ(Operations(reply), "{(set 0 a 1 0 nil) (set 0 b 2 0 nil) (set 0 c 3 0 nil)}");
  EXPECT_EQ(reply.elements[1].integer, last.elements[1].integer);
}

TEST_F(ChangesTest, TheKeysOfAnIngestAreReadAtItsVersion) {
  ASSERT_EQ(Do({"MSET", "b", "old", "c", "old"}), "OK");
  const std::string before = Now();
  ASSERT_EQ(Do({"INGEST", "BEGIN", "i"}), "OK");
  ASSERT_EQ(Do({"INGEST", "ADD", "i", "a", "1", "b", "2", "d", "3"}), "OK");
  const int64_t version = Get(*client_, {"INGEST", "COMMIT", "i"}).integer;
  ASSERT_EQ(Do({"DEL", "a", "d"}), "2");
  EXPECT_EQ(Changes({"SINCE", before, "COUNT", "1"}), "{(ingest 0 a d 0 nil)}");
  EXPECT_EQ(Do({"RANGE", "[a", "[d", "SINCE", std::to_string(version - 1), "AT",
                std::to_string(version)}),
            "(a 1 b 2 d 3)");
}

TEST_F(ChangesTest, AClonesVersionOfThePastIsShown) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "own"}), "OK");
  ASSERT_EQ(Do({"SET", "k", "v"}), "OK");
  const std::string before = Now();
  ASSERT_EQ(Do({"SET", "k", "w"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "CLONE", "0", "past", "AT", before}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "DROP", "own"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "UNDROP", "own"}), "OK");
  const Reply reply = Get(*client_, {"CHANGES", "SINCE", before, "NAMESPACE", "ALL"});
  ASSERT_EQ(reply.elements.size(), 4u) << ReplyText(reply);
  ASSERT_EQ(reply.elements[3].elements.size(), 4u) << ReplyText(reply);
  const int64_t dropped_at = reply.elements[3].elements[2].elements[0].integer;
  const std::string all = "{(set 0 k w 0 nil)} {(clone past 0 " + before +
                          " 0 nil)} {(drop own nil nil 0 nil)} {(clone own own " +
                          std::to_string(dropped_at - 1) + " 0 nil)}";
  EXPECT_EQ(Operations(reply), all);
  Restart();
  EXPECT_EQ(Changes({"SINCE", before, "NAMESPACE", "ALL", "KEYS"}).substr(24), all.substr(22));
  // Who may not know of the source is not told of its version either.
  ASSERT_EQ(Do({"ACL", "SETUSER", "guest", "on", "nopass", "+@all", "~*", "db=1", "ns=past"}),
            "OK");
  const std::unique_ptr<Client> guest = server_.Connect();
  ASSERT_EQ(Ask(*guest, {"AUTH", "guest", "x"}), "OK");
  ASSERT_EQ(Ask(*guest, {"SELECT", "1"}), "OK");
  EXPECT_EQ(Operations(Get(*guest, {"CHANGES", "SINCE", before, "NAMESPACE", "past"})),
            "{(clone past nil nil 0 nil)}");
}

TEST_F(ChangesTest, TheValueBeforeIsShownWhereHistoryHasIt) {
  ASSERT_EQ(Do({"SET", "k", "old"}), "OK");
  const std::string before = Now();
  ASSERT_EQ(Do({"SET", "k", "new"}), "OK");
  ASSERT_EQ(Do({"SET", "fresh", "1"}), "OK");
  ASSERT_EQ(Do({"DEL", "k"}), "1");
  EXPECT_EQ(Changes({"SINCE", before, "PREV"}),
            "{(set 0 k new 0 old)} {(set 0 fresh 1 0 nil)} {(del 0 k nil 0 new)}");
  EXPECT_EQ(Changes({"SINCE", before, "PREV", "KEYS", "PREFIX", "k"}),
            "{(set 0 k nil 0 old)} {(del 0 k nil 0 new)}");
}

TEST_F(ChangesTest, FullShowsMetadataAndTheNumberOfTheNamespace) {
  const std::string before = Now();
  ASSERT_EQ(Do({"SET", "k", "1"}), "OK");
  ASSERT_EQ(Do({"SET", "k", "2", "META", "image/png"}), "OK");
  EXPECT_EQ(Changes({"SINCE", before, "FULL"}),
            "{(set 0 k 1 0 nil  0)} {(set 0 k 2 0 nil image/png 0)}");
}

TEST_F(ChangesTest, WrongRequestsAreRefused) {
  for (const Words& words : std::vector<Words>{{"SINCE"},
                                               {"SINCE", "FIRST", "PREFIX"},
                                               {"SINCE", "FIRST", "RANGE", "-"},
                                               {"SINCE", "FIRST", "PREFIX", "a", "PREFIX", "b"},
                                               {"NOW", "KEYS"},
                                               {"SINCE", "FIRST", "WHAT"},
                                               {"FROM", "SNAPSHOT"}}) {
    EXPECT_EQ(Changes(words), "!ERR syntax error") << words.back();
  }
  EXPECT_EQ(Changes({"SINCE", "x"}), "!ERR SINCE takes a version, or FIRST");
  EXPECT_EQ(Changes({"SINCE", "-1"}), "!ERR SINCE takes a version, or FIRST");
  EXPECT_EQ(Changes({"SINCE", "FIRST", "COUNT", "0"}), "!ERR COUNT takes an integer above 0");
  EXPECT_EQ(Changes({"SINCE", "FIRST", "BLOCK", "-1"}), "!ERR timeout is negative");
  EXPECT_EQ(Changes({"SINCE", "FIRST", "BLOCK", "x"}),
            "!ERR timeout is not an integer or out of range");
  EXPECT_EQ(Changes({"SINCE", "FIRST", "RANGE", "a", "b"}),
            "!ERR min or max not valid string range item");
  EXPECT_TRUE(Changes({"SINCE", "999999999"}).starts_with("!ERR version 999999999 was not"));
  EXPECT_EQ(Do({"AT", "1", "CHANGES", "NOW"}),
            "!ERR AT takes a command that reads, which 'changes' is not");
  EXPECT_EQ(Do({"CHANGES", "STREAM", "SINCE", "FIRST"}),
            "!ERR CHANGES STREAM sends pushes, which take RESP3: say HELLO 3");
}

TEST(ChangesOffTest, WithoutRetentionTheSettingsAreNamed) {
  TestServer server;
  const std::unique_ptr<Client> client = server.Connect();
  const std::string refused =
      "!ERR the server retains no changes: set change-retention-bytes or change-retention-time";
  EXPECT_EQ(Ask(*client, {"CHANGES", "NOW"}), refused);
  EXPECT_EQ(Ask(*client, {"CHANGES", "SINCE", "FIRST"}), refused);
  EXPECT_EQ(Ask(*client, {"XREAD", "STREAMS", "varve:changes", "0"}), refused);
  EXPECT_EQ(Ask(*client, {"XLEN", "varve:changes"}), refused);
  EXPECT_EQ(Ask(*client, {"XRANGE", "varve:changes", "-", "+"}), refused);
  EXPECT_EQ(Ask(*client, {"XREVRANGE", "varve:changes", "+", "-"}), refused);
  EXPECT_EQ(Ask(*client, {"XINFO", "STREAM", "varve:changes"}), refused);
}

TEST(ChangesTrimTest, WhatIsNoLongerRetainedIsRefused) {
  EngineOptions options = TestServer::SmallEngine();
  options.changes.bytes = 1u << 20;
  TestServer server({}, options);
  const std::unique_ptr<Client> client = server.Connect();
  const std::string value(10'000, 'x');
  for (int i = 0; i < 2'000; ++i)
    ASSERT_EQ(Ask(*client, {"SET", "k" + std::to_string(i), value}), "OK");
  ASSERT_EQ(Ask(*client, {"COMPACT"}), "OK");
  EXPECT_TRUE(Eventually([&] {
    return Ask(*client, {"CHANGES", "SINCE", "1"}).starts_with("!TRIMMED first=");
  }));
  const std::string refusal = Ask(*client, {"CHANGES", "SINCE", "1"});
  const std::string first = refusal.substr(std::string("!TRIMMED first=").size());
  EXPECT_FALSE(Ask(*client, {"CHANGES", "SINCE", first, "COUNT", "1"}).starts_with("!"));
  EXPECT_FALSE(Ask(*client, {"CHANGES", "SINCE", "FIRST", "COUNT", "1"}).starts_with("!"));
}

// --- BLOCK ---------------------------------------------------------------------------------------

TEST_F(ChangesTest, ABlockedReaderGetsTheNextCommit) {
  const std::string before = Now();
  const std::unique_ptr<Client> reader = server_.Connect();
  for (int round = 0; round < 3; ++round) {
    const std::string since = Now();
    Start(*reader, {"CHANGES", "SINCE", since, "PREFIX", "a", "BLOCK", "0"});
    Start(*reader, {"PING"});
    ASSERT_TRUE(SomeoneIsBlocked());
    ASSERT_EQ(Do({"SET", "b", "not this one"}), "OK");
    ASSERT_EQ(Do({"SET", "a", std::to_string(round)}), "OK");
    const absl::StatusOr<Reply> reply = reader->Receive();
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(Operations(*reply), "{(set 0 a " + std::to_string(round) + " 0 nil)}");
    const absl::StatusOr<Reply> pong = reader->Receive();
    ASSERT_TRUE(pong.ok()) << pong.status();
    EXPECT_EQ(ReplyText(*pong), "PONG");
  }
  // What is there already is answered at once.
  EXPECT_NE(Operations(Get(*reader, {"CHANGES", "SINCE", before, "BLOCK", "0"})), "");
}

TEST_F(ChangesTest, ABlockEndsWithItsTimeAndNotInsideExec) {
  const std::string now = Now();
  EXPECT_EQ(Changes({"SINCE", now, "BLOCK", "20"}), "");
  EXPECT_EQ(Changes({"SINCE", now, "BLOCK", "1"}), "");
  ASSERT_EQ(Do({"MULTI"}), "OK");
  ASSERT_EQ(Do({"CHANGES", "SINCE", now, "BLOCK", "0"}), "QUEUED");
  const Reply replies = Get(*client_, {"EXEC"});
  ASSERT_EQ(replies.elements.size(), 1u);
  EXPECT_EQ(Operations(replies.elements[0]), "");
}

TEST_F(ChangesTest, BlockedReadersEndWithTheirConnectionsAndTheServer) {
  const std::string now = Now();
  {
    RawConnection gone(server_.port());
    ASSERT_TRUE(gone.Send(Resp({"CHANGES", "SINCE", now, "BLOCK", "0"})));
    ASSERT_TRUE(SomeoneIsBlocked());
    gone.Vanish();
  }
  EXPECT_TRUE(Eventually([&] {
    return Do({"INFO", "clients"}).find("blocked_clients:0\r") != std::string::npos;
  }));
  RawConnection stays(server_.port());
  ASSERT_TRUE(stays.Send(Resp({"CHANGES", "SINCE", now, "BLOCK", "0"})));
  ASSERT_TRUE(SomeoneIsBlocked());
  client_.reset();
  server_.Stop();
  EXPECT_EQ(stays.ReceiveAll().substr(0, 2), "*4");
  EXPECT_TRUE(stays.closed());
  server_.Start();
}

// --- Rights --------------------------------------------------------------------------------------

class ChangeRightsTest : public ChangesTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "on", ">secret", "~app:*", "+@read", "+feed"}), "OK");
    alice_ = server_.Connect();
    ASSERT_EQ(Ask(*alice_, {"AUTH", "alice", "secret"}), "OK");
  }
  std::unique_ptr<Client> alice_;
};

TEST_F(ChangeRightsTest, AReaderSeesTheKeysOfItsUser) {
  const std::string before = Now();
  ASSERT_EQ(Do({"MSET", "app:1", "x", "secret", "y"}), "OK");
  ASSERT_EQ(Do({"SET", "zoo", "z"}), "OK");
  ASSERT_EQ(Do({"DELRANGE", "-", "+"}), "OK");
  ASSERT_EQ(Do({"DELRANGE", "[b", "[c"}), "OK");
  ASSERT_EQ(Do({"FLUSHDB"}), "OK");
  EXPECT_EQ(Operations(Get(*alice_, {"CHANGES", "SINCE", before})),
            "{(set 0 app:1 x 0 nil)} {(delrange 0 app: app; 0 nil)} {(flush 0 nil nil 0 nil)}");
  EXPECT_EQ(Operations(Get(*alice_, {"CHANGES", "SINCE", before, "PREFIX", "secret"})), "");
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "resetkeys", "~app:*", "~s?cret"}), "OK");
  EXPECT_EQ(Operations(Get(*alice_, {"CHANGES", "SINCE", before, "COUNT", "1"})),
            "{(set 0 app:1 x 0 nil) (set 0 secret y 0 nil)}");
}

TEST_F(ChangeRightsTest, OtherNamespacesAreCutOrRefused) {
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "~*", "resetdbs", "db=0", "db=1"}), "OK");
  const std::string before = Now();
  for (const char* database : {"1", "2"}) {
    ASSERT_EQ(Do({"SELECT", database}), "OK");
    ASSERT_EQ(Do({"SET", "k", database}), "OK");
  }
  ASSERT_EQ(Do({"SELECT", "0"}), "OK");
  const std::string all =
      Operations(Get(*alice_, {"CHANGES", "SINCE", before, "NAMESPACE", "ALL"}));
  EXPECT_NE(all.find("(set 1 k 1 0 nil)"), std::string::npos) << all;
  EXPECT_EQ(all.find("(set 2"), std::string::npos) << all;
  EXPECT_EQ(Operations(Get(*alice_, {"CHANGES", "SINCE", before, "NAMESPACE", "2"})),
            "!NOPERM this user has no permissions to access the database '2'");
}

TEST_F(ChangeRightsTest, TheCommandsHaveRedisCategoriesAndNeedTheRight) {
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "-@all", "+ping"}), "OK");
  for (const Words& words : std::vector<Words>{{"CHANGES", "NOW"},
                                               {"CHANGES", "SINCE", "FIRST"},
                                               {"CHANGES", "STREAM", "SINCE", "FIRST"}}) {
    EXPECT_EQ(Ask(*alice_, words),
              "!NOPERM this user has no permissions to run the 'changes' command");
  }
  EXPECT_TRUE(Ask(*alice_, {"XREAD", "STREAMS", "varve:changes", "0"}).starts_with("!NOPERM"));
  EXPECT_TRUE(Ask(*alice_, {"FEED", "LIST"}).starts_with("!NOPERM"));
  for (const char* category : {"read", "slow", "blocking", "stream"}) {
    const std::string commands = " " + Do({"ACL", "CAT", category});
    EXPECT_NE(commands.find("changes"), std::string::npos) << category;
    EXPECT_NE(commands.find("xread"), std::string::npos) << category;
  }
  for (const char* category : {"read", "stream"}) {
    const std::string commands = " " + Do({"ACL", "CAT", category});
    for (const char* name : {"xinfo|groups", "xinfo|stream", "xlen", "xrange", "xrevrange"})
      EXPECT_NE(commands.find(name), std::string::npos) << category << " " << name;
  }
  EXPECT_NE(Do({"ACL", "CAT", "fast"}).find("xlen"), std::string::npos);
}

TEST_F(ChangeRightsTest, ChangedRightsHoldForABlockedReader) {
  const std::string now = Now();
  Start(*alice_, {"CHANGES", "SINCE", now, "BLOCK", "0"});
  ASSERT_TRUE(SomeoneIsBlocked());
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "resetkeys", "~new:*"}), "OK");
  ASSERT_EQ(Do({"MSET", "app:1", "x", "new:1", "y"}), "OK");
  const absl::StatusOr<Reply> reply = alice_->Receive();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(Operations(*reply), "{(set 0 new:1 y 0 nil)}");
  Start(*alice_, {"CHANGES", "SINCE", Now(), "BLOCK", "0"});
  ASSERT_TRUE(SomeoneIsBlocked());
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "-changes"}), "OK");
  ASSERT_EQ(Do({"SET", "new:1", "z"}), "OK");
  const absl::StatusOr<Reply> refused = alice_->Receive();
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_TRUE(ReplyText(*refused).starts_with("!NOPERM")) << ReplyText(*refused);
}

// --- XREAD ---------------------------------------------------------------------------------------

TEST_F(ChangesTest, XreadShowsOneEntryForEachOperation) {
  const std::string before = Now();
  ASSERT_EQ(Do({"MSET", "a", "1", "b", "2"}), "OK");
  ASSERT_EQ(Do({"DEL", "a"}), "1");
  const int64_t first = std::stoll(before) + 1;
  const auto entry = [&](int64_t behind, const std::string& fields) {
    return "(" + std::to_string(first + behind) + "-0 (" + fields + "))";
  };
  const std::string one = entry(0, "op set ns 0 key a value 1 expires 0");
  const std::string two = entry(1, "op set ns 0 key b value 2 expires 0");
  const std::string three = entry(2, "op del ns 0 key a value  expires 0");
  const std::string begin = "((varve:changes (";
  EXPECT_EQ(Do({"XREAD", "STREAMS", "varve:changes", before + "-0"}),
            begin + one + " " + two + " " + three + ")))");
  // COUNT may cut a commit: the rest of it follows.
  EXPECT_EQ(Do({"XREAD", "COUNT", "1", "STREAMS", "varve:changes", before}), begin + one + ")))");
  EXPECT_EQ(Do({"XREAD", "COUNT", "1", "STREAMS", "varve:changes", std::to_string(first) + "-0"}),
            begin + two + ")))");
  EXPECT_EQ(Do({"XREAD", "STREAMS", "varve:changes", "$"}), "nil");
  EXPECT_EQ(Do({"XREAD", "STREAMS", "mine", "0"}), "nil");
  EXPECT_NE(Do({"XREAD", "STREAMS", "mine", "varve:changes", "0", "0-0"}), "nil");
  EXPECT_EQ(Do({"XREAD", "BLOCK", "10", "STREAMS", "varve:changes", "$"}), "nil");
  EXPECT_TRUE(Do({"XREAD", "STREAMS", "varve:changes"}).starts_with("!ERR wrong number"));
  EXPECT_TRUE(Do({"XREAD", "STREAMS", "a", "b", "0"}).starts_with("!ERR Unbalanced"));
  EXPECT_TRUE(Do({"XREAD", "STREAMS", "varve:changes", "x"}).starts_with("!ERR Invalid stream"));
  EXPECT_EQ(Do({"XREAD", "NOACK", "1", "STREAMS", "a", "0"}), "!ERR syntax error");

  const std::unique_ptr<Client> reader = server_.Connect();
  Start(*reader, {"XREAD", "BLOCK", "0", "STREAMS", "varve:changes", "$"});
  ASSERT_TRUE(SomeoneIsBlocked());
  ASSERT_EQ(Do({"SET", "c", "3"}), "OK");
  const absl::StatusOr<Reply> reply = reader->Receive();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(ReplyText(*reply), begin + entry(3, "op set ns 0 key c value 3 expires 0") + ")))");
}

// --- Blocked readers and CLIENT ------------------------------------------------------------------

class BlockedReaderTest : public ChangesTest {
 protected:
  void Block(const Words& request) {
    id_ = Ask(*reader_, {"CLIENT", "ID"});
    Start(*reader_, request);
    ASSERT_TRUE(SomeoneIsBlocked());
  }
  std::string Received() {
    const absl::StatusOr<Reply> reply = reader_->Receive();
    return reply.ok() ? ReplyText(*reply) : reply.status().ToString();
  }
  std::string Flags() {
    const std::string client = Do({"CLIENT", "LIST", "ID", id_});
    const size_t at = client.find(" flags=") + 7;
    return client.substr(at, client.find(' ', at) - at);
  }

  std::unique_ptr<Client> reader_ = server_.Connect();
  std::string id_;
};

TEST_F(BlockedReaderTest, ClientUnblockAnswersIt) {
  const std::string now = Now();
  const Words requests[] = {{"XREAD", "BLOCK", "0", "STREAMS", "varve:changes", "$"},
                            {"CHANGES", "SINCE", now, "PREFIX", "mine", "BLOCK", "600000"}};
  for (const Words& request : requests) {
    Block(request);
    EXPECT_EQ(Flags(), "b");
    EXPECT_EQ(Do({"CLIENT", "UNBLOCK", id_, "ERROR"}), "1");
    EXPECT_EQ(Received(), "!UNBLOCKED client unblocked via CLIENT UNBLOCK");
    EXPECT_EQ(Do({"CLIENT", "UNBLOCK", id_}), "0") << "it is not blocked any more";
    EXPECT_EQ(Flags(), "N");
    Block(request);
    EXPECT_EQ(Do({"CLIENT", "UNBLOCK", id_}), "1");
    const std::string reply = Received();
    EXPECT_TRUE(request[0] == "XREAD" ? reply == "nil" : reply.ends_with(" ())")) << reply;
    EXPECT_EQ(Ask(*reader_, {"PING"}), "PONG");
  }
  EXPECT_NE(Do({"INFO", "clients"}).find("blocked_clients:0\r"), std::string::npos);
  EXPECT_EQ(Do({"CLIENT", "UNBLOCK", "999999"}), "0");
  EXPECT_EQ(Do({"CLIENT", "UNBLOCK", "-1"}), "0");
  EXPECT_EQ(Ask(*reader_, {"CLIENT", "UNBLOCK", id_}), "0");
}

TEST_F(BlockedReaderTest, ClientUnblockFindsItBetweenCommitsThatDoNotConcernIt) {
  for (int round = 0; round < 20; ++round) {
    Block({"CHANGES", "SINCE", Now(), "PREFIX", "mine", "BLOCK", "0"});
    for (int i = 0; i <= round; ++i) ASSERT_EQ(Do({"SET", "other", "x"}), "OK");
    ASSERT_EQ(Do({"CLIENT", "UNBLOCK", id_, "ERROR"}), "1") << round;
    ASSERT_EQ(Received(), "!UNBLOCKED client unblocked via CLIENT UNBLOCK");
  }
}

TEST_F(BlockedReaderTest, ACommitUnblocksItAndNothingIsLeftOfThat) {
  Block({"XREAD", "BLOCK", "0", "STREAMS", "varve:changes", "$"});
  ASSERT_EQ(Do({"SET", "a", "1"}), "OK");
  EXPECT_NE(Received().find("key a"), std::string::npos);
  EXPECT_EQ(Flags(), "N");
  EXPECT_EQ(Do({"CLIENT", "UNBLOCK", id_}), "0");
  Block({"XREAD", "BLOCK", "0", "STREAMS", "varve:changes", "$"});
  ASSERT_EQ(Do({"SET", "b", "2"}), "OK");
  EXPECT_NE(Received().find("key b"), std::string::npos);
}

TEST_F(BlockedReaderTest, ClientKillEndsIt) {
  const std::string now = Now();
  for (const Words& request :
       std::vector<Words>{{"XREAD", "BLOCK", "0", "STREAMS", "varve:changes", "$"},
                          {"CHANGES", "SINCE", now, "BLOCK", "0"}}) {
    Block(request);
    EXPECT_EQ(Do({"CLIENT", "KILL", "ID", id_}), "1");
    EXPECT_FALSE(reader_->Receive().ok());
    EXPECT_TRUE(Eventually([&] {
      return Do({"INFO", "clients"}).find("blocked_clients:0\r") != std::string::npos;
    }));
    EXPECT_EQ(Do({"CLIENT", "UNBLOCK", id_}), "0");
    reader_ = server_.Connect();
  }
}

// --- XRANGE, XREVRANGE, XLEN, XINFO --------------------------------------------------------------

class ChangesStreamTest : public ChangesTest {
 protected:
  // Sets k1 ... kn, and returns the version before them.
  int64_t SetKeys(int count) {
    const int64_t before = std::stoll(Now());
    for (int i = 1; i <= count; ++i)
      EXPECT_EQ(Do({"SET", "k" + std::to_string(i), std::to_string(i)}), "OK");
    return before;
  }
  // The keys of the entries, "k1 k2". An error as it is.
  static std::string Keys(const Reply& reply) {
    if (reply.type != Reply::Type::kArray) return ReplyText(reply);
    std::string text;
    for (const Reply& entry : reply.elements) {
      EXPECT_EQ(entry.elements.size(), 2u);
      text += (text.empty() ? "" : " ") + entry.elements[1].elements[5].text;
    }
    return text;
  }
  std::string Range(const std::string& start, const std::string& end, Words more = {}) {
    Words words = {"XRANGE", "varve:changes", start, end};
    words.insert(words.end(), more.begin(), more.end());
    return Keys(Get(*client_, words));
  }
  std::string Reversed(const std::string& end, const std::string& start, Words more = {}) {
    Words words = {"XREVRANGE", "varve:changes", end, start};
    words.insert(words.end(), more.begin(), more.end());
    return Keys(Get(*client_, words));
  }
  std::string Figure(Client& client, const std::string& name) {
    const Reply info = Get(client, {"XINFO", "STREAM", "varve:changes"});
    for (size_t i = 0; i + 1 < info.elements.size(); i += 2) {
      if (info.elements[i].text == name) return ReplyText(info.elements[i + 1]);
    }
    return "missing: " + ReplyText(info);
  }
};

TEST_F(ChangesStreamTest, XrangeAnswersTheEntriesBetweenTwoIds) {
  const int64_t before = SetKeys(5);
  const auto id = [&](int key) { return std::to_string(before + key); };
  const std::string entry = "(" + id(2) + "-0 (op set ns 0 key k2 value 2 expires 0))";
  EXPECT_EQ(Do({"XRANGE", "varve:changes", id(2), id(2)}), "(" + entry + ")");
  EXPECT_EQ(Do({"XREVRANGE", "varve:changes", id(2), id(2)}), "(" + entry + ")");
  EXPECT_EQ(Range("-", "+"), "k1 k2 k3 k4 k5");
  EXPECT_EQ(Range("0", "+"), "k1 k2 k3 k4 k5");
  EXPECT_EQ(Range(id(2), id(4)), "k2 k3 k4");
  EXPECT_EQ(Range(id(2) + "-0", id(4) + "-0"), "k2 k3 k4");
  EXPECT_EQ(Range(id(2) + "-1", id(4) + "-9"), "k3 k4");
  EXPECT_EQ(Range("(" + id(2), "(" + id(4) + "-0"), "k3");
  EXPECT_EQ(Range("(" + id(2), "(" + id(4)), "k3 k4") << "as in Redis: the id of an end is open";
  EXPECT_EQ(Range("-", "+", {"COUNT", "2"}), "k1 k2");
  EXPECT_EQ(Range(id(4), id(2)), "");
  EXPECT_EQ(Range("+", "-"), "");
  EXPECT_EQ(Range(id(6), "+"), "");
  EXPECT_EQ(Range("-", "+", {"COUNT", "0"}), "nil");
  EXPECT_EQ(Range("-", "+", {"COUNT", "x"}), "!ERR value is not an integer or out of range");
  EXPECT_EQ(Range("-", "+", {"COUNT"}), "!ERR syntax error");
  EXPECT_EQ(Range("x", "+"), "!ERR Invalid stream ID specified as stream command argument");
  EXPECT_EQ(Range("-", "(+"), "!ERR Invalid stream ID specified as stream command argument");
  EXPECT_EQ(Do({"XRANGE", "k1", "-", "+"}), "()") << "no key holds a stream";
  EXPECT_EQ(Do({"XREVRANGE", "k1", "+", "-"}), "()");
  Restart();
  EXPECT_EQ(Range(id(2), id(4)), "k2 k3 k4");
}

TEST_F(ChangesStreamTest, XrevrangeAnswersTheNewestFirst) {
  const int64_t before = SetKeys(3);
  ASSERT_EQ(Do({"MSET", "m1", "1", "m2", "2", "m3", "3"}), "OK");
  const auto id = [&](int entry) { return std::to_string(before + entry); };
  EXPECT_EQ(Reversed("+", "-"), "m3 m2 m1 k3 k2 k1");
  EXPECT_EQ(Reversed("+", "-", {"COUNT", "1"}), "m3");
  EXPECT_EQ(Reversed(id(5), id(2)), "m2 m1 k3 k2") << "an interval may cut a commit";
  EXPECT_EQ(Reversed("(" + id(5) + "-0", id(2), {"COUNT", "2"}), "m1 k3");
  EXPECT_EQ(Reversed(id(2), id(5)), "");
  // Entries that are not shown lie between, many windows long.
  ASSERT_EQ(Do({"SELECT", "1"}), "OK");
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(Do({"SET", "other", "x"}), "OK");
  ASSERT_EQ(Do({"SELECT", "0"}), "OK");
  EXPECT_EQ(Reversed("+", "-", {"COUNT", "4"}), "m3 m2 m1 k3");
  EXPECT_EQ(Reversed("+", "-", {"COUNT", "100"}), "m3 m2 m1 k3 k2 k1");
}

TEST_F(ChangesStreamTest, BothDirectionsAgreeAndEndBehindAMegabyte) {
  const std::string large(100'000, 'x');
  for (int i = 0; i < 30; ++i) ASSERT_EQ(Do({"SET", "k" + std::to_string(i), large}), "OK");
  std::string forward, backward;
  for (std::string id = "-";;) {
    const Reply reply = Get(*client_, {"XRANGE", "varve:changes", id, "+"});
    if (reply.elements.empty()) break;
    EXPECT_LE(reply.elements.size(), 12u);
    forward += Keys(reply) + " ";
    id = "(" + reply.elements.back().elements[0].text;
  }
  std::vector<std::string> parts;
  for (std::string id = "+";;) {
    const Reply reply = Get(*client_, {"XREVRANGE", "varve:changes", id, "-"});
    if (reply.elements.empty()) break;
    EXPECT_LE(reply.elements.size(), 12u);
    for (const Reply& entry : reply.elements) parts.push_back(entry.elements[1].elements[5].text);
    id = "(" + reply.elements.back().elements[0].text;
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) backward += *part + " ";
  EXPECT_EQ(parts.size(), 30u);
  EXPECT_EQ(forward, backward);
}

TEST_F(ChangesStreamTest, XlenAndXinfoTellHowLongTheStreamIs) {
  EXPECT_EQ(Do({"XLEN", "varve:changes"}), "0");
  EXPECT_EQ(Figure(*client_, "length"), "0");
  EXPECT_EQ(Figure(*client_, "first-entry"), "nil");
  EXPECT_EQ(Figure(*client_, "last-entry"), "nil");
  const int64_t before = SetKeys(5);
  EXPECT_EQ(Do({"XLEN", "varve:changes"}), "5");
  EXPECT_EQ(Figure(*client_, "length"), "5");
  EXPECT_EQ(Figure(*client_, "groups"), "0");
  EXPECT_EQ(Figure(*client_, "last-generated-id"), std::to_string(before + 5) + "-0");
  EXPECT_EQ(Figure(*client_, "recorded-first-entry-id"), std::to_string(before + 1) + "-0");
  EXPECT_EQ(Figure(*client_, "first-entry"),
            "(" + std::to_string(before + 1) + "-0 (op set ns 0 key k1 value 1 expires 0))");
  EXPECT_EQ(Figure(*client_, "last-entry"),
            "(" + std::to_string(before + 5) + "-0 (op set ns 0 key k5 value 5 expires 0))");
  EXPECT_EQ(Do({"XINFO", "GROUPS", "varve:changes"}), "()");
  EXPECT_EQ(Do({"XINFO", "STREAM", "k1"}), "!ERR no such key");
  EXPECT_EQ(Do({"XINFO", "GROUPS", "k1"}), "!ERR no such key");
  EXPECT_EQ(Do({"XLEN", "k1"}), "0");
  EXPECT_TRUE(Do({"XINFO", "HELP"}).starts_with("(XINFO <subcommand>"));
  ASSERT_EQ(Do({"MULTI"}), "OK");
  ASSERT_EQ(Do({"XLEN", "varve:changes"}), "QUEUED");
  ASSERT_EQ(Do({"XREVRANGE", "varve:changes", "+", "-", "COUNT", "1"}), "QUEUED");
  EXPECT_EQ(Do({"EXEC"}),
            "(5 ((" + std::to_string(before + 5) + "-0 (op set ns 0 key k5 value 5 expires 0))))");
}

TEST_F(ChangeRightsTest, TheStreamShowsTheKeysOfItsUser) {
  ASSERT_EQ(Do({"MSET", "app:1", "1", "secret", "x"}), "OK");
  ASSERT_EQ(Do({"MSET", "app:2", "2", "zoo", "x"}), "OK");
  const auto keys = [&](const Words& words) {
    std::string text;
    for (const Reply& entry : Get(*alice_, words).elements)
      text += entry.elements[1].elements[5].text + " ";
    return text;
  };
  EXPECT_EQ(keys({"XRANGE", "varve:changes", "-", "+"}), "app:1 app:2 ");
  EXPECT_EQ(keys({"XREVRANGE", "varve:changes", "+", "-"}), "app:2 app:1 ");
  EXPECT_EQ(keys({"XREVRANGE", "varve:changes", "+", "-", "COUNT", "1"}), "app:2 ");
  const std::string info = Ask(*alice_, {"XINFO", "STREAM", "varve:changes"});
  EXPECT_NE(info.find("key app:1"), std::string::npos) << info;
  EXPECT_NE(info.find("key app:2"), std::string::npos) << info;
  EXPECT_EQ(info.find("zoo"), std::string::npos) << info;
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "resetkeys"}), "OK");
  EXPECT_EQ(Ask(*alice_, {"XRANGE", "varve:changes", "-", "+"}), "()");
  EXPECT_EQ(Ask(*alice_, {"XREVRANGE", "varve:changes", "+", "-"}), "()");
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "-@stream", "~*"}), "OK");
  for (const Words& words : std::vector<Words>{{"XRANGE", "varve:changes", "-", "+"},
                                               {"XREVRANGE", "varve:changes", "+", "-"},
                                               {"XLEN", "varve:changes"},
                                               {"XINFO", "GROUPS", "varve:changes"},
                                               {"XINFO", "STREAM", "varve:changes"}})
    EXPECT_TRUE(Ask(*alice_, words).starts_with("!NOPERM")) << words[0];
}

// --- FEED ----------------------------------------------------------------------------------------

TEST_F(ChangesTest, AFeedKeepsThePlaceOfItsReader) {
  ASSERT_EQ(Do({"SET", "a", "1"}), "OK");
  const std::string place = Now();
  ASSERT_EQ(
      Do({"FEED", "CREATE", "f", "FROM", place, "PREFIX", "a", "MAXBYTES", "1MiB", "MAXAGE", "1d"}),
      "OK");
  ASSERT_EQ(Do({"FEED", "CREATE", "e", "FROM", "NOW"}), "OK");
  EXPECT_EQ(Do({"FEED", "LIST"}), "(e f)");
  EXPECT_TRUE(Do({"FEED", "CREATE", "f"}).starts_with("!ERR"));
  const auto figure = [&](const std::string& name, const char* feed = "f") {
    const Reply info = Get(*client_, {"FEED", "INFO", feed});
    for (size_t i = 0; i + 1 < info.elements.size(); i += 2) {
      if (info.elements[i].text == name) return ReplyText(info.elements[i + 1]);
    }
    return std::string("missing");
  };
  EXPECT_EQ(figure("position"), place);
  EXPECT_EQ(figure("prefix"), "a");
  EXPECT_EQ(figure("namespace"), "0");
  EXPECT_EQ(figure("maxbytes"), "1048576");
  EXPECT_EQ(figure("maxage_ms"), "86400000");
  EXPECT_EQ(figure("maxbytes", "e"), "1073741824") << "the bounds that hold if none are given";
  EXPECT_EQ(figure("maxage_ms", "e"), "86400000");
  EXPECT_EQ(figure("lost"), "0");
  ASSERT_EQ(Do({"SET", "a", "2"}), "OK");
  const std::string now = Now();
  EXPECT_EQ(Do({"FEED", "ACK", "f", now}), "OK");
  Restart();
  EXPECT_EQ(figure("position"), now);
  EXPECT_TRUE(Do({"FEED", "ACK", "f", "999999999"}).starts_with("!ERR"));
  EXPECT_EQ(Do({"FEED", "ACK", "none", "1"}), "!ERR there is no feed 'none'");
  EXPECT_EQ(Do({"FEED", "INFO", "none"}), "!ERR there is no feed 'none'");
  EXPECT_EQ(Do({"FEED", "DROP", "none"}), "!ERR there is no feed 'none'");
  EXPECT_EQ(Do({"FEED", "DROP", "f"}), "OK");
  EXPECT_EQ(Do({"FEED", "LIST"}), "(e)");
  for (const size_t size : {0, 256}) {
    EXPECT_EQ(Do({"FEED", "CREATE", std::string(size, 'f'), "FROM", "NOW"}),
              "!ERR the name of a feed has 1 to 255 bytes");
  }
  EXPECT_EQ(Do({"FEED", "CREATE", "g", "FROM", "x"}), "!ERR FROM takes a version, or NOW");
  EXPECT_TRUE(Do({"FEED", "CREATE", "g", "FROM", "999999999"}).starts_with("!ERR version"));
  EXPECT_EQ(Do({"FEED", "CREATE", "g", "MAXAGE"}), "!ERR syntax error");
  EXPECT_EQ(Do({"FEED", "CREATE", "g", "MAXAGE", "5"}),
            "!ERR MAXAGE takes a time with its unit, as 1d");
}

TEST_F(ChangeRightsTest, AFeedTakesTheRightToItsKeys) {
  ASSERT_EQ(Do({"FEED", "CREATE", "whole"}), "OK");
  EXPECT_EQ(Ask(*alice_, {"FEED", "CREATE", "mine", "PREFIX", "app:x"}), "OK");
  EXPECT_TRUE(Ask(*alice_, {"FEED", "CREATE", "all"}).starts_with("!NOPERM"));
  EXPECT_TRUE(Ask(*alice_, {"FEED", "ACK", "whole", "1"}).starts_with("!NOPERM"));
  EXPECT_TRUE(Ask(*alice_, {"FEED", "INFO", "whole"}).starts_with("!NOPERM"));
  EXPECT_TRUE(Ask(*alice_, {"FEED", "DROP", "whole"}).starts_with("!NOPERM"));
  EXPECT_EQ(Ask(*alice_, {"FEED", "LIST"}), "(mine)");
  EXPECT_EQ(Ask(*alice_, {"FEED", "DROP", "mine"}), "OK");
}

}  // namespace
}  // namespace varve
