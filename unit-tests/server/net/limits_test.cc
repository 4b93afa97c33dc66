// What one client may take: memory for what it only announces, leaves unread or never ends, and a
// connection that nobody uses.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "server/clients/client_state.h"
#include "server/clients/output_gauge.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/process_memory.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::kMemoryIsTold;
using testing::RawConnection;
using testing::ResidentBytes;
using testing::Resp;
using testing::TestServer;

constexpr size_t kIdleConnections = 1000;
constexpr size_t kBytesOfOne = 6400;  // 64 MB for 10,000 of them

// Opens many connections that each send `bytes`, and says by how much the process grew for it.
// Their own side has no memory.
size_t GrowthOf(TestServer* server, const std::string& bytes,
                std::vector<std::unique_ptr<RawConnection>>* connections) {
  EXPECT_EQ(server->Connect()->Ping(), absl::OkStatus());
  const ServerState& state = server->state();
  const uint64_t received = state.statistics.bytes_in.load();
  const size_t before = ResidentBytes();
  for (size_t i = 0; i < kIdleConnections; ++i) {
    connections->push_back(std::make_unique<RawConnection>(server->port()));
    EXPECT_TRUE(connections->back()->Send(bytes));
  }
  EXPECT_TRUE(Eventually([&] {
    return state.statistics.bytes_in.load() >= received + kIdleConnections * bytes.size();
  }));
  EXPECT_EQ(server->Connect()->Ping(), absl::OkStatus());
  return std::max(ResidentBytes(), before) - before;
}

// Returns how many connections keep room for input ready.
size_t ConnectionsWithRoom(const TestServer& server) {
  size_t count = 0;
  server.state().clients.registry.ForEach(
      [&](const ClientState& client) { count += client.link.input_room.load() > 0 ? 1 : 0; });
  return count;
}

class LimitsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < 3 * kIdleConnections) GTEST_SKIP() << "too few files may be open";
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  TestServer server_;
  std::vector<std::unique_ptr<RawConnection>> connections_;
};

TEST_F(LimitsTest, IdleConnectionsAreSmall) {
  const size_t growth = GrowthOf(&server_, "PING\r\n", &connections_);
  if (kMemoryIsTold) {
    EXPECT_LT(growth, kIdleConnections * kBytesOfOne);
  }
  for (const auto& connection : connections_) EXPECT_EQ(connection->Receive(7), "+PONG\r\n");
}

TEST_F(LimitsTest, IdleConnectionsGiveTheirBuffersBack) {
  const std::string message(32u << 10, 'm');  // together 32 MB in, and out
  const std::string reply = "$32768\r\n" + message + "\r\n";
  const auto talk = [&] {
    for (size_t i = 0; i < kIdleConnections; ++i) {
      connections_.push_back(std::make_unique<RawConnection>(server_.port()));
      ASSERT_TRUE(connections_.back()->Send(Resp({"PING", message})));
      ASSERT_TRUE(connections_.back()->Receive(reply.size()) == reply);
    }
  };
  talk();
  EXPECT_TRUE(Eventually([&] { return ConnectionsWithRoom(server_) == 0; }));
  const size_t before = ResidentBytes();
  talk();  // in memory that the first ones don't need any more
  if (kMemoryIsTold) {
    EXPECT_LT(ResidentBytes(), before + 2 * kIdleConnections * kBytesOfOne);
  }
}

TEST_F(LimitsTest, HalfCommandsTakeLittleMoreThanTheirBytes) {
  const std::string half = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000\r\nhalf a val";
  const size_t growth = GrowthOf(&server_, half, &connections_);
  if (kMemoryIsTold) {
    EXPECT_LT(growth, kIdleConnections * kBytesOfOne);
  }
  ASSERT_TRUE(connections_[0]->Send(std::string(990, 'x') + "\r\n"));
  EXPECT_EQ(connections_[0]->Receive(5), "+OK\r\n");
}

TEST_F(LimitsTest, AnnouncedLengthsTakeNoMemory) {
  const size_t growth =
      GrowthOf(&server_, "*1048576\r\n$3\r\nSET\r\n$536870912\r\nx", &connections_);
  if (kMemoryIsTold) {
    EXPECT_LT(growth, kIdleConnections * kBytesOfOne);
  }
}

TEST_F(LimitsTest, LinesAndHeadersEndAt64KiB) {
  const std::string longest = "PING " + std::string((64u << 10) - 7, 'x');
  RawConnection within(server_.port());
  ASSERT_TRUE(within.Send(longest + "\r\n"));
  EXPECT_EQ(within.Receive(9), "$65529\r\nx");
  for (const std::string& beyond :
       {longest + "xyz", "*" + std::string(70000, '1'), "*1\r\n$" + std::string(70000, '1')}) {
    RawConnection connection(server_.port());
    ASSERT_TRUE(connection.Send(beyond));
    EXPECT_TRUE(connection.ReceiveAll().starts_with("-ERR Protocol error: "))
        << beyond.substr(0, 10);
    EXPECT_TRUE(connection.closed());
  }
}

// The option of the server's side of `connection`, which is one of this process' descriptors; -1:
// not found.
int OptionOfServer(uint16_t port, int level, int option) {
  for (int descriptor = 3; descriptor < 1000; ++descriptor) {
    sockaddr_in own{};
    sockaddr_in peer{};
    socklen_t own_size = sizeof(own);
    socklen_t peer_size = sizeof(peer);
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
        own.sin_port != htons(port) ||
        ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) {
      continue;
    }
    int value = 0;
    socklen_t size = sizeof(value);
    return ::getsockopt(descriptor, level, option, &value, &size) == 0 ? value : -1;
  }
  return -1;
}

// Connections that each hold a reply which they don't take.
class UnreadRepliesTest : public ::testing::Test {
 protected:
  static constexpr size_t kValue = 8u << 20;

  void SetUp() override {
    ASSERT_EQ(server_.Connect()->Put("large", std::string(kValue, 'x')), absl::OkStatus());
  }
  std::string Config(const std::vector<std::string>& change) {
    std::vector<std::string> request = {"CONFIG", "SET"};
    request.insert(request.end(), change.begin(), change.end());
    RawConnection connection(server_.port());
    EXPECT_TRUE(connection.Send(Resp(request)));
    return connection.Receive(5);
  }
  std::unique_ptr<RawConnection> Greedy(const std::string& before = "") {
    auto connection = std::make_unique<RawConnection>(server_.port(), 4096);
    EXPECT_TRUE(connection->Send(before + Resp({"GET", "large"})));
    return connection;
  }
  void WaitForClients(size_t count) {
    EXPECT_TRUE(Eventually([&] { return server_.state().clients.connected == count; }))
        << server_.state().clients.connected;
  }
  TestServer server_;
};

TEST_F(UnreadRepliesTest, AreBoundedForAllConnectionsTogether) {
  constexpr size_t kLimit = 20u << 20;
  EXPECT_EQ(Config({"maxmemory-clients", "20MiB"}), "+OK\r\n");
  WaitForClients(0);
  const ServerState& state = server_.state();
  RawConnection polite(server_.port());
  std::vector<std::unique_ptr<RawConnection>> greedy;
  // Each leaves what the system's buffers don't take, half of its reply at least.
  for (size_t i = 0; i < 20; ++i) {
    greedy.push_back(Greedy("CLIENT NO-EVICT ON\r\n"));
    EXPECT_EQ(greedy.back()->Receive(15), "+OK\r\n$8388608\r\n");
  }
  EXPECT_TRUE(
      Eventually([&] { return state.clients.memory.evicted() > 20 - 2 * kLimit / kValue; }));
  EXPECT_TRUE(Eventually([&] { return state.clients.memory.bytes() <= kLimit; }));
  EXPECT_TRUE(Eventually([&] {
    return state.clients.connected == 1 + greedy.size() - state.clients.memory.evicted();
  }));
  EXPECT_LT(state.clients.memory.evicted(), 20u);
  ASSERT_TRUE(polite.Send("PING\r\n"));
  EXPECT_EQ(polite.Receive(7), "+PONG\r\n");
  greedy.clear();
  WaitForClients(1);
  EXPECT_EQ(state.clients.memory.bytes(), 0u);
}

TEST_F(UnreadRepliesTest, AreCountedOnlyWhileTheyWait) {
  RawConnection reader(server_.port());
  ASSERT_TRUE(reader.Send(Resp({"GET", "large"})));
  EXPECT_EQ(reader.Receive(kValue + 12).size(), kValue + 12);
  EXPECT_EQ(server_.Connect()->Ping(), absl::OkStatus());
  EXPECT_EQ(server_.state().clients.memory.bytes(), 0u);
}

TEST_F(UnreadRepliesTest, OfOneConnectionAreBoundedWhereThatIsAskedFor) {
  EXPECT_EQ(Config({"client-output-buffer-limit", "normal 4MiB 0 0"}), "+OK\r\n");
  const std::unique_ptr<RawConnection> greedy = Greedy();
  EXPECT_EQ(greedy->Receive(10), "$8388608\r\n");
  WaitForClients(0);
}

TEST_F(UnreadRepliesTest, HalfRequestsCountAsWell) {
  EXPECT_EQ(Config({"maxmemory-clients", "20MiB"}), "+OK\r\n");
  WaitForClients(0);
  std::vector<std::unique_ptr<RawConnection>> halves;
  const std::string half = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16777216\r\n" + std::string(kValue, 'x');
  for (int i = 0; i < 6; ++i) {
    halves.push_back(std::make_unique<RawConnection>(server_.port()));
    (void)halves.back()->Send(half);  // it may be closed meanwhile
  }
  WaitForClients(2);
}

TEST_F(UnreadRepliesTest, ArgumentsCountBesideTheirBytes) {
  std::string half = "*1048576\r\n$4\r\nMGET\r\n";
  for (int i = 0; i < 500000; ++i) half += "$0\r\n\r\n";
  RawConnection connection(server_.port());
  ASSERT_TRUE(connection.Send(half));
  EXPECT_TRUE(
      Eventually([&] { return server_.state().clients.memory.bytes() >= 3 * half.size(); }));
}

TEST(OutputGaugeTest, HardLimitsHoldAtOnceAndSoftOnesAfterTheirTime) {
  const OutputLimits limits{100, 10, std::chrono::seconds(5)};
  OutputGauge gauge;
  const OutputGauge::Time start;
  EXPECT_TRUE(gauge.Over(101, limits, start));
  EXPECT_FALSE(gauge.Over(100, limits, start));
  EXPECT_FALSE(gauge.Over(11, limits, start + std::chrono::seconds(5)));
  EXPECT_TRUE(gauge.Over(11, limits, start + std::chrono::seconds(6)));
  // It caught up: the time begins anew.
  EXPECT_FALSE(gauge.Over(10, limits, start + std::chrono::seconds(7)));
  EXPECT_FALSE(gauge.Over(11, limits, start + std::chrono::seconds(8)));
  EXPECT_FALSE(gauge.Over(SIZE_MAX, {}, start));
}

TEST(KeepaliveTest, SilentPeersAreAsked) {
  for (const int seconds : {0, 1, 300}) {
    ServerOptions options;
    options.tcp_keepalive = std::chrono::seconds(seconds);
    TestServer server(options);
    const std::unique_ptr<Client> client = server.Connect();
    ASSERT_EQ(client->Ping(), absl::OkStatus());
    EXPECT_EQ(OptionOfServer(server.port(), SOL_SOCKET, SO_KEEPALIVE), seconds > 0 ? 1 : 0);
    if (seconds > 0) {
      EXPECT_EQ(OptionOfServer(server.port(), IPPROTO_TCP, TCP_KEEPIDLE), seconds);
      EXPECT_EQ(OptionOfServer(server.port(), IPPROTO_TCP, TCP_KEEPINTVL),
                std::max(1, seconds / 3));
    }
  }
}

}  // namespace
}  // namespace varve
