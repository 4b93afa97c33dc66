// What clients that listen may take: memory for what they listen to, and the time of others while
// patterns are tried and while they leave.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/clients/client_memory.h"
#include "server/clients/pubsub.h"
#include "unit-tests/server/test_server.h"

namespace varve {
namespace {

using testing::RawConnection;
using testing::Resp;
using testing::TestServer;

constexpr int kHostile = 300;
// Of others, while a command of one client runs that takes hundreds of milliseconds.
constexpr int kTurns = 10;

// Patterns that take long to match, and don't.
std::string HostilePattern(int i) {
  return "*" + std::string(400, 'a') + "b" + std::to_string(1000 + i);
}
std::string LongName(int i = 0) {
  return std::string(PubSub::kMaxChannelName - 4, 'a') + std::to_string(1000 + i);
}

// Subscribes `connection` and takes the confirmations.
void Listen(const TestServer& server, RawConnection* connection, PubSub::Kind kind,
            const std::vector<std::string>& names) {
  std::vector<std::string> request = {kind == PubSub::Kind::kPattern ? "PSUBSCRIBE" : "SUBSCRIBE"};
  request.insert(request.end(), names.begin(), names.end());
  size_t size = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    size += Resp({request[0], names[i]}).size() + 2 + std::to_string(i + 1).size() + 1;
  }
  std::thread sending([&] { EXPECT_TRUE(connection->Send(Resp(request))); });
  const std::string confirmed = connection->Receive(size);
  sending.join();
  EXPECT_EQ(confirmed.size(), size);
  EXPECT_EQ(server.state().clients.pubsub.Count(kind), names.size());
}

// How often `other` was answered `reply` while `busy` waited for the reply to its request.
int TurnsWhile(RawConnection* busy, const std::string& request, const std::string& busy_reply,
               RawConnection* other, const std::string& other_request, const std::string& reply) {
  std::atomic<bool> answered{false};
  EXPECT_TRUE(busy->Send(request));
  std::thread waiting([&] {
    EXPECT_EQ(busy->Receive(busy_reply.size()), busy_reply);
    answered = true;
  });
  int turns = 0;
  for (; !answered; ++turns) {
    EXPECT_TRUE(other->Send(other_request));
    EXPECT_EQ(other->Receive(reply.size()), reply);
  }
  waiting.join();
  return turns;
}

TEST(SubscriberLimitsTest, PatternsOfOthersLeaveTheThreadToThem) {
  TestServer server;
  RawConnection hostile(server.port()), publisher(server.port()), other(server.port());
  std::vector<std::string> patterns;
  for (int i = 0; i < kHostile; ++i) patterns.push_back(HostilePattern(i));
  patterns.push_back("a*");
  Listen(server, &hostile, PubSub::Kind::kPattern, patterns);
  EXPECT_GT(TurnsWhile(&publisher, Resp({"PUBLISH", LongName(), "m"}), ":1\r\n", &other, "PING\r\n",
                       "+PONG\r\n"),
            kTurns);
}

TEST(SubscriberLimitsTest, AMessageGoesOnWhereItStopped) {
  TestServer server;
  RawConnection listener(server.port());
  Listen(server, &listener, PubSub::Kind::kPattern, {"*", "c*", "d", "c"});
  const std::string subscribe = "SUBSCRIBE c\r\n";
  const std::string confirmed = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:5\r\n";
  ASSERT_TRUE(listener.Send(subscribe));
  EXPECT_EQ(listener.Receive(confirmed.size()), confirmed);
  PubSub& pubsub = const_cast<ServerState&>(server.state()).clients.pubsub;
  PubSub::Publication publication{.channel = "c", .message = "m"};
  int stops = 0;
  while (!pubsub.Publish(&publication, [](size_t) { return true; })) ++stops;
  EXPECT_EQ(stops, 8);  // after each of four patterns and of four deliveries
  EXPECT_EQ(publication.deliveries, 4u);
  std::string messages = "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n";
  for (const std::string pattern : {"$1\r\n*", "$1\r\nc", "$2\r\nc*"}) {
    messages += "*4\r\n$8\r\npmessage\r\n" + pattern + "\r\n$1\r\nc\r\n$1\r\nm\r\n";
  }
  EXPECT_EQ(listener.Receive(messages.size()), messages);
}

TEST(SubscriberLimitsTest, AMessageToManyLeavesTheThreadToOthers) {
  constexpr rlim_t kListeners = 3000;
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < 3 * kListeners) GTEST_SKIP() << "too few files may be open";
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ServerOptions options;
  options.io_threads = 1;
  TestServer server(options);
  RawConnection publisher(server.port()), other(server.port());
  std::vector<std::unique_ptr<RawConnection>> listeners;
  for (rlim_t i = 0; i < kListeners; ++i) {
    listeners.push_back(std::make_unique<RawConnection>(server.port()));
    ASSERT_TRUE(listeners.back()->Send("SUBSCRIBE c\r\nSSUBSCRIBE c\r\n"));
    ASSERT_EQ(listeners.back()->Receive(62).size(), 62u);
  }
  for (const std::string_view kind : {"", "S"}) {
    const std::string publish = std::string(kind) + "PUBLISH c m\r\n";
    EXPECT_GT(TurnsWhile(&publisher, publish, ":3000\r\n", &other, "PING\r\n", "+PONG\r\n"),
              kTurns / 2);
    const std::string message = Resp({kind.empty() ? "message" : "smessage", "c", "m"});
    for (const auto& listener : listeners) ASSERT_EQ(listener->Receive(message.size()), message);
  }
}

TEST(SubscriberLimitsTest, WhoeverComesOrGoesMeanwhileChangesNothingForOthers) {
  LiveOutputLimits limits(OutputLimits{});
  ClientMemory memory;
  PubSub pubsub(&memory);
  std::vector<std::unique_ptr<Mailbox>> mailboxes;
  const auto join = [&] {
    mailboxes.push_back(std::make_unique<Mailbox>());
    mailboxes.back()->Open(&limits, [] {});
    pubsub.Subscribe(PubSub::Kind::kChannel, "c", mailboxes.back().get());
    pubsub.Subscribe(PubSub::Kind::kPattern, "c*", mailboxes.back().get());
  };
  const auto leave = [&](std::unique_ptr<Mailbox> mailbox) {
    pubsub.Unsubscribe(PubSub::Kind::kChannel, "c", mailbox.get());
    pubsub.Unsubscribe(PubSub::Kind::kPattern, "c*", mailbox.get());
  };
  constexpr size_t kStay = 500;
  for (size_t i = 0; i < 2 * kStay; ++i) join();
  PubSub::Publication publication{.channel = "c", .message = "m"};
  size_t stops = 0;
  while (!pubsub.Publish(&publication, [](size_t) { return true; })) {
    ++stops;
    if (mailboxes.size() > kStay) leave(std::move(mailboxes.back()));
    if (mailboxes.size() > kStay) mailboxes.pop_back();
    if (stops % 7 == 0) {
      join();
      std::swap(mailboxes.back(), mailboxes[kStay]);
    }
  }
  EXPECT_GT(stops, 2 * kStay);
  const std::string both = Resp({"message", "c", "m"}) + Resp({"pmessage", "c*", "c", "m"});
  for (size_t i = 0; i < kStay; ++i) {
    ByteBuffer got;
    (void)mailboxes[i]->TakeAll(&got, 2);
    ASSERT_EQ(got.view(), both) << i;
  }
  // Everybody goes while the message is on its way to them.
  PubSub::Publication last{.channel = "c", .message = "m"};
  EXPECT_FALSE(pubsub.Publish(&last, [](size_t) { return true; }));
  for (auto& mailbox : mailboxes) leave(std::move(mailbox));
  EXPECT_TRUE(pubsub.Publish(&last, [](size_t) { return true; }));
  EXPECT_EQ(last.deliveries, 1u);
}

TEST(SubscriberLimitsTest, WhoeverIsToBeClosedCostsNoMoreCopies) {
  LiveOutputLimits limits({100, 0, std::chrono::seconds(0)});
  ClientMemory memory;
  PubSub pubsub(&memory);
  Mailbox mailbox;
  mailbox.Open(&limits, [] {});
  constexpr int kPatterns = 1000;
  for (int i = 0; i < kPatterns; ++i) {
    pubsub.Subscribe(PubSub::Kind::kPattern, "c*" + std::string(static_cast<size_t>(i), '*'),
                     &mailbox);
  }
  const std::string message(1u << 20, 'm');
  PubSub::Publication publication{.channel = "c", .message = message};
  size_t cost = 0;
  const auto spent = [&](size_t keys) {
    cost += keys;
    return false;
  };
  EXPECT_TRUE(pubsub.Publish(&publication, spent));
  EXPECT_TRUE(mailbox.overflowed());
  EXPECT_EQ(publication.deliveries, static_cast<size_t>(kPatterns));
  EXPECT_LT(cost, 20'000u);                // of a thousand copies: two million
  EXPECT_GT(cost, message.size() / 1024);  // of one
}

TEST(SubscriberLimitsTest, WhoeverListsChannelsHoldsUpNoSubscriber) {
  TestServer server;
  RawConnection listener(server.port()), lister(server.port()), other(server.port());
  std::vector<std::string> names;
  for (int i = 0; i < kHostile; ++i) names.push_back(LongName(i));
  Listen(server, &listener, PubSub::Kind::kChannel, names);
  const std::string turn = "SUBSCRIBE x\r\nUNSUBSCRIBE x\r\n";
  const std::string reply =
      "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:0\r\n";
  EXPECT_GT(TurnsWhile(&lister, Resp({"PUBSUB", "CHANNELS", HostilePattern(0)}), "*0\r\n", &other,
                       turn, reply),
            kTurns);
  const std::string all = Resp(names);
  ASSERT_TRUE(lister.Send(Resp({"PUBSUB", "CHANNELS"})));
  EXPECT_TRUE(lister.Receive(all.size()) == all);
}

TEST(SubscriberLimitsTest, NamesAndPatternsAreShort) {
  TestServer server;
  RawConnection client(server.port());
  const std::string longest(PubSub::kMaxChannelName, 'n');
  const std::string too_long = longest + "n";
  for (const std::string_view command : {"PUBLISH", "SPUBLISH"}) {
    ASSERT_TRUE(client.Send(Resp({std::string(command), longest, "m"}) +
                            Resp({std::string(command), too_long, "m"})));
    const std::string expected = ":0\r\n-ERR a channel's name has at most 1024 bytes\r\n";
    EXPECT_EQ(client.Receive(expected.size()), expected);
  }
  for (const std::string_view command : {"SUBSCRIBE", "SSUBSCRIBE"}) {
    ASSERT_TRUE(client.Send(Resp({std::string(command), too_long})));
    const std::string expected = "-ERR a channel's name has at most 1024 bytes\r\n";
    EXPECT_EQ(client.Receive(expected.size()), expected);
  }
  ASSERT_TRUE(client.Send(Resp({"PSUBSCRIBE", too_long})));
  const std::string expected = "-ERR a pattern has at most 1024 bytes\r\n";
  EXPECT_EQ(client.Receive(expected.size()), expected);
}

std::vector<std::string> ManyNames(int count, size_t size) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.push_back(std::to_string(1000000 + i));
    names.back().resize(size, 'n');
  }
  return names;
}

TEST(SubscriberLimitsTest, NamesAreCountedAndHaveALimit) {
  TestServer server;
  RawConnection client(server.port());
  constexpr int kNames = (16 << 20) / (1024 + 128);
  Listen(server, &client, PubSub::Kind::kChannel, ManyNames(kNames, 1024));
  ASSERT_TRUE(client.Send("SUBSCRIBE x\r\nSUBSCRIBE " + std::string(1000, 'y') + "\r\n"));
  EXPECT_EQ(client.Receive(4), "*3\r\n");  // there is room for a short one
  while (client.Receive(1) != "-") continue;
  EXPECT_EQ(client.Receive(4), "ERR ");
  const ClientMemory& memory = server.state().clients.memory;
  EXPECT_GT(memory.bytes(), 16'000'000u);
  client.Vanish();
  while (server.state().clients.connected > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(memory.bytes(), 0u);
}

TEST(SubscriberLimitsTest, WhoeverListensToMuchLeavesWithoutHoldingUpOthers) {
  constexpr int kNames = 100'000;
  TestServer server;
  const PubSub& pubsub = server.state().clients.pubsub;
  RawConnection other(server.port());
  for (const std::string_view end : {"", "RESET\r\n", "UNSUBSCRIBE\r\n"}) {
    RawConnection listener(server.port());
    Listen(server, &listener, PubSub::Kind::kChannel, ManyNames(kNames, 7));
    if (end.empty()) {
      listener.Vanish();
    } else {
      ASSERT_TRUE(listener.Send(end));
    }
    int answered = 0;  // while it leaves
    for (size_t left = kNames; left > 0; left = pubsub.Count(PubSub::Kind::kChannel)) {
      if (left == kNames) continue;
      ASSERT_TRUE(other.Send("PING\r\n"));
      ASSERT_EQ(other.Receive(7), "+PONG\r\n");
      answered += pubsub.Count(PubSub::Kind::kChannel) > 0 ? 1 : 0;
    }
    EXPECT_GT(answered, 0) << end;
  }
}

}  // namespace
}  // namespace varve
