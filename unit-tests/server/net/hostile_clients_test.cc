// Clients that mean no good, beside one that is polite: a short run of what
// benchmark/server/hostile_clients.cc measures. However they behave, the server's memory grows by
// little, and each request of the polite client is answered rightly. What it waited is printed, not
// judged.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/process_memory.h"
#include "unit-tests/testing/server_process.h"

namespace varve {
namespace {

using std::chrono::steady_clock;
using testing::kMemoryIsTold;
using testing::RawConnection;
using testing::ResidentBytes;
using testing::Resp;
using testing::ServerProcess;
using testing::TempDir;
using Connections = std::vector<std::unique_ptr<RawConnection>>;

constexpr size_t kManyConnections = 500;
// 64 MB for 10,000 of them, and what the polite client writes.
constexpr size_t kMostOfMany = 4'000'000;
constexpr size_t kMostOfFew = 8'000'000;
constexpr size_t kLargeValue = 1u << 20;
constexpr int kFewestRounds = 10;
constexpr auto kLasts = std::chrono::milliseconds(1000);

// Writes a value that was never written before and reads it, again and again, until it is told to
// stop.
class PoliteClient {
 public:
  explicit PoliteClient(uint16_t port) : connection_(port), thread_([this] { Run(); }) {}

  // Every request was answered, and rightly, however slow the machine is.
  void Stop() {
    stop_ = true;
    thread_.join();
    EXPECT_GE(waits_.size(), size_t{2 * kFewestRounds});
    if (waits_.empty()) return;
    std::sort(waits_.begin(), waits_.end());
    std::printf("  polite client: %zu requests, p50 %.2f ms, p99 %.2f ms, longest %.2f ms\n",
                waits_.size(), waits_[waits_.size() / 2], waits_[waits_.size() * 99 / 100],
                waits_.back());
  }

 private:
  void Run() {
    for (int i = 0; !stop_ || i < kFewestRounds; ++i) {
      std::string value = std::to_string(i);
      value.resize(100, 'p');
      if (!Ask(Resp({"SET", "polite", value}), "+OK\r\n")) return;
      if (!Ask(Resp({"GET", "polite"}), "$100\r\n" + value + "\r\n")) return;
    }
  }
  bool Ask(const std::string& request, const std::string& reply) {
    const steady_clock::time_point begin = steady_clock::now();
    EXPECT_TRUE(connection_.Send(request));
    const std::string got = connection_.Receive(reply.size());
    EXPECT_EQ(got, reply);
    waits_.push_back(
        std::chrono::duration<double, std::milli>(steady_clock::now() - begin).count());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return got == reply;
  }

  RawConnection connection_;
  std::atomic<bool> stop_{false};
  std::vector<double> waits_;  // milliseconds
  std::thread thread_;
};

class HostileClientsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < 3 * kManyConnections) GTEST_SKIP() << "too few files may be open";
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    server_ = std::make_unique<ServerProcess>(VARVE_SERVER_MAIN, dir_.File("data"));
    ASSERT_NE(server_->port(), 0) << server_->log();
    RawConnection client(server_->port());
    const std::string large(kLargeValue, 'x');
    ASSERT_TRUE(client.Send(Resp({"SET", "large", large})));
    ASSERT_EQ(client.Receive(5), "+OK\r\n");
    ASSERT_TRUE(client.Send(Resp({"GET", "large"})));  // what reading it takes is no growth
    ASSERT_EQ(client.Receive(kLargeValue + 12).size(), kLargeValue + 12);
  }

  size_t ServerBytes() { return ResidentBytes(std::to_string(server_->process().id())); }
  void Open(size_t count, const std::string& bytes) {
    for (size_t i = 0; i < count; ++i) {
      connections_.push_back(std::make_unique<RawConnection>(server_->port()));
      (void)connections_.back()->Send(bytes);  // it may have been closed meanwhile
    }
  }

  // The load is begun and kept up while the polite client is served, and the server grows by no
  // more than `most` bytes for it.
  void Endure(
      size_t most, const std::function<void()>& begin,
      const std::function<void()>& keep_up = [] {}) {
    PoliteClient polite(server_->port());
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const size_t before = ServerBytes();
    size_t largest = before;
    begin();
    for (const auto end = steady_clock::now() + kLasts; steady_clock::now() < end;) {
      keep_up();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      largest = std::max(largest, ServerBytes());
    }
    polite.Stop();
    ASSERT_TRUE(server_->process().Running()) << server_->log();
    std::printf("  memory grew by %.1f MB\n", static_cast<double>(largest - before) / 1e6);
    if (kMemoryIsTold) {
      EXPECT_LE(largest - before, most);
    }
  }

  TempDir dir_;
  std::unique_ptr<ServerProcess> server_;
  Connections connections_;
};

TEST_F(HostileClientsTest, Idle) {
  Endure(kMostOfMany, [&] {
    Open(kManyConnections, "PING\r\n");
    for (const auto& connection : connections_) ASSERT_EQ(connection->Receive(7), "+PONG\r\n");
  });
}

TEST_F(HostileClientsTest, HalfCommands) {
  Endure(kMostOfMany,
         [&] { Open(kManyConnections, "*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$1000\r\nhalf a val"); });
  ASSERT_TRUE(connections_.back()->Send(std::string(990, 'x') + "\r\n"));
  EXPECT_EQ(connections_.back()->Receive(5), "+OK\r\n");
}

TEST_F(HostileClientsTest, DeclareMuchAndSendNothing) {
  Endure(kMostOfMany, [&] { Open(50, "*1048576\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n"); });
}

TEST_F(HostileClientsTest, LeaveRepliesUnread) {
  constexpr int kReplies = 30;  // of a megabyte
  Endure(kMostOfFew, [&] {
    std::string requests;
    for (int i = 0; i < kReplies; ++i) requests += Resp({"GET", "large"});
    connections_.push_back(std::make_unique<RawConnection>(server_->port(), 4096));
    ASSERT_TRUE(connections_.back()->Send(requests));
  });
}

TEST_F(HostileClientsTest, NeverTakeWhatTheyListenTo) {
  RawConnection publisher(server_->port());
  const std::string publish = Resp({"PUBLISH", "news", std::string(10'000, 'n')});
  size_t published = 0;
  Endure(
      40'000'000,  // --client-output-buffer-limit closes a listener at 32 MB
      [&] {
        connections_.push_back(std::make_unique<RawConnection>(server_->port(), 4096));
        ASSERT_TRUE(connections_.back()->Send("SUBSCRIBE news\r\n"));
        ASSERT_EQ(connections_.back()->Receive(4), "*3\r\n");
      },
      [&] {
        for (int i = 0; i < 100; ++i, ++published) {
          ASSERT_TRUE(publisher.Send(publish));
          const std::string reply = publisher.Receive(4);
          ASSERT_TRUE(reply == ":1\r\n" || reply == ":0\r\n") << reply;
        }
      });
  EXPECT_GT(published, 0u);
}

// Pieces of requests in any order: what must be closed is closed, the rest waits for more or is
// answered.
std::string Soup(std::mt19937* random) {
  static const std::vector<std::string> kTokens = {"*",
                                                   "$",
                                                   "-1",
                                                   "3",
                                                   "1048576",
                                                   "536870912",
                                                   "\r\n",
                                                   "\n",
                                                   "\r\n",
                                                   "GET",
                                                   "SET ",
                                                   " ",
                                                   "\"",
                                                   "'",
                                                   "\\x",
                                                   "*3\r\n",
                                                   "$3\r\n",
                                                   "- +",
                                                   "\x16",
                                                   "\xff",
                                                   "RANGE",
                                                   "PING",
                                                   "COUNT - +\r\n",
                                                   "POST /",
                                                   std::string(1, '\0')};
  std::string bytes;
  for (size_t i = 20 + (*random)() % 200; i > 0; --i)
    bytes += kTokens[(*random)() % kTokens.size()];
  return bytes;
}

TEST_F(HostileClientsTest, TokenSoup) {
  std::mt19937 random(7);
  Endure(
      kMostOfFew, [] {},
      [&] {
        if (connections_.size() >= 50)
          connections_.erase(connections_.begin(), connections_.begin() + 10);
        for (int i = 0; i < 10; ++i) Open(1, Soup(&random));
      });
}

TEST_F(HostileClientsTest, SpeakAnotherLanguage) {
  std::mt19937 random(11);
  std::string noise(20'000, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  const std::vector<std::string> texts = {
      "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: none\r\n\r\n",
      "SSH-2.0-OpenSSH_9.2\r\n",
      "\x16\x03\x01\x02" + noise,
      noise + "\n",
      std::string(100'000, 'a'),
      "QUIT please\r\nnow\r\n"};
  size_t next = 0;
  Endure(
      kMostOfFew, [] {},
      [&] {
        if (connections_.size() >= 50)
          connections_.erase(connections_.begin(), connections_.begin() + 10);
        Open(1, texts[next++ % texts.size()]);
      });
}

}  // namespace
}  // namespace varve
