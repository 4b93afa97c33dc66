// Channels, MONITOR and the modes of a connection, byte for byte.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

#include "server/commands/command_table.h"
#include "server/execution/syntax_arguments.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"

namespace varve {
namespace {

using testing::RawConnection;
using testing::TestServer;

std::string Exchange(RawConnection& connection, const std::string& requests,
                     const std::string& expected) {
  connection.Send(requests);
  return connection.Receive(expected.size());
}

#define EXPECT_REPLY(connection, requests, expected) \
  EXPECT_EQ(Exchange(connection, requests, expected), std::string(expected))

TEST(PubSubTest, MessagesReachSubscribersAndPatternsInBothProtocols) {
  TestServer server;
  RawConnection old_one(server.port()), new_one(server.port()), publisher(server.port());
  EXPECT_REPLY(
      old_one, "SUBSCRIBE x y x\r\n",
      "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\ny\r\n:2\r\n"
      "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:2\r\n");
  new_one.Send("HELLO 3\r\nECHO end\r\n");
  std::string hello;
  while (hello.find("$3\r\nend\r\n") == std::string::npos) hello += new_one.Receive(1);
  EXPECT_REPLY(new_one, "PSUBSCRIBE x*\r\n", ">3\r\n$10\r\npsubscribe\r\n$2\r\nx*\r\n:1\r\n");
  EXPECT_REPLY(publisher, "PUBLISH x hello\r\nPUBLISH z no\r\n", ":2\r\n:0\r\n");
  EXPECT_REPLY(old_one, "", "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$5\r\nhello\r\n");
  EXPECT_REPLY(new_one, "", ">4\r\n$8\r\npmessage\r\n$2\r\nx*\r\n$1\r\nx\r\n$5\r\nhello\r\n");
  EXPECT_REPLY(publisher, "PUBSUB CHANNELS\r\nPUBSUB NUMSUB x q\r\nPUBSUB NUMPAT\r\n",
               "*2\r\n$1\r\nx\r\n$1\r\ny\r\n*4\r\n$1\r\nx\r\n:1\r\n$1\r\nq\r\n:0\r\n:1\r\n");
  // A RESP3 client that hears itself gets the message ahead of the reply.
  EXPECT_REPLY(new_one, "PUBLISH x2 own\r\nPING\r\n",
               ">4\r\n$8\r\npmessage\r\n$2\r\nx*\r\n$2\r\nx2\r\n$3\r\nown\r\n:1\r\n+PONG\r\n");
  EXPECT_REPLY(
      old_one, "UNSUBSCRIBE x\r\nUNSUBSCRIBE\r\nUNSUBSCRIBE\r\nGET k\r\n",
      "*3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\ny\r\n:0\r\n"
      "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n$-1\r\n");
}

TEST(PubSubTest, ARESP2SubscriberMayDoLittleElse) {
  TestServer server;
  RawConnection client(server.port());
  EXPECT_REPLY(client, "SUBSCRIBE x\r\nGET k\r\nCLIENT ID\r\nPING\r\nPING hi\r\nRESET\r\nPING\r\n",
               "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"
               "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / "
               "RESET are allowed in "
               "this context\r\n"
               "-ERR Can't execute 'client|id': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / "
               "QUIT / RESET are "
               "allowed in this context\r\n"
               "*2\r\n$4\r\npong\r\n$0\r\n\r\n*2\r\n$4\r\npong\r\n$2\r\nhi\r\n+RESET\r\n+PONG\r\n");
}

TEST(PubSubTest, MessagesOfOnePublisherStayInOrderAcrossLoops) {
  ServerOptions options;
  options.io_threads = 3;
  TestServer server(options);
  RawConnection subscribers[4] = {RawConnection(server.port()), RawConnection(server.port()),
                                  RawConnection(server.port()), RawConnection(server.port())};
  for (RawConnection& subscriber : subscribers) {
    EXPECT_REPLY(subscriber, "SUBSCRIBE c\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
  }
  std::string requests, expected, replies;
  for (int i = 10000; i < 15000; ++i) {
    requests += "PUBLISH c " + std::to_string(i) + "\r\n";
    expected += "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5\r\n" + std::to_string(i) + "\r\n";
    replies += ":4\r\n";
  }
  RawConnection publisher(server.port());
  std::thread sending([&] { EXPECT_REPLY(publisher, requests, replies); });
  for (RawConnection& subscriber : subscribers)
    EXPECT_TRUE(subscriber.Receive(expected.size()) == expected);
  sending.join();
}

TEST(PubSubTest, AnyThreadMayPublishAndAMessageWaitsForItsSequence) {
  TestServer server;
  RawConnection client(server.port());
  EXPECT_REPLY(client, "SUBSCRIBE c\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
  PubSub& pubsub = const_cast<ServerState&>(server.state()).clients.pubsub;
  const auto publish = [&](std::string_view message, SequenceNumber durable_after) {
    PubSub::Publication publication{
        .channel = "c", .message = message, .durable_after = durable_after};
    EXPECT_TRUE(pubsub.Publish(&publication, [](size_t) { return false; }));
    return publication.deliveries;
  };
  EXPECT_EQ(publish("now", server.store().durable_sequence()), 1u);
  EXPECT_REPLY(client, "", "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\nnow\r\n");
  EXPECT_EQ(publish("later", server.store().durable_sequence() + 1), 1u);
  RawConnection writer(server.port());
  EXPECT_REPLY(writer, "SET k v\r\n", "+OK\r\n");
  EXPECT_REPLY(client, "", "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5\r\nlater\r\n");
}

TEST(PubSubTest, ASlowSubscriberIsClosedAtItsLimit) {
  ServerOptions options;
  options.message_limits.hard = 1u << 20;
  TestServer server(options);
  RawConnection slow(server.port(), 4096);
  EXPECT_REPLY(slow, "SUBSCRIBE c\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
  RawConnection publisher(server.port());
  const std::string request = "PUBLISH c " + std::string(32768, 'x') + "\r\n";
  std::string reply = ":1\r\n";
  int sent = 0;
  for (; sent < 2000 && reply == ":1\r\n"; ++sent) reply = Exchange(publisher, request, ":1\r\n");
  EXPECT_EQ(reply, ":0\r\n");
  EXPECT_GT(sent, 32);
  EXPECT_EQ(server.state().clients.pubsub.Count(PubSub::Kind::kChannel), 0u);
}

TEST(PubSubTest, MonitorShowsCommandsButNoSecrets) {
  TestServer server;
  RawConnection monitor(server.port()), client(server.port());
  EXPECT_REPLY(monitor, "MONITOR\r\n", "+OK\r\n");
  EXPECT_REPLY(client, "SET a \"b\\x00\\n\\\"\"\r\nGET\r\nGET a\r\nGET a\r\n",
               "+OK\r\n-ERR wrong number of arguments for 'get' command\r\n$4\r\nb" +
                   std::string(1, '\0') + "\n\"\r\n$4\r\nb" + std::string(1, '\0') + "\n\"\r\n");
  client.Send("HELLO 2 AUTH default secret\r\nPING\r\n");
  std::string seen;
  while (seen.find("\"PING\"\r\n") == std::string::npos) seen += monitor.Receive(1);
  EXPECT_NE(seen.find("] \"SET\" \"a\" \"b\\x00\\n\\\"\"\r\n"), std::string::npos) << seen;
  EXPECT_EQ(seen.find("secret"), std::string::npos) << seen;
  EXPECT_NE(seen.find("\"HELLO\" \"(redacted)\" \"(redacted)\" \"(redacted)\" \"(redacted)\"\r\n"),
            std::string::npos)
      << seen;
  EXPECT_REPLY(monitor, "GET a\r\nRESET\r\nPING\r\n",
               "-ERR Replica can't interact with the keyspace\r\n+RESET\r\n+PONG\r\n");
  EXPECT_FALSE(server.state().clients.monitors.any());
}

TEST(ClientCommandTest, RepliesCanBeKeptBack) {
  TestServer server;
  RawConnection client(server.port());
  EXPECT_REPLY(client, "CLIENT REPLY OFF\r\nSET k v\r\nGET k\r\nGET k\r\nCLIENT REPLY ON\r\n",
               "+OK\r\n");
  EXPECT_REPLY(client, "CLIENT REPLY SKIP\r\nGET k\r\nGET k\r\n", "$1\r\nv\r\n");
  EXPECT_REPLY(client, "CLIENT REPLY SKIP\r\nRANGE - +\r\nPING\r\n", "+PONG\r\n");
}

TEST(ClientCommandTest, ListsAndKillsByWhatConnectionsAre) {
  ServerOptions options;
  options.io_threads = 2;
  TestServer server(options);
  RawConnection me(server.port()), other(server.port()), listener(server.port());
  EXPECT_REPLY(other, "CLIENT SETNAME other\r\nSET a b\r\n", "+OK\r\n+OK\r\n");
  EXPECT_REPLY(listener, "SUBSCRIBE c\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
  me.Send("CLIENT LIST\r\nECHO end\r\n");
  std::string list;
  while (list.find("$3\r\nend\r\n") == std::string::npos) list += me.Receive(1);
  EXPECT_NE(list.find("name=other "), std::string::npos) << list;
  EXPECT_NE(list.find(" flags=P db=0 sub=1 psub=0 ssub=0 "), std::string::npos) << list;
  EXPECT_NE(list.find(" cmd=client|list "), std::string::npos) << list;
  EXPECT_REPLY(me, "CLIENT KILL TYPE pubsub\r\n", ":1\r\n");
  EXPECT_EQ(listener.Receive(1), "");
  EXPECT_REPLY(me, "CLIENT KILL 1.2.3.4:5\r\nCLIENT KILL ID 0\r\n",
               "-ERR No such client\r\n-ERR client-id should be greater than 0\r\n");
  EXPECT_REPLY(me, "CLIENT KILL SKIPME yes\r\n", ":1\r\n");
  EXPECT_EQ(other.Receive(1), "");
  EXPECT_REPLY(me, "CLIENT KILL SKIPME no\r\n", ":1\r\n");
  EXPECT_EQ(me.Receive(1), "");
}

TEST(CommandCommandTest, DescribesKeysAndNames) {
  TestServer server;
  RawConnection client(server.port());
  EXPECT_REPLY(
      client,
      "COMMAND GETKEYS MSET a 1 b 2\r\nCOMMAND GETKEYSANDFLAGS GET a\r\nCOMMAND GETKEYS PING x\r\n",
      "*2\r\n$1\r\na\r\n$1\r\nb\r\n*1\r\n*2\r\n$1\r\na\r\n*2\r\n+RO\r\n+access\r\n"
      "-ERR The command has no key arguments\r\n");
  EXPECT_REPLY(client, "COMMAND INFO get nothing\r\n",
               "*2\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*"
               "3\r\n+@read\r\n+@string\r\n"
               "+@fast\r\n*0\r\n*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RO\r\n+access\r\n$12\r\nbegin_"
               "search\r\n*4\r\n$4\r\ntype"
               "\r\n$5\r\nindex\r\n$4\r\nspec\r\n*2\r\n$5\r\nindex\r\n:1\r\n$9\r\nfind_keys\r\n*"
               "4\r\n$4\r\ntype\r\n$5\r\n"
               "range\r\n$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$"
               "5\r\nlimit\r\n:0\r\n*0\r\n$-1\r\n");
  std::set<std::string_view> names;
  for (const Command& command : AllCommands())
    EXPECT_TRUE(names.insert(command.name).second) << command.name;
}

TEST(CommandCommandTest, SyntaxBecomesArguments) {
  const auto arguments = ParseSyntax("key value [key value ...] [NX | XX] [LIMIT offset count]");
  ASSERT_EQ(arguments.size(), 3u);
  EXPECT_EQ(arguments[0].type, "block");
  EXPECT_TRUE(arguments[0].multiple);
  EXPECT_FALSE(arguments[0].optional);
  EXPECT_EQ(arguments[0].arguments[0].type, "key");
  EXPECT_EQ(arguments[1].type, "oneof");
  EXPECT_TRUE(arguments[1].optional);
  EXPECT_EQ(arguments[1].arguments[1].token, "XX");
  EXPECT_EQ(arguments[2].type, "block");
  EXPECT_EQ(arguments[2].token, "LIMIT");
  ASSERT_EQ(arguments[2].arguments.size(), 2u);
  EXPECT_EQ(arguments[2].arguments[1].type, "integer");
}

TEST(CommandCommandTest, ATokenBelongsToWhatFollowsIt) {
  const auto arguments = ParseSyntax("[MATCH pattern] ON|OFF|SKIP [OVERFLOW WRAP|SAT]");
  ASSERT_EQ(arguments.size(), 3u);
  EXPECT_EQ(arguments[0].token, "MATCH");
  EXPECT_EQ(arguments[0].type, "pattern");
  EXPECT_TRUE(arguments[0].optional);
  EXPECT_EQ(arguments[1].type, "oneof");
  ASSERT_EQ(arguments[1].arguments.size(), 3u);
  EXPECT_EQ(arguments[1].arguments[2].token, "SKIP");
  EXPECT_EQ(arguments[2].token, "OVERFLOW");
  EXPECT_EQ(arguments[2].type, "oneof");
  EXPECT_EQ(arguments[2].arguments.size(), 2u);
}

TEST(CommandCommandTest, ContainersDescribeTheirSubcommands) {
  TestServer server;
  const std::unique_ptr<Client> client = server.Connect();
  const auto ask = [&](const std::vector<std::string>& line) {
    return testing::Ask(*client, line);
  };
  const std::string docs = ask({"COMMAND", "DOCS", "object"});
  EXPECT_NE(docs.find("subcommands (object|encoding (summary"), std::string::npos) << docs;
  EXPECT_NE(docs.find("arguments ((name key type key key_spec_index 0))"), std::string::npos)
      << docs;
  EXPECT_TRUE(
      ask({"COMMAND", "DOCS", "client|id", "client|foo"}).starts_with("(client|id (summary"));
  EXPECT_TRUE(ask({"CONFIG", "HELP"})
                  .starts_with("(CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are: "
                               "GET pattern [pattern "
                               "...]     Answers the settings"));
  EXPECT_EQ(ask({"CONFIG", "HELP", "x"}),
            "!ERR wrong number of arguments for 'config|help' command");
  EXPECT_EQ(ask({"SLOWLOG", "LEN", "x"}),
            "!ERR wrong number of arguments for 'slowlog|len' command");
  EXPECT_EQ(ask({"LATENCY", "FOO"}), "!ERR unknown subcommand 'FOO'. Try LATENCY HELP.");
  EXPECT_EQ(ask({"SLOWLOG", "GET", "1", "2"}),
            "!ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.");
}

}  // namespace
}  // namespace varve
