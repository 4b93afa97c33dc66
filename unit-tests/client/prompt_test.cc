// client_main's prompt through a pseudo-terminal, and what it knows of commands.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

#include "client/cli/command_docs.h"
#include "client/cli/output.h"
#include "client/cli/text.h"
#include "client/client.h"
#include "unit-tests/client/redis_process.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::ReadFile;
using testing::RedisProcess;
using testing::ServerProcess;
using testing::TempDir;

// client_main on a terminal of its own.
class Terminal {
 public:
  Terminal(uint16_t port, const std::string& history, std::vector<std::string> arguments = {}) {
    winsize size{24, 100, 0, 0};
    pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (pid_ != 0) return;
    setenv("TERM", "xterm", 1);
    setenv("VARVE_HISTORY", history.c_str(), 1);
    unsetenv("NO_COLOR");
    arguments.insert(arguments.begin(), {VARVE_CLIENT_MAIN, "--port=" + std::to_string(port)});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(VARVE_CLIENT_MAIN, argv.data());
    _exit(127);
  }
  ~Terminal() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    Wait();
    close(terminal_);
  }

  void Type(std::string_view keys) { ASSERT_EQ(write(terminal_, keys.data(), keys.size()), ssize_t(keys.size())); }
  // Everything shown up to `text`, since the last call; what was shown without it after 20 s.
  std::string ShownUntil(std::string_view text) {
    std::string& shown = shown_;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (shown.find(text) == std::string::npos && std::chrono::steady_clock::now() < deadline) {
      pollfd waiting{terminal_, POLLIN, 0};
      if (poll(&waiting, 1, 100) <= 0) continue;
      char buffer[4096];
      const ssize_t got = read(terminal_, buffer, sizeof(buffer));
      if (got <= 0) break;
      shown.append(buffer, static_cast<size_t>(got));
    }
    const size_t at = shown.find(text);
    const size_t end = at == std::string::npos ? shown.size() : at + text.size();
    const std::string seen = shown.substr(0, end);
    shown.erase(0, end);
    return seen;
  }
  int Wait() {
    if (pid_ <= 0) return code_;
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  int terminal_ = -1;
  pid_t pid_ = -1;
  int code_ = -1;
  std::string shown_;
};

#define EXPECT_SHOWN(terminal, text)                                                \
  do {                                                                              \
    const std::string shown_ = (terminal).ShownUntil(text);                         \
    EXPECT_NE(shown_.find(text), std::string::npos) << "shown instead: " << shown_; \
  } while (false)

class PromptTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(server_.port(), 0) << server_.log(); }

  TempDir dir_;
  ServerProcess server_{VARVE_SERVER_MAIN, dir_.File("data")};
};

TEST_F(PromptTest, CompletesRemembersAndShows) {
  Terminal terminal(server_.port(), dir_.File("history"));
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
  ASSERT_EQ(stat(dir_.File("history").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(ReadFile(dir_.File("history")).find("secret"), std::string::npos);
  Terminal second(server_.port(), dir_.File("history"));
  EXPECT_SHOWN(second, "> ");
  second.Type("\x1b[A\x1b[A");
  EXPECT_SHOWN(second, "nonsense");
}

TEST_F(PromptTest, HintsStandAtTheRight) {
  Terminal terminal(server_.port(), "");
  EXPECT_SHOWN(terminal, "> ");
  terminal.Type("delrange ");
  EXPECT_SHOWN(terminal, "min max");
}

TEST_F(PromptTest, ATerminalGetsTablesAndColours) {
  ASSERT_EQ((*Client::Connect("127.0.0.1", server_.port()))->Put("k\x1b[2J", "v\n"), absl::OkStatus());
  Terminal coloured(server_.port(), "", {"range"});
  EXPECT_SHOWN(coloured, "\x1b[36mk\\x1b[2J\x1b[0m  v\\n");
  EXPECT_EQ(coloured.Wait(), 0);
  Terminal raw(server_.port(), "", {"range", "--raw"});
  EXPECT_SHOWN(raw, "k\x1b[2J\tv\r\n");
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
    EXPECT_EQ(docs.Find("set")->syntax,
              "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT "
              "unix-time-milliseconds | KEEPTTL]");
  }
}

TEST(TextTest, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(Escaped("plain ü \"quoted\""), "plain ü \"quoted\"");
  EXPECT_EQ(Escaped(std::string_view("a\0b\xff\x1b\n\\", 7)), "a\\x00b\\xff\\x1b\\n\\\\");
  EXPECT_EQ(Escaped("\"", false, true), "\\\"");
  EXPECT_EQ(Escaped("a\n\tb\r", true), "a\n\tb\\r");
  EXPECT_EQ(Escaped("\xc2\x9b"), "\\xc2\\x9b");  // a control of eight bits
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
  EXPECT_EQ(JsonOf(array), "[\"a\\\"\\n\\u0001\",{\"base64\":\"/w==\"},5,null,{\"a\\\"\\\\n\\\\x01\":5}]");
  Output table;
  table.style = OutputStyle::kTable;
  EXPECT_EQ(RenderReply(array, table),
            "1) \"a\\\"\\n\\x01\"\n2) \"\\xff\"\n3) (integer) 5\n4) (nil)\n5) 1# \"a\\\"\\n\\x01\" => (integer) 5\n");
}

}  // namespace
}  // namespace varve
