// What a loop, one of several, does for one client alone (server/net/idle_policy.h): it writes
// the log itself and asks the socket again before it sleeps.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "server/net/idle_policy.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::FaultFileSystem;
using testing::FileOperation;
using testing::RawConnection;
using testing::Resp;
using testing::TestServer;

class LoneClientTest : public ::testing::Test {
 protected:
  LoneClientTest() {
    for (uint32_t i = 0; i < 3 * IdlePolicy::kRecentRounds; ++i) Put(i);
  }
  void Put(uint32_t i) { ASSERT_TRUE(client_->Put("k" + std::to_string(i), "v").ok()) << i; }
  static EngineOptions Engine(FaultFileSystem* files) {
    EngineOptions engine = TestServer::SmallEngine();
    engine.file_system = files;
    return engine;
  }

  FaultFileSystem files_;
  // With one loop alone it would be as for anybody (server/net/idle_policy.h).
  TestServer server_{ServerOptions{.io_threads = 2}, Engine(&files_)};
  const std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(LoneClientTest, IsWrittenToDiskByItsLoop) {
  std::atomic<int> syncs_here{0};
  const uint64_t token =
      server_.store().AddDurabilityListener([&] { syncs_here += testing::IsLoopsThread(); });
  for (uint32_t i = 0; i < 100; ++i) Put(i);
  EXPECT_GT(syncs_here, 0);
  server_.store().RemoveDurabilityListener(token);
}

TEST_F(LoneClientTest, IsToldOfAFailedSync) {
  server_.ExpectUncleanClose();
  files_.Fail(FileOperation::kSync, 1, absl::InternalError("EIO"), FaultFileSystem::kUnlimited,
              ".log");
  const absl::Status refused = client_->Put("lost", "1");
  EXPECT_TRUE(std::string(refused.message()).starts_with("MISCONF")) << refused;
  EXPECT_EQ(**client_->Get("k0"), "v");
  EXPECT_FALSE(client_->Put("later", "2").ok());
}

TEST_F(LoneClientTest, IsWrittenToDiskThoughItWantsNoReplies) {
  RawConnection silent(server_.port());
  ASSERT_TRUE(silent.Send(Resp({"CLIENT", "REPLY", "OFF"})));
  for (int i = 0; i < 200; ++i) {
    const SequenceNumber before = server_.store().durable_sequence();
    ASSERT_TRUE(silent.Send(Resp({"SET", "silent", std::to_string(i)})));
    ASSERT_TRUE(Eventually([&] { return server_.store().durable_sequence() > before; })) << i;
  }
}

TEST_F(LoneClientTest, WritesAllOfAPipeline) {
  constexpr int kAhead = 20000;
  RawConnection connection(server_.port());
  std::thread sender([&] {
    for (int i = 0; i < kAhead; ++i)
      ASSERT_TRUE(connection.Send(Resp({"SET", "p" + std::to_string(i), "v"})));
  });
  for (int i = 0; i < kAhead; ++i) ASSERT_EQ(connection.Receive(5), "+OK\r\n") << i;
  sender.join();
}

// A sync that ends between the reads and the write of the second batch finds the session parked for
// the first.
TEST_F(LoneClientTest, IsAnsweredWheneverASyncEnds) {
  RawConnection connection(server_.port());
  std::string writes, reads, replies;
  for (int i = 0; i < 50; ++i) {
    writes += Resp({"SET", "a", "1"});
    replies += "+OK\r\n";
  }
  for (int i = 0; i < 200; ++i) {
    reads += Resp({"GET", "k" + std::to_string(i % 100)});
    replies += "$1\r\nv\r\n";
  }
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(connection.Send(writes));
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(i % 100);
    while (std::chrono::steady_clock::now() < until) {
    }
    ASSERT_TRUE(connection.Send(reads + Resp({"SET", "b", "1"})));
    ASSERT_EQ(connection.Receive(replies.size() + 5), replies + "+OK\r\n") << i;
  }
}

TEST_F(LoneClientTest, LeavesOthersTheirTurn) {
  std::atomic<bool> done{false};
  std::thread busy([&] {
    while (!done) ASSERT_TRUE(client_->Get("k0").ok());
  });
  for (int i = 0; i < 20; ++i) {
    const std::unique_ptr<Client> other = server_.Connect();
    ASSERT_TRUE(other->Put("other", std::to_string(i)).ok());
    EXPECT_EQ(**other->Get("other"), std::to_string(i));
  }
  done = true;
  busy.join();
}

}  // namespace
}  // namespace varve
