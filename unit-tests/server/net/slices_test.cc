// Commands that read many keys: they leave the pool to others, end with their client or the server,
// and keep no snapshot for ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "server/commands/command_table.h"
#include "server/scans/key_scan.h"
#include "server/scans/range_stream.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/rounds.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::RawConnection;
using testing::Resp;
using testing::TestServer;

constexpr int kSlicedKeys = 100000;
// Of such commands in one batch take 10 s at least, where nothing ends them.
constexpr uint64_t kManyCommands = 1000;

std::string Repeat(const std::string& request, uint64_t times) {
  std::string requests;
  for (uint64_t i = 0; i < times; ++i) requests += request;
  return requests;
}

class SlicesTest : public ::testing::Test {
 protected:
  void Start(ServerOptions options) {
    server_ = std::make_unique<TestServer>(options);
    const std::string value(8, 'v');
    for (int i = 0; i < kSlicedKeys;) {
      WriteBatch batch;
      for (int end = std::min(i + 1000, kSlicedKeys); i < end; ++i)
        batch.Put(std::to_string(1000000 + i), value);
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
  // Only our own client is left.
  bool Alone() const { return server_->state().clients.connected.load() == 1; }
  // How many commands of the name have been done.
  uint64_t Done(const char* name) const {
    return server_->state().statistics.commands.Read()[FindCommand(name)->index].calls;
  }

  std::unique_ptr<TestServer> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(SlicesTest, LongCommandsTakeTurnsWithOthers) {
  for (const Execution execution : {Execution::kPool, Execution::kInline}) {
    Start(OneThread(execution));
    const std::vector<std::string> commands = {
        Resp({"COUNT", "-", "+"}), Resp({"RANGE", "-", "+", "LIMIT", "90000", "-1", "KEYS"}),
        Resp({"RANGE", "-", "+", "LIMIT", "99999999", "1"}),
        Resp({"RANGE", "+", "-", "REV", "LIMIT", "99999999", "1"})};
    constexpr uint64_t kAwaited = 5;
    std::vector<std::unique_ptr<RawConnection>> busy;
    for (const std::string& command : commands) {
      busy.push_back(std::make_unique<RawConnection>(server_->port()));
      ASSERT_TRUE(busy.back()->Send(Repeat(command, kManyCommands)));
    }
    EXPECT_EQ(busy[0]->Receive(9), ":100000\r\n");
    for (int i = 0; i < 20; ++i) ASSERT_EQ(**client_->Get("1000000"), std::string(8, 'v'));
    // A client that had to wait for a batch to end would have found its thousand done.
    EXPECT_LT(Done("COUNT"), kManyCommands);
    EXPECT_LT(Done("RANGE"), kManyCommands);
    EXPECT_EQ(busy[0]->Receive(9 * kAwaited), Repeat(":100000\r\n", kAwaited));
    EXPECT_EQ(busy[2]->Receive(4 * kAwaited), Repeat("*0\r\n", kAwaited));
    EXPECT_EQ(busy[3]->Receive(4 * kAwaited), Repeat("*0\r\n", kAwaited));
  }
}

TEST_F(SlicesTest, ALongTransactionTakesTurnsWithOthers) {
  constexpr int kCounts = testing::Rounds(20);  // each takes many slices
  for (const Execution execution : {Execution::kPool, Execution::kInline}) {
    Start(OneThread(execution));
    RawConnection busy(server_->port());
    ASSERT_TRUE(busy.Send(Resp({"MULTI"}) + Resp({"SET", "1", "first"}) +
                          Repeat(Resp({"COUNT", "-", "+"}), kCounts) +
                          Resp({"RANGE", "-", "+", "LIMIT", "0", "1"}) + Resp({"EXEC"})));
    const std::string queued = "+OK\r\n" + Repeat("+QUEUED\r\n", kCounts + 2);
    EXPECT_EQ(busy.Receive(queued.size()), queued);
    for (int i = 0; i < 20; ++i) ASSERT_EQ(**client_->Get("1000000"), std::string(8, 'v'));
    EXPECT_EQ(Done("exec"), 0u) << "a client that had to wait for it would have found it done";
    EXPECT_FALSE(client_->Get("1")->has_value());
    const std::string reply = fmt::format("*{}\r\n+OK\r\n", kCounts + 2) +
                              Repeat(":100001\r\n", kCounts) + "*2\r\n$1\r\n1\r\n$5\r\nfirst\r\n";
    EXPECT_EQ(busy.Receive(reply.size()), reply);
    EXPECT_EQ(**client_->Get("1"), "first");
    EXPECT_EQ(Done("count"), static_cast<uint64_t>(kCounts));
  }
}

TEST_F(SlicesTest, ATransactionThatIsLeftHalfwayHasDoneNothing) {
  Start(OneThread());
  {
    RawConnection busy(server_->port());
    ASSERT_TRUE(busy.Send(Resp({"MULTI"}) + Resp({"SET", "1", "first"}) +
                          Repeat(Resp({"COUNT", "-", "+"}), kManyCommands) + Resp({"EXEC"})));
    const std::string queued = "+OK\r\n" + Repeat("+QUEUED\r\n", kManyCommands + 1);
    EXPECT_EQ(busy.Receive(queued.size()), queued);
    std::string list;
    ASSERT_TRUE(Eventually([&] {
      list = testing::Ask(*client_, {"CLIENT", "LIST"});
      return list.find("cmd=exec") != std::string::npos;
    })) << list;
    EXPECT_NE(list.find(" multi=-1 "), std::string::npos) << list;
    busy.Vanish();
  }
  ASSERT_TRUE(Eventually([&] { return Alone(); }));
  EXPECT_FALSE(client_->Get("1")->has_value());
}

TEST_F(SlicesTest, AReaderDoesNotWaitForAnExclusiveWriter) {
  ServerOptions options = OneThread(Execution::kAdaptive);
  Start(options);
  const std::vector<std::vector<std::string>> writes = {
      {"SET", "a", "1"},        {"INCR", "b"},
      {"SELECT", "3"},          {"SET", "c", "1", "EX", "100"},
      {"MOVE", "1000001", "5"}, {"GETEX", "1000002", "EX", "100"}};
  std::vector<std::unique_ptr<RawConnection>> writers;
  // While the store is behind with its work, a batch that writes goes to the pool as a whole.
  ASSERT_TRUE(Eventually([&] { return server_->store().pressure() <= kFreePressure; }));
  std::unique_ptr<ExclusiveWrite> exclusive = server_->store().BeginExclusiveWrite();
  for (const auto& write : writes) {
    writers.push_back(std::make_unique<RawConnection>(server_->port()));
    ASSERT_TRUE(writers.back()->Send(Resp({"PING"}) + Resp(write) + Resp({"PING"})));
    EXPECT_EQ(writers.back()->Receive(7), "+PONG\r\n");
  }
  RawConnection together(server_->port());
  ASSERT_TRUE(together.Send(Repeat(Resp({"SET", "d", "1"}), 3)));
  for (int i = 0; i < 20; ++i) ASSERT_EQ(**client_->Get("1000000"), std::string(8, 'v'));
  EXPECT_FALSE(client_->Get("a")->has_value());
  exclusive.reset();
  EXPECT_EQ(together.Receive(15), Repeat("+OK\r\n", 3));
  for (size_t i = 0; i < writes.size(); ++i) {
    const std::string reply = i == 1 || i == 4 ? ":1\r\n"
                              : i == 5         ? "$8\r\nvvvvvvvv\r\n"
                                               : "+OK\r\n";
    EXPECT_EQ(writers[i]->Receive(reply.size() + 7), reply + "+PONG\r\n") << writes[i][0];
  }
  EXPECT_EQ(**client_->Get("b"), "1") << "once";
}

TEST_F(SlicesTest, KeysThatStandWithLargeValuesMakeShortSlices) {
  EngineOptions engine = TestServer::SmallEngine();
  engine.value_separation_size = 0;
  TestServer server({}, engine);
  constexpr int kLarge = 10;  // fewer than keys are walked over between two looks at the clock
  for (int i = 0; i < kLarge; ++i) {
    WriteBatch batch;
    batch.Put("k" + std::to_string(i), std::string(8u << 20, 'v'));
    ASSERT_TRUE(server.store().Write({}, &batch).ok());
  }
  // In one run: the step to the first key reads one record of each run.
  ASSERT_TRUE(server.store().Compact({}, {}).ok());
  ServerState& state = const_cast<ServerState&>(server.state());
  const auto slices = [&](ReplyStream&& stream, std::string_view reply) {
    ClientState client;
    ByteBuffer out;
    for (int count = 1;; ++count) {
      CommandContext context(&state, &client, &out);
      if (stream.Produce(context, 1u << 20) != ReplyStream::Progress::kDone) continue;
      EXPECT_TRUE(out.view().starts_with(reply)) << out.view();
      return count;
    }
  };
  EXPECT_GT(slices(ScanStream({.count = 100}), "*2\r\n$1\r\n0\r\n*10\r\n$2\r\nk0\r\n"), 2);
  EXPECT_GT(
      slices(RangeStream(KeyRange(), {.keys_only = true, .pattern = "k*"}), "*10\r\n$2\r\nk0\r\n"),
      2);
  EXPECT_GT(slices(CountStream(KeyRange()), ":10\r\n"), 2);
}

TEST_F(SlicesTest, TheRestOfALongRangeIsCountedInSlicesAtOneSnapshot) {
  Start(OneThread());
  RawConnection connection(server_->port());
  const uint64_t batches = server_->state().statistics.batches_pooled;
  ASSERT_TRUE(connection.Send(Resp({"RANGE", "(1000009", "+", "LIMIT", "10", "80000", "KEYS"})));
  ASSERT_TRUE(Eventually([&] { return server_->state().statistics.batches_pooled > batches; }));
  std::string expected = "*80000\r\n";
  for (int i = 0; i < 80000; ++i) expected += "$7\r\n" + std::to_string(1000020 + i) + "\r\n";
  // Keys that come while it is counted don't show.
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(client_->Put("105000" + std::to_string(i) + "x", "new").ok());
  EXPECT_TRUE(connection.Receive(expected.size()) == expected);
}

TEST_F(SlicesTest, ALostConnectionEndsItsCounts) {
  for (const Execution execution : {Execution::kPool, Execution::kInline}) {
    Start(OneThread(execution));
    RawConnection connection(server_->port());
    ASSERT_TRUE(connection.Send(Repeat(Resp({"COUNT", "-", "+"}), kManyCommands)));
    ASSERT_TRUE(Eventually([&] { return Done("COUNT") > 0; }));
    connection.Vanish();
    EXPECT_TRUE(Eventually([&] { return Alone(); }));
    EXPECT_LT(Done("COUNT"), kManyCommands);
    EXPECT_EQ(client_->Ping(), absl::OkStatus());
  }
}

TEST_F(SlicesTest, AStopEndsCounts) {
  Start(OneThread());
  RawConnection connection(server_->port());
  ASSERT_TRUE(connection.Send(Repeat(Resp({"COUNT", "-", "+"}), kManyCommands)));
  ASSERT_TRUE(Eventually([&] { return Done("COUNT") > 0; }));
  server_->server().Stop();
  EXPECT_LT(Done("COUNT"), kManyCommands);
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
  EXPECT_TRUE(Eventually([&] { return Alone(); }));
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
  EXPECT_TRUE(Eventually(
      [&] { return active->Ping().ok() && server.state().clients.connected.load() == 1u; }));
  EXPECT_EQ(silent.ReceiveAll(), "");
  EXPECT_TRUE(silent.closed());
  EXPECT_EQ(half.ReceiveAll(), "");
  EXPECT_TRUE(half.closed());
}

}  // namespace
}  // namespace varve
