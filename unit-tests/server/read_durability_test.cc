// What a client was shown stays, in every mode: a value is visible before the kernel has it, and a
// process that dies in between takes it back. A copy of the files is what a killed process leaves
// behind.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::FaultFileSystem;
using testing::FileOperation;
using testing::RawConnection;
using testing::Resp;
using testing::TempDir;
using testing::TestServer;

class ReadDurabilityTest : public ::testing::TestWithParam<std::tuple<Durability, Execution>> {
 protected:
  void SetUp() override {
    EngineOptions engine = TestServer::SmallEngine();
    engine.sync = std::get<0>(GetParam());
    engine.file_system = &files_;
    absl::StatusOr<std::unique_ptr<StorageEngine>> store =
        StorageEngine::Open(dir_.File("data"), engine);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    ServerOptions options;
    options.port = 0;
    options.execution = std::get<1>(GetParam());
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(store_.get(), {.server = options});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    ASSERT_TRUE(store_->Put("kept", "1").ok());
    ASSERT_TRUE(store_->Put("doomed", "1").ok());
    ASSERT_TRUE(store_->Sync().ok());
  }

  // Another client's writes between their commit and the push of their round.
  void WriteWithoutPush() {
    WriteBatch batch;
    batch.Put("fresh", "2");
    batch.Delete("doomed");
    ASSERT_TRUE(store_->Submit({}, &batch).ok());
  }
  // The value of `key` after a kill at this moment.
  std::string AfterAKill(const std::string& key) {
    const std::string copy = dir_.File("copy" + std::to_string(++copies_));
    std::filesystem::copy(dir_.File("data"), copy, std::filesystem::copy_options::recursive);
    absl::StatusOr<std::unique_ptr<StorageEngine>> store =
        StorageEngine::Open(copy, TestServer::SmallEngine());
    EXPECT_TRUE(store.ok()) << store.status();
    if (!store.ok()) return "lost";
    std::string value;
    const absl::StatusOr<ReadResult> read = (*store)->Get({}, key, &value);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() && read->found ? value : "nothing";
  }

  TempDir dir_;
  FaultFileSystem files_;
  std::unique_ptr<StorageEngine> store_;
  std::unique_ptr<Server> server_;
  int copies_ = 0;
};

INSTANTIATE_TEST_SUITE_P(
    Modes, ReadDurabilityTest,
    ::testing::Combine(::testing::Values(Durability::kEverySecond, Durability::kNone),
                       ::testing::Values(Execution::kInline, Execution::kPool)));

TEST_P(ReadDurabilityTest, WhatWasReadSurvivesAKill) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> reads = {
      {{"GET", "fresh"}, "$1\r\n2\r\n"},
      {{"GET", "doomed"}, "$-1\r\n"},
      {{"MGET", "fresh", "doomed"}, "*2\r\n$1\r\n2\r\n$-1\r\n"},
      {{"EXISTS", "fresh"}, ":1\r\n"},
      {{"COUNT", "-", "+"}, ":2\r\n"},
      {{"DBSIZE"}, ":2\r\n"},
      {{"RANGE", "-", "+", "KEYS"}, "*2\r\n$5\r\nfresh\r\n$4\r\nkept\r\n"},
      {{"SET", "fresh", "3", "NX"}, "$-1\r\n"},
  };
  for (const auto& [request, reply] : reads) {
    ASSERT_TRUE(store_->Delete("fresh").ok());
    ASSERT_TRUE(store_->Put("doomed", "1").ok());
    WriteWithoutPush();
    RawConnection connection(server_->port());
    ASSERT_TRUE(connection.Send(Resp(request)));
    ASSERT_EQ(connection.Receive(reply.size()), reply) << request[0];
    EXPECT_EQ(AfterAKill("fresh"), "2") << request[0];
    EXPECT_EQ(AfterAKill("doomed"), "nothing") << request[0];
  }
}

TEST_P(ReadDurabilityTest, TwoClientsReadInOneRound) {
  WriteWithoutPush();
  RawConnection first(server_->port());
  RawConnection second(server_->port());
  ASSERT_TRUE(first.Send(Resp({"GET", "fresh"})));
  ASSERT_TRUE(second.Send(Resp({"GET", "fresh"}) + Resp({"GET", "kept"})));
  EXPECT_EQ(first.Receive(7), "$1\r\n2\r\n");
  EXPECT_EQ(second.Receive(14), "$1\r\n2\r\n$1\r\n1\r\n");
  EXPECT_EQ(AfterAKill("fresh"), "2");
}

TEST_P(ReadDurabilityTest, ALibrarysReadSurvivesAKill) {
  WriteWithoutPush();
  std::string value;
  ASSERT_TRUE(store_->Get({}, "fresh", &value)->found);
  EXPECT_EQ(AfterAKill("fresh"), "2");
  WriteBatch batch;
  batch.Put("fresher", "3");
  ASSERT_TRUE(store_->Submit({}, &batch).ok());
  const std::unique_ptr<Iterator> iterator = store_->NewIterator({}, "", "", nullptr);
  iterator->SeekToFirst();
  EXPECT_EQ(AfterAKill("fresher"), "3");
}

TEST_P(ReadDurabilityTest, WhatTheKernelRefusedIsNotShown) {
  files_.Fail(FileOperation::kWrite, 1, absl::InternalError("EIO"), FaultFileSystem::kUnlimited,
              ".log");
  WriteWithoutPush();
  RawConnection connection(server_->port());
  ASSERT_TRUE(connection.Send(Resp({"GET", "fresh"})));
  EXPECT_EQ(connection.Receive(8), "-MISCONF");
  // From then on reads show what is durable, and go on.
  const absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect("127.0.0.1", server_->port());
  ASSERT_TRUE(client.ok());
  for (int i = 0; i < 50; ++i) {
    const absl::StatusOr<std::optional<std::string>> kept = (*client)->Get("kept");
    if (i > 0) {
      ASSERT_TRUE(kept.ok()) << kept.status();
      EXPECT_EQ(**kept, "1");
    }
  }
  EXPECT_EQ(**(*client)->Get("doomed"), "1");
  EXPECT_FALSE((*client)->Get("fresh")->has_value());
}

}  // namespace
}  // namespace varve
