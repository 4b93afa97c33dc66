// client_main's prompt through a pseudo-terminal, and what it knows of commands.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "client/cli/command_docs.h"
#include "client/client.h"
#include "client/console/output.h"
#include "client/console/text.h"
#include "unit-tests/client/redis_process.h"
#include "unit-tests/client/restarting_server.h"
#include "unit-tests/client/terminal.h"

namespace varve {
namespace {

using testing::ReadFile;
using testing::RedisProcess;
using testing::TempDir;
using testing::Terminal;

class PromptTest : public testing::RestartingServer {
 protected:
  std::string History() const { return dir_.File("history"); }
};

TEST_F(PromptTest, ShowsTheDatabaseInUse) {
  Terminal terminal(server_->port(), History());
  EXPECT_SHOWN(terminal, "> ");
  terminal.Type("select 3\n");
  EXPECT_SHOWN(terminal, "[3]> ");
  terminal.Type("namespace create \"a\\nb\"\n");
  EXPECT_SHOWN(terminal, "OK");
  terminal.Type("namespace use \"a\\nb\"\n");
  EXPECT_SHOWN(terminal, "[a\\nb]> ");
  terminal.Type("quit\n");
  EXPECT_EQ(terminal.Wait(), 0);
}

TEST_F(PromptTest, CompletesRemembersAndShows) {
  Terminal terminal(server_->port(), History());
  EXPECT_SHOWN(terminal, "> ");
  terminal.Type("DBS\t\n");
  EXPECT_SHOWN(terminal, "(integer) 0");
  terminal.Type("set \"k\\x00\" v\n");
  EXPECT_SHOWN(terminal, "OK");
  terminal.Type("\x1b[A");  // the line before
  EXPECT_SHOWN(terminal, "set \"k\\x00\" v");
  terminal.Type("\x1b[A\n");  // and the one before that
  EXPECT_SHOWN(terminal, "(integer) 1");
  terminal.Type("range - +\n");
  EXPECT_SHOWN(terminal, "k\\x00");
  EXPECT_SHOWN(terminal, "(1 key)");
  terminal.Type("ech\t");
  terminal.Type("\t");  // the arguments of what was completed
  EXPECT_SHOWN(terminal, "Answers its argument");
  terminal.Type("said\n");
  EXPECT_SHOWN(terminal, "\"said\"");
  terminal.Type("get missing\n");
  EXPECT_SHOWN(terminal, "(nil)");
  terminal.Type("nonsense\n");
  EXPECT_SHOWN(terminal, "(error) ERR unknown command");
  terminal.Type("auth secret\n");
  EXPECT_SHOWN(terminal, "(error)");
  terminal.Type("quit\n");
  EXPECT_EQ(terminal.Wait(), 0);
  struct stat info {};
  ASSERT_EQ(stat(History().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(ReadFile(History()).find("secret"), std::string::npos);
  Terminal second(server_->port(), History());
  EXPECT_SHOWN(second, "> ");
  second.Type("\x1b[A\x1b[A");
  EXPECT_SHOWN(second, "nonsense");
}

TEST_F(PromptTest, HintsStandAtTheRight) {
  Terminal terminal(server_->port(), "");
  EXPECT_SHOWN(terminal, "> ");
  terminal.Type("delrange ");
  EXPECT_SHOWN(terminal, "min max");
}

TEST_F(PromptTest, ATerminalGetsTablesAndColours) {
  ASSERT_EQ((*Client::Connect("127.0.0.1", server_->port()))->Put("k\x1b[2J", "v\n"),
            absl::OkStatus());
  Terminal coloured(server_->port(), "", {"range"});
  EXPECT_SHOWN(coloured, "\x1b[36mk\\x1b[2J\x1b[0m  v\\n");
  EXPECT_EQ(coloured.Wait(), 0);
  Terminal raw(server_->port(), "", {"range", "--raw"});
  EXPECT_SHOWN(raw, "k\x1b[2J\tv\r\n");
}

TEST_F(PromptTest, ATableFitsTheTerminal) {
  const std::unique_ptr<Client> client = Connect();
  ASSERT_EQ(client->Put("東京都千代田区", std::string(300, 'x')), absl::OkStatus());
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "漢";
  ASSERT_EQ(client->Put(std::string(100, 'k'), wide), absl::OkStatus());
  ASSERT_EQ(client->Put("a\xe2\x80\xae", "\xff\x9b"), absl::OkStatus());
  Terminal plain(server_->port(), "", {"range"}, 41, false);
  const std::string shown = plain.ShownToTheEnd();
  EXPECT_EQ(shown.find('\x1b'), std::string::npos) << shown;
  EXPECT_NE(shown.find("東京都千代田区"), std::string::npos) << shown;
  EXPECT_NE(shown.find("\\xe2\\x80\\xae"), std::string::npos) << shown;
  EXPECT_NE(shown.find("(3 keys)"), std::string::npos) << shown;
  size_t widest = 0;
  for (size_t begin = 0; begin < shown.size();) {
    const size_t end = std::min(shown.find("\r\n", begin), shown.size());
    const size_t width = DisplayWidth(std::string_view(shown).substr(begin, end - begin));
    EXPECT_LE(width, 41u) << shown.substr(begin, end - begin);
    widest = std::max(widest, width);
    begin = end + 2;
  }
  EXPECT_GE(widest, 40u);
}

TEST_F(PromptTest, CtrlCBeginsTheLineAnew) {
  Terminal terminal(server_->port(), History());
  EXPECT_SHOWN(terminal, "> ");
  ASSERT_TRUE(terminal.TurnsOff(ICANON));  // it shows its prompt before it takes keys one by one
  terminal.Type("set a never\x1b[D\x1b[D\x03");
  EXPECT_SHOWN(terminal, "^C");
  terminal.Type("dbsize\n");
  EXPECT_SHOWN(terminal, "(integer) 0");
  EXPECT_EQ(terminal.End(), 0);
  EXPECT_EQ(ReadFile(History()).find("never"), std::string::npos);
}

TEST_F(PromptTest, CtrlDTypedWhileARequestIsUnderWayEndsThePrompt) {
  for (const char* ahead : {"\x04", "dbsize\n\x04", "dbs\x04ize\n\x04"}) {
    Terminal terminal(server_->port(), "");
    EXPECT_SHOWN(terminal, "> ");
    server_->process().Stop();
    terminal.Type("ping\n");
    EXPECT_SHOWN(terminal, "ping\r\n");
    terminal.Type(ahead);
    server_->process().Kill(SIGCONT);
    EXPECT_SHOWN(terminal, "PONG");
    EXPECT_EQ(terminal.ShownToTheEnd().find("(integer) 0") != std::string::npos, *ahead == 'd')
        << ahead;
    EXPECT_EQ(terminal.Wait(), 0);
  }
}

TEST_F(PromptTest, SubcommandsAreCompletedToo) {
  Terminal terminal(server_->port(), "");
  EXPECT_SHOWN(terminal, "> ");
  terminal.Type("CLI\tGETN\t\n");
  EXPECT_SHOWN(terminal, "(nil)");
  terminal.Type("config re\t");
  EXPECT_SHOWN(terminal, "RESETSTAT");  // or REWRITE
  terminal.Type("s\t\n");
  EXPECT_SHOWN(terminal, "OK");
  terminal.Type("latency history ");
  EXPECT_SHOWN(terminal, "HISTORY event");
  terminal.Type("\x03");
  EXPECT_EQ(terminal.ShownUntil("^C").find("DOCTOR"), std::string::npos);  // what may follow alone
  terminal.Type("set k v ifn\t");
  EXPECT_SHOWN(terminal, "ifn");
  terminal.Type("v\n");
  EXPECT_SHOWN(terminal, "OK");  // SET k v ifne v
}

TEST_F(PromptTest, TextForPeopleIsShownAsItIsLaidOut) {
  Terminal terminal(server_->port(), "");
  EXPECT_SHOWN(terminal, "> ");
  terminal.Type("info clients\n");
  const std::string info = terminal.ShownUntil("blocked_clients:0");
  EXPECT_NE(info.find("# Clients\r\n"), std::string::npos) << info;
  EXPECT_EQ(info.find("\\r"), std::string::npos) << info;
  terminal.Type("set k \"a\\r\\nb\"\n");
  EXPECT_SHOWN(terminal, "OK");
  terminal.Type("get k\n");
  EXPECT_SHOWN(terminal, "\"a\\r\\nb\"");
}

TEST_F(PromptTest, ATransactionShowsInThePrompt) {
  Terminal terminal(server_->port(), "");
  EXPECT_SHOWN(terminal, "> ");
  terminal.Type("multi\n");
  EXPECT_SHOWN(terminal, "(TX)> ");
  terminal.Type("set city Bern\n");
  EXPECT_SHOWN(terminal, "QUEUED");
  terminal.Type("range - +\n");
  EXPECT_SHOWN(terminal, "QUEUED");
  terminal.Type("exec\n");
  EXPECT_SHOWN(terminal, "Bern");
  terminal.Type("echo after\n");
  EXPECT_SHOWN(terminal, "\"after\"");
}

TEST_F(PromptTest, MonitorShowsWhatOthersDoUntilCtrlC) {
  Terminal terminal(server_->port(), "");
  EXPECT_SHOWN(terminal, "> ");
  terminal.Type("monitor\n");
  EXPECT_SHOWN(terminal, "Ctrl-C ends that");
  const std::unique_ptr<Client> other = Connect();
  ASSERT_EQ(other->Put("city", "Bern\x1b[2J"), absl::OkStatus());
  EXPECT_SHOWN(terminal, "\"SET\" \"city\" \"Bern");
  terminal.Type("\x03");
  EXPECT_SHOWN(terminal, "> ");
  terminal.Type("echo here\n");
  EXPECT_SHOWN(terminal, "\"here\"");
}

TEST_F(PromptTest, ShardChannelsAreShownAndWhatWouldConfuseIsRefused) {
  Terminal terminal(server_->port(), "");
  EXPECT_SHOWN(terminal, "> ");
  terminal.Type("hello 2\n");
  EXPECT_SHOWN(terminal, "this client speaks RESP3");
  terminal.Type("client reply off\n");
  EXPECT_SHOWN(terminal, "this client waits for each reply");
  terminal.Type("ssubscribe news\n");
  EXPECT_SHOWN(terminal, "Ctrl-C ends that");
  while (Connect()->Call({"SPUBLISH", "news", "to the shard"})->integer == 0) usleep(10000);
  EXPECT_SHOWN(terminal, "\"to the shard\"");
  terminal.Type("\x03");
  EXPECT_SHOWN(terminal, "> ");
  terminal.Type("echo here\n");
  EXPECT_SHOWN(terminal, "\"here\"");
}

TEST_F(PromptTest, AServerThatComesBackIsAskedAgain) {
  Terminal terminal(server_->port(), "");
  EXPECT_SHOWN(terminal, "> ");
  terminal.Type("set a 1\n");
  EXPECT_SHOWN(terminal, "OK");
  Kill();
  terminal.Type("get a\n");  // it waits a little, on a busy machine in vain
  Restart();
  terminal.Type("get a\n");
  EXPECT_SHOWN(terminal, "\"1\"");
  terminal.Type("subscribe news\n");
  EXPECT_SHOWN(terminal, "Ctrl-C ends that");
  Kill();
  Restart();
  const std::unique_ptr<Client> publisher = Connect();
  while (publisher->Call({"PUBLISH", "news", "after all"})->integer == 0) usleep(10000);
  EXPECT_SHOWN(terminal, "\"after all\"");
  terminal.Type("\x03");
  EXPECT_SHOWN(terminal, "> ");
  terminal.Type("get a\n");
  EXPECT_SHOWN(terminal, "\"1\"");
}

TEST_F(PromptTest, APasswordIsAskedForAndNeitherShownNorKept) {
  UsePassword("secret");
  Restart();
  Terminal terminal(server_->port(), History());
  EXPECT_SHOWN(terminal, "Password for 127.0.0.1:");
  ASSERT_TRUE(terminal.TurnsOff(ECHO));  // until then the terminal would show what is typed
  terminal.Type("secret\n");
  const std::string shown = terminal.ShownUntil("> ");
  EXPECT_EQ(shown.find("secret"), std::string::npos) << shown;
  terminal.Type("set a 1\n");
  EXPECT_SHOWN(terminal, "OK");
  Kill();
  Restart();
  terminal.Type("get a\n");  // on a new connection
  EXPECT_SHOWN(terminal, "\"1\"");
  EXPECT_EQ(ReadFile(History()).find("secret"), std::string::npos);
  Terminal stranger(server_->port(), "");
  EXPECT_SHOWN(stranger, "Password for 127.0.0.1:");
  ASSERT_TRUE(stranger.TurnsOff(ECHO));
  stranger.Type("wrong\n");
  EXPECT_SHOWN(stranger, "WRONGPASS");
  EXPECT_EQ(stranger.Wait(), 2);
}

TEST_F(PromptTest, AHistoryThatOthersCouldReadIsClosedToThem) {
  std::ofstream(History()) << "";
  ASSERT_EQ(chmod(History().c_str(), 0644), 0);
  Terminal terminal(server_->port(), History());
  EXPECT_SHOWN(terminal, "> ");
  terminal.Type("echo one\n");
  EXPECT_SHOWN(terminal, "\"one\"");
  struct stat info {};
  ASSERT_EQ(stat(History().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(CompletionTest, GoesAsFarAsItIsClear) {
  Reply reply;
  reply.type = Reply::Type::kMap;
  for (const char* name : {"get", "getdel", "getrange", "set"}) {
    Reply bulk;
    bulk.text = name;
    reply.elements.push_back(bulk);
    reply.elements.emplace_back();
  }
  const CommandDocs docs = CommandDocs::FromReply(reply);
  EXPECT_EQ(Complete(docs, "s").insertion, "et ");
  EXPECT_EQ(Complete(docs, "G").insertion, "ET");
  EXPECT_EQ(Complete(docs, "G").matches.size(), 3u);
  EXPECT_EQ(Complete(docs, "getr").insertion, "ange ");
  EXPECT_TRUE(Complete(docs, "x").matches.empty());
  EXPECT_NE(docs.Find("GETDEL"), nullptr);
  EXPECT_EQ(docs.Find("getd"), nullptr);
}

Reply Bulk(std::string_view text) {
  Reply bulk;
  bulk.type = Reply::Type::kBulk;
  bulk.text = text;
  return bulk;
}

// COMMAND DOCS of one command with a syntax.
CommandDocs DocsOf(std::string_view name, std::string_view syntax) {
  Reply about;
  about.type = Reply::Type::kMap;
  about.elements = {Bulk("syntax"), Bulk(syntax)};
  Reply reply;
  reply.type = Reply::Type::kMap;
  reply.elements = {Bulk(name), about};
  return CommandDocs::FromReply(reply);
}

TEST(CompletionTest, SubcommandsAndKeywords) {
  const CommandDocs client =
      DocsOf("client", "ID | LIST [TYPE type | ID id ...] | KILL address | KILL option value ...");
  EXPECT_EQ(Complete(client, "client ").matches, (std::vector<std::string>{"ID", "KILL", "LIST"}));
  EXPECT_EQ(Complete(client, "client K").insertion, "ILL ");
  EXPECT_EQ(Complete(client, "CLIENT l").insertion, "ist ");
  EXPECT_EQ(Complete(client, "client list t").insertion, "ype ");
  EXPECT_TRUE(Complete(client, "client list ").matches.empty());
  EXPECT_EQ(client.Find("client")->SyntaxAfter("kill"), "KILL address | KILL option value ...");
  EXPECT_EQ(client.Find("client")->SyntaxAfter("none"), client.Find("client")->syntax);
  const CommandDocs bracketed = DocsOf("command", "[COUNT | DOCS [name ...]]");
  EXPECT_EQ(Complete(bracketed, "COMMAND D").insertion, "OCS ");
  const CommandDocs set = DocsOf("set", "key value [NX | XX | IFEQ value] [GET]");
  EXPECT_TRUE(set.Find("set")->subcommands.empty());
  EXPECT_EQ(Complete(set, "SET key value ").matches.size(), 0u);  // most words are keys and values
  EXPECT_EQ(Complete(set, "SET key value i").insertion, "feq ");
  EXPECT_TRUE(DocsOf("bitop", "AND|OR|XOR|NOT destination key").Find("bitop")->subcommands.empty());
}

TEST_F(PromptTest, OptionsOfSubcommandsAreCompleted) {
  const CommandDocs docs = CommandDocs::FromReply(*Connect()->Call({"COMMAND", "DOCS"}));
  EXPECT_EQ(Complete(docs, "namespace cr").insertion, "eate ");
  EXPECT_EQ(Complete(docs, "namespace create users tog").insertion, "ether ");
  EXPECT_EQ(Complete(docs, "NAMESPACE CREATE users G").insertion, "ROUP ");
  EXPECT_TRUE(Complete(docs, "namespace alter users tog").matches.empty());
  EXPECT_NE(docs.Find("namespace")->SyntaxAfter("create").find("TOGETHER"), std::string::npos);
}

TEST(CompletionTest, RedisDescribesItsArgumentsInAnotherWay) {
  if (!RedisProcess::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
  TempDir dir;
  RedisProcess redis(dir.path());
  for (const int protocol : {2, 3}) {
    ClientOptions options = redis.Options();
    options.protocol = protocol;
    const std::unique_ptr<Client> client = redis.Connect(options);
    ASSERT_NE(client, nullptr) << redis.log();
    const CommandDocs docs = CommandDocs::FromReply(*client->Call({"COMMAND", "DOCS"}));
    ASSERT_NE(docs.Find("set"), nullptr);
    EXPECT_EQ(docs.Find("mget")->syntax, "key [key ...]");
    EXPECT_EQ(
        docs.Find("set")->syntax,
        "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT "
        "unix-time-milliseconds | KEEPTTL]");
    EXPECT_EQ(Complete(docs, "config rew").insertion, "rite ");
    EXPECT_EQ(docs.Find("object")->SyntaxAfter("freq"), "FREQ key");
  }
}

TEST(TextTest, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(Escaped("plain ü \"quoted\""), "plain ü \"quoted\"");
  EXPECT_EQ(Escaped(std::string_view("a\0b\xff\x1b\n\\", 7)), "a\\x00b\\xff\\x1b\\n\\\\");
  EXPECT_EQ(Escaped("\"", false, true), "\\\"");
  EXPECT_EQ(Escaped("a\n\tb\r", true), "a\n\tb\\r");
  EXPECT_EQ(Escaped("\xc2\x9b"), "\\xc2\\x9b");  // a control of eight bits
  EXPECT_EQ(Escaped("a\xe2\x80\xae"
                    "b\xef\xbb\xbf"),
            "a\\xe2\\x80\\xae"
            "b\\xef\\xbb\\xbf");  // can't be seen, or turns what follows
  EXPECT_EQ(DisplayWidth("漢字e\xcc\x81"), 5u);
  EXPECT_EQ(Fitted("漢字漢字", 8), "漢字漢字");
  EXPECT_EQ(Fitted("漢字漢字", 7), "漢字漢…");
  EXPECT_EQ(Fitted("漢字漢字", 6), "漢字…");
  EXPECT_EQ(Fitted("Zürich West", 6), "Züric…");
  EXPECT_FALSE(IsUtf8("\xc0\x80"));
  EXPECT_FALSE(IsUtf8("\xed\xa0\x80"));
  EXPECT_TRUE(IsUtf8("\xf0\x9f\x8c\x8d"));
}

TEST(RenderTest, RepliesAsJson) {
  Reply bulk;
  bulk.type = Reply::Type::kBulk;
  bulk.text = "a\"\n\x01";
  Reply bytes = bulk;
  bytes.text = "\xff";
  Reply number;
  number.type = Reply::Type::kInteger;
  number.integer = 5;
  Reply map;
  map.type = Reply::Type::kMap;
  map.elements = {bulk, number};
  Reply array;
  array.type = Reply::Type::kArray;
  array.elements = {bulk, bytes, number, Reply(), map};
  EXPECT_EQ(JsonOf(array),
            "[\"a\\\"\\n\\u0001\",{\"base64\":\"/w==\"},5,null,{\"a\\\"\\\\n\\\\x01\":5}]");
  Output table;
  table.style = OutputStyle::kTable;
  EXPECT_EQ(RenderReply(array, table),
            "1) \"a\\\"\\n\\x01\"\n2) \"\\xff\"\n3) (integer) 5\n4) (nil)\n5) 1# \"a\\\"\\n\\x01\" "
            "=> (integer) 5\n");
}

}  // namespace
}  // namespace varve
