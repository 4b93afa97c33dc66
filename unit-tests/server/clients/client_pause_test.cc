// CLIENT PAUSE: what waits, what does not, and how it ends.
#include "server/clients/client_pause.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

using testing::Ask;
using testing::ManualClock;
using testing::RawConnection;
using testing::ReplyText;
using testing::Resp;
using testing::TestServer;
using Words = std::vector<std::string>;

class ClientPauseTest : public ::testing::Test {
 protected:
  std::string Do(const Words& arguments) { return Ask(*admin_, arguments); }
  std::string ClientLines() { return Do({"CLIENT", "LIST"}); }
  size_t Paused() {
    const std::string info = Do({"INFO", "clients"});
    const std::string field = "blocked_clients:";
    return std::stoul(info.substr(info.find(field) + field.size()));
  }
  void AwaitPaused(size_t count) {
    while (Paused() != count) std::this_thread::yield();
  }
  std::unique_ptr<Client> SendFrom(const Words& arguments) {
    std::unique_ptr<Client> client = server_.Connect();
    Send(*client, arguments);
    return client;
  }
  static void Send(Client& client, const Words& arguments) {
    const std::vector<std::string_view> views(arguments.begin(), arguments.end());
    EXPECT_TRUE(client.Send(views).ok());
    client.pipeline().Flush();
  }
  static std::string Reply(Client& client) {
    const absl::StatusOr<varve::Reply> reply = client.Receive();
    return reply.ok() ? ReplyText(*reply) : "lost";
  }

  TestServer server_;
  std::unique_ptr<Client> admin_ = server_.Connect();
};

TEST_F(ClientPauseTest, WritesWaitAndReadsDoNot) {
  Do({"SET", "k", "0"});
  EXPECT_EQ(Do({"CLIENT", "PAUSE", "600000", "WRITE"}), "OK");
  EXPECT_EQ(Do({"GET", "k"}), "0");
  const std::vector<Words> writes = {{"SET", "k", "1"},     {"INCR", "n"},
                                     {"PUBLISH", "c", "m"}, {"NAMESPACE", "CREATE", "app"},
                                     {"FLUSHDB"},           {"MSET", "a", "1"}};
  std::vector<std::unique_ptr<Client>> writers;
  for (const Words& write : writes) writers.push_back(SendFrom(write));
  AwaitPaused(writes.size());
  EXPECT_NE(ClientLines().find("flags=b "), std::string::npos);
  EXPECT_EQ(Do({"GET", "k"}), "0");
  EXPECT_EQ(Do({"NAMESPACE", "LIST"}).find("app"), std::string::npos);
  EXPECT_EQ(Do({"CLIENT", "UNPAUSE"}), "OK");
  for (const std::unique_ptr<Client>& writer : writers)
    EXPECT_FALSE(Reply(*writer).starts_with("!"));
  AwaitPaused(0);
}

TEST_F(ClientPauseTest, TheRepliesBeforeAWriteLeaveAndThoseBehindItWait) {
  Do({"SET", "k", "0"});
  Do({"CLIENT", "PAUSE", "600000", "WRITE"});
  RawConnection connection(server_.port());
  connection.Send(Resp({"GET", "k"}) + Resp({"PING"}) + Resp({"SET", "k", "1"}) +
                  Resp({"SET", "k", "2"}) + Resp({"GET", "k"}));
  const std::string before = "$1\r\n0\r\n+PONG\r\n";
  EXPECT_EQ(connection.Receive(before.size()), before);
  AwaitPaused(1);
  EXPECT_EQ(Do({"GET", "k"}), "0");
  Do({"CLIENT", "UNPAUSE"});
  const std::string behind = "+OK\r\n+OK\r\n$1\r\n2\r\n";
  EXPECT_EQ(connection.Receive(behind.size()), behind);
}

TEST_F(ClientPauseTest, ATransactionThatWritesWaits) {
  const std::unique_ptr<Client> reader = server_.Connect();
  const std::unique_ptr<Client> writer = server_.Connect();
  Ask(*writer, {"MULTI"});
  Ask(*writer, {"SET", "k", "1"});
  Do({"CLIENT", "PAUSE", "600000", "WRITE"});
  Ask(*reader, {"MULTI"});
  Ask(*reader, {"GET", "k"});
  EXPECT_EQ(Ask(*reader, {"EXEC"}), "(nil)");
  Send(*writer, {"EXEC"});
  Ask(*reader, {"MULTI"});
  Send(*reader, {"SET", "k", "2"});
  AwaitPaused(2);
  Do({"CLIENT", "UNPAUSE"});
  EXPECT_EQ(Reply(*writer), "(OK)");
  EXPECT_EQ(Reply(*reader), "QUEUED");
}

TEST_F(ClientPauseTest, AllRequestsWaitButTheEndOfThePause) {
  EXPECT_EQ(Do({"CLIENT", "PAUSE", "600000"}), "OK");
  const std::unique_ptr<Client> client = SendFrom({"PING"});
  Send(*admin_, {"ECHO", "waited"});
  // The admin can't ask any more: its own request waits.
  const std::unique_ptr<Client> other = server_.Connect();
  EXPECT_EQ(Ask(*other, {"CLIENT", "UNPAUSE"}), "OK");
  EXPECT_EQ(Reply(*client), "PONG");
  EXPECT_EQ(Reply(*admin_), "waited");
}

TEST_F(ClientPauseTest, APauseEndsByItself) {
  EXPECT_EQ(Do({"CLIENT", "PAUSE", "20"}), "OK");
  EXPECT_EQ(Do({"SET", "k", "1"}), "OK");
  EXPECT_EQ(Do({"CLIENT", "PAUSE", "0"}), "OK");
  EXPECT_EQ(Do({"GET", "k"}), "1");
  EXPECT_EQ(Do({"CLIENT", "UNPAUSE"}), "OK");
}

TEST_F(ClientPauseTest, AnotherPauseMakesItStricterAndLongerOnly) {
  Do({"CLIENT", "PAUSE", "600000", "WRITE"});
  Do({"CLIENT", "PAUSE", "1", "WRITE"});
  const std::unique_ptr<Client> writer = SendFrom({"SET", "k", "1"});
  AwaitPaused(1);
  EXPECT_EQ(Do({"CLIENT", "PAUSE", "1", "ALL"}), "OK");
  Send(*admin_, {"GET", "k"});
  const std::unique_ptr<Client> other = server_.Connect();
  EXPECT_EQ(Ask(*other, {"CLIENT", "UNPAUSE"}), "OK");
  EXPECT_EQ(Reply(*writer), "OK");
  (void)Reply(*admin_);
}

TEST_F(ClientPauseTest, WrongArgumentsHaveRedisWords) {
  EXPECT_EQ(Do({"CLIENT", "PAUSE", "x"}), "!ERR timeout is not an integer or out of range");
  EXPECT_EQ(Do({"CLIENT", "PAUSE", "-1"}), "!ERR timeout is negative");
  EXPECT_EQ(Do({"CLIENT", "PAUSE", "1", "READ"}), "!ERR CLIENT PAUSE mode must be WRITE or ALL");
  EXPECT_TRUE(Do({"CLIENT", "PAUSE", "1", "ALL", "x"}).starts_with("!ERR unknown subcommand or"));
  EXPECT_EQ(Do({"SET", "k", "1"}), "OK");
}

TEST_F(ClientPauseTest, APausedClientMayBeKilledOrHangUp) {
  Do({"CLIENT", "PAUSE", "600000", "WRITE"});
  RawConnection killed(server_.port()), leaving(server_.port());
  killed.Send("CLIENT ID\r\n" + Resp({"SET", "killed", "1"}));
  const std::string id = killed.Receive(4);
  leaving.Send(Resp({"SET", "left", "1"}));
  AwaitPaused(2);
  leaving.FinishSending();
  leaving.ReceiveAll();
  EXPECT_TRUE(leaving.closed());
  AwaitPaused(1);
  EXPECT_EQ(Do({"CLIENT", "KILL", "ID", id.substr(1, id.find('\r') - 1)}), "1");
  killed.ReceiveAll();
  EXPECT_TRUE(killed.closed());
  AwaitPaused(0);
  Do({"CLIENT", "UNPAUSE"});
  EXPECT_EQ(Do({"EXISTS", "left", "killed"}), "0");
}

TEST_F(ClientPauseTest, AStopAnswersWhatWasPaused) {
  Do({"CLIENT", "PAUSE", "600000", "WRITE"});
  const std::unique_ptr<Client> writer = SendFrom({"SET", "k", "1"});
  AwaitPaused(1);
  admin_.reset();
  server_.Stop();
  EXPECT_EQ(Reply(*writer), "OK");
  server_.Start();
  EXPECT_EQ(Ask(*server_.Connect(), {"GET", "k"}), "1");
}

TEST(ClientPauseOverTimeTest, NothingIsRemovedAsItsTimeIsOver) {
  ManualClock clock;
  EngineOptions engine = TestServer::SmallEngine();
  engine.clock = &clock;
  TestServer server({}, engine);
  const std::unique_ptr<Client> client = server.Connect();
  Ask(*client, {"SET", "k", "1", "PX", "1000"});
  Ask(*client, {"CLIENT", "PAUSE", "600000", "WRITE"});
  clock.Advance(2000);
  EXPECT_EQ(Ask(*client, {"GET", "k"}), "nil");
  EXPECT_EQ(Ask(*client, {"DBSIZE"}), "1");
  EXPECT_EQ(Ask(*client, {"WATCH", "k"}), "OK");
  EXPECT_EQ(Ask(*client, {"DBSIZE"}), "1");
  Ask(*client, {"CLIENT", "UNPAUSE"});
  EXPECT_EQ(Ask(*client, {"DBSIZE"}), "0");
}

}  // namespace
}  // namespace varve
