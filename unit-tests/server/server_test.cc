// Connections from their first byte to their last: bounds, disappearing clients, stopping.
#include "server/server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/process_memory.h"
#include "util/base/status.h"
#include "util/os/forwarding_file.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::kMemoryIsTold;
using testing::RawConnection;
using testing::ResidentBytes;
using testing::Resp;
using testing::TestServer;

TEST(ServerTest, AClientThatGoesAwayInTheMiddleOfAReplyHurtsNobody) {
  TestServer server;
  const std::unique_ptr<Client> client = server.Connect();
  ASSERT_TRUE(client->Put("large", std::string(8u << 20, 'x')).ok());
  for (int i = 0; i < 20; ++i) {
    RawConnection connection(server.port());
    std::string requests;
    for (int j = 0; j < 5; ++j) requests += Resp({"GET", "large"});
    ASSERT_TRUE(connection.Send(requests + Resp({"RANGE", "-", "+"})));
    EXPECT_EQ(connection.Receive(100).size(), 100u);
    if (i % 2 == 0) connection.Vanish();
  }
  EXPECT_TRUE(Eventually([&] { return server.state().clients.connected.load() == 1; }));
  EXPECT_EQ(client->Ping(), absl::OkStatus());
}

TEST(ServerTest, AClientThatDoesNotReadIsNotReadFromEither) {
  TestServer server;
  const size_t value_size = 1u << 20;
  constexpr int kRequests = 300;
  const std::unique_ptr<Client> client = server.Connect();
  ASSERT_TRUE(client->Put("large", std::string(value_size, 'x')).ok());
  ASSERT_TRUE(client->Get("large").ok());
  const size_t before = ResidentBytes();
  RawConnection connection(server.port(), 64 << 10);
  std::string requests;
  for (int i = 0; i < kRequests; ++i) requests += Resp({"GET", "large"});
  ASSERT_TRUE(connection.Send(requests));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  // The replies together have 300 MiB.
  if (kMemoryIsTold) {
    EXPECT_LT(ResidentBytes(), before + (64u << 20));
  }
  EXPECT_EQ(client->Ping(), absl::OkStatus());  // others are served meanwhile
  const size_t reply_size = std::string("$1048576\r\n").size() + value_size + 2;
  size_t received = 0;
  for (int i = 0; i < kRequests; ++i) received += connection.Receive(reply_size).size();
  EXPECT_EQ(received, reply_size * kRequests);
}

TEST(ServerTest, LargeValuesAreReadFewAtATime) {
  TestServer server;
  constexpr size_t kValueSize = 8u << 20;
  constexpr size_t kKeys = 64;  // together 512 MiB
  const std::unique_ptr<Client> client = server.Connect();
  ASSERT_TRUE(client->Put("small", "s").ok());
  ASSERT_TRUE(client->Put("large", std::string(kValueSize, 'x')).ok());
  ASSERT_TRUE(client->Get("large").ok());
  const size_t before = ResidentBytes();
  std::vector<std::string> keys = {"MGET"};
  for (size_t i = 0; i < kKeys; ++i) keys.push_back(i % 8 == 7 ? "small" : "large");
  RawConnection connection(server.port(), 64 << 10);
  ASSERT_TRUE(connection.Send(Resp(keys)));
  const std::string header = "*" + std::to_string(kKeys) + "\r\n";
  ASSERT_EQ(connection.Receive(header.size()), header);
  keys[0] = "EXISTS";
  RawConnection counting(server.port());
  ASSERT_TRUE(counting.Send(Resp(keys)));
  EXPECT_EQ(counting.Receive(5), ":64\r\n");
  if (kMemoryIsTold) {
    EXPECT_LT(ResidentBytes(), before + (100u << 20));
  }
  const std::string large_reply =
      "$" + std::to_string(kValueSize) + "\r\n" + std::string(kValueSize, 'x') + "\r\n";
  for (size_t i = 0; i < kKeys; ++i) {
    const std::string expected = i % 8 == 7 ? "$1\r\ns\r\n" : large_reply;
    ASSERT_TRUE(connection.Receive(expected.size()) == expected) << i;
  }
}

TEST(ServerTest, ALongRangeIsStreamedToASlowReader) {
  TestServer server;
  const std::unique_ptr<Client> client = server.Connect();
  constexpr int kKeys = 40000;
  const std::string value(1000, 'v');
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(client->Send({"SET", "key" + std::to_string(1000000 + i), value}).ok());
    if (i % 500 == 499) {
      for (int j = 0; j < 500; ++j) ASSERT_FALSE(client->Receive()->is_error());
    }
  }
  const size_t before = ResidentBytes();
  RawConnection connection(server.port(), 64 << 10);
  RawConnection backward(server.port(), 64 << 10);
  ASSERT_TRUE(connection.Send(Resp({"RANGE", "-", "+"}) + Resp({"PING"})));
  ASSERT_TRUE(backward.Send(Resp({"RANGE", "+", "-", "REV"})));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  if (kMemoryIsTold) {
    EXPECT_LT(ResidentBytes(), before + (24u << 20));
  }
  // A write after the snapshot was taken does not show.
  ASSERT_TRUE(client->Put("key1039999", "changed").ok());
  ASSERT_TRUE(client->Put("key1", "new").ok());
  std::string expected = "*80000\r\n";
  for (int i = 0; i < kKeys; ++i) {
    expected += "$10\r\nkey" + std::to_string(1000000 + i) + "\r\n$1000\r\n" + value + "\r\n";
  }
  expected += "+PONG\r\n";
  EXPECT_TRUE(connection.Receive(expected.size()) == expected);
  expected = "*80000\r\n";
  for (int i = kKeys; i-- > 0;) {
    expected += "$10\r\nkey" + std::to_string(1000000 + i) + "\r\n$1000\r\n" + value + "\r\n";
  }
  EXPECT_TRUE(backward.Receive(expected.size()) == expected);
}

TEST(ServerTest, TooManyClientsGetAnErrorAndRoomComesBack) {
  ServerOptions options;
  options.max_clients = 2;
  TestServer server(options);
  const std::unique_ptr<Client> first = server.Connect();
  std::unique_ptr<Client> second = server.Connect();
  ASSERT_EQ(first->Ping(), absl::OkStatus());
  ASSERT_EQ(second->Ping(), absl::OkStatus());
  RawConnection third(server.port());
  EXPECT_EQ(third.ReceiveAll(), "-ERR max number of clients reached\r\n");
  EXPECT_TRUE(third.closed());
  second.reset();
  EXPECT_TRUE(Eventually([&] { return server.state().clients.connected.load() == 1; }));
  EXPECT_EQ(server.Connect()->Ping(), absl::OkStatus());
}

TEST(ServerTest, AHalfClosedConnectionIsStillAnswered) {
  TestServer server;
  RawConnection connection(server.port());
  ASSERT_TRUE(connection.Send("SET a 1\r\nGET a\r\nGE"));
  connection.FinishSending();
  EXPECT_EQ(connection.ReceiveAll(), "+OK\r\n$1\r\n1\r\n");
  EXPECT_TRUE(connection.closed());
}

TEST(ServerTest, QuitClosesAfterTheRepliesBeforeIt) {
  TestServer server;
  RawConnection connection(server.port());
  ASSERT_TRUE(connection.Send("SET a 1\r\nQUIT\r\nSET a 2\r\n"));
  EXPECT_EQ(connection.ReceiveAll(), "+OK\r\n+OK\r\n");
  EXPECT_TRUE(connection.closed());
  EXPECT_EQ(**server.Connect()->Get("a"), "1");
}

TEST(ServerTest, WhatWasAcknowledgedBeforeAStopIsThereAfterIt) {
  TestServer server;
  std::atomic<int> started{0};
  std::vector<int> acknowledged(4, -1);
  std::vector<std::thread> writers;
  for (size_t t = 0; t < acknowledged.size(); ++t) {
    writers.emplace_back([&, t] {
      const std::unique_ptr<Client> client = server.Connect();
      for (int i = 0;; ++i) {
        if (!client->Put(std::to_string(t) + ":" + std::to_string(i), "v").ok()) return;
        acknowledged[t] = i;
        if (i == 20) started.fetch_add(1);
      }
    });
  }
  ASSERT_TRUE(Eventually([&] { return started.load() == 4; }));
  server.Stop();
  for (std::thread& writer : writers) writer.join();
  server.Start();
  const std::unique_ptr<Client> client = server.Connect();
  for (size_t t = 0; t < acknowledged.size(); ++t) {
    for (int i = 0; i <= acknowledged[t]; ++i) {
      ASSERT_TRUE((*client->Get(std::to_string(t) + ":" + std::to_string(i))).has_value())
          << t << ":" << i;
    }
  }
}

TEST(ServerTest, AStopDoesNotWaitForeverForAClientThatDoesNotRead) {
  ServerOptions options;
  options.drain_timeout = std::chrono::milliseconds(200);
  TestServer server(options);
  ASSERT_TRUE(server.Connect()->Put("large", std::string(16u << 20, 'x')).ok());
  RawConnection connection(server.port(), 64 << 10);
  ASSERT_TRUE(connection.Send(Resp({"GET", "large"})));
  ASSERT_EQ(connection.Receive(10).size(), 10u);
  server.Stop();
  EXPECT_LT(connection.ReceiveAll().size(), 16u << 20);
  EXPECT_TRUE(connection.closed());
}

TEST(ServerTest, ABusyPortIsAnErrorThatNamesIt) {
  TestServer server;
  testing::TempDir dir;
  absl::StatusOr<std::unique_ptr<StorageEngine>> store = StorageEngine::Open(dir.File("other"), {});
  ASSERT_TRUE(store.ok());
  ServerOptions options;
  options.port = server.port();
  const absl::StatusOr<std::unique_ptr<Server>> second =
      Server::Start(store->get(), {.server = options});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().ToString().find(std::to_string(server.port())), std::string::npos)
      << second.status();
}

// Files whose syncs take no time.
class InstantSyncs final : public testing::FaultFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path,
                                                     bool create) override {
    VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file, FaultFileSystem::OpenForWrite(path, create));
    return std::make_unique<InstantFile>(std::move(file));
  }

 private:
  class InstantFile final : public ForwardingFile {
   public:
    using ForwardingFile::ForwardingFile;
    absl::Status Sync() override { return absl::OkStatus(); }
  };
};

TEST(ServerTest, ALoneWriterDoesNotWaitForCompany) {
  InstantSyncs files;  // however slow the disk is
  EngineOptions engine = TestServer::SmallEngine();
  engine.file_system = &files;
  TestServer server({}, engine);
  const std::unique_ptr<Client> client = server.Connect();
  ASSERT_TRUE(client->Put("warm", "up").ok());
  constexpr int kWrites = 50;
  // A timer of a group would show in each round, a busy machine only in some.
  EXPECT_TRUE(Eventually([&] {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kWrites; ++i) EXPECT_TRUE(client->Put("k", "v").ok());
    return std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(20) * kWrites;
  }));
}

}  // namespace
}  // namespace varve
