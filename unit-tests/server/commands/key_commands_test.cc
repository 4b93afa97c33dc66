// Commands on keys over a socket: names, copies, patterns, scans, and the commands of Redis that
// Varve doesn't have.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/commands/command_table.h"
#include "server/requests/foreign_commands.h"
#include "server/scans/key_scan.h"
#include "unit-tests/server/command_fixture.h"

namespace varve {
namespace {

class KeyCommandsTest : public testing::CommandTest {
 protected:
  // What a whole scan lists, in its order. `between` runs after each step.
  template <typename Between>
  std::vector<std::string> Scan(std::vector<std::string> options, const Between& between) {
    std::vector<std::string> keys;
    std::vector<std::string> line = {"SCAN", "0"};
    line.insert(line.end(), options.begin(), options.end());
    do {
      const std::vector<std::string_view> views(line.begin(), line.end());
      EXPECT_TRUE(client_->Send(views).ok());
      const absl::StatusOr<Reply> reply = client_->Receive();
      if (!reply.ok() || reply->elements.size() != 2) {
        ADD_FAILURE() << (reply.ok() ? Text(*reply) : reply.status().ToString());
        return keys;
      }
      line[1] = reply->elements[0].text;
      for (const Reply& key : reply->elements[1].elements) keys.push_back(key.text);
      between();
    } while (line[1] != "0");
    return keys;
  }
  std::vector<std::string> Scan(const std::vector<std::string>& options) {
    return Scan(options, [] {});
  }
};

TEST_F(KeyCommandsTest, WhatNeedsNoValueCountsAndSizesIt) {
  const std::string large(3u << 20, 'x');
  Do({"MSET", "large", large, "empty", "", "small", "abc"});
  const auto lookups = [&] {
    const std::string stats = Do({"INFO", "stats"});
    const auto number = [&](const std::string& name) {
      return std::stoll(stats.substr(stats.find(name) + name.size()));
    };
    return std::pair(number("keyspace_hits:"), number("keyspace_misses:"));
  };
  const auto before = lookups();
  EXPECT_EQ(Do({"STRLEN", "large"}), std::to_string(large.size()));
  EXPECT_EQ(Do({"STRLEN", "empty"}), "0");
  EXPECT_EQ(Do({"STRLEN", "none"}), "0");
  EXPECT_EQ(Do({"TYPE", "empty"}), "string");
  EXPECT_EQ(Do({"EXISTS", "large", "large", "none", "empty"}), "3");
  EXPECT_EQ(Do({"MEMORY", "USAGE", "none"}), "nil");
  EXPECT_EQ(Do({"MEMORY", "USAGE", "small", "SAMPLES", "-1"}), "!ERR syntax error");
  EXPECT_EQ(std::stoll(Do({"MEMORY", "USAGE", "large"})) -
                std::stoll(Do({"MEMORY", "USAGE", "small", "samples", "5"})),
            static_cast<long long>(large.size()) - 3);
  const auto after = lookups();
  EXPECT_EQ(after.first - before.first, 6) << "MEMORY USAGE is none";
  EXPECT_EQ(after.second - before.second, 2);
}

TEST_F(KeyCommandsTest, ADatabaseIsA32BitNumber) {
  Do({"SET", "a", "1"});
  const std::string beyond =
      "!ERR value is out of range, value must between -2147483648 and 2147483647";
  EXPECT_EQ(Do({"COPY", "a", "b", "DB", "2147483648"}), beyond);
  EXPECT_EQ(Do({"SELECT", "-2147483649"}), beyond);
  EXPECT_EQ(Do({"MOVE", "a", "2147483648"}), beyond);
  EXPECT_EQ(Do({"SELECT", "2147483647"}), "!ERR DB index is out of range");
  EXPECT_EQ(Do({"SELECT", "x"}), "!ERR value is not an integer or out of range");
}

TEST_F(KeyCommandsTest, FlushDbEmptiesTheOneDatabase) {
  Do({"SET", "a", "1"});
  EXPECT_EQ(Do({"FLUSHDB", "SOON"}), "!ERR syntax error");
  EXPECT_EQ(Do({"FLUSHDB", "ASYNC"}), "OK");
  EXPECT_EQ(Do({"DBSIZE"}), "0");
}

TEST_F(KeyCommandsTest, NamesChange) {
  EXPECT_EQ(Do({"RENAME", "a", "b"}), "!ERR no such key");
  EXPECT_EQ(Do({"RENAME", "a", "a"}), "!ERR no such key");
  EXPECT_EQ(Do({"RENAMENX", "a", "b"}), "!ERR no such key");
  Do({"MSET", "a", "1", "b", "2"});
  EXPECT_EQ(Do({"RENAMENX", "a", "b"}), "0");
  EXPECT_EQ(Do({"RENAMENX", "a", "a"}), "0");
  EXPECT_EQ(Do({"RENAME", "a", "a"}), "OK");
  EXPECT_EQ(Do({"RENAME", "a", "b"}), "OK");
  EXPECT_EQ(Do({"MGET", "a", "b"}), "(nil 1)");
  EXPECT_EQ(Do({"RENAMENX", "b", "c"}), "1");
  EXPECT_EQ(Do({"RENAME", "b"}), "!ERR wrong number of arguments for 'rename' command");
  Restart();
  EXPECT_EQ(Do({"MGET", "a", "b", "c"}), "(nil nil 1)");
}

TEST_F(KeyCommandsTest, Copies) {
  EXPECT_EQ(Do({"COPY", "a", "b"}), "0");
  Do({"SET", "a", "1"});
  EXPECT_EQ(Do({"COPY", "a", "b"}), "1");
  Do({"SET", "a", "2"});
  EXPECT_EQ(Do({"COPY", "a", "b"}), "0");
  EXPECT_EQ(Do({"COPY", "a", "b", "DB", "0", "replace"}), "1");
  EXPECT_EQ(Do({"MGET", "a", "b"}), "(2 2)");
  EXPECT_EQ(Do({"COPY", "a", "a"}), "!ERR source and destination objects are the same");
  EXPECT_EQ(Do({"COPY", "a", "b", "DB", "16"}), "!ERR DB index is out of range");
  EXPECT_EQ(Do({"COPY", "a", "b", "DB", "x"}), "!ERR value is not an integer or out of range");
  EXPECT_EQ(Do({"COPY", "a", "b", "DB"}), "!ERR syntax error");
  EXPECT_EQ(Do({"COPY", "a", "b", "what"}), "!ERR syntax error");
}

TEST_F(KeyCommandsTest, WhatAKeyIs) {
  Do({"MSET", "n", "123", "t", "text"});
  EXPECT_EQ(Do({"TYPE", "n"}), "string");
  EXPECT_EQ(Do({"TYPE", "none"}), "none");
  EXPECT_EQ(Do({"TOUCH", "n", "n", "none", "t"}), "3");
  EXPECT_EQ(Do({"UNLINK", "n", "none", "n"}), "1");
  const std::map<std::string, std::string> encodings = {{"123", "int"},
                                                        {"-1", "int"},
                                                        {"9223372036854775807", "int"},
                                                        {"9223372036854775808", "embstr"},
                                                        {"0123", "embstr"},
                                                        {"-0", "embstr"},
                                                        {"", "embstr"},
                                                        {std::string(44, 'x'), "embstr"},
                                                        {std::string(45, 'x'), "raw"}};
  for (const auto& [value, encoding] : encodings) {
    Do({"SET", "k", value});
    EXPECT_EQ(Do({"OBJECT", "ENCODING", "k"}), encoding) << value;
  }
  EXPECT_EQ(Do({"OBJECT", "REFCOUNT", "k"}), "1");
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", "k"}), "0");
  EXPECT_TRUE(
      Do({"OBJECT", "FREQ", "k"}).starts_with("!ERR An LFU maxmemory policy is not selected"));
  Do({"SET", "k", "9999"});
  EXPECT_EQ(Do({"OBJECT", "REFCOUNT", "k"}), "2147483647");
  Do({"SET", "k", "10000"});
  EXPECT_EQ(Do({"OBJECT", "REFCOUNT", "k"}), "1");
  for (const char* what : {"ENCODING", "refcount", "IDLETIME", "FREQ"})
    EXPECT_EQ(Do({"OBJECT", what, "none"}), "nil");
  EXPECT_EQ(Do({"OBJECT", "WHAT", "k"}), "!ERR unknown subcommand 'WHAT'. Try OBJECT HELP.");
  EXPECT_EQ(Do({"OBJECT", "ENCODING"}),
            "!ERR wrong number of arguments for 'object|encoding' command");
  EXPECT_NE(Do({"OBJECT", "HELP"}).find("ENCODING key"), std::string::npos);
}

TEST_F(KeyCommandsTest, KeysListsWhatMatches) {
  EXPECT_EQ(Do({"KEYS", "*"}), "()");
  Do({"MSET", "hello", "1", "hallo", "2", "h*llo", "3", "H", "4", "", "5"});
  EXPECT_EQ(Do({"KEYS", "*"}), "( H h*llo hallo hello)");
  EXPECT_EQ(Do({"KEYS", "h?llo"}), "(h*llo hallo hello)");
  EXPECT_EQ(Do({"KEYS", "h[ae]llo"}), "(hallo hello)");
  EXPECT_EQ(Do({"KEYS", "h\\*llo"}), "(h*llo)");
  EXPECT_EQ(Do({"KEYS", "h"}), "()");
  EXPECT_EQ(Do({"KEYS", "hello"}), "(hello)");
  EXPECT_EQ(Do({"KEYS", ""}), "()");  // one key: the empty one
  EXPECT_EQ(Do({"KEYS"}), "!ERR wrong number of arguments for 'keys' command");
  // More than is collected before the number is announced.
  Do({"FLUSHALL"});
  const std::string tail(2000, 'x');
  std::string expected = "(";
  for (int i = 1000; i < 1400; ++i) {
    Do({"SET", "k" + std::to_string(i) + (i % 2 == 0 ? tail : ""), ""});
    if (i % 2 == 0) expected += (i > 1000 ? " k" : "k") + std::to_string(i) + tail;
  }
  EXPECT_EQ(Do({"KEYS", "k1*x"}), expected + ")");
}

TEST_F(KeyCommandsTest, ScanRefusesAsRedisDoes) {
  for (const char* bad : {"abc", "5x", " 5", "99999999999999999999999"})
    EXPECT_EQ(Do({"SCAN", bad}), "!ERR invalid cursor");
  EXPECT_EQ(Do({"SCAN", "0", "MATCH"}), "!ERR syntax error");
  EXPECT_EQ(Do({"SCAN", "0", "COUNT", "0"}), "!ERR syntax error");
  EXPECT_EQ(Do({"SCAN", "0", "WHAT", "x"}), "!ERR syntax error");
  EXPECT_EQ(Do({"SCAN", "0", "COUNT", "x"}), "!ERR value is not an integer or out of range");
  EXPECT_EQ(Do({"SCAN"}), "!ERR wrong number of arguments for 'scan' command");
  EXPECT_EQ(Do({"SCAN", "0"}), "(0 ())");
  EXPECT_TRUE(Do({"SCAN", "18446744073709551615"}).starts_with("!ERR invalid cursor: "));
}

TEST_F(KeyCommandsTest, ScanListsEachKeyOnceInOrder) {
  std::set<std::string> keys;
  for (int i = 0; i < 300; ++i) keys.insert("key:" + std::to_string(i));
  keys.insert({"", "a", "key:", "z", std::string(3000, 'y')});
  for (const std::string& key : keys) Do({"SET", key, "v"});
  const std::vector<std::string> all(keys.begin(), keys.end());
  for (const char* count : {"1", "7", "1000", "9223372036854775807"})
    EXPECT_EQ(Scan({"COUNT", count}), all);
  EXPECT_EQ(Scan({}), all);
  EXPECT_EQ(Scan({"TYPE", "STRING"}), all);
  EXPECT_EQ(Do({"SCAN", "0", "TYPE", "list"}), "(0 ())");
  EXPECT_EQ(Scan({"MATCH", "key:1?", "COUNT", "3"}).size(), 10u);
  EXPECT_EQ(Scan({"MATCH", "key:29[0-4]"}).size(), 5u);
  EXPECT_EQ(Scan({"MATCH", ""}), std::vector<std::string>{""});
  // A pattern's beginning is sought, not walked to.
  EXPECT_EQ(Do({"SCAN", "0", "MATCH", "z*", "COUNT", "1"}), "(0 (z))");
}

TEST_F(KeyCommandsTest, ScanListsWhatStaysWhileOthersComeAndGo) {
  std::vector<std::string> staying;
  for (int i = 1000; i < 1200; ++i) {
    Do({"MSET", "k" + std::to_string(i), "v", "k" + std::to_string(i) + "gone", "v"});
    staying.push_back("k" + std::to_string(i));
  }
  int step = 0;
  std::vector<std::string> seen = Scan({"COUNT", "5"}, [&] {
    for (int i = 1000 + step % 7; i < 1200; i += 7) Do({"DEL", "k" + std::to_string(i) + "gone"});
    Do({"SET", "k" + std::to_string(1000 + step) + "new", "v"});
    ++step;
  });
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), seen.size());
  std::erase_if(seen, [](const std::string& key) { return key.size() > 5; });
  EXPECT_EQ(seen, staying);
}

TEST_F(KeyCommandsTest, ACursorCanBeUsedAgainAndByOthers) {
  Do({"MSET", "a", "1", "b", "1", "c", "1", "d", "1"});
  ASSERT_TRUE(client_->Send({"SCAN", "0", "COUNT", "2"}).ok());
  const std::string cursor = client_->Receive()->elements[0].text;
  EXPECT_LT(std::stoull(cursor), uint64_t{1} << 53);
  client_ = server_.Connect();
  EXPECT_EQ(Do({"SCAN", cursor}), "(0 (c d))");
  EXPECT_EQ(Do({"SCAN", cursor}), "(0 (c d))");
  EXPECT_EQ(Do({"SCAN", cursor, "MATCH", "d*"}), "(0 (d))");
  Restart();
  EXPECT_TRUE(Do({"SCAN", cursor}).starts_with("!ERR invalid cursor: "));
}

TEST_F(KeyCommandsTest, RandomKeyFindsEveryKey) {
  EXPECT_EQ(Do({"RANDOMKEY"}), "nil");
  std::set<std::string> keys = {"", "a", std::string("\xff\xff"), std::string("\xff\xff\xff")};
  for (int i = 100; i < 120; ++i) keys.insert("user:" + std::to_string(i));
  for (const std::string& key : keys) Do({"SET", key, "v"});
  std::set<std::string> seen;
  for (int i = 0; i < 5000 && seen != keys; ++i) seen.insert(Do({"RANDOMKEY"}));
  EXPECT_EQ(seen, keys);
  Do({"FLUSHALL"});
  std::map<std::string, int> drawn;
  for (int i = 100; i < 200; ++i) Do({"SET", "user:" + std::to_string(i), "v"});
  for (int i = 0; i < 5000; ++i) ++drawn[Do({"RANDOMKEY"})];
  ASSERT_EQ(drawn.size(), 100u);  // keys built alike: 50 each on average
  for (const auto& [key, times] : drawn) EXPECT_LT(times, 110) << key;
}

TEST_F(KeyCommandsTest, CommandsForOtherTypesSayWhatVarveIs) {
  EXPECT_EQ(
      Do({"lpush", "a", "b"}),
      "!ERR 'LPUSH' works on lists, which Varve does not have: it keeps strings in key order");
  EXPECT_EQ(Do({"GEORADIUSBYMEMBER_RO", "a"}),
            "!ERR 'GEORADIUSBYMEMBER_RO' works on geographic positions, which Varve does not have: "
            "it keeps strings in "
            "key order");
  EXPECT_EQ(Do({"NOTHING"}), "!ERR unknown command 'NOTHING', with args beginning with: ");
  for (const char* name : {"hset", "SADD", "zadd", "xadd", "EVAL", "geoadd", "pfadd", "cluster",
                           "zunionstore", "debug"}) {
    EXPECT_NE(ForeignCommandError(name), "") << name;
    EXPECT_EQ(FindCommand(name), nullptr) << name;
  }
  for (const Command& command : AllCommands())
    EXPECT_EQ(ForeignCommandError(command.name), "") << command.name;
  EXPECT_EQ(ForeignCommandError(""), "");
  EXPECT_EQ(ForeignCommandError("zzz"), "");
}

}  // namespace
}  // namespace varve
