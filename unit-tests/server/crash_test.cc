// server_main as a process: kill -9 while it is written to, signals, a second server on its
// directory, foreign clients.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::Process;
using testing::RawConnection;
using testing::ReadFile;
using testing::Resp;
using testing::ServerProcess;
using testing::TempDir;

std::unique_ptr<Client> ConnectToSurvivor(const ServerProcess& server) {
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect("127.0.0.1", server.port(), std::chrono::seconds(60));
  EXPECT_TRUE(client.ok()) << client.status() << server.log();
  return client.ok() ? *std::move(client) : nullptr;
}

// One writer's side of the bargain: which of its keys were acknowledged.
struct Writer {
  std::string name;
  int sent = 0;          // SETs and MSETs under way or done
  int acknowledged = 0;  // of them, in order

  std::string Key(int i) const { return name + ":" + std::to_string(i); }
  static std::string Value(int i) {
    return std::to_string(i) + std::string(static_cast<size_t>(i * 37 % 900), 'v');
  }
  static bool IsPair(int i) { return i % 5 == 4; }

  // Writes, 16 requests ahead, until the server is gone.
  void Run(Client* client) {
    while (true) {
      for (int i = 0; i < 16; ++i, ++sent) {
        const std::string key = Key(sent);
        const std::string value = Value(sent);
        const absl::Status status = IsPair(sent)
                                        ? client->Send({"MSET", key + "a", value, key + "b", value})
                                        : client->Send({"SET", key, value});
        if (!status.ok()) return;
      }
      for (int i = 0; i < 16; ++i) {
        const absl::StatusOr<Reply> reply = client->Receive();
        if (!reply.ok()) return;
        ASSERT_EQ(reply->text, "OK");
        ++acknowledged;
      }
    }
  }

  void Check(Client* client) const {
    for (int i = 0; i < sent; ++i) {
      if (IsPair(i)) {
        const absl::StatusOr<std::optional<std::string>> first = client->Get(Key(i) + "a");
        const absl::StatusOr<std::optional<std::string>> second = client->Get(Key(i) + "b");
        ASSERT_TRUE(first.ok() && second.ok());
        ASSERT_EQ(first->has_value(), second->has_value()) << "half an MSET: " << Key(i);
        if (i < acknowledged) {
          ASSERT_TRUE(first->has_value()) << "lost: " << Key(i);
        }
        if (first->has_value()) {
          ASSERT_EQ(**first + **second, Value(i) + Value(i));
        }
      } else {
        const absl::StatusOr<std::optional<std::string>> value = client->Get(Key(i));
        ASSERT_TRUE(value.ok()) << value.status();
        if (i < acknowledged) {
          ASSERT_TRUE(value->has_value()) << "lost: " << Key(i);
        }
        if (value->has_value()) {
          ASSERT_EQ(**value, Value(i));
        }
      }
    }
  }
};

class KillTest : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Modes, KillTest, ::testing::Values("always", "everysec", "no"));

TEST_P(KillTest, EveryAcknowledgedWriteSurvivesAndEachBatchIsWhole) {
  TempDir dir;
  const std::vector<std::string> flags = {"--sync=" + GetParam(), "--write-buffer-size=256KiB"};
  std::mt19937 random(std::random_device{}());
  std::vector<Writer> writers;
  for (int cycle = 0; cycle < 4; ++cycle) {
    ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"), flags);
    ASSERT_NE(server.port(), 0) << server.log();
    const std::unique_ptr<Client> reader = ConnectToSurvivor(server);
    for (const Writer& writer : writers) writer.Check(reader.get());
    if (HasFatalFailure()) return;

    const size_t before = writers.size();
    for (int t = 0; t < 4; ++t)
      writers.push_back({std::to_string(cycle) + "-" + std::to_string(t)});
    std::vector<std::thread> threads;
    for (size_t i = before; i < writers.size(); ++i) {
      std::unique_ptr<Client> client = ConnectToSurvivor(server);
      ASSERT_NE(client, nullptr);
      threads.emplace_back(
          [&writers, i, client = std::move(client)] { writers[i].Run(client.get()); });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(30 + random() % 200));
    server.process().Kill(SIGKILL);
    EXPECT_EQ(server.process().Wait(), 1000 + SIGKILL);
    for (std::thread& thread : threads) thread.join();
  }
  ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"), flags);
  ASSERT_NE(server.port(), 0) << server.log();
  const std::unique_ptr<Client> reader = ConnectToSurvivor(server);
  int acknowledged = 0;
  for (const Writer& writer : writers) {
    writer.Check(reader.get());
    acknowledged += writer.acknowledged;
  }
  EXPECT_GT(acknowledged, 0);
}

TEST_P(KillTest, AHundredThousandPutsSurviveAKill) {
  constexpr int kPuts = 100000;
  constexpr int kAhead = 1000;
  TempDir dir;
  const std::vector<std::string> flags = {"--sync=" + GetParam(), "--write-buffer-size=1MiB"};
  {
    ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"), flags);
    ASSERT_NE(server.port(), 0) << server.log();
    const std::unique_ptr<Client> client = ConnectToSurvivor(server);
    for (int i = 0; i < kPuts; i += kAhead) {
      for (int j = i; j < i + kAhead; ++j) {
        ASSERT_TRUE(
            client->Send({"PUT", "key" + std::to_string(j), "value" + std::to_string(j)}).ok());
      }
      for (int j = 0; j < kAhead; ++j) ASSERT_EQ(client->Receive()->text, "OK");
    }
    server.process().Kill(SIGKILL);
    server.process().Wait();
  }
  ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"), flags);
  ASSERT_NE(server.port(), 0) << server.log();
  const std::unique_ptr<Client> client = ConnectToSurvivor(server);
  EXPECT_EQ(*client->Count("-", "+"), kPuts);
  for (int i = 0; i < kPuts; i += kAhead) {
    for (int j = i; j < i + kAhead; ++j)
      ASSERT_TRUE(client->Send({"GET", "key" + std::to_string(j)}).ok());
    for (int j = i; j < i + kAhead; ++j)
      ASSERT_EQ(client->Receive()->text, "value" + std::to_string(j));
  }
}

TEST(SignalTest, SigtermAndSigintStopGracefully) {
  for (const int signal : {SIGTERM, SIGINT}) {
    TempDir dir;
    ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"));
    ASSERT_NE(server.port(), 0) << server.log();
    const std::unique_ptr<Client> client = ConnectToSurvivor(server);
    ASSERT_TRUE(client->Put("k", "v").ok());
    server.process().Kill(signal);
    EXPECT_EQ(server.process().Wait(), 0) << server.log();
    EXPECT_FALSE(client->Ping().ok());
    ServerProcess again(VARVE_SERVER_MAIN, dir.File("data"));
    ASSERT_NE(again.port(), 0) << again.log();
    EXPECT_EQ(**ConnectToSurvivor(again)->Get("k"), "v");
  }
}

TEST(SignalTest, ASecondSignalForcesTheEnd) {
  TempDir dir;
  ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"));
  ASSERT_NE(server.port(), 0) << server.log();
  ASSERT_TRUE(ConnectToSurvivor(server)->Put("large", std::string(16u << 20, 'x')).ok());
  // Takes no replies, so a graceful stop waits for it.
  RawConnection hanging(server.port(), 64 << 10);
  ASSERT_TRUE(hanging.Send(Resp({"GET", "large"})));
  ASSERT_EQ(hanging.Receive(10).size(), 10u);
  server.process().Kill(SIGTERM);
  ASSERT_TRUE(Eventually([&] { return server.log().find("stopping") != std::string::npos; }))
      << server.log();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(server.process().Running());
  server.process().Kill(SIGTERM);
  EXPECT_EQ(server.process().Wait(), 130);  // a graceful end has another
}

TEST(StartTest, ASecondServerOnTheSameDirectoryRefuses) {
  TempDir dir;
  ServerProcess first(VARVE_SERVER_MAIN, dir.File("data"));
  ASSERT_NE(first.port(), 0) << first.log();
  Process second(VARVE_SERVER_MAIN, {"--dir=" + dir.File("data"), "--port=0", "--http-port=0"},
                 dir.File("second.log"));
  EXPECT_EQ(second.Wait(), 1) << ReadFile(dir.File("second.log"));
  EXPECT_NE(ReadFile(dir.File("second.log")).find(dir.File("data")), std::string::npos);
  EXPECT_EQ(ConnectToSurvivor(first)->Ping(), absl::OkStatus());
}

TEST(StartTest, WrongSettingsAreNamed) {
  TempDir dir;
  const std::vector<std::vector<std::string>> wrong = {{"--sync=sometimes"},
                                                       {"--write-buffer-size=lots"},
                                                       {"--value-separation-size=2TiB"},
                                                       {"--nonsense=1"},
                                                       {"--port"},
                                                       {"--port=70000"},
                                                       {"--loglevel=loud"},
                                                       {"--maxclients=0"},
                                                       {"--execution=fast"},
                                                       {"stray"}};
  for (const std::vector<std::string>& flags : wrong) {
    Process process(VARVE_SERVER_MAIN, flags, dir.File("log"));
    EXPECT_EQ(process.Wait(), 2) << flags[0];
    const std::string name = flags[0].substr(0, flags[0].find('='));
    EXPECT_NE(ReadFile(dir.File("log")).find(name), std::string::npos) << ReadFile(dir.File("log"));
  }
  Process help(VARVE_SERVER_MAIN, {"--help"}, dir.File("log"));
  EXPECT_EQ(help.Wait(), 0);
  for (const char* flag : {"--bind=", "--port=7777", "--sync=always", "--write-buffer-size=64MiB",
                           "--maxclients=10000"}) {
    EXPECT_NE(ReadFile(dir.File("log")).find(flag), std::string::npos) << flag;
  }
}

// Sanitizers reserve more address space than any of these limits.
#if !defined(VARVE_WATCHED_MEMORY)
TEST(StartTest, TooLittleMemoryForItsThreadsIsSaidInWords) {
  TempDir dir;
  Process process(
      "sh",
      {"-c", "ulimit -v 1500000; exec \"$0\" --threads=256 --port=0 --http-port=0 --dir=\"$1\"",
       VARVE_SERVER_MAIN, dir.File("data")},
      dir.File("log"));
  EXPECT_EQ(process.Wait(), 1);
  EXPECT_NE(ReadFile(dir.File("log")).find("--threads=256: the system gives only"),
            std::string::npos)
      << ReadFile(dir.File("log"));
}

TEST(StartTest, RunningOutOfMemoryIsSaidInWordsAndLosesNothing) {
  TempDir dir;
  const std::string log = dir.File("log");
  Process process(
      "sh",
      {"-c", "ulimit -v 700000; exec \"$0\" --threads=2 --port=0 --http-port=0 --dir=\"$1\"",
       VARVE_SERVER_MAIN, dir.File("data")},
      log);
  constexpr std::string_view kBefore = " on 127.0.0.1:";
  size_t at = std::string::npos;
  for (int i = 0; i < 2000 && at == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    at = ReadFile(log).find(kBefore);
  }
  ASSERT_NE(at, std::string::npos) << ReadFile(log);
  const auto port = static_cast<uint16_t>(std::atoi(ReadFile(log).c_str() + at + kBefore.size()));
  ASSERT_TRUE((*Client::Connect("127.0.0.1", port, std::chrono::seconds(10)))->Put("k", "v").ok());
  RawConnection greedy(port);
  greedy.Send("*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$500000000\r\n" + std::string(500'000'000, 'x') +
              "\r\n");
  EXPECT_EQ(process.Wait(), 1) << ReadFile(log);
  EXPECT_NE(ReadFile(log).find("server_main: out of memory"), std::string::npos) << ReadFile(log);
  ServerProcess again(VARVE_SERVER_MAIN, dir.File("data"));
  ASSERT_NE(again.port(), 0) << again.log();
  EXPECT_EQ(**ConnectToSurvivor(again)->Get("k"), "v");
}
#endif

TEST(ForeignClientsTest, RedisCliAndRedisBenchmarkWork) {
  if (std::system("command -v redis-cli redis-benchmark >/dev/null") != 0)
    GTEST_SKIP() << "redis-tools are not installed";
  TempDir dir;
  ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"));
  ASSERT_NE(server.port(), 0) << server.log();
  const std::string port = std::to_string(server.port());
  const std::string out = dir.File("out");
  const auto cli = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"-p", port});
    EXPECT_EQ(Process("redis-cli", arguments, out).Wait(), 0);
    return ReadFile(out);
  };
  EXPECT_EQ(cli({"SET", "city:1", "Z\xc3\xbcrich West"}), "OK\n");
  EXPECT_EQ(cli({"GET", "city:1"}), "Z\xc3\xbcrich West\n");
  EXPECT_EQ(cli({"-3", "RANGE", "-", "+", "KEYS"}), "city:1\n");
  EXPECT_NE(cli({"INFO"}).find("varve_version"), std::string::npos);
  for (const char* pipeline : {"1", "16"}) {
    Process benchmark("redis-benchmark",
                      {"-p", port, "-t", "ping,set,get,incr,mset", "-n", "5000", "-r", "1000", "-P",
                       pipeline, "-q"},
                      out);
    EXPECT_EQ(benchmark.Wait(), 0) << ReadFile(out);
    const std::string text = ReadFile(out);
    EXPECT_EQ(text.find("WARN"), std::string::npos) << text;
    EXPECT_EQ(text.find("ERR"), std::string::npos) << text;
    EXPECT_NE(text.find("MSET (10 keys): "), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace varve
