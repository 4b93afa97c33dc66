// CHANGES STREAM: a snapshot and the commits behind it, as far as the client takes them.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::Ask;
using testing::Eventually;
using testing::RawConnection;
using testing::ReplyText;
using testing::Resp;
using testing::TestServer;
using Words = std::vector<std::string>;

constexpr std::chrono::minutes kLong{1};

// A client of the stream that keeps a copy of the keys.
class PushFollower {
 public:
  explicit PushFollower(uint16_t port, const Words& login = {}) {
    ClientOptions options;
    options.port = port;
    options.protocol = 3;
    options.timeout = kLong;
    options.reconnect_for = std::chrono::milliseconds(0);
    options.on_push = [this](const Reply& push) { Take(push); };
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options);
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    if (!login.empty()) {
      EXPECT_EQ(Do(login), "OK");
    }
  }

  std::string Do(const Words& arguments) { return Ask(*client_, arguments); }
  // Waits for pushes until the condition holds.
  template <typename Condition>
  bool Until(const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kLong;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      if (!client_->pipeline().WaitForPush(std::chrono::milliseconds(kLong)).ok()) return false;
    }
    return true;
  }
  bool UntilProgress(int64_t version) {
    return Until([&] { return progress >= version; });
  }

  std::map<std::string, std::string> copy;
  std::vector<std::string> changes;  // their operations
  std::string error;
  int64_t snapshot_end = -1;
  int64_t last = -1;  // change
  int64_t progress = -1;
  bool in_order = true;

 private:
  void Take(const Reply& push) {
    const std::string& kind = push.elements[0].text;
    if (kind == "snapshot") {
      const std::vector<Reply>& pairs = push.elements[1].elements;
      for (size_t i = 0; i + 1 < pairs.size(); i += 2) copy[pairs[i].text] = pairs[i + 1].text;
      in_order = in_order && snapshot_end == -1;
    } else if (kind == "snapshot-end") {
      snapshot_end = last = push.elements[1].integer;
    } else if (kind == "change") {
      in_order = in_order && push.elements[1].integer > last;
      last = push.elements[1].integer;
      changes.push_back(ReplyText(push.elements[3]));
      for (const Reply& operation : push.elements[3].elements) Apply(operation);
    } else if (kind == "progress") {
      progress = push.elements[1].integer;
      in_order = in_order && progress >= last;
    } else if (kind == "error") {
      error = push.elements[1].text;
    }
  }
  void Apply(const Reply& operation) {
    const std::string& op = operation.elements[0].text;
    const std::string& key = operation.elements[2].text;
    const std::string& value = operation.elements[3].text;
    if (op == "set" || op == "expire") copy[key] = value;
    if (op == "del") copy.erase(key);
    if (op == "flush") copy.clear();
    if (op == "delrange") {
      copy.erase(copy.lower_bound(key), value.empty() ? copy.end() : copy.lower_bound(value));
    }
  }

  std::unique_ptr<Client> client_;
};

class ChangePushTest : public ::testing::Test {
 protected:
  static EngineOptions Retaining() {
    EngineOptions options = TestServer::SmallEngine();
    options.changes.bytes = 256u << 20;
    return options;
  }
  std::string Do(const Words& arguments) { return Ask(*client_, arguments); }
  int64_t Now() {
    const std::string now = Do({"CHANGES", "NOW"});
    return std::stoll(now.substr(now.find(' ') + 1));
  }
  std::map<std::string, std::string> All() {
    const absl::StatusOr<Client::Pairs> pairs = client_->Range("-", "+");
    EXPECT_TRUE(pairs.ok()) << pairs.status();
    return {pairs->begin(), pairs->end()};
  }

  TestServer server_{{}, Retaining()};
  std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(ChangePushTest, CommitsArePushedAsTheyCome) {
  ASSERT_EQ(Do({"SET", "before", "1"}), "OK");
  const int64_t now = Now();
  PushFollower follower(server_.port());
  ASSERT_EQ(follower.Do({"CHANGES", "STREAM", "SINCE", std::to_string(now)}), "OK");
  ASSERT_TRUE(follower.UntilProgress(now));
  EXPECT_EQ(follower.progress, now);
  ASSERT_EQ(Do({"MSET", "a", "1", "b", "2"}), "OK");
  ASSERT_EQ(Do({"DEL", "a"}), "1");
  ASSERT_TRUE(follower.UntilProgress(Now()));
  EXPECT_EQ(follower.changes,
            (Words{"((set 0 a 1 0 nil) (set 0 b 2 0 nil))", "((del 0 a nil 0 nil))"}));
  // The connection takes other commands as well.
  EXPECT_EQ(follower.Do({"PING"}), "PONG");
  EXPECT_EQ(follower.Do({"GET", "b"}), "2");
  EXPECT_TRUE(follower.Do({"CHANGES", "STREAM", "SINCE", "FIRST"}).starts_with("!ERR"));
  EXPECT_EQ(follower.Do({"RESET"}), "RESET");
  ASSERT_EQ(Do({"SET", "c", "3"}), "OK");
  EXPECT_EQ(follower.Do({"HELLO", "3"}).substr(0, 7), "(server");
  EXPECT_EQ(follower.Do({"PING"}), "PONG");
  EXPECT_EQ(follower.changes.size(), 2u);
  ASSERT_EQ(follower.Do({"CHANGES", "STREAM", "SINCE", std::to_string(follower.last)}), "OK");
  ASSERT_TRUE(follower.UntilProgress(Now()));
  EXPECT_EQ(follower.changes.back(), "((set 0 c 3 0 nil))");
}

TEST_F(ChangePushTest, ASnapshotAndTheChangesBehindItMakeACopy) {
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_EQ(Do({"SET", "k" + std::to_string(i), std::string(50, 'v')}), "OK");
  }
  std::thread writer([this] {
    const std::unique_ptr<Client> client = server_.Connect();
    for (int i = 0; i < 1'000; ++i) {
      const std::string key = "k" + std::to_string(i * 7 % 4'000);
      Ask(*client, {"SET", key, std::to_string(i)});
      if (i % 5 == 0) Ask(*client, {"DEL", "k" + std::to_string(i % 1'000)});
      if (i % 500 == 0) Ask(*client, {"DELRANGE", "[k10", "(k12"});
    }
  });
  PushFollower follower(server_.port());
  EXPECT_EQ(follower.Do({"CHANGES", "STREAM", "FROM", "SNAPSHOT"}), "OK");
  EXPECT_TRUE(follower.Until([&] { return follower.snapshot_end >= 0; }));
  writer.join();
  ASSERT_TRUE(follower.UntilProgress(Now()));
  EXPECT_TRUE(follower.in_order);
  EXPECT_EQ(follower.copy, All());
}

TEST_F(ChangePushTest, FiltersHoldForSnapshotAndChanges) {
  ASSERT_EQ(Do({"MSET", "a:1", "x", "b:1", "y"}), "OK");
  PushFollower follower(server_.port());
  ASSERT_EQ(follower.Do({"CHANGES", "STREAM", "FROM", "SNAPSHOT", "PREFIX", "a:"}), "OK");
  ASSERT_TRUE(follower.UntilProgress(Now()));
  ASSERT_EQ(Do({"MSET", "a:2", "z", "b:2", "q"}), "OK");
  ASSERT_TRUE(follower.UntilProgress(Now()));
  EXPECT_EQ(follower.copy, (std::map<std::string, std::string>{{"a:1", "x"}, {"a:2", "z"}}));
  PushFollower all(server_.port());
  EXPECT_EQ(all.Do({"CHANGES", "STREAM", "FROM", "SNAPSHOT", "NAMESPACE", "ALL"}),
            "!ERR FROM SNAPSHOT takes one namespace");
}

TEST_F(ChangePushTest, AClientThatTakesNothingHasOneMessageWaiting) {
  const int64_t now = Now();
  RawConnection stalled(server_.port(), /*receive_buffer=*/4096);
  ASSERT_TRUE(stalled.Send(Resp({"HELLO", "3"})));
  ASSERT_TRUE(stalled.Send(Resp({"CHANGES", "STREAM", "SINCE", std::to_string(now)})));
  const std::string value(20'000, 'v');
  constexpr int kWrites = 600;  // more than the sockets hold
  for (int i = 0; i < kWrites; ++i) ASSERT_EQ(Do({"SET", "k" + std::to_string(i), value}), "OK");
  const std::string clients = Do({"CLIENT", "LIST"});
  for (size_t at = clients.find(" omem="); at != std::string::npos;
       at = clients.find(" omem=", at + 1)) {
    EXPECT_LT(std::stoul(clients.substr(at + 6)), 100'000u);
  }
  // It gets all of it once it reads again.
  ASSERT_EQ(Do({"SET", "the-end", "x"}), "OK");
  std::string tail;
  size_t changes = 0;
  const std::string mark = "$6\r\nchange\r\n";
  while (tail.find("the-end") == std::string::npos) {
    char more[1 << 16];  // whatever is there
    const ssize_t got = ::recv(stalled.descriptor(), more, sizeof(more), 0);
    ASSERT_GT(got, 0);
    tail.append(more, static_cast<size_t>(got));
    for (size_t at = tail.find(mark); at != std::string::npos; at = tail.find(mark)) {
      ++changes;
      tail.erase(0, at + mark.size());
    }
  }
  EXPECT_EQ(changes, static_cast<size_t>(kWrites + 1));
}

// A client that asks for a stream and takes nothing. Small segments keep the server's side of the
// connection from growing its buffer.
class StalledStream {
 public:
  StalledStream(uint16_t port, const std::string& since)
      : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const int buffer = 4096, segment = 1000;
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    ::setsockopt(descriptor_, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    const std::string requests = Resp({"HELLO", "3"}) + Resp({"CHANGES", "STREAM", "SINCE", since});
    EXPECT_EQ(::send(descriptor_, requests.data(), requests.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(requests.size()));
  }
  ~StalledStream() { ::close(descriptor_); }
  StalledStream(const StalledStream&) = delete;
  StalledStream& operator=(const StalledStream&) = delete;

 private:
  const int descriptor_;
};

TEST(StalledStreamsTest, TheyCostLittleAndHoldNoWriterUp) {
  constexpr size_t kStreams = 200;
  constexpr size_t kMostBytesOfEach = 64u << 10;  // so that a thousand take less than 64 MiB
  EngineOptions retaining = TestServer::SmallEngine();
  retaining.changes.bytes = 256u << 20;
  TestServer server({}, retaining);
  const std::unique_ptr<Client> client = server.Connect();
  const std::string value(8'000, 'v');
  const auto write = [&](int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(Ask(*client, {"SET", "key", value}), "OK");
  };
  ASSERT_NO_FATAL_FAILURE(write(20));
  std::vector<std::unique_ptr<StalledStream>> streams;
  for (size_t i = 0; i < kStreams; ++i)
    streams.push_back(std::make_unique<StalledStream>(server.port(), "FIRST"));
  // The figures of the streams in CLIENT LIST: how many have something unsent, and their memory.
  const auto figures = [&] {
    std::pair<size_t, size_t> stalled_and_bytes;
    std::istringstream lines(Ask(*client, {"CLIENT", "LIST"}));
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" cmd=changes ") == std::string::npos) continue;
      const auto figure = [&](const std::string& name) {
        return std::stoul(line.substr(line.find(name) + name.size()));
      };
      stalled_and_bytes.first += figure(" obl=") > 0 ? 1 : 0;
      stalled_and_bytes.second += figure(" tot-mem=");
    }
    return stalled_and_bytes;
  };
  ASSERT_TRUE(Eventually([&] {
    if (figures().first == kStreams) return true;
    write(5);  // until no socket takes more
    return false;
  }));
  const auto clients_memory = [&] {
    const std::string info = Ask(*client, {"INFO", "memory"});
    const std::string name = "mem_clients_normal:";
    return std::stoul(info.substr(info.find(name) + name.size()));
  };
  EXPECT_LT(figures().second, kStreams * kMostBytesOfEach);
  EXPECT_LT(clients_memory(), kStreams * kMostBytesOfEach);
  // What is written meanwhile, 2.4 MB, waits in the feed alone.
  ASSERT_NO_FATAL_FAILURE(write(300));
  EXPECT_EQ(figures().first, kStreams);
  EXPECT_LT(figures().second, kStreams * kMostBytesOfEach);
  EXPECT_LT(clients_memory(), kStreams * kMostBytesOfEach);
  streams.clear();
  EXPECT_TRUE(Eventually([&] { return figures().second == 0; }));
}

// A client that takes a stream of large commits only when it is asked to.
class LargeCommitsTest : public ChangePushTest {
 protected:
  // Has the follower's sockets full, the server in the middle of a message, and what is left of the
  // message put away.
  void Stall(PushFollower* follower) {
    ASSERT_EQ(follower->Do({"CLIENT", "SETNAME", "stalled"}), "OK");
    ASSERT_EQ(follower->Do({"CHANGES", "STREAM", "SINCE", std::to_string(Now())}), "OK");
    int put_away = 0, at_end = 0;
    ASSERT_TRUE(Eventually([&] {
      Write();
      const std::string clients = Do({"CLIENT", "LIST"});
      const std::string line = clients.substr(clients.find(" name=stalled "));
      const auto figure = [&](const std::string& name) {
        return std::stoul(line.substr(line.find(name) + name.size()));
      };
      const size_t waiting = figure(" omem=");
      put_away = figure(" obl=") > 0 && waiting > 0 && waiting < 1'000 ? put_away + 1 : 0;
      // The socket is full where a message ends: the next one does not begin.
      at_end = figure(" obl=") > 0 && waiting == 0 ? at_end + 1 : 0;
      if (at_end > 5) EXPECT_EQ(follower->Do({"PING"}), "PONG");
      return put_away > 5;
    }));
  }
  void Write() {
    Words request = {"MSET"};
    for (int i = 0; i < 60; ++i) {
      request.push_back("key" + std::to_string(++writes_ % 1'000));
      request.push_back(std::string(5'000, static_cast<char>('a' + writes_ % 26)));
    }
    ASSERT_EQ(Do(request), "OK");
  }

  int writes_ = 0;
};

TEST_F(LargeCommitsTest, AStalledReaderHasAPartOfOneAndGetsTheRest) {
  PushFollower follower(server_.port());
  ASSERT_NO_FATAL_FAILURE(Stall(&follower));
  ASSERT_EQ(Do({"DEL", "key1"}), "1");
  EXPECT_EQ(follower.Do({"PING"}), "PONG");  // behind the message
  ASSERT_TRUE(follower.UntilProgress(Now()));
  EXPECT_TRUE(follower.in_order);
  EXPECT_EQ(follower.copy, All());
}

TEST_F(LargeCommitsTest, AReaderWithoutRightsToTheRestIsClosed) {
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "on", ">secret", "~key*", "+@all"}), "OK");
  PushFollower follower(server_.port(), {"AUTH", "alice", "secret"});
  ASSERT_NO_FATAL_FAILURE(Stall(&follower));
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "resetkeys", "~other"}), "OK");
  EXPECT_FALSE(follower.UntilProgress(Now()));
  EXPECT_EQ(follower.error, "");
  ASSERT_TRUE(Eventually([&] {
    return Do({"CLIENT", "LIST"}).find(" name=stalled ") == std::string::npos;
  }));
}

TEST_F(ChangePushTest, ACommitLargerThanAnyLimitIsPushedWhole) {
  PushFollower follower(server_.port());
  ASSERT_EQ(Do({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 1mb 1"}), "OK");
  ASSERT_EQ(follower.Do({"CHANGES", "STREAM", "SINCE", std::to_string(Now())}), "OK");
  const std::string value(3u << 20, 'v');
  ASSERT_EQ(Do({"MSET", "a", value, "b", value}), "OK");
  ASSERT_TRUE(follower.UntilProgress(Now()));
  EXPECT_EQ(follower.copy["b"], value);
}

TEST_F(ChangePushTest, ChangedRightsHoldForAStream) {
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "on", ">secret", "~app:*", "+@read", "+ping"}), "OK");
  PushFollower follower(server_.port(), {"AUTH", "alice", "secret"});
  ASSERT_EQ(follower.Do({"CHANGES", "STREAM", "SINCE", std::to_string(Now())}), "OK");
  ASSERT_EQ(Do({"MSET", "app:1", "x", "other", "y"}), "OK");
  ASSERT_TRUE(follower.UntilProgress(Now()));
  EXPECT_EQ(follower.changes, (Words{"((set 0 app:1 x 0 nil))"}));
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "resetkeys", "~other"}), "OK");
  ASSERT_EQ(Do({"MSET", "app:1", "x", "other", "y"}), "OK");
  ASSERT_TRUE(follower.UntilProgress(Now()));
  EXPECT_EQ(follower.changes.back(), "((set 0 other y 0 nil))");
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "-changes"}), "OK");
  ASSERT_TRUE(follower.Until([&] { return !follower.error.empty(); }));
  EXPECT_TRUE(follower.error.starts_with("NOPERM")) << follower.error;
  ASSERT_EQ(Do({"SET", "other", "z"}), "OK");
  EXPECT_EQ(follower.Do({"PING"}), "PONG");
  EXPECT_EQ(follower.changes.size(), 2u);
}

TEST_F(ChangePushTest, ManyStreamsEndWithTheServer) {
  const std::string now = std::to_string(Now());
  std::vector<std::unique_ptr<PushFollower>> followers;
  for (int i = 0; i < 50; ++i) {
    followers.push_back(std::make_unique<PushFollower>(server_.port()));
    ASSERT_EQ(followers.back()->Do({"CHANGES", "STREAM", "SINCE", now}), "OK");
  }
  ASSERT_EQ(Do({"SET", "k", "v"}), "OK");
  const int64_t version = Now();
  for (const auto& follower : followers) EXPECT_TRUE(follower->UntilProgress(version));
  client_.reset();
  server_.Restart();
  client_ = server_.Connect();
  EXPECT_EQ(Do({"GET", "k"}), "v");
}

}  // namespace
}  // namespace varve
