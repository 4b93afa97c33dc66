// What clients see when the disk fails or is full.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

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

class FaultsTest : public ::testing::TestWithParam<Durability> {
 protected:
  EngineOptions Engine() {
    EngineOptions engine = TestServer::SmallEngine();
    engine.sync = GetParam();
    engine.file_system = &files_;
    return engine;
  }
  FaultFileSystem files_;
  TestServer server_{ServerOptions(), Engine()};
};

INSTANTIATE_TEST_SUITE_P(Modes, FaultsTest,
                         ::testing::Values(Durability::kAlways, Durability::kEverySecond,
                                           Durability::kNone));

TEST_P(FaultsTest, AFailedLogRefusesWritesAndLiesToNobody) {
  server_.ExpectUncleanClose();
  const std::unique_ptr<Client> reader = server_.Connect();
  ASSERT_TRUE(reader->Put("safe", "1").ok());
  // A failed log shows what is durable, whatever the mode.
  ASSERT_TRUE(server_.store().Sync().ok());
  files_.Fail(GetParam() == Durability::kAlways ? FileOperation::kSync : FileOperation::kWrite, 1,
              absl::InternalError("EIO"), FaultFileSystem::kUnlimited, ".log");
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&, t] {
      const std::unique_ptr<Client> client = server_.Connect();
      constexpr int kAhead = 100;
      for (int i = 0; i < kAhead; ++i)
        ASSERT_TRUE(client->Send({"SET", std::to_string(t) + ":" + std::to_string(i), "x"}).ok());
      ASSERT_TRUE(client->Send({"GET", "safe"}).ok());
      for (int i = 0; i < kAhead; ++i) {
        const absl::StatusOr<Reply> reply = client->Receive();
        ASSERT_TRUE(reply.ok()) << reply.status();
        ASSERT_TRUE(reply->is_error());
        ASSERT_TRUE(reply->text.starts_with("MISCONF")) << reply->text;
      }
      const absl::StatusOr<Reply> read = client->Receive();
      ASSERT_TRUE(read.ok()) << read.status();
      if (!read->is_error()) {
        EXPECT_EQ(read->text, "1");
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(**reader->Get("safe"), "1");
  EXPECT_FALSE(reader->Put("later", "2").ok());
  EXPECT_FALSE(reader->Call({"INCR", "later"}).ok());
  EXPECT_EQ(reader->Ping(), absl::OkStatus());
  if (GetParam() == Durability::kAlways) {
    const absl::StatusOr<std::optional<std::string>> unsafe = reader->Get("0:0");
    EXPECT_FALSE(unsafe.ok() && unsafe->has_value());  // a crash would take it back
  }
}

TEST_P(FaultsTest, AFailedLogAcknowledgesNothingInFrontOfALongReply) {
  ServerOptions options;
  options.execution = Execution::kPool;
  TestServer server(options, Engine());
  server.ExpectUncleanClose();
  const std::unique_ptr<Client> client = server.Connect();
  for (int i = 0; i < 16; ++i)
    ASSERT_TRUE(client->Put("k" + std::to_string(i), std::string(64u << 10, 'v')).ok());
  ASSERT_TRUE(server.store().Sync().ok());
  files_.Fail(GetParam() == Durability::kAlways ? FileOperation::kSync : FileOperation::kWrite, 1,
              absl::InternalError("EIO"), FaultFileSystem::kUnlimited, ".log");
  RawConnection connection(server.port());
  ASSERT_TRUE(connection.Send(Resp({"SET", "lost", "1"}) + Resp({"RANGE", "-", "+"})));
  // An error, or nothing before the connection closes.
  const std::string replies = connection.Receive(3);
  EXPECT_NE(replies, "+OK");
  EXPECT_TRUE(replies == "-MI" || connection.closed()) << replies;
}

TEST_P(FaultsTest, AFullDiskRefusesWritesUntilThereIsRoomAgain) {
  const std::unique_ptr<Client> client = server_.Connect();
  ASSERT_TRUE(client->Put("kept", "1").ok());
  ASSERT_TRUE(client->Put("doomed", "1").ok());
  files_.SetFreeBytes(0);
  const std::string value(10000, 'v');
  absl::Status refused = absl::OkStatus();
  int written = 0;
  while (refused.ok() && written < 5000) {
    refused = client->Put("k" + std::to_string(written), value);
    if (refused.ok()) ++written;
  }
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(std::string(refused.message()).starts_with("MISCONF")) << refused;
  EXPECT_EQ(**client->Get("kept"), "1");
  for (int i = 0; i < written; ++i)
    ASSERT_TRUE((*client->Get("k" + std::to_string(i))).has_value()) << i;
  EXPECT_EQ(*client->Delete({"doomed"}), 1);
  EXPECT_FALSE((*client->Get("doomed")).has_value());
  files_.SetFreeBytes(FaultFileSystem::kUnlimited);
  EXPECT_TRUE(Eventually([&] { return client->Put("after", "2").ok(); }));
  EXPECT_EQ(**client->Get("after"), "2");
}

}  // namespace
}  // namespace varve
