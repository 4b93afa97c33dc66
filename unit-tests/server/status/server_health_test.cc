// The conditions that limit a server are brought about, and STATUS names them; health over HTTP
// while the disk hangs.
#include "server/status/server_health.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/status/status_document.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/held_reads.h"
#include "unit-tests/testing/held_segments.h"

namespace varve {
namespace {

using testing::Ask;
using testing::Eventually;
using testing::FaultFileSystem;
using testing::HeldSegments;
using testing::TestServer;

EngineOptions With(FileSystem* files) {
  EngineOptions engine = TestServer::SmallEngine();
  engine.sync = Durability::kNone;
  engine.file_system = files;
  return engine;
}

// What follows `name` in the reply to STATUS, up to the next blank or parenthesis.
std::string StatusWord(Client& client, const std::string& name) {
  const std::string reply = Ask(client, {"STATUS"});
  const size_t at = reply.find(" " + name + " ");
  if (at == std::string::npos) return reply;
  const size_t begin = reply.find_first_not_of(" (", at + name.size() + 2);
  return reply.substr(begin, reply.find_first_of(" )", begin) - begin);
}

std::string LimitWord(Client& client) {
  const std::string reply = Ask(client, {"STATUS"});
  const std::string_view before = "limited_by (id ";
  const size_t begin = reply.find(before) + before.size();
  return reply.substr(begin, reply.find(' ', begin) - begin);
}

// Writes values of 10 kB without waiting for the replies, until told to end.
class Writer {
 public:
  explicit Writer(const TestServer& server) : client_(server.Connect()) {
    thread_ = std::thread([this] {
      for (int i = 0; !ends_; ++i)
        Ask(*client_, {"SET", "key" + std::to_string(i % 1000), std::string(10'000, 'v')});
    });
  }
  ~Writer() {
    ends_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> ends_{false};
  std::unique_ptr<Client> client_;
  std::thread thread_;
};

TEST(ServerHealthTest, NothingLimitsAServerAtRest) {
  TestServer server;
  const std::unique_ptr<Client> client = server.Connect();
  EXPECT_EQ(StatusWord(*client, "healthy"), "1");
  EXPECT_TRUE(Eventually([&] { return LimitWord(*client) == "nothing"; }));
}

TEST(ServerHealthTest, AFullDiskAndRoomAgain) {
  FaultFileSystem files;
  TestServer server({}, With(&files));
  const std::unique_ptr<Client> client = server.Connect();
  files.SetFreeBytes(0);
  EXPECT_TRUE(Eventually([&] {
    return Ask(*client, {"SET", "key", std::string(10'000, 'v')}).starts_with("!MISCONF");
  }));
  EXPECT_TRUE(Eventually([&] { return LimitWord(*client) == "disk_full"; }));
  EXPECT_EQ(StatusWord(*client, "healthy"), "0");
  const StoreObservation seen = server.store().Observe();
  EXPECT_EQ(LivenessProblem(server.state()), "") << "a full disk is no reason to start anew";
  std::string failed;
  for (const HealthCheck& check : HealthChecks(server.state(), seen))
    failed += check.problem.empty() ? "" : std::string(check.name) + " " + check.problem + "; ";
  EXPECT_EQ(failed, "log_writable ENOSPC: the disk is full; disk_space ENOSPC: the disk is full; ");
  files.SetFreeBytes(FaultFileSystem::kUnlimited);
  EXPECT_TRUE(Eventually([&] { return LimitWord(*client) != "disk_full"; }));
  EXPECT_TRUE(Eventually([&] { return StatusWord(*client, "healthy") == "1"; }));
}

TEST(ServerHealthTest, FlushesThatAreBehind) {
  HeldSegments files("varve-flush");
  TestServer server({}, With(&files));
  const std::unique_ptr<Client> client = server.Connect();
  {
    const Writer writer(server);
    EXPECT_TRUE(Eventually([&] { return LimitWord(*client) == "flush"; }));
    files.Release();
  }
  EXPECT_TRUE(Eventually([&] { return LimitWord(*client) == "nothing"; }));
}

TEST(ServerHealthTest, MergesThatAreBehind) {
  HeldSegments files("varve-merge");
  TestServer server({}, With(&files));
  const std::unique_ptr<Client> client = server.Connect();
  {
    const Writer writer(server);
    EXPECT_TRUE(Eventually([&] { return LimitWord(*client) == "merge"; }));
    files.Release();
  }
}

TEST(ServerHealthTest, AsManyClientsAsThereMayBe) {
  ServerOptions options;
  options.max_clients = 1;
  TestServer server(options);
  const std::unique_ptr<Client> client = server.Connect();
  EXPECT_EQ(LimitWord(*client), "clients");
}

TEST(ServerHealthTest, AnIoThreadThatIsBusy) {
  ServerOptions options;
  options.execution = Execution::kInline;
  options.io_threads = 1;
  TestServer server(options);
  const std::unique_ptr<Client> client = server.Connect();
  const std::string text(1500, 'a');
  ASSERT_EQ(Ask(*client, {"MSET", "a", text, "b", text}), "OK");
  constexpr size_t kAtOnce = 200;
  std::string requests;
  for (size_t i = 0; i < kAtOnce; ++i) requests += testing::Resp({"LCS", "a", "b", "LEN"});
  std::atomic<bool> ends{false};
  std::thread asker([&] {
    testing::RawConnection connection(server.port());
    while (!ends && connection.Send(requests))
      connection.Receive(kAtOnce * std::string_view(":1500\r\n").size());
  });
  // Asked beside the I/O thread, which has no time.
  EXPECT_TRUE(Eventually([&] {
    return LimitOf(LookAtLoad(server.server().state(), server.store().Observe())).id == "cpu";
  }));
  ends = true;
  asker.join();
}

TEST(ServerHealthTest, WhileTheDiskHangsStatusSaysSo) {
  FaultFileSystem files;
  EngineOptions engine = With(&files);
  engine.sync = Durability::kAlways;
  TestServer server({}, engine);
  const std::unique_ptr<Client> client = server.Connect();
  ASSERT_TRUE(client->Put("key", "1").ok());
  testing::RawConnection writer(server.port());
  files.StandStill([&] {
    ASSERT_TRUE(writer.Send(testing::Resp({"SET", "key", "2"})));
    ServerState& state = server.server().state();
    const auto limit = [&] {
      const StoreObservation seen = server.store().Observe();
      return std::string(LimitOf(LookAtLoad(state, seen)).id);
    };
    EXPECT_TRUE(Eventually([&] { return limit() == "sync"; }));
    EXPECT_TRUE(
        Eventually([&] { return server.store().Observe().sync_wait_nanos > 1'000'000'000; }));
    EXPECT_EQ(LivenessProblem(state), "");
    std::string failed;
    for (const HealthCheck& check : HealthChecks(state, server.store().Observe()))
      failed += check.problem.empty() ? "" : std::string(check.name);
    EXPECT_EQ(failed, "log_writable");
    EXPECT_NE(StatusJson(StatusDocument(state)).find("\"id\":\"sync\""), std::string::npos);
  });
  EXPECT_EQ(writer.Receive(5), "+OK\r\n");
}

TEST(ServerHealthTest, AColdReadThatHangsIsNoReasonToStartAnew) {
  testing::HeldReads files;
  EngineOptions engine = With(&files);
  engine.block_cache_size = 0;
  ServerOptions options;
  options.execution = Execution::kInline;
  options.io_threads = 1;
  TestServer server(options, engine);
  const std::unique_ptr<Client> client = server.Connect();
  ASSERT_TRUE(client->Put("key", "value").ok());
  ASSERT_TRUE(server.store().Flush().ok());
  testing::RawConnection reader(server.port());
  ServerState& state = server.server().state();
  const LoopTimes& loop = state.statistics.loops[0];
  files.Hold();
  ASSERT_TRUE(reader.Send(testing::Resp({"GET", "key"})));
  EXPECT_TRUE(Eventually(
      [&] { return loop.disk().PresentNanos(std::chrono::steady_clock::now()) > 1'100'000'000; }));
  EXPECT_EQ(loop.SilentFor(std::chrono::steady_clock::now() + std::chrono::minutes(1)).count(), 0);
  EXPECT_EQ(LivenessProblem(state), "");
  EXPECT_TRUE(server.server().Responsive());
  EXPECT_EQ(LimitOf(LookAtLoad(state, server.store().Observe())).id, "sync");
  for (const HealthCheck& check : HealthChecks(state, server.store().Observe()))
    EXPECT_EQ(check.problem.starts_with("the disk: an I/O loop has waited for "),
              check.name == "io_loops")
        << check.name << ": " << check.problem;
  files.Release();
  EXPECT_EQ(reader.Receive(11), "$5\r\nvalue\r\n");
}

TEST(ServerHealthTest, APoolWhoseThreadsAllWorkLimits) {
  ServerOptions options;
  options.threads = 2;
  TestServer server(options, TestServer::SmallEngine());
  ServerState& state = server.server().state();
  const auto limit = [&] { return LimitOf(LookAtLoad(state, server.store().Observe())); };
  std::promise<void> ends;
  const std::shared_future<void> ended = ends.get_future().share();
  ASSERT_TRUE(server.server().RunOnPool([ended] { ended.wait(); }));
  EXPECT_TRUE(Eventually([&] { return LookAtLoad(state, server.store().Observe()).seconds > 1; }));
  EXPECT_EQ(limit().id, "nothing") << "a thread is left";
  ASSERT_TRUE(server.server().RunOnPool([ended] { ended.wait(); }));
  EXPECT_TRUE(Eventually([&] { return limit().id == "cpu"; }));
  EXPECT_TRUE(limit().text.starts_with(
      "Requests wait for a thread: each of the 2 threads of the pool is busy for at least "))
      << limit().text;
  ends.set_value();
  EXPECT_TRUE(Eventually([&] { return limit().id == "nothing"; }));
}

TEST(ServerHealthTest, AFailedLogIsNotHealthy) {
  FaultFileSystem files;
  EngineOptions engine = With(&files);
  engine.sync = Durability::kAlways;
  TestServer server({}, engine);
  server.ExpectUncleanClose();
  const std::unique_ptr<Client> client = server.Connect();
  files.Fail(testing::FileOperation::kSync, 1, absl::InternalError("EIO"),
             FaultFileSystem::kUnlimited, ".log");
  EXPECT_FALSE(client->Put("key", "1").ok());
  EXPECT_EQ(StatusWord(*client, "healthy"), "0");
  EXPECT_EQ(LimitWord(*client), "sync");
}

}  // namespace
}  // namespace varve
