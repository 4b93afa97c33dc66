// Users with limits, and the audit log, through the port.
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "unit-tests/server/command_fixture.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::Ask;
using testing::Eventually;
using testing::RawConnection;
using testing::Resp;
using testing::TestServer;

class LimitedUsersTest : public testing::CommandTest {
 protected:
  void SetUser(const std::vector<std::string>& rules) {
    std::vector<std::string> request = {"ACL", "SETUSER", "app", "on", ">pw", "+@all", "~*", "&*"};
    request.insert(request.end(), rules.begin(), rules.end());
    ASSERT_EQ(Do(request), "OK");
  }
  std::string LogIn(Client& client) { return Ask(client, {"AUTH", "app", "pw"}); }
};

TEST_F(LimitedUsersTest, LimitsAreShownAndTakenBack) {
  SetUser({"maxclients=3", "cidr=10.0.0.0/8", "cidr=fd00::/8", "expires=4000000000"});
  const std::string limits = "maxclients=3 cidr=10.0.0.0/8 cidr=fd00::/8 expires=4000000000";
  EXPECT_NE(Do({"ACL", "LIST"}).find(" " + limits + " ~* &* +@all"), std::string::npos);
  EXPECT_NE(Do({"ACL", "GETUSER", "app"}).find("limits " + limits + " commands +@all"),
            std::string::npos);
  EXPECT_EQ(Do({"ACL", "SETUSER", "app", "cidr=10.0.0.0/33"}),
            "!ERR Error in ACL SETUSER modifier 'cidr=10.0.0.0/33': cidr= takes a network such as "
            "10.0.0.0/8 or fd00::/8, or an address");
  EXPECT_NE(Do({"ACL", "LIST"}).find(limits), std::string::npos);
  SetUser({"maxclients=0", "resetcidr", "expires=0"});
  EXPECT_EQ(Do({"ACL", "GETUSER", "app"}).find("limits"), std::string::npos);
  SetUser({"maxclients=3", "reset"});
  EXPECT_EQ(Do({"ACL", "LIST"}).find("maxclients"), std::string::npos);
}

TEST_F(LimitedUsersTest, NoMoreConnectionsThanMaxclients) {
  SetUser({"maxclients=2"});
  const std::unique_ptr<Client> first = server_.Connect(), second = server_.Connect();
  EXPECT_EQ(LogIn(*first), "OK");
  EXPECT_EQ(LogIn(*first), "OK") << "it has its place";
  {
    const std::unique_ptr<Client> gone = server_.Connect();
    EXPECT_EQ(LogIn(*gone), "OK");
    EXPECT_EQ(LogIn(*second),
              "!ERR max number of clients reached for the user 'app' (maxclients=2)");
    EXPECT_EQ(Ask(*second, {"HELLO", "3", "AUTH", "app", "pw"}).substr(0, 10), "!ERR max n");
    EXPECT_EQ(Ask(*second, {"ACL", "WHOAMI"}), "default");
    EXPECT_EQ(Ask(*gone, {"PING"}), "PONG");
  }
  // The server notices soon that the connection is closed.
  EXPECT_TRUE(Eventually([&] { return LogIn(*second) == "OK"; }));
  EXPECT_EQ(Ask(*first, {"RESET"}), "RESET");
  const std::unique_ptr<Client> third = server_.Connect();
  EXPECT_EQ(LogIn(*third), "OK");
  // A change of the user keeps the count, and a lower limit those who are there.
  SetUser({"maxclients=1"});
  EXPECT_EQ(Ask(*second, {"PING"}), "PONG");
  EXPECT_EQ(LogIn(*first).substr(0, 10), "!ERR max n");
}

TEST_F(LimitedUsersTest, OnlyFromTheirNetworks) {
  SetUser({"cidr=127.0.0.2", "cidr=10.0.0.0/8"});
  EXPECT_TRUE(LogIn(*client_).starts_with("!NOPERM the user 'app' may not work from 127.0.0.1:"));
  EXPECT_EQ(Do({"ACL", "WHOAMI"}), "default");
  EXPECT_NE(Do({"ACL", "LOG"}).find("reason auth context toplevel object AUTH username app"),
            std::string::npos);
  RawConnection other(server_.port(), 0, "127.0.0.1", "127.0.0.2");
  ASSERT_TRUE(other.Send(Resp({"AUTH", "app", "pw"}) + Resp({"PING"})));
  ASSERT_EQ(other.Receive(12), "+OK\r\n+PONG\r\n");
  // A change holds for open connections from their next request on.
  SetUser({"resetcidr", "cidr=127.0.0.3"});
  ASSERT_TRUE(other.Send(Resp({"PING"})));
  const std::string refused = other.ReceiveAll();
  EXPECT_TRUE(refused.starts_with("-NOPERM the user 'app' may not work from 127.0.0.2:"));
  EXPECT_TRUE(other.closed());
  EXPECT_EQ(Do({"PING"}), "PONG");
}

TEST_F(LimitedUsersTest, OnlyUntilTheyExpire) {
  const std::string past = std::to_string(std::time(nullptr) - 1);
  SetUser({"expires=4000000000"});
  const std::unique_ptr<Client> app = server_.Connect(), transaction = server_.Connect();
  EXPECT_EQ(LogIn(*app), "OK");
  EXPECT_EQ(LogIn(*transaction), "OK");
  EXPECT_EQ(Ask(*app, {"SET", "a", "1"}), "OK");
  EXPECT_EQ(Ask(*transaction, {"MULTI"}), "OK");
  EXPECT_EQ(Ask(*transaction, {"SET", "a", "2"}), "QUEUED");
  SetUser({"expires=" + past});
  const std::string expired = "!NOPERM the user 'app' has expired (expires=" + past + ")";
  EXPECT_EQ(Ask(*transaction, {"EXEC"}),
            "!EXECABORT Transaction discarded because of: " + expired.substr(1));
  EXPECT_TRUE(Ask(*transaction, {"PING"}).starts_with("lost:"));
  EXPECT_EQ(Ask(*app, {"GET", "a"}), expired);
  EXPECT_TRUE(Ask(*app, {"GET", "a"}).starts_with("lost:"));
  EXPECT_EQ(LogIn(*client_), expired);
  EXPECT_EQ(Do({"GET", "a"}), "1");
}

// The rights at the beginning of a long reply hold to its end; a removed user gets no more of it.
TEST_F(LimitedUsersTest, RightsThatGoWhileALongRangeIsUnderWay) {
  constexpr int kKeys = 2000;
  const std::string value(10'000, 'v');
  for (int i = 0; i < kKeys; ++i)
    ASSERT_EQ(Do({"SET", "key" + std::to_string(10000 + i), value}), "OK");
  SetUser({});
  const auto begin = [&](RawConnection& raw) {
    ASSERT_TRUE(raw.Send(Resp({"AUTH", "app", "pw"}) + Resp({"RANGE", "-", "+"}) +
                         Resp({"RANGE", "-", "+"})));
    ASSERT_EQ(raw.Receive(5), "+OK\r\n");
    ASSERT_EQ(raw.Receive(2), "*4");  // and does not take the rest yet
  };
  RawConnection kept(server_.port(), 4096), gone(server_.port(), 4096);
  begin(kept);
  SetUser({"resetkeys", "~other"});
  kept.FinishSending();
  const std::string rest = kept.ReceiveAll();
  EXPECT_TRUE(rest.ends_with(value + "\r\n*0\r\n")) << "the next one shows the new part: nothing";
  EXPECT_GT(rest.size(), kKeys * value.size());
  SetUser({"~*"});
  begin(gone);
  EXPECT_EQ(Do({"ACL", "DELUSER", "app"}), "1");
  EXPECT_LT(gone.ReceiveAll().size(), kKeys * value.size());
  EXPECT_TRUE(gone.closed());
  EXPECT_EQ(Do({"COUNT", "-", "+"}), std::to_string(kKeys));
}

class AuditTest : public ::testing::Test {
 protected:
  std::string Contents() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool Holds(const std::string& text) const {
    return Eventually([&] { return Contents().find(text) != std::string::npos; });
  }

  testing::TempDir directory_;
  const std::string path_ = directory_.File("audit.log");
};

TEST_F(AuditTest, DenialsAndAdminCommandsAreWrittenWithoutSecrets) {
  TestServer server({.acl_log_file = path_});
  const std::unique_ptr<Client> admin = server.Connect(), app = server.Connect();
  ASSERT_EQ(Ask(*admin, {"ACL", "SETUSER", "app", "on", ">hidden", "~a*", "+get", "+set"}), "OK");
  ASSERT_EQ(Ask(*admin, {"CONFIG", "SET", "maxclients", "77"}), "OK");
  ASSERT_EQ(Ask(*admin, {"SET", "b", "hidden"}), "OK");
  ASSERT_EQ(Ask(*admin, {"MULTI"}), "OK");
  ASSERT_EQ(Ask(*admin, {"SLOWLOG", "RESET"}), "QUEUED");
  ASSERT_EQ(Ask(*admin, {"EXEC"}), "(OK)");
  EXPECT_EQ(Ask(*app, {"AUTH", "app", "hiddem"}).substr(0, 10), "!WRONGPASS");
  EXPECT_EQ(Ask(*app, {"AUTH", "app", "hidden"}), "OK");
  EXPECT_EQ(Ask(*app, {"SET", "b", "hidden"}).substr(0, 7), "!NOPERM");
  EXPECT_EQ(Ask(*app, {"CONFIG", "SET", "requirepass", "hidden"}).substr(0, 7), "!NOPERM");
  for (const char* line :
       {"\"event\":\"admin\",\"command\":\"acl|setuser\",\"user\":\"default\",\"client\":\"127.0.0."
        "1:",
        "\"event\":\"admin\",\"command\":\"config|set\",\"user\":\"default\"",
        "\"event\":\"admin\",\"command\":\"slowlog|reset\",\"user\":\"default\"",
        "\"event\":\"denied\",\"reason\":\"auth\",\"command\":\"AUTH\",\"object\":\"AUTH\","
        "\"context\":"
        "\"toplevel\",\"user\":\"app\"",
        "\"event\":\"denied\",\"reason\":\"key\",\"command\":\"set\",\"object\":\"b\"",
        "\"event\":\"denied\",\"reason\":\"command\",\"command\":\"config|set\",\"object\":"
        "\"config|set\""}) {
    EXPECT_TRUE(Holds(line)) << line << " in " << Contents();
  }
  for (const char* secret : {"hidden", "hiddem", "requirepass"})
    EXPECT_EQ(Contents().find(secret), std::string::npos) << secret;
  EXPECT_EQ(Contents().find("\"command\":\"get\""), std::string::npos);
}

TEST_F(AuditTest, WhatWaitsIsWrittenBeforeTheServerEnds) {
  {
    TestServer server({.acl_log_file = path_});
    const std::unique_ptr<Client> admin = server.Connect();
    ASSERT_EQ(Ask(*admin, {"CONFIG", "RESETSTAT"}), "OK");
  }
  EXPECT_NE(Contents().find("config|resetstat"), std::string::npos);
}

TEST_F(AuditTest, AServerDoesNotStartWithAFileThatCannotBeOpened) {
  std::filesystem::create_directory(path_);
  testing::TempDir data;
  auto store = StorageEngine::Open(data.File("data"), TestServer::SmallEngine());
  ASSERT_TRUE(store.ok());
  ServerConfig config;
  config.server.port = 0;
  config.server.acl_log_file = path_;
  const absl::Status status = Server::Start(store->get(), config).status();
  EXPECT_NE(status.ToString().find("acl-log-file: "), std::string::npos) << status;
  EXPECT_NE(status.ToString().find(path_), std::string::npos);
  EXPECT_TRUE((*store)->Close().ok());
}

}  // namespace
}  // namespace varve
