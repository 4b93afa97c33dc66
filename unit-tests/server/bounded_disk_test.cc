// A server whose data directory is bounded (--max-disk-bytes): what it refuses, and what it evicts.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/os/bounded_file_system.h"

namespace varve {
namespace {

using testing::Ask;
using testing::Eventually;
using testing::TempDir;

constexpr uint64_t kDiskLimit = 32u << 20, kDiskReserve = 8u << 20;

class BoundedServerTest : public ::testing::Test {
 protected:
  void Start(const std::string& policy) {
    EngineOptions engine;
    engine.sync = Durability::kNone;
    engine.write_buffer_size = 1u << 20;
    engine.segment_size = 1u << 20;
    engine.file_system = &files_;
    absl::StatusOr<std::unique_ptr<StorageEngine>> store =
        StorageEngine::Open(dir_.File("data"), engine);
    ASSERT_TRUE(store.ok()) << store.status();
    files_.KeepReserve();
    store_ = *std::move(store);
    ServerConfig config{.directory = dir_.File("data"), .engine = engine};
    config.server.port = 0;
    config.max_disk_bytes = kDiskLimit;
    config.server.max_memory_policy = policy;
    ServerProgram program;
    program.disk = &files_;
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(store_.get(), config, std::move(program));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    client_ = *Client::Connect("127.0.0.1", server_->port(), std::chrono::seconds(60));
  }
  ~BoundedServerTest() override {
    client_.reset();
    if (server_ != nullptr) server_->Stop();
    server_.reset();
    if (store_ != nullptr) EXPECT_TRUE(store_->Close().ok());
  }
  std::string Do(const std::vector<std::string>& arguments) { return Ask(*client_, arguments); }
  std::string Set(int key) {
    return Do({"SET", "key" + std::to_string(100'000 + key), std::string(1000, 'v')});
  }

  // Takes room of the directory, so that only a part of the reserve is left.
  void FillTheDisk() {
    auto filler = files_.OpenForWrite(FillerPath(), /*create=*/true);
    ASSERT_TRUE(filler.ok()) << filler.status();
    ASSERT_TRUE((*filler)->Allocate(0, kDiskLimit - kDiskReserve / 2 - files_.used()).ok());
    ASSERT_TRUE(files_.IsTight());
  }
  std::string FillerPath() const { return dir_.File("data") + "/filler"; }

  TempDir dir_;
  BoundedFileSystem files_{PosixFileSystem(), dir_.File("data"), kDiskLimit, kDiskReserve};
  std::unique_ptr<StorageEngine> store_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(BoundedServerTest, NearTheBoundOnlyWhatAddsDataIsRefused) {
  Start("noeviction");
  std::string reply = "OK";
  int written = 0;
  for (; reply == "OK" && written < 100'000; ++written) {
    reply = Set(written);
    ASSERT_LE(files_.used(), kDiskLimit);
  }
  EXPECT_EQ(reply.substr(0, 9), "!MISCONF ") << reply;
  EXPECT_NE(reply.find("max-disk-bytes"), std::string::npos) << reply;
  EXPECT_GT(written, 4000);
  EXPECT_EQ(Do({"GET", "key100001"}), std::string(1000, 'v'));
  EXPECT_EQ(Do({"DEL", "key100001"}), "1");
  EXPECT_NE(Do({"INFO", "memory"}).find("max_disk_bytes:" + std::to_string(kDiskLimit)),
            std::string::npos);
  ASSERT_EQ(Do({"FLUSHALL"}), "OK");
  ASSERT_EQ(Do({"COMPACT"}), "OK");
  EXPECT_TRUE(Eventually([&] { return Set(1) == "OK"; }));
}

TEST_F(BoundedServerTest, WhatMayBeEvictedGoesFirst) {
  Start("allkeys-lru");
  std::string reply = "OK";
  for (int key = 0; reply == "OK" && key < 100'000; ++key) {
    reply = Set(key);
    ASSERT_LE(files_.used(), kDiskLimit);
  }
  EXPECT_TRUE(Eventually([&] { return server_->state().evictor.evicted_keys() > 0; }));
}

// The order of evictions is begun where only a part of the reserve is left.
TEST_F(BoundedServerTest, APolicyThatIsSetOnAFullDiskEvicts) {
  Start("noeviction");
  for (int key = 0; key < 500; ++key) ASSERT_EQ(Set(key), "OK");
  FillTheDisk();
  EXPECT_EQ(Set(0).substr(0, 9), "!MISCONF ");
  ASSERT_EQ(Do({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}), "OK");
  EXPECT_TRUE(Eventually([&] { return server_->state().evictor.evicted_keys() > 0; }));
  EXPECT_LE(files_.used(), kDiskLimit);
}

TEST_F(BoundedServerTest, TheBoundMovesWhileTheServerRuns) {
  Start("noeviction");
  FillTheDisk();
  EXPECT_EQ(Set(0).substr(0, 9), "!MISCONF ");
  ASSERT_EQ(Do({"CONFIG", "SET", "max-disk-bytes", std::to_string(2 * kDiskLimit)}), "OK");
  EXPECT_EQ(Set(0), "OK");
  EXPECT_NE(Do({"INFO", "memory"}).find("max_disk_bytes:" + std::to_string(2 * kDiskLimit)),
            std::string::npos);
  for (const auto& [bytes, reason] :
       {std::pair("1MiB", "already"), std::pair("0", "when the server starts")}) {
    const std::string refused = Do({"CONFIG", "SET", "max-disk-bytes", bytes});
    EXPECT_EQ(refused.substr(0, 22), "!ERR CONFIG SET failed") << refused;
    EXPECT_NE(refused.find(reason), std::string::npos) << refused;
  }
  EXPECT_EQ(Set(1), "OK") << "nothing has changed";
  const uint64_t lowered = files_.used() + kDiskReserve / 4 * 3;
  ASSERT_EQ(Do({"CONFIG", "SET", "max-disk-bytes", std::to_string(lowered)}), "OK");
  EXPECT_EQ(Set(2).substr(0, 9), "!MISCONF ");
}

TEST_F(BoundedServerTest, ABoundStaysRaisedWhoseRoomAnotherProgramHasTaken) {
  Start("noeviction");
  // Like another program, the test takes more room than the server allows itself.
  std::ofstream(FillerPath()) << "x";
  std::filesystem::resize_file(FillerPath(), kDiskLimit + 1);
  ASSERT_TRUE(files_.Measure().ok());
  const std::string raised = std::to_string(2 * kDiskLimit);
  const std::string refused = Do(
      {"CONFIG", "SET", "max-disk-bytes", raised, "tls", "optional", "tls-cert-file", "/nowhere"});
  EXPECT_EQ(refused.substr(0, 22), "!ERR CONFIG SET failed") << refused;
  EXPECT_EQ(Do({"CONFIG", "GET", "max-disk-bytes"}), "(max-disk-bytes " + raised + ")");
  EXPECT_EQ(files_.bound().limit, 2 * kDiskLimit);
}

// Merges give back what the filler takes here.
TEST_F(BoundedServerTest, AWriteWaitsForWhatEvictionsGiveBack) {
  Start("allkeys-lru");
  server_->state().evictor.RunRound();
  ASSERT_EQ(Set(0), "OK");
  FillTheDisk();
  const auto writer = *Client::Connect("127.0.0.1", server_->port(), std::chrono::seconds(60));
  std::string reply;
  std::thread writes([&] {
    while (reply != "OK") reply = Ask(*writer, {"SET", "waits", "v"});
  });
  EXPECT_TRUE(Eventually([&] {
    return Do({"INFO", "clients"}).find("blocked_clients:1\r\n") != std::string::npos;
  }));
  // The key may have been evicted.
  EXPECT_NE(Do({"GET", "key100000"}).front(), '!') << "reads go on";
  EXPECT_NE(Do({"DEL", "key100000"}).front(), '!') << "deletes, too";
  EXPECT_TRUE(files_.Remove(FillerPath()).ok());
  writes.join();
  EXPECT_EQ(Do({"GET", "waits"}), "v");
  EXPECT_NE(Do({"INFO", "clients"}).find("blocked_clients:0\r\n"), std::string::npos);
}

TEST_F(BoundedServerTest, AWriteThatHasWaitedIsToldThatEvictionsNeedMerges) {
  Start("allkeys-lru");
  server_->state().evictor.RunRound();
  FillTheDisk();
  const std::string reply = Set(0);
  EXPECT_EQ(reply.substr(0, 9), "!MISCONF ") << reply;
  EXPECT_NE(reply.find("keys are evicted"), std::string::npos) << reply;
  EXPECT_TRUE(files_.Remove(FillerPath()).ok());
  EXPECT_EQ(Set(0), "OK");
}

}  // namespace
}  // namespace varve
