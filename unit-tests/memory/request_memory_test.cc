// What requests allocate once the server has served some: nothing, but for the memory of write
// buffers.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/pipeline.h"
#include "fmt/format.h"
#include "server/server.h"
#include "unit-tests/memory/allocation_faults.h"
#include "unit-tests/testing/temp_dir.h"
#include "varve/storage_engine.h"

namespace varve::testing {
namespace {

constexpr int kKeys = 512;
constexpr uint64_t kPieces = 2;  // of a write buffer, that so many requests may need

std::string Key(int i) { return fmt::format("key:{:012}", i % kKeys); }

class RequestMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = StorageEngine::Open(dir_.File("data"), EngineOptions());
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    ServerConfig config;
    config.server.port = 0;
    config.server.slow_log_micros = -1;
    // On a slow machine pipelines would go to the pool now and then, and the memory of the I/O
    // thread would grow with the first one that does not.
    config.server.execution = Execution::kInline;
    auto server = Server::Start(store_.get(), config);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    auto client = Pipeline::Connect({.port = server_->port()});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  void TearDown() override {
    if (server_ != nullptr) server_->Stop();
    server_.reset();
    if (store_ != nullptr) EXPECT_TRUE(store_->Close().ok());
  }

  void Set(int i) { client_->Send({"SET", Key(i), value_}); }
  void Get(int i) { client_->Send({"GET", Key(i)}); }

  // Rounds of so many requests, each of which waits for its replies.
  void Exchange(const std::function<void(int)>& send, int pipeline, int requests) {
    for (int sent = 0; sent < requests;) {
      for (int i = 0; i < pipeline; ++i) send(sent++);
      while (client_->outstanding() > 0) {
        const absl::StatusOr<Reply> reply = client_->Receive();
        ASSERT_TRUE(reply.ok()) << reply.status();
        ASSERT_NE(reply->type, Reply::Type::kError);
      }
    }
  }

  void ExpectNoAllocations(const std::string& what, const std::function<void(int)>& send) {
    for (const int pipeline : {1, 16, 64}) {
      Exchange(send, pipeline, 4 * kKeys);
      const AllocationFaults counter("varve-io-0");
      Exchange(send, pipeline, 4 * kKeys);
      EXPECT_LE(counter.allocations(), kPieces) << what << ", pipeline of " << pipeline;
    }
  }

  const std::string value_ = std::string(100, 'v');
  TempDir dir_;
  std::unique_ptr<StorageEngine> store_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Pipeline> client_;
};

TEST_F(RequestMemoryTest, GetsAndSetsAllocateNothing) {
  ExpectNoAllocations("SET", [this](int i) { Set(i); });
  ExpectNoAllocations("GET from a write buffer", [this](int i) { Get(i); });
  ExpectNoAllocations("SET and GET by turns", [this](int i) { i % 2 == 0 ? Set(i) : Get(i); });
  ASSERT_TRUE(store_->Flush().ok());
  ExpectNoAllocations("GET from a segment", [this](int i) { Get(i); });
}

TEST_F(RequestMemoryTest, TheCounterCounts) {
  const AllocationFaults counter("varve-io-0");
  Exchange([this](int) { client_->Send({"CONFIG", "GET", "*"}); }, 1, 1);
  Exchange([this](int i) { client_->Send({"SET", Key(i), std::string(1 << 20, 'v')}); }, 1, 1);
  EXPECT_GT(counter.allocations(), 0u);
}

}  // namespace
}  // namespace varve::testing
