// Commands that read many keys: they leave the pool to others, end with their client or the server, and keep no snapshot for ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/server/test_server.h"

namespace varve {
namespace {

using testing::RawConnection;
using testing::Resp;
using testing::TestServer;
using Clock = std::chrono::steady_clock;

constexpr int kKeys = 100000;
constexpr int kManyCounts = 1000;  // of all keys, in one batch: 10 s at least where nothing ends them

std::string Repeat(const std::string& request, int times) {
  std::string requests;
  for (int i = 0; i < times; ++i) requests += request;
  return requests;
}

class SlicesTest : public ::testing::Test {
 protected:
  void Start(ServerOptions options) {
    server_ = std::make_unique<TestServer>(options);
    const std::string value(8, 'v');
    for (int i = 0; i < kKeys;) {
      WriteBatch batch;
      for (int end = std::min(i + 1000, kKeys); i < end; ++i) batch.Put(std::to_string(1000000 + i), value);
      ASSERT_TRUE(server_->store().Write({}, &batch).ok());
    }
    client_ = server_->Connect();
    ASSERT_EQ(client_->Ping(), absl::OkStatus());
  }
  static ServerOptions OneThread(Execution execution = Execution::kPool) {
    ServerOptions options;
    options.threads = 1;
    options.execution = execution;
    options.drain_timeout = std::chrono::milliseconds(100);
    return options;
  }
  // Seconds until only our own client is left, at most 60.
  double UntilAlone() const {
    const auto begin = Clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    while (server_->state().clients.load() > 1 && passed() < 60)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return passed();
  }

  std::unique_ptr<TestServer> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(SlicesTest, LongCommandsTakeTurnsWithOthers) {
  for (const Execution execution : {Execution::kPool, Execution::kInline}) {
    Start(OneThread(execution));
    const std::vector<std::string> commands = {Resp({"COUNT", "-", "+"}),
                                               Resp({"RANGE", "-", "+", "LIMIT", "90000", "-1", "KEYS"}),
                                               Resp({"RANGE", "-", "+", "LIMIT", "99999999", "1"}),
                                               Resp({"RANGE", "+", "-", "REV", "LIMIT", "99999999", "1"})};
    constexpr int kTimes = 200;
    constexpr int kAwaited = 5;
    std::vector<std::unique_ptr<RawConnection>> busy;
    for (const std::string& command : commands) {
      busy.push_back(std::make_unique<RawConnection>(server_->port()));
      ASSERT_TRUE(busy.back()->Send(Repeat(command, kTimes)));
    }
    EXPECT_EQ(busy[0]->Receive(9), ":100000\r\n");
    const auto begin = Clock::now();
    for (int i = 0; i < 20; ++i) ASSERT_EQ(**client_->Get("1000000"), std::string(8, 'v'));
    EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(500));
    EXPECT_EQ(busy[0]->Receive(9 * kAwaited), Repeat(":100000\r\n", kAwaited));
    EXPECT_EQ(busy[2]->Receive(4 * kAwaited), Repeat("*0\r\n", kAwaited));
    EXPECT_EQ(busy[3]->Receive(4 * kAwaited), Repeat("*0\r\n", kAwaited));
  }
}

TEST_F(SlicesTest, TheRestOfALongRangeIsCountedInSlicesAtOneSnapshot) {
  Start(OneThread());
  RawConnection connection(server_->port());
  ASSERT_TRUE(connection.Send(Resp({"RANGE", "(1000009", "+", "LIMIT", "10", "80000", "KEYS"})));
  std::string expected = "*80000\r\n";
  for (int i = 0; i < 80000; ++i) expected += "$7\r\n" + std::to_string(1000020 + i) + "\r\n";
  // Keys that come while it is counted don't show.
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(client_->Put("105000" + std::to_string(i) + "x", "new").ok());
  EXPECT_TRUE(connection.Receive(expected.size()) == expected);
}

TEST_F(SlicesTest, ALostConnectionEndsItsCounts) {
  for (const Execution execution : {Execution::kPool, Execution::kInline}) {
    Start(OneThread(execution));
    RawConnection connection(server_->port());
    ASSERT_TRUE(connection.Send(Repeat(Resp({"COUNT", "-", "+"}), kManyCounts)));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    connection.Vanish();
    EXPECT_LT(UntilAlone(), 5);
    EXPECT_EQ(client_->Ping(), absl::OkStatus());
  }
}

TEST_F(SlicesTest, AStopEndsCounts) {
  Start(OneThread());
  RawConnection connection(server_->port());
  ASSERT_TRUE(connection.Send(Repeat(Resp({"COUNT", "-", "+"}), kManyCounts)));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto begin = Clock::now();
  server_->Stop();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(SlicesTest, AReplyThatIsNotTakenLosesItsSnapshot) {
  ServerOptions options;
  options.snapshot_max_age = std::chrono::seconds(1);
  Start(options);
  ASSERT_TRUE(client_->Put("large", std::string(16u << 20, 'x')).ok());
  ASSERT_TRUE(client_->Put("larger", "y").ok());
  RawConnection stalled(server_->port(), 64 << 10);
  ASSERT_TRUE(stalled.Send(Resp({"RANGE", "-", "+"})));
  ASSERT_EQ(stalled.Receive(4), "*200");
  EXPECT_EQ(server_->state().clients.load(), 2u);
  EXPECT_LT(UntilAlone(), 10);
  // Who takes what is there isn't closed, however old.
  RawConnection slow(server_->port());
  ASSERT_TRUE(slow.Send(Resp({"PREFIX", "1"})));
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  ASSERT_TRUE(slow.Send("PING\r\n"));
  EXPECT_EQ(slow.Receive(9), "*200000\r\n");
}

TEST_F(SlicesTest, OnlyWhoIsSilentIsClosedAfterTheIdleTimeout) {
  ServerOptions options;
  options.idle_timeout = std::chrono::seconds(2);
  TestServer server(options);
  RawConnection silent(server.port());
  RawConnection half(server.port());
  ASSERT_TRUE(half.Send("*2\r\n$3\r\nGET\r\n"));
  const std::unique_ptr<Client> active = server.Connect();
  for (int i = 0; i < 25; ++i) {
    ASSERT_EQ(active->Ping(), absl::OkStatus());
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  EXPECT_EQ(server.state().clients.load(), 1u);
  EXPECT_EQ(silent.ReceiveAll(), "");
  EXPECT_TRUE(silent.closed());
  EXPECT_EQ(half.ReceiveAll(), "");
  EXPECT_TRUE(half.closed());
}

}  // namespace
}  // namespace varve
