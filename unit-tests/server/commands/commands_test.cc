// Each command over a socket: replies, errors, odd keys, and what a restart leaves.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "server/commands/command_table.h"
#include "unit-tests/server/command_fixture.h"

namespace varve {
namespace {

using namespace std::string_literals;
using CommandsTest = testing::CommandTest;

TEST_F(CommandsTest, SetAndGetWithTheirOptions) {
  EXPECT_EQ(Do({"SET", "k", "1"}), "OK");
  EXPECT_EQ(Do({"SET", "k", "2", "NX"}), "nil");
  EXPECT_EQ(Do({"SET", "k", "2", "XX", "GET"}), "1");
  EXPECT_EQ(Do({"SET", "new", "2", "XX"}), "nil");
  EXPECT_EQ(Do({"SET", "new", "2", "nx", "get"}), "nil");
  EXPECT_EQ(Do({"GET", "new"}), "2");
  EXPECT_EQ(Do({"SET", "k", "3", "NX", "XX"}), "!ERR syntax error");
  EXPECT_EQ(Do({"PUT", "k", "4"}), "OK");
  EXPECT_EQ(Do({"GET", "k"}), "4");
}

TEST_F(CommandsTest, KeysInLists) {
  EXPECT_EQ(Do({"MSET", "a", "1", "b", "2", "a", "3"}), "OK");
  EXPECT_EQ(Do({"MGET", "a", "b", "c", "a"}), "(3 2 nil 3)");
  EXPECT_EQ(Do({"EXISTS", "a", "a", "c", "b"}), "3");
  EXPECT_EQ(Do({"DEL", "a", "a", "c"}), "1");
  EXPECT_EQ(Do({"DELETE", "b"}), "1");
  EXPECT_EQ(Do({"DEL", "b"}), "0");
  std::vector<std::string> many = {"DEL"};
  for (int i = 0; i < 200; ++i) {
    many.push_back("many" + std::to_string(i));
    if (i % 2 == 0) Do({"SET", many.back(), "v"});
  }
  EXPECT_EQ(Do(many), "100");
  EXPECT_EQ(Do(many), "0");
  EXPECT_EQ(Do({"MSET", "a"}), "!ERR wrong number of arguments for 'mset' command");
  std::vector<std::string> set = {"MSET"};
  std::vector<std::string> get = {"MGET"};
  std::string expected = "(";
  for (int i = 0; i < 1000; ++i) {
    set.push_back("many" + std::to_string(i));
    set.push_back(std::to_string(i));
    get.push_back("many" + std::to_string(i));
    expected += (i > 0 ? " " : "") + std::to_string(i);
  }
  EXPECT_EQ(Do(set), "OK");
  EXPECT_EQ(Do(get), expected + ")");
}

TEST_F(CommandsTest, IncrCountsAndRefusesAsRedisDoes) {
  EXPECT_EQ(Do({"INCR", "n"}), "1");
  EXPECT_EQ(Do({"INCR", "n"}), "2");
  EXPECT_EQ(Do({"SET", "n", "-1"}), "OK");
  EXPECT_EQ(Do({"INCR", "n"}), "0");
  EXPECT_EQ(Do({"GET", "n"}), "0");
  for (const char* bad : {"abc", "", " 1", "1.5", "01", "9223372036854775808"}) {
    EXPECT_EQ(Do({"SET", "n", bad}), "OK");
    EXPECT_EQ(Do({"INCR", "n"}), "!ERR value is not an integer or out of range") << bad;
  }
  EXPECT_EQ(Do({"SET", "n", "9223372036854775807"}), "OK");
  EXPECT_EQ(Do({"INCR", "n"}), "!ERR increment or decrement would overflow");
  EXPECT_EQ(Do({"GET", "n"}), "9223372036854775807");
}

TEST_F(CommandsTest, OddKeysAndValuesSurviveOverwriteFlushAndRestart) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every.push_back(static_cast<char>(byte));
  const std::vector<std::string> keys = {"0",    "-1",       "/a",  "",
                                         "a\tb", "a\nb",     "a,b", "a\0b"s,
                                         "\0"s,  "\xff\xff", every, std::string(65536, 'k')};
  for (const std::string& key : keys) {
    EXPECT_EQ(Do({"GET", key}), "nil");
    EXPECT_EQ(Do({"SET", key, "first"}), "OK");
    EXPECT_EQ(Do({"SET", key, key}), "OK");
  }
  // Empty is not missing, and no value looks like a deletion.
  for (const std::string& value :
       {""s, "\0"s, "__deleted__"s, "tombstone"s, "\x02"s, "nil"s, "$-1\r\n"s}) {
    EXPECT_EQ(Do({"SET", "marker", value}), "OK");
    EXPECT_EQ(Do({"GET", "marker"}), value);
    EXPECT_EQ(Do({"EXISTS", "marker"}), "1");
  }
  EXPECT_EQ(Do({"SET", "empty", ""}), "OK");
  EXPECT_EQ(Do({"DEL", "marker"}), "1");
  const auto check = [&](const char* when) {
    for (const std::string& key : keys) EXPECT_EQ(Do({"GET", key}), key) << when;
    EXPECT_EQ(Do({"GET", "empty"}), "") << when;
    EXPECT_EQ(Do({"GET", "marker"}), "nil") << when;
    EXPECT_EQ(Do({"DBSIZE"}), std::to_string(keys.size() + 1)) << when;
  };
  check("at once");
  ASSERT_TRUE(server_.store().Flush().ok());
  check("after a flush");
  EXPECT_EQ(Do({"COMPACT"}), "OK");
  check("after a compaction");
  Restart();
  check("after a restart");
}

TEST_F(CommandsTest, AKeyOverItsLimitIsRefusedAlone) {
  const std::string huge(kMaxKeySize + 1, 'k');
  ASSERT_TRUE(client_->Send({"SET", "before", "1"}).ok());
  ASSERT_TRUE(client_->Send({"SET", huge, "1"}).ok());
  ASSERT_TRUE(client_->Send({"SET", "after", "1"}).ok());
  EXPECT_EQ(client_->Receive()->text, "OK");
  EXPECT_TRUE(client_->Receive()->is_error());
  EXPECT_EQ(client_->Receive()->text, "OK");
  EXPECT_EQ(Do({"DBSIZE"}), "2");
}

TEST_F(CommandsTest, RangesFollowRedisLexicalBounds) {
  EXPECT_EQ(Do({"MSET", "", "e", "a", "1", "b", "2", "ba", "3", "c", "4"}), "OK");
  EXPECT_EQ(Do({"RANGE", "-", "+"}), "( e a 1 b 2 ba 3 c 4)");
  EXPECT_EQ(Do({"RANGE", "[a", "(c", "KEYS"}), "(a b ba)");
  EXPECT_EQ(Do({"RANGE", "(a", "[c", "KEYS"}), "(b ba c)");
  EXPECT_EQ(Do({"RANGE", "[c", "[a", "REV", "KEYS"}), "(c ba b a)");
  EXPECT_EQ(Do({"RANGE", "[a", "[c", "REV", "KEYS"}), "()");
  EXPECT_EQ(Do({"RANGE", "-", "+", "LIMIT", "1", "2", "KEYS"}), "(a b)");
  EXPECT_EQ(Do({"RANGE", "-", "+", "limit", "3", "-1", "keys"}), "(ba c)");
  EXPECT_EQ(Do({"RANGE", "+", "-", "REV", "LIMIT", "1", "1"}), "(ba 3)");
  EXPECT_EQ(Do({"RANGE", "-", "+", "LIMIT", "-1", "5"}), "()");
  EXPECT_EQ(Do({"RANGE", "-", "+", "LIMIT", "0", "0"}), "()");
  EXPECT_EQ(Do({"RANGE", "-", "+", "LIMIT", "9", "5"}), "()");
  EXPECT_EQ(Do({"RANGE", "a", "+"}), "!ERR min or max not valid string range item");
  EXPECT_EQ(Do({"RANGE", "-", "+", "LIMIT", "a", "1"}),
            "!ERR value is not an integer or out of range");
  EXPECT_EQ(Do({"RANGE", "-", "+", "LIMIT", "1"}), "!ERR syntax error");
  EXPECT_EQ(Do({"PREFIX", "b"}), "(b 2 ba 3)");
  EXPECT_EQ(Do({"PREFIX", "b", "REV", "KEYS"}), "(ba b)");
  EXPECT_EQ(Do({"PREFIX", "", "LIMIT", "0", "1", "KEYS"}), "()"s);  // one key: the empty one
  EXPECT_EQ(Do({"COUNT", "-", "+"}), "5");
  EXPECT_EQ(Do({"COUNT", "(a", "(c"}), "2");
  EXPECT_EQ(Do({"COUNT", "+", "-"}), "0");
  EXPECT_EQ(Do({"DELRANGE", "[b", "(c"}), "OK");
  EXPECT_EQ(Do({"RANGE", "-", "+", "KEYS"}), "( a c)");
  EXPECT_EQ(Do({"DELRANGE", "[z", "[a"}), "OK");
  EXPECT_EQ(Do({"DELRANGE", "-", "(a"}), "OK");
  EXPECT_EQ(Do({"RANGE", "-", "+", "KEYS"}), "(a c)");
  EXPECT_EQ(Do({"FLUSHALL"}), "OK");
  EXPECT_EQ(Do({"DBSIZE"}), "0");
  Restart();
  EXPECT_EQ(Do({"DBSIZE"}), "0");
}

TEST_F(CommandsTest, RandomRangesAgreeWithAMap) {
  std::mt19937 random(17);
  std::map<std::string, std::string> model;
  const auto random_key = [&] {
    std::string key;
    for (size_t i = random() % 4; i > 0; --i) key.push_back("ab\xff\0"[random() % 4]);
    return key;
  };
  for (int step = 0; step < 1500; ++step) {
    const std::string a = random_key();
    const std::string b = random_key();
    switch (random() % 5) {
      case 0:
      case 1:
        model[a] = std::to_string(step);
        ASSERT_EQ(Do({"SET", a, model[a]}), "OK");
        break;
      case 2:
        ASSERT_EQ(Do({"DEL", a}), std::to_string(model.erase(a)));
        break;
      case 3:
        if (random() % 8 != 0) break;
        ASSERT_EQ(Do({"DELRANGE", "[" + a, "(" + b}), "OK");
        if (a < b) model.erase(model.lower_bound(a), model.lower_bound(b));
        break;
      default: {
        std::vector<std::string> keys;
        for (const auto& [key, value] : model) {
          if (key > a && key <= b) keys.push_back(key);
        }
        const bool reverse = random() % 2 == 0;
        if (reverse) std::reverse(keys.begin(), keys.end());
        std::string expected = "(";
        for (const std::string& key : keys)
          expected += (&key == &keys[0] ? "" : " ") + key + " " + model[key];
        ASSERT_EQ(
            reverse ? Do({"RANGE", "[" + b, "(" + a, "REV"}) : Do({"RANGE", "(" + a, "[" + b}),
            expected + ")");
        ASSERT_EQ(Do({"COUNT", "(" + a, "[" + b}), std::to_string(keys.size()));
      }
    }
  }
}

TEST_F(CommandsTest, WhatLibrariesAskWhenTheyConnect) {
  EXPECT_EQ(Do({"CLIENT", "SETINFO", "LIB-NAME", "redis-py"}), "OK");
  EXPECT_EQ(Do({"CLIENT", "SETINFO", "LIB-VER", "5.0"}), "OK");
  EXPECT_EQ(Do({"CLIENT", "GETNAME"}), "nil");
  EXPECT_EQ(Do({"CLIENT", "SETNAME", "me"}), "OK");
  EXPECT_EQ(Do({"CLIENT", "SETNAME", "a b"}),
            "!ERR Client names cannot contain spaces, newlines or special characters.");
  EXPECT_EQ(Do({"CLIENT", "GETNAME"}), "me");
  const std::string too_long(1025, 'n');
  EXPECT_EQ(Do({"CLIENT", "SETNAME", too_long}),
            "!ERR Client names cannot have more than 1024 bytes.");
  EXPECT_EQ(Do({"HELLO", "3", "SETNAME", too_long}),
            "!ERR Client names cannot have more than 1024 bytes.");
  EXPECT_EQ(Do({"CLIENT", "SETINFO", "LIB-NAME", too_long}),
            "!ERR lib-name cannot have more than 1024 bytes.");
  EXPECT_EQ(Do({"CLIENT", "SETINFO", "LIB-VER", too_long}),
            "!ERR lib-ver cannot have more than 1024 bytes.");
  EXPECT_EQ(Do({"CLIENT", "GETNAME"}), "me");
  EXPECT_EQ(Do({"CLIENT", "SETNAME", too_long.substr(1)}), "OK");
  EXPECT_EQ(Do({"CLIENT", "NO-EVICT", "on"}), "OK");
  EXPECT_EQ(Do({"SELECT", "0"}), "OK");
  EXPECT_EQ(Do({"SELECT", "16"}), "!ERR DB index is out of range");
  EXPECT_EQ(Do({"CONFIG", "GET", "save"}), "(save )");
  EXPECT_EQ(Do({"CONFIG", "GET", "appendo*", "maxmemory"}), "(appendonly yes maxmemory 0)");
  EXPECT_EQ(Do({"CONFIG", "GET", "nothing"}), "()");
  EXPECT_EQ(Do({"PING", "hello"}), "hello");
  EXPECT_EQ(Do({"ECHO", "\r\n"}), "\r\n");
  EXPECT_EQ(Do({"COMMAND", "COUNT"}), std::to_string(AllCommands().size()));
  const std::string docs = Do({"COMMAND", "DOCS", "get"});
  for (const char* fact :
       {"Reads the value of a key", "complexity O(M) for M bytes", "since 0.1.0"})
    EXPECT_NE(docs.find(fact), std::string::npos) << fact << docs;
  const std::string info = Do({"INFO"});
  for (const char* part :
       {"# Server\r\n", "redis_version:7", "loading:0", "# Keyspace", "connected_clients:1"}) {
    EXPECT_NE(info.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(Do({"INFO", "clients"}).find("# Server"), std::string::npos);
}

TEST_F(CommandsTest, SubcommandsAnswerAsInRedis) {
  EXPECT_EQ(Do({"CONFIG", "FOO"}), "!ERR unknown subcommand 'FOO'. Try CONFIG HELP.");
  EXPECT_EQ(Do({"CONFIG", "GET"}), "!ERR wrong number of arguments for 'config|get' command");
  EXPECT_EQ(Do({"CLIENT", "FOO"}), "!ERR unknown subcommand 'FOO'. Try CLIENT HELP.");
  EXPECT_EQ(Do({"COMMAND", "FOO"}), "!ERR unknown subcommand 'FOO'. Try COMMAND HELP.");
  for (const std::string command : {"CONFIG", "CLIENT", "COMMAND"}) {
    const std::string help = Do({command, "help"});
    EXPECT_TRUE(help.starts_with("(" + command +
                                 " <subcommand> [<arg> [value] [opt] ...]. Subcommands are: "))
        << help;
    EXPECT_TRUE(help.ends_with(" HELP     Prints this help.)")) << help;
  }
  EXPECT_EQ(Do({"Config", "HELP", "x"}),
            "!ERR wrong number of arguments for 'config|help' command");
  EXPECT_EQ(Do({"CLIENT", "NO-TOUCH", "ON"}), "OK");
  EXPECT_EQ(Do({"CLIENT", "NO-TOUCH"}),
            "!ERR wrong number of arguments for 'client|no-touch' command");
  EXPECT_EQ(Do({"CLIENT", "NO-EVICT"}),
            "!ERR wrong number of arguments for 'client|no-evict' command");
  EXPECT_EQ(Do({"CLIENT", "NO-EVICT", "foo"}), "!ERR syntax error");
  EXPECT_EQ(Do({"COMMAND", "COUNT", "x"}),
            "!ERR wrong number of arguments for 'command|count' command");
  EXPECT_EQ(Do({"COMMAND", "LIST", "x"}), "!ERR syntax error");
  EXPECT_EQ(Do({"COMMAND", "DOCS", "nothing"}), "()");
  EXPECT_EQ(Do({"CONFIG", "GET", std::string(1025, '*')}), "!ERR a pattern has at most 1024 bytes");
  EXPECT_EQ(Do({"CONFIG", "GET", std::string(1023, '*') + "z"}), "()");
  std::string hard;  // exponential for a matcher that tries each way
  for (int i = 0; i < 200; ++i) hard += "*a*n*e";
  EXPECT_EQ(Do({"CONFIG", "GET", hard.substr(0, 1024)}), "()");
}

TEST_F(CommandsTest, EveryCommandIsDescribed) {
  for (const Command& command : AllCommands()) {
    ASSERT_TRUE(client_->Send({"COMMAND", "DOCS", command.name}).ok());
    const absl::StatusOr<Reply> docs = client_->Receive();
    ASSERT_TRUE(docs.ok()) << docs.status();
    ASSERT_EQ(docs->elements.size(), 2u) << command.name;
    const Reply& fields = docs->elements[1];
    std::map<std::string, std::string> described;
    for (size_t i = 0; i + 1 < fields.elements.size(); i += 2) {
      described[fields.elements[i].text] = fields.elements[i + 1].text;
    }
    EXPECT_EQ(described["summary"], command.summary);
    EXPECT_TRUE(described["summary"].ends_with(".")) << command.name;
    // What must be given agrees with the arity: words outside of brackets, alternatives counted
    // once.
    std::string syntax = described["syntax"];
    int words = 1;
    int depth = 0;
    bool inside = false;
    for (const char c : syntax) {
      if (c == '|' && depth == 0 && !inside) break;
      depth += c == '[' ? 1 : c == ']' ? -1 : 0;
      const bool word = c != ' ' && c != '[' && c != ']' && depth == 0;
      if (word && !inside) ++words;
      inside = word;
    }
    EXPECT_EQ(depth, 0) << command.name;
    const int least = command.arity < 0 ? -command.arity : command.arity;
    EXPECT_GE(words, least) << command.name << ": " << syntax;
  }
}

TEST_F(CommandsTest, HelloChoosesTheProtocol) {
  EXPECT_EQ(Do({"HELLO", "4"}), "!NOPROTO unsupported protocol version");
  EXPECT_EQ(Do({"HELLO", "3", "SETNAME", "x", "AUTH", "default", "any"}).substr(0, 35),
            "(server varve version 7.0.0 proto 3");
  EXPECT_EQ(Do({"CLIENT", "GETNAME"}), "x");
  ASSERT_TRUE(client_->Send({"CONFIG", "GET", "save"}).ok());
  EXPECT_EQ(client_->Receive()->type, Reply::Type::kMap);
  ASSERT_TRUE(client_->Send({"GET", "missing"}).ok());
  EXPECT_TRUE(client_->Receive()->is_null());
  EXPECT_EQ(Do({"HELLO", "2"}).substr(0, 35), "(server varve version 7.0.0 proto 2");
  EXPECT_EQ(Do({"HELLO", "3", "WHAT"}), "!ERR Syntax error in HELLO option 'WHAT'");
}

}  // namespace
}  // namespace varve
