// Databases and named namespaces over a socket.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "fmt/format.h"
#include "unit-tests/server/command_fixture.h"

namespace varve {
namespace {

using testing::RawConnection;
using testing::Resp;

class NamespaceCommandsTest : public testing::CommandTest {
 protected:
  std::string On(Client& client, const std::vector<std::string>& arguments) {
    return testing::Ask(client, arguments);
  }
  void Use(const std::string& database) { ASSERT_EQ(Do({"SELECT", database}), "OK"); }
};

TEST_F(NamespaceCommandsTest, EachDatabaseHasKeysOfItsOwn) {
  for (const std::string database : {"0", "1", "15"}) {
    Use(database);
    ASSERT_EQ(Do({"SET", "key", "in " + database}), "OK");
    ASSERT_EQ(Do({"SET", "key" + database, ""}), "OK");
  }
  for (int round = 0; round < 2; ++round) {
    for (const std::string database : {"0", "1", "15"}) {
      Use(database);
      EXPECT_EQ(Do({"GET", "key"}), "in " + database);
      EXPECT_EQ(Do({"KEYS", "*"}), "(key key" + database + ")");
      EXPECT_EQ(Do({"RANGE", "-", "+", "KEYS"}), "(key key" + database + ")");
      EXPECT_EQ(Do({"PREFIX", "key", "KEYS"}), "(key key" + database + ")");
      EXPECT_EQ(Do({"SCAN", "0"}), "(0 (key key" + database + "))");
      EXPECT_EQ(Do({"MGET", "key", "key1"}),
                "(in " + database + (database == "1" ? " )" : " nil)"));
      EXPECT_EQ(Do({"EXISTS", "key0", "key1", "key15"}), "1");
      EXPECT_EQ(Do({"COUNT", "-", "+"}), "2");
      EXPECT_EQ(Do({"DBSIZE"}), "2");
      EXPECT_EQ(Do({"STRLEN", "key"}), std::to_string(3 + database.size()));
      EXPECT_EQ(Do({"TYPE", "key0"}), database == "0" ? "string" : "none");
      EXPECT_EQ(Do({"OBJECT", "ENCODING", "key"}), "embstr");
      EXPECT_EQ(Do({"RANDOMKEY"}).substr(0, 3), "key");
    }
    Restart();
  }
  Use("2");
  EXPECT_EQ(Do({"RANDOMKEY"}), "nil");
  EXPECT_EQ(Do({"LCS", "key", "key"}), "");
}

TEST_F(NamespaceCommandsTest, EveryWriteGoesToTheDatabaseInUse) {
  Use("3");
  Do({"MSET", "a", "1", "b", "2"});
  Do({"MSETNX", "c", "3"});
  Do({"SETNX", "d", "4"});
  Do({"INCRBY", "a", "10"});
  Do({"INCRBYFLOAT", "f", "1.5"});
  Do({"APPEND", "b", "2"});
  Do({"SETRANGE", "r", "1", "x"});
  Do({"SETBIT", "bit", "1", "1"});
  Do({"BITFIELD", "field", "SET", "u8", "0", "65"});
  Do({"BITOP", "NOT", "not", "field"});
  Do({"RENAME", "c", "e"});
  Do({"COPY", "e", "g"});
  Do({"GETSET", "h", "1"});
  Do({"DEL", "h"});
  Do({"GETDEL", "d"});
  EXPECT_EQ(Do({"RANGE", "-", "+", "LIMIT", "0", "3"}), "(a 11 b 22 bit @)");
  EXPECT_EQ(Do({"KEYS", "*"}), "(a b bit e f field g not r)");
  EXPECT_EQ(Do({"DELRANGE", "[b", "(g"}), "OK");
  EXPECT_EQ(Do({"KEYS", "*"}), "(a g not r)");
  EXPECT_EQ(Do({"COMPACT"}), "OK");
  EXPECT_EQ(Do({"EXPLAIN", "GET", "a"}).substr(0, 9), "(found 1 ");
  Use("0");
  EXPECT_EQ(Do({"DBSIZE"}), "0");
}

TEST_F(NamespaceCommandsTest, MoveCopySwapAndFlush) {
  Do({"SET", "key", "zero"});
  EXPECT_EQ(Do({"MOVE", "key", "0"}), "!ERR source and destination objects are the same");
  EXPECT_EQ(Do({"MOVE", "missing", "1"}), "0");
  EXPECT_EQ(Do({"MOVE", "key", "1"}), "1");
  EXPECT_EQ(Do({"GET", "key"}), "nil");
  Do({"SET", "key", "again"});
  EXPECT_EQ(Do({"MOVE", "key", "1"}), "0") << "there is one";
  EXPECT_EQ(Do({"COPY", "key", "key", "DB", "0"}),
            "!ERR source and destination objects are the same");
  EXPECT_EQ(Do({"COPY", "key", "key", "DB", "1"}), "0");
  EXPECT_EQ(Do({"COPY", "key", "key", "DB", "1", "REPLACE"}), "1");
  EXPECT_EQ(Do({"COPY", "key", "key2", "DB", "7"}), "1");
  EXPECT_EQ(Do({"COPY", "key", "key2", "DB", "16"}), "!ERR DB index is out of range");
  EXPECT_EQ(Do({"SWAPDB", "0", "7"}), "OK");
  EXPECT_EQ(Do({"KEYS", "*"}), "(key2)");
  EXPECT_EQ(Do({"INFO", "keyspace"}),
            "# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0\r\ndb1:keys=1,expires=0,avg_ttl=0\r\n"
            "db7:keys=1,expires=0,avg_ttl=0\r\n");
  Restart();
  EXPECT_EQ(Do({"KEYS", "*"}), "(key2)");
  EXPECT_EQ(Do({"FLUSHDB"}), "OK");
  EXPECT_EQ(Do({"DBSIZE"}), "0");
  Use("7");
  EXPECT_EQ(Do({"GET", "key"}), "again");
  Do({"NAMESPACE", "CREATE", "apart"});
  Do({"NAMESPACE", "USE", "apart"});
  Do({"SET", "key", "value"});
  EXPECT_EQ(Do({"COPY", "key", "from apart", "DB", "2"}), "1");
  EXPECT_EQ(Do({"FLUSHALL"}), "OK");
  EXPECT_EQ(Do({"GET", "key"}), "value") << "named ones stay";
  EXPECT_EQ(Do({"INFO", "keyspace"}), "# Keyspace\r\n");
  EXPECT_EQ(Do({"FLUSHDB"}), "OK");
  EXPECT_EQ(Do({"GET", "key"}), "nil");
}

TEST_F(NamespaceCommandsTest, AConnectionBeginsInDatabaseZeroAndResetsToIt) {
  Use("5");
  Do({"SET", "key", "five"});
  const auto other = server_.Connect();
  EXPECT_EQ(On(*other, {"GET", "key"}), "nil");
  EXPECT_NE(Do({"CLIENT", "INFO"}).find(" db=5 "), std::string::npos);
  EXPECT_NE(On(*other, {"CLIENT", "LIST"}).find(" db=5 "), std::string::npos);
  EXPECT_EQ(Do({"RESET"}), "RESET");
  EXPECT_EQ(Do({"GET", "key"}), "nil");
  EXPECT_NE(Do({"CLIENT", "INFO"}).find(" db=0 "), std::string::npos);
}

TEST_F(NamespaceCommandsTest, ABatchMayChangeTheDatabaseBetweenItsRequests) {
  RawConnection connection(server_.port());
  std::string requests, replies;
  for (int i = 0; i < 40; ++i) {
    const std::string database = std::to_string(i % 4);
    requests += Resp({"SELECT", database});
    replies += "+OK\r\n";
    for (int key = 0; key < 5; ++key) {
      requests += Resp({"SET", "key" + std::to_string(key), database});
      replies += "+OK\r\n";
    }
    for (int key = 0; key < 5; ++key) {
      requests += Resp({"GET", "key" + std::to_string(key)});
      replies += "$1\r\n" + database + "\r\n";
    }
  }
  ASSERT_TRUE(connection.Send(requests));
  EXPECT_EQ(connection.Receive(replies.size()), replies);
}

// Requests of connections that arrive together are executed together.
TEST_F(NamespaceCommandsTest, ConnectionsInDifferentDatabasesDontMeet) {
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (int i = 0; i < 12; ++i) {
    connections.push_back(std::make_unique<RawConnection>(server_.port()));
    ASSERT_TRUE(connections.back()->Send(Resp({"SELECT", std::to_string(i % 3)})));
    ASSERT_EQ(connections.back()->Receive(5), "+OK\r\n");
  }
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 12; ++i) {
      ASSERT_TRUE(connections[i]->Send(
          Resp({"SET", "key" + std::to_string(i / 3), std::to_string(i % 3)})));
    }
    for (const auto& connection : connections) ASSERT_EQ(connection->Receive(5), "+OK\r\n");
    for (int i = 0; i < 12; ++i)
      ASSERT_TRUE(connections[i]->Send(Resp({"GET", "key" + std::to_string(i / 3)})));
    for (int i = 0; i < 12; ++i) {
      ASSERT_EQ(connections[i]->Receive(7), "$1\r\n" + std::to_string(i % 3) + "\r\n")
          << "round " << round;
    }
  }
}

TEST_F(NamespaceCommandsTest, NamedOnesComeAndGo) {
  EXPECT_EQ(Do({"NAMESPACE", "LIST"}), "()");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "users", "MAXKEYS", "1000", "MAXBYTES", "1MiB", "EX", "60",
                "SYNC", "everysec", "VALUESIZE", "4KiB"}),
            "OK");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "users"}), "!ERR namespace 'users' exists already");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "a b"}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "LIST"}), "(a b users)");
  EXPECT_EQ(Do({"NAMESPACE", "USE", "users"}), "OK");
  Do({"SET", "key", "value"});
  Restart();
  EXPECT_EQ(Do({"GET", "key"}), "nil");
  EXPECT_EQ(Do({"NAMESPACE", "USE", "users"}), "OK");
  EXPECT_EQ(Do({"GET", "key"}), "value");
  const std::string limits =
      " maxkeys 1000 maxbytes 1048576 default_expiry_ms 60000 value_separation_size 4096 sync ";
  const std::string promises =
      " together no group  atomicity any keys provides (any-keys snapshots range-delete clone "
      "exact-counts size-estimates quotas history swaps own-files)";
  EXPECT_EQ(Do({"NAMESPACE", "INFO", "users"}),
            "(name users id 65536 keys 1 bytes 8" + limits +
                "everysec keep default keep_bytes 0 compress default plain_value_bytes 0 "
                "stored_value_bytes 0 evict none evictable all" +
                promises + " first_version 3)");
  EXPECT_EQ(Do({"NAMESPACE", "ALTER", "users", "SYNC", "default", "MAXKEYS", "1000"}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "INFO", "users"}),
            "(name users id 65536 keys 1 bytes 8" + limits +
                "default keep default keep_bytes 0 compress default plain_value_bytes 0 "
                "stored_value_bytes 0 evict none evictable all" +
                promises + " first_version 4)");
  EXPECT_EQ(Do({"NAMESPACE", "DROP", "users"}), "OK");
  const std::string dropped =
      "!ERR the namespace in use was dropped: SELECT a database, or NAMESPACE USE another one";
  EXPECT_EQ(Do({"GET", "key"}), dropped);
  EXPECT_EQ(Do({"SET", "key", "value"}), dropped);
  EXPECT_EQ(Do({"INCR", "key"}), dropped);
  EXPECT_EQ(Do({"DBSIZE"}), dropped);
  EXPECT_EQ(Do({"FLUSHDB"}), dropped);
  EXPECT_EQ(Do({"RANGE", "-", "+"}), dropped);
  EXPECT_EQ(Do({"COPY", "a", "b"}), dropped);
  EXPECT_EQ(Do({"PING"}), "PONG");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "users"}), "OK");
  EXPECT_EQ(Do({"GET", "key"}), dropped) << "another one of the same name";
  Use("0");
  EXPECT_EQ(Do({"GET", "key"}), "nil");
  EXPECT_EQ(Do({"NAMESPACE", "LIST"}), "(a b users)");
}

// JSON of which a part is random.
std::string Account(int number) {
  return fmt::format(R"({{"id":{},"token":"{:08x}","name":"customer number {}","city":"Hamburg",)"
                     R"("country":"Germany","tags":["regular","newsletter","invoice by mail"],)"
                     R"("active":true,"balance":{}.{:02}}})",
                     number, static_cast<uint32_t>(number) * 2654435761u, number, number % 977,
                     number % 100);
}

// Returns the figure of that name in what NAMESPACE INFO shows.
int64_t FigureIn(const std::string& shown, const std::string& name) {
  const size_t at = shown.find(" " + name + " ");
  return at == std::string::npos ? -1 : std::stoll(shown.substr(at + name.size() + 2));
}

TEST_F(NamespaceCommandsTest, ValuesAreCompressedAsTheNamespaceSays) {
  constexpr int kKeys = 2000;
  const auto key = [](int number) { return "account:" + std::to_string(100000 + number); };
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "x", "COMPRESS", "gzip"}),
            "!ERR 'gzip' is no value for COMPRESS: it takes one of none, lz4, zstd, "
            "zstd:level, default");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "accounts", "COMPRESS", "zstd:5"}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "USE", "accounts"}), "OK");
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(Do({"SET", key(i), Account(i)}), "OK");
  EXPECT_EQ(Do({"COMPACT"}), "OK");
  for (int round = 0; round < 2; ++round) {
    const std::string shown = Do({"NAMESPACE", "INFO", "accounts"});
    EXPECT_NE(shown.find(" compress zstd:5 "), std::string::npos) << shown;
    EXPECT_GT(FigureIn(shown, "plain_value_bytes"), kKeys * 150);
    EXPECT_LT(FigureIn(shown, "stored_value_bytes") * 2, FigureIn(shown, "plain_value_bytes"));
    for (int i = 0; i < kKeys; i += 97) {
      const std::string value = Account(i);
      ASSERT_EQ(Do({"GET", key(i)}), value);
      ASSERT_EQ(Do({"STRLEN", key(i)}), std::to_string(value.size()));
      ASSERT_EQ(Do({"GETRANGE", key(i), "5", "12"}), value.substr(5, 8));
      ASSERT_EQ(Do({"RANGE", "[" + key(i), "+", "LIMIT", "0", "1"}),
                "(" + key(i) + " " + value + ")");
    }
    ASSERT_EQ(Do({"MGET", key(1), key(2)}), "(" + Account(1) + " " + Account(2) + ")");
    Restart();
    EXPECT_EQ(Do({"NAMESPACE", "USE", "accounts"}), "OK");
  }
  EXPECT_EQ(Do({"APPEND", key(3), "more"}), std::to_string(Account(3).size() + 4));
  EXPECT_EQ(Do({"GET", key(3)}), Account(3) + "more");
  EXPECT_EQ(Do({"NAMESPACE", "CLONE", "accounts", "copy"}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "ALTER", "accounts", "COMPRESS", "none"}), "OK");
  EXPECT_EQ(Do({"COMPACT"}), "OK");
  for (const std::string space : {"accounts", "copy"}) {
    EXPECT_EQ(Do({"NAMESPACE", "USE", space}), "OK");
    for (int i = 0; i < kKeys; i += 97) ASSERT_EQ(Do({"GET", key(i)}), Account(i));
  }
  EXPECT_EQ(Do({"NAMESPACE", "ALTER", "accounts", "COMPRESS", "default"}), "OK");
  EXPECT_NE(Do({"NAMESPACE", "INFO", "accounts"}).find(" compress default "), std::string::npos);
}

TEST_F(NamespaceCommandsTest, ACloneGoesItsOwnWay) {
  Do({"MSET", "a", "1", "b", "2", "c", "3"});
  Do({"PEXPIREAT", "c", "4102444800000"});
  EXPECT_EQ(Do({"NAMESPACE", "CLONE", "0", "copy"}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "CLONE", "0", "copy"}), "!ERR namespace 'copy' exists already");
  Do({"SET", "a", "changed"});
  Do({"DEL", "b"});
  EXPECT_EQ(Do({"NAMESPACE", "USE", "copy"}), "OK");
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(Do({"RANGE", "-", "+"}), "(a 1 b 2 c 3)");
    EXPECT_EQ(Do({"MGET", "c", "b", "a", "d"}), "(3 2 1 nil)");
    EXPECT_EQ(Do({"PEXPIRETIME", "c"}), "4102444800000");
    EXPECT_EQ(Do({"DBSIZE"}), "3");
    Restart();
    EXPECT_EQ(Do({"RANGE", "-", "+"}), "(a changed c 3)");
    EXPECT_EQ(Do({"NAMESPACE", "USE", "copy"}), "OK");
  }
  EXPECT_EQ(Do({"INCR", "a"}), "2");
  EXPECT_EQ(Do({"DEL", "c"}), "1");
  EXPECT_EQ(Do({"SET", "d", "4"}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "CLONE", "copy", "again", "MAXKEYS", "3"}), "OK");
  EXPECT_EQ(Do({"FLUSHDB"}), "OK");
  Use("0");
  EXPECT_EQ(Do({"RANGE", "-", "+"}), "(a changed c 3)");
  EXPECT_EQ(Do({"FLUSHALL"}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "DROP", "copy"}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "LIST"}), "(again)");
  EXPECT_EQ(Do({"NAMESPACE", "USE", "again"}), "OK");
  EXPECT_EQ(Do({"COMPACT"}), "OK");
  EXPECT_EQ(Do({"RANGE", "-", "+"}), "(a 2 b 2 d 4)");
  EXPECT_EQ(Do({"SET", "e", "5"}),
            "!QUOTA namespace 'again' is full: it holds 3 of 3 keys that its quota allows; delete "
            "some or raise it");
  EXPECT_EQ(Do({"SET", "b", "5"}), "OK");
  EXPECT_EQ(Do({"EXPLAIN", "GET", "a"}).substr(0, 9), "(found 1 ");
}

TEST_F(NamespaceCommandsTest, AWatchedKeyOfTheSourceIsNotTouchedByItsClone) {
  Do({"SET", "key", "1"});
  Do({"WATCH", "key"});
  const auto other = server_.Connect();
  EXPECT_EQ(On(*other, {"NAMESPACE", "CLONE", "0", "copy"}), "OK");
  EXPECT_EQ(On(*other, {"NAMESPACE", "USE", "copy"}), "OK");
  EXPECT_EQ(On(*other, {"SET", "key", "2"}), "OK");
  Do({"MULTI"});
  Do({"INCR", "key"});
  EXPECT_EQ(Do({"EXEC"}), "(2)");
  EXPECT_EQ(On(*other, {"WATCH", "key", "shared"}), "OK");
  Do({"SET", "shared", "1"});
  On(*other, {"MULTI"});
  On(*other, {"INCR", "key"});
  EXPECT_EQ(On(*other, {"EXEC"}), "(3)") << "nor a clone's by its source";
  Do({"NAMESPACE", "USE", "copy"});
  EXPECT_EQ(On(*other, {"WATCH", "key"}), "OK");
  Do({"SET", "key", "9"});
  On(*other, {"MULTI"});
  On(*other, {"INCR", "key"});
  EXPECT_EQ(On(*other, {"EXEC"}), "nil");
}

TEST_F(NamespaceCommandsTest, MistakesAreNamed) {
  EXPECT_EQ(Do({"NAMESPACE", "CLONE", "nobody", "copy"}), "!ERR there is no namespace 'nobody'");
  EXPECT_EQ(Do({"NAMESPACE", "CLONE", "0", "3"}),
            "!ERR a number names a database, which is there when it is used");
  EXPECT_EQ(Do({"NAMESPACE", "CLONE", "0", ""}), "!ERR a namespace's name has 1 to 256 bytes");
  EXPECT_EQ(Do({"NAMESPACE", "CLONE", "0", "x", "MAXKEYS"}), "!ERR syntax error");

  EXPECT_EQ(Do({"NAMESPACE", "USE", "nobody"}), "!ERR there is no namespace 'nobody'");
  EXPECT_EQ(Do({"NAMESPACE", "DROP", "nobody"}), "!ERR there is no namespace 'nobody'");
  EXPECT_EQ(Do({"NAMESPACE", "DROP", "3"}), "!ERR a database can't be dropped: FLUSHDB empties it");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "3"}),
            "!ERR a number names a database, which is there when it is used");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", ""}), "!ERR a namespace's name has 1 to 256 bytes");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", std::string(257, 'n')}),
            "!ERR a namespace's name has 1 to 256 bytes");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", std::string(256, 'n')}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "x", "MAXKEYS"}), "!ERR syntax error");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "x", "COLOUR", "red"}), "!ERR syntax error");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "x", "MAXKEYS", "-1"}), "!ERR '-1' is no value for MAXKEYS");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "x", "SYNC", "never"}),
            "!ERR 'never' is no value for SYNC: it takes one of always, everysec, no, default");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "x", "EX", "9223372036854775807"}),
            "!ERR '9223372036854775807' is no value for EX");
  EXPECT_EQ(Do({"NAMESPACE", "USE", "16"}), "!ERR DB index is out of range");
  EXPECT_EQ(Do({"NAMESPACE", "ALTER", "9", "MAXKEYS", "1"}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "USE", "9"}), "OK");
  Do({"SET", "a", "1"});
  EXPECT_EQ(Do({"SET", "b", "1"}),
            "!QUOTA database 9 is full: it holds 1 of 1 keys that its quota allows; delete some or "
            "raise it");
}

TEST_F(NamespaceCommandsTest, AFullQuotaRefusesOnlyWhatDoesntFit) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "small", "MAXKEYS", "3"}), "OK");
  RawConnection connection(server_.port());
  const std::string full =
      "-QUOTA namespace 'small' is full: it holds 3 of 3 keys that its quota allows; delete some "
      "or raise it\r\n";
  std::string requests = Resp({"NAMESPACE", "USE", "small"}), replies = "+OK\r\n";
  for (int i = 0; i < 6; ++i) {
    requests += Resp({"SET", "key" + std::to_string(i), "value"});
    replies += i < 3 ? "+OK\r\n" : full;
  }
  requests += Resp({"SET", "key0", "another"}) + Resp({"SET", "key1", "another"}) +
              Resp({"DEL", "key2"}) + Resp({"APPEND", "key5", "x"}) + Resp({"INCR", "key6"}) +
              Resp({"MSET", "key0", "1", "key7", "1"}) + Resp({"GET", "key0"});
  replies += "+OK\r\n+OK\r\n:1\r\n:1\r\n" + full + full + "$7\r\nanother\r\n";
  ASSERT_TRUE(connection.Send(requests));
  EXPECT_EQ(connection.Receive(replies.size()), replies);
  // Those of others that arrive with them are not refused with them.
  std::vector<std::unique_ptr<RawConnection>> others;
  for (int i = 0; i < 4; ++i) others.push_back(std::make_unique<RawConnection>(server_.port()));
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(connection.Send(Resp({"SET", "one more", "value"})));
    for (const auto& other : others) ASSERT_TRUE(other->Send(Resp({"SET", "key", "value"})));
    ASSERT_EQ(connection.Receive(full.size()), full);
    for (const auto& other : others) ASSERT_EQ(other->Receive(5), "+OK\r\n");
  }
}

TEST_F(NamespaceCommandsTest, MonitorsSeeTheDatabase) {
  RawConnection monitor(server_.port());
  ASSERT_TRUE(monitor.Send(Resp({"MONITOR"})));
  ASSERT_EQ(monitor.Receive(5), "+OK\r\n");
  Do({"ECHO", "first"});
  Use("4");
  Do({"GET", "key"});
  std::string seen;
  while (seen.find("\"GET\"") == std::string::npos && !monitor.closed()) seen += monitor.Receive(1);
  EXPECT_NE(seen.find(" [0 127.0.0.1"), std::string::npos) << seen;
  EXPECT_NE(seen.find(" [4 127.0.0.1"), std::string::npos) << seen;
}

class FewDatabasesTest : public ::testing::Test {};

TEST_F(FewDatabasesTest, HowManyThereAreIsASetting) {
  ServerOptions options;
  options.databases = 2;
  const testing::TestServer server(options);
  const auto client = server.Connect();
  EXPECT_EQ(testing::Ask(*client, {"SELECT", "1"}), "OK");
  EXPECT_EQ(testing::Ask(*client, {"SELECT", "2"}), "!ERR DB index is out of range");
  EXPECT_EQ(testing::Ask(*client, {"SWAPDB", "0", "2"}), "!ERR DB index is out of range");
  EXPECT_EQ(testing::Ask(*client, {"CONFIG", "GET", "databases"}), "(databases 2)");
}

}  // namespace
}  // namespace varve
