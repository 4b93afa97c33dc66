// Who is served: passwords, what is held back from those without, protected mode.
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/clients/client_state.h"
#include "server/clients/login_guard.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::Ask;
using testing::Eventually;
using testing::RawConnection;
using testing::Resp;
using testing::TestServer;

constexpr char kWrong[] = "!WRONGPASS invalid username-password pair or user is disabled.";
constexpr char kNoAuth[] = "!NOAUTH Authentication required.";

ServerOptions WithPassword() {
  ServerOptions options;
  options.password = "secret";
  return options;
}

// An IPv4 address of this machine that is no loopback address; empty: it has none.
std::string OtherAddress() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  std::string found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET ||
        (one->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text,
              sizeof(text));
    found = text;
  }
  freeifaddrs(all);
  return found;
}

TEST(AccessTest, WithoutThePasswordNothingIsDone) {
  TestServer server(WithPassword());
  const std::unique_ptr<Client> client = server.Connect();
  for (const std::vector<std::string>& request : {std::vector<std::string>{"PING"},
                                                  {"SET", "k", "v"},
                                                  {"GET", "k"},
                                                  {"RANGE", "-", "+"},
                                                  {"CONFIG", "GET", "*"},
                                                  {"SHUTDOWN"},
                                                  {"COMMAND"}}) {
    EXPECT_EQ(Ask(*client, request), kNoAuth) << request[0];
  }
  EXPECT_EQ(Ask(*client, {"GET"}), "!ERR wrong number of arguments for 'get' command");
  EXPECT_EQ(Ask(*client, {"FOO"}), "!ERR unknown command 'FOO', with args beginning with: ");
  EXPECT_TRUE(
      Ask(*client, {"HELLO", "3"})
          .starts_with("!NOAUTH HELLO must be called with the client already authenticated"));
  EXPECT_EQ(Ask(*client, {"AUTH", "secret"}), "OK");
  EXPECT_EQ(Ask(*client, {"GET", "k"}), "nil");
  EXPECT_EQ(Ask(*client, {"RESET"}), "RESET");
  EXPECT_EQ(Ask(*client, {"GET", "k"}), kNoAuth);
  EXPECT_EQ(Ask(*client, {"AUTH", "default", "secret"}), "OK");
  EXPECT_EQ(Ask(*client, {"AUTH", "a", "b", "c"}), "!ERR syntax error");
  EXPECT_EQ(Ask(*client, {"QUIT"}), "OK");
}

TEST(AccessTest, HelloLogsIn) {
  TestServer server(WithPassword());
  const std::unique_ptr<Client> client = server.Connect();
  EXPECT_EQ(Ask(*client, {"HELLO", "3", "AUTH", "default", "wrong"}), kWrong);
  EXPECT_EQ(Ask(*client, {"HELLO", "3", "AUTH", "other", "secret"}), kWrong);
  EXPECT_TRUE(Ask(*client, {"HELLO", "3", "AUTH", "default", "secret", "SETNAME", "n"})
                  .starts_with("(server varve"));
  EXPECT_EQ(Ask(*client, {"CLIENT", "GETNAME"}), "n");
}

TEST(AccessTest, RequestsSentAheadWaitForTheLogin) {
  for (const Execution execution : {Execution::kAdaptive, Execution::kPool}) {
    ServerOptions options = WithPassword();
    options.execution = execution;
    TestServer server(options);
    RawConnection connection(server.port());
    std::string requests = Resp({"GET", "a"}) + Resp({"AUTH", "secret"});
    for (int i = 0; i < 20; ++i) requests += Resp({"SET", "a", "1"});
    ASSERT_TRUE(connection.Send(requests + Resp({"GET", "a"}) + "QUIT\r\n"));
    std::string expected = "-NOAUTH Authentication required.\r\n+OK\r\n";
    for (int i = 0; i < 20; ++i) expected += "+OK\r\n";
    EXPECT_EQ(connection.ReceiveAll(), expected + "$1\r\n1\r\n+OK\r\n");
  }
}

TEST(AccessTest, AWrongPasswordIsAnsweredLateAndHoldsUpNobodyElse) {
  for (const Execution execution : {Execution::kAdaptive, Execution::kPool}) {
    ServerOptions options = WithPassword();
    options.execution = execution;
    options.io_threads = 1;
    options.threads = 1;
    TestServer server(options);
    const std::unique_ptr<Client> polite = server.Connect();
    ASSERT_EQ(Ask(*polite, {"AUTH", "secret"}), "OK");
    RawConnection guesser(server.port());
    const auto begin = std::chrono::steady_clock::now();
    // 100, 200 and 400 ms; what is sent ahead waits.
    ASSERT_TRUE(guesser.Send("AUTH a\r\nAUTH b\r\nAUTH c\r\nAUTH secret\r\nQUIT\r\n"));
    int pings = 0;  // while it waits; a client that waited with it would come to four
    for (; server.state().statistics.failed_logins < 3 && pings < 50; ++pings)
      ASSERT_EQ(Ask(*polite, {"PING"}), "PONG");
    EXPECT_GT(pings, 10);
    const std::string replies = guesser.ReceiveAll();
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(700));
    const std::string wrong = "-" + std::string(kWrong).substr(1) + "\r\n";
    EXPECT_EQ(replies, wrong + wrong + wrong + "+OK\r\n+OK\r\n");
    EXPECT_EQ(server.state().statistics.failed_logins.load(), 3u);
  }
}

TEST(AccessTest, EachWrongPasswordIsAnsweredLateAfterTheLoginToo) {
  for (const Execution execution : {Execution::kAdaptive, Execution::kPool}) {
    ServerOptions options = WithPassword();
    options.execution = execution;
    TestServer server(options);
    RawConnection guesser(server.port());
    ASSERT_TRUE(guesser.Send("AUTH secret\r\n"));
    ASSERT_EQ(guesser.Receive(5), "+OK\r\n");
    const auto begin = std::chrono::steady_clock::now();
    // 100, 200 and 400 ms, though they come together.
    ASSERT_TRUE(
        guesser.Send("SET k v\r\nAUTH a\r\nPING\r\nHELLO 3 AUTH default b\r\nAUTH other c\r\nGET "
                     "k\r\nQUIT\r\n"));
    const std::string wrong = "-" + std::string(kWrong).substr(1) + "\r\n";
    EXPECT_EQ(guesser.ReceiveAll(),
              "+OK\r\n" + wrong + "+PONG\r\n" + wrong + wrong + "$1\r\nv\r\n+OK\r\n");
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(700));
    EXPECT_EQ(server.state().statistics.failed_logins.load(), 3u);
  }
}

TEST(AccessTest, GuessesOverManyConnectionsWaitAndClientsElsewhereDont) {
  TestServer server(WithPassword());
  const ServerState& state = server.state();
  for (uint32_t i = 0; i < LoginGuard::kFree; ++i) {  // the answers aren't waited for
    RawConnection guesser(server.port());
    EXPECT_TRUE(guesser.Send("AUTH wrong" + std::to_string(i) + "\r\n"));
    EXPECT_TRUE(Eventually([&] { return state.statistics.failed_logins == i + 1; })) << i;
  }
  // Who goes away before the second is over has not tried at all.
  for (int i = 0; i < 20; ++i) {
    RawConnection guesser(server.port());
    EXPECT_TRUE(guesser.Send("AUTH wrong\r\n"));
    EXPECT_TRUE(Eventually([&] { return state.clients.connected > 0; })) << i;
    guesser.Vanish();
  }
  EXPECT_TRUE(Eventually([&] { return state.clients.connected == 0; }));
  EXPECT_EQ(state.statistics.failed_logins.load(), LoginGuard::kFree);

  const auto log_in = [&](const char* from, const std::string& request) {
    RawConnection polite(server.port(), 0, "127.0.0.1", from);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(polite.Send(request));
    EXPECT_EQ(polite.Receive(5), "+OK\r\n");
    return std::chrono::steady_clock::now() - begin;
  };
  // A busy machine may take its time for some, not for all.
  EXPECT_TRUE(
      Eventually([&] { return log_in("127.0.0.2", "AUTH secret\r\n") < LoginGuard::kDelay; }));
  EXPECT_GE(log_in("127.0.0.1", "AUTH secret\r\n"), LoginGuard::kDelay);
}

TEST(LoginGuardTest, ForgetsOneFailureASecondAndRemembersAMinuteAtMost) {
  LoginGuard guard;
  const LoginGuard::Time start{std::chrono::hours(1)};
  const std::string address = "10.0.0.5:4000";
  EXPECT_EQ(guard.Failed(address, start), LoginGuard::Report::kFirst);
  for (uint32_t i = 2; i < LoginGuard::kFree; ++i) {
    EXPECT_EQ(guard.Failed("10.0.0.5:" + std::to_string(i), start), LoginGuard::Report::kNothing);
  }
  EXPECT_EQ(guard.Delay(address, start).count(), 0);
  EXPECT_EQ(guard.Failed(address, start), LoginGuard::Report::kMany);
  EXPECT_EQ(guard.Delay("10.0.0.5:9", start), LoginGuard::kDelay);
  EXPECT_EQ(guard.Delay("10.0.0.6:4000", start).count(), 0);
  EXPECT_EQ(guard.Delay(address, start + std::chrono::seconds(1)).count(), 0);
  for (int i = 0; i < 1000; ++i) (void)guard.Failed(address, start);
  EXPECT_EQ(guard.Delay(address, start + std::chrono::seconds(50)), LoginGuard::kDelay);
  EXPECT_EQ(guard.Delay(address, start + std::chrono::seconds(51)).count(), 0);
}

TEST(LoginGuardTest, ManyAddressesTakeNoMoreMemory) {
  LoginGuard guard;
  const LoginGuard::Time start{std::chrono::hours(1)};
  for (uint32_t i = 0; i < LoginGuard::kFree; ++i) (void)guard.Failed("10.0.0.5:1", start);
  for (size_t i = 0; i + 1 < LoginGuard::kMostAddresses; ++i)
    (void)guard.Failed(std::to_string(i) + ":1", start);
  EXPECT_EQ(guard.Delay("10.0.0.5:1", start), LoginGuard::kDelay);
  // The others have no failure left but the one.
  (void)guard.Failed("one more:1", start + std::chrono::seconds(2));
  EXPECT_EQ(guard.Delay("10.0.0.5:1", start), LoginGuard::kDelay);
  for (size_t i = 0; i < LoginGuard::kMostAddresses; ++i)
    (void)guard.Failed(std::to_string(i) + ":1", start);
  EXPECT_EQ(guard.Delay("10.0.0.5:1", start).count(), 0);  // all forgotten
}

TEST(LoginGuardTest, AnAddressIsAMachineOrANetwork) {
  EXPECT_EQ(NetworkOf("10.0.0.5:4000"), "10.0.0.5");
  EXPECT_EQ(NetworkOf("/run/varve.sock:0"), "/run/varve.sock");
  EXPECT_EQ(NetworkOf("[2001:db8::1]:1"), NetworkOf("[2001:db8::ffff:2]:7"));
  EXPECT_NE(NetworkOf("[2001:db8::1]:1"), NetworkOf("[2001:db8:0:1::1]:1"));
  EXPECT_EQ(NetworkOf("[fe80::1%eth0]:1"), NetworkOf("[fe80::2%eth0]:1"));
  EXPECT_NE(NetworkOf("[::ffff:10.0.0.1]:1"), NetworkOf("[::ffff:10.0.0.2]:1"));  // IPv4 written so
}

TEST(AccessTest, WhoDoesNotLogInIsClosed) {
  ServerOptions options = WithPassword();
  options.login_timeout = std::chrono::seconds(1);
  TestServer server(options);
  const std::unique_ptr<Client> polite = server.Connect();
  ASSERT_EQ(Ask(*polite, {"AUTH", "secret"}), "OK");
  RawConnection silent(server.port());
  ASSERT_TRUE(silent.Send("PING\r\n"));
  EXPECT_TRUE(silent.ReceiveAll().starts_with("-NOAUTH"));
  EXPECT_TRUE(silent.closed());
  EXPECT_EQ(Ask(*polite, {"PING"}), "PONG");
}

TEST(AccessTest, AGuesserWhoGoesAwayOrAStopLeavesNothingBehind) {
  TestServer server(WithPassword());
  for (int i = 0; i < 10; ++i) {
    RawConnection guesser(server.port());
    ASSERT_TRUE(guesser.Send("AUTH a\r\nAUTH b\r\n"));
    if (i % 2 == 0) guesser.Vanish();
  }
  RawConnection last(server.port());
  ASSERT_TRUE(last.Send("AUTH a\r\n"));
  // Its request is here, and waits, or was executed.
  EXPECT_TRUE(Eventually([&] {
    bool has_asked = false;
    server.state().clients.registry.ForEach([&](const ClientState& client) {
      has_asked |= client.id == 11 && (client.link.input_bytes.load() > 0 ||
                                       client.link.last_command.load() != std::string_view("NULL"));
    });
    return has_asked;
  }));
  server.Stop();
  EXPECT_EQ(last.ReceiveAll(), "-" + std::string(kWrong).substr(1) + "\r\n");
}

TEST(AccessTest, RequestsBeforeTheLoginAreSmall) {
  TestServer server(WithPassword());
  const auto reply = [&](const std::string& request) {
    RawConnection connection(server.port());
    connection.Send(request);
    connection.FinishSending();
    return connection.ReceiveAll();
  };
  EXPECT_EQ(reply("*11\r\n"), "-ERR Protocol error: unauthenticated multibulk length\r\n");
  EXPECT_EQ(reply("*2\r\n$4\r\nAUTH\r\n$16385\r\n"),
            "-ERR Protocol error: unauthenticated bulk length\r\n");
  EXPECT_TRUE(reply(Resp({"AUTH", std::string(16384, 'x')})).starts_with("-WRONGPASS"));
  const std::string large = Resp({"SET", "k", std::string(100000, 'x')});
  EXPECT_EQ(reply(Resp({"AUTH", "secret"}) + large), "+OK\r\n+OK\r\n");
}

TEST(AccessTest, APasswordThatIsSetLaterHoldsForThoseWhoComeLater) {
  TestServer server;
  const std::unique_ptr<Client> early = server.Connect();
  EXPECT_TRUE(Ask(*early, {"AUTH", "any"})
                  .starts_with("!ERR AUTH <password> called without any password configured"));
  EXPECT_EQ(Ask(*early, {"AUTH", "default", "any"}), "OK");
  EXPECT_EQ(Ask(*early, {"CONFIG", "SET", "requirepass", "new"}), "OK");
  EXPECT_EQ(Ask(*early, {"PING"}), "PONG");
  const std::unique_ptr<Client> late = server.Connect();
  EXPECT_EQ(Ask(*late, {"PING"}), kNoAuth);
  EXPECT_EQ(Ask(*early, {"CONFIG", "SET", "requirepass", ""}), "OK");
  EXPECT_EQ(Ask(*late, {"PING"}), "PONG");
}

TEST(AccessTest, BehindAResetInOnePipelineTheLoginIsNeededAgain) {
  TestServer server(WithPassword());
  RawConnection raw(server.port());
  ASSERT_TRUE(raw.Send(Resp({"AUTH", "secret"})));
  ASSERT_EQ(raw.Receive(5), "+OK\r\n");
  ASSERT_TRUE(raw.Send(Resp({"SET", "k", "1"}) + Resp({"RESET"}) + Resp({"SET", "k", "2"}) +
                       Resp({"GET", "k"}) + Resp({"MULTI"}) + Resp({"AUTH", "secret"}) +
                       Resp({"GET", "k"})));
  raw.FinishSending();
  const std::string refused = "-" + std::string(kNoAuth).substr(1) + "\r\n";
  EXPECT_EQ(raw.ReceiveAll(),
            "+OK\r\n+RESET\r\n" + refused + refused + refused + "+OK\r\n$1\r\n1\r\n");
}

TEST(AccessTest, ProtectedModeServesThisMachineAlone) {
  const std::string other = OtherAddress();
  if (other.empty()) GTEST_SKIP() << "this machine has no other address";
  ServerOptions options;
  options.bind = "0.0.0.0";
  TestServer server(options);
  RawConnection outside(server.port(), 0, other.c_str());
  EXPECT_TRUE(outside.ReceiveAll().starts_with("-DENIED Varve is in protected mode"));
  EXPECT_TRUE(outside.closed());
  const std::unique_ptr<Client> inside = server.Connect();
  EXPECT_EQ(Ask(*inside, {"CONFIG", "SET", "requirepass", "secret"}), "OK");
  RawConnection with_password(server.port(), 0, other.c_str());
  ASSERT_TRUE(with_password.Send("AUTH secret\r\nPING\r\nQUIT\r\n"));
  EXPECT_EQ(with_password.ReceiveAll(), "+OK\r\n+PONG\r\n+OK\r\n");
  EXPECT_EQ(Ask(*inside, {"CONFIG", "SET", "requirepass", "", "protected-mode", "no"}), "OK");
  RawConnection trusted(server.port(), 0, other.c_str());
  ASSERT_TRUE(trusted.Send("PING\r\nQUIT\r\n"));
  EXPECT_EQ(trusted.ReceiveAll(), "+PONG\r\n+OK\r\n");
}

TEST(AccessTest, WhatCountsAsThisMachine) {
  for (const char* address : {"127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(IsLoopback(asio::ip::make_address(address))) << address;
  }
  for (const char* address :
       {"10.0.0.1", "0.0.0.0", "::", "fe80::1", "::ffff:10.0.0.1", "128.0.0.1"}) {
    EXPECT_FALSE(IsLoopback(asio::ip::make_address(address))) << address;
  }
  const Listener::Peer far{.address = "10.0.0.1:1", .on_this_machine = false};
  const Listener::Peer near{.address = "127.0.0.1:1", .on_this_machine = true};
  EXPECT_FALSE(MayEnter(far, true, false));
  EXPECT_TRUE(MayEnter(far, true, true));
  EXPECT_TRUE(MayEnter(far, false, false));
  EXPECT_TRUE(MayEnter(near, true, false));
}

}  // namespace
}  // namespace varve
