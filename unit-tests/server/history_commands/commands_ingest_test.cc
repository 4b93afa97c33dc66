// INGEST: one step, one version, all or nothing; ids that belong to the server; rights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "server/ingests/ingest_table.h"
#include "unit-tests/server/caching_client.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"

namespace varve {
namespace {

using testing::Ask;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TestServer;
using Words = std::vector<std::string>;

class IngestCommandsTest : public ::testing::Test {
 protected:
  std::string Do(const Words& arguments) { return Ask(*client_, arguments); }
  // Makes a limited user, and returns a connection that has logged in as it.
  std::unique_ptr<Client> LimitedTo(const std::string& name, const Words& rules) {
    Words request = {"ACL", "SETUSER", name, "on", ">secret", "+@all"};
    request.insert(request.end(), rules.begin(), rules.end());
    EXPECT_EQ(Do(request), "OK");
    std::unique_ptr<Client> client = server_.Connect();
    EXPECT_EQ(Ask(*client, {"AUTH", name, "secret"}), "OK");
    return client;
  }

  TestServer server_;
  std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(IngestCommandsTest, EverythingIsSeenFromTheCommitOn) {
  ASSERT_EQ(Do({"SET", "b", "old"}), "OK");
  EXPECT_EQ(Do({"INGEST", "BEGIN", "load"}), "OK");
  EXPECT_EQ(Do({"INGEST", "ADD", "load", "a", "1", "b", "2"}), "OK");
  EXPECT_EQ(Do({"ingest", "add", "load", "c", ""}), "OK");
  EXPECT_EQ(Do({"MGET", "a", "b"}), "(nil old)");
  EXPECT_EQ(Do({"INGEST", "LIST"}), "((id load namespace 0 keys 3 bytes 5 idle_seconds 0))");
  const std::string version = Do({"INGEST", "COMMIT", "load"});
  EXPECT_EQ(Do({"GET", "a", "WITHVERSION"}), fmt::format("(1 {})", version));
  EXPECT_EQ(Do({"GET", "c", "WITHVERSION"}), fmt::format("( {})", version));
  EXPECT_EQ(Do({"MGET", "a", "b", "c"}), "(1 2 )");
  EXPECT_EQ(Do({"DBSIZE"}), "3");
  EXPECT_EQ(Do({"INGEST", "LIST"}), "()");
  EXPECT_THAT(Do({"INGEST", "COMMIT", "load"}), StartsWith("!ERR no ingest 'load'"));
  client_.reset();
  server_.Restart();
  client_ = server_.Connect();
  EXPECT_EQ(Do({"MGET", "a", "b", "c"}), "(1 2 )");
  EXPECT_EQ(Do({"GET", "a", "WITHVERSION"}), fmt::format("(1 {})", version));
}

TEST_F(IngestCommandsTest, AKeyOutOfOrderIsNamedAndChangesNothing) {
  ASSERT_EQ(Do({"INGEST", "BEGIN", "load"}), "OK");
  ASSERT_EQ(Do({"INGEST", "ADD", "load", "k", "1"}), "OK");
  EXPECT_THAT(Do({"INGEST", "ADD", "load", "x", "2", "b", "2"}), HasSubstr("'b' does not come"));
  EXPECT_THAT(Do({"INGEST", "ADD", "load", "b", "2"}),
              ::testing::AllOf(HasSubstr("'b' does not come"), ::testing::Not(HasSubstr("'k'"))))
      << "who adds a key may have no right to read the one before";
  EXPECT_THAT(Do({"INGEST", "ADD", "load", "k", "2"}), StartsWith("!ERR "));
  EXPECT_EQ(Do({"INGEST", "ADD", "load", "l", "3"}), "OK");
  EXPECT_THAT(Do({"INGEST", "COMMIT", "load"}), ::testing::Not(StartsWith("!")));
  EXPECT_EQ(Do({"RANGE", "-", "+"}), "(k 1 l 3)");
}

TEST_F(IngestCommandsTest, ItsKeysAreTold) {
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "INGEST", "ADD", "load", "a", "1", "b", "2"}), "(a b)");
  EXPECT_EQ(Do({"COMMAND", "GETKEYSANDFLAGS", "INGEST", "ADD", "load", "a", "1"}),
            "((a (OW update)))");
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "INGEST", "ADD", "load", "a", "1", "b"}),
            "!ERR Invalid number of arguments specified for command");
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "INGEST", "BEGIN", "load"}),
            "!ERR The command has no key arguments");
}

TEST_F(IngestCommandsTest, ARangeIsReplacedAsAWhole) {
  ASSERT_EQ(Do({"MSET", "a", "1", "p:1", "old", "p:9", "old", "q", "1"}), "OK");
  ASSERT_EQ(Do({"INGEST", "BEGIN", "load", "REPLACE", "[p:", "(p;"}), "OK");
  EXPECT_THAT(Do({"INGEST", "ADD", "load", "q", "1"}), HasSubstr("outside"));
  ASSERT_EQ(Do({"INGEST", "ADD", "load", "p:1", "new", "p:2", "new"}), "OK");
  EXPECT_EQ(Do({"WATCH", "p:9", "p:1"}), "OK");
  const std::unique_ptr<Client> other = server_.Connect();
  EXPECT_THAT(Ask(*other, {"INGEST", "COMMIT", "load"}), ::testing::Not(StartsWith("!")))
      << "any connection may go on with it";
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"GET", "a"}), "QUEUED");
  EXPECT_EQ(Do({"EXEC"}), "nil") << "a watched key was replaced";
  EXPECT_EQ(Do({"RANGE", "-", "+"}), "(a 1 p:1 new p:2 new q 1)");
  EXPECT_EQ(Do({"COUNT", "-", "+"}), "4");
}

TEST_F(IngestCommandsTest, ANamespaceIsNamed) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "app"}), "OK");
  ASSERT_EQ(Do({"INGEST", "BEGIN", "one", "NAMESPACE", "app"}), "OK");
  ASSERT_EQ(Do({"INGEST", "BEGIN", "two", "NAMESPACE", "3", "REPLACE", "-", "+"}), "OK");
  EXPECT_THAT(Do({"INGEST", "BEGIN", "three", "NAMESPACE", "none"}), HasSubstr("no namespace"));
  ASSERT_EQ(Do({"INGEST", "ADD", "one", "k", "app"}), "OK");
  ASSERT_EQ(Do({"INGEST", "ADD", "two", "k", "three"}), "OK");
  EXPECT_THAT(Do({"INGEST", "LIST"}), HasSubstr("id one namespace app keys 1"));
  EXPECT_THAT(Do({"INGEST", "COMMIT", "one"}), ::testing::Not(StartsWith("!")));
  EXPECT_THAT(Do({"INGEST", "COMMIT", "two"}), ::testing::Not(StartsWith("!")));
  EXPECT_EQ(Do({"GET", "k"}), "nil");
  ASSERT_EQ(Do({"SELECT", "3"}), "OK");
  EXPECT_EQ(Do({"GET", "k"}), "three");
  ASSERT_EQ(Do({"NAMESPACE", "USE", "app"}), "OK");
  EXPECT_EQ(Do({"GET", "k"}), "app");

  ASSERT_EQ(Do({"INGEST", "BEGIN", "one"}), "OK");
  ASSERT_EQ(Do({"INGEST", "ADD", "one", "k", "later"}), "OK");
  ASSERT_EQ(Do({"FLUSHDB"}), "OK");
  EXPECT_THAT(Do({"INGEST", "COMMIT", "one"}), HasSubstr("emptied or swapped"));
  EXPECT_EQ(Do({"GET", "k"}), "nil");
  EXPECT_EQ(Do({"INGEST", "LIST"}), "()");
}

TEST_F(IngestCommandsTest, WrongRequestsAreRefused) {
  EXPECT_THAT(Do({"INGEST"}), StartsWith("!ERR "));
  EXPECT_THAT(Do({"INGEST", "NONE"}), StartsWith("!ERR "));
  EXPECT_THAT(Do({"INGEST", "BEGIN"}), StartsWith("!ERR "));
  EXPECT_THAT(Do({"INGEST", "BEGIN", ""}), StartsWith("!ERR an ingest's id"));
  EXPECT_THAT(Do({"INGEST", "BEGIN", std::string(300, 'x')}), StartsWith("!ERR an ingest's id"));
  EXPECT_THAT(Do({"INGEST", "BEGIN", "i", "REPLACE", "[a"}), StartsWith("!ERR syntax"));
  EXPECT_THAT(Do({"INGEST", "BEGIN", "i", "REPLACE", "a", "b"}), StartsWith("!ERR min or max"));
  EXPECT_THAT(Do({"INGEST", "BEGIN", "i", "REPLACE", "[b", "[a"}), HasSubstr("empty"));
  EXPECT_THAT(Do({"INGEST", "BEGIN", "i", "NAMESPACE"}), StartsWith("!ERR syntax"));
  EXPECT_THAT(Do({"INGEST", "BEGIN", "i", "NAMESPACE", "99"}), StartsWith("!ERR "));
  ASSERT_EQ(Do({"INGEST", "BEGIN", "i"}), "OK");
  EXPECT_THAT(Do({"INGEST", "BEGIN", "i"}), StartsWith("!ERR an ingest of this id"));
  EXPECT_THAT(Do({"INGEST", "ADD", "i", "key"}), StartsWith("!ERR "));
  EXPECT_THAT(Do({"INGEST", "ADD", "i", "key", "value", "key"}), StartsWith("!ERR wrong number"));
  EXPECT_THAT(Do({"INGEST", "ADD", "none", "key", "value"}), StartsWith("!ERR no ingest"));
  EXPECT_THAT(Do({"INGEST", "ABORT", "none"}), StartsWith("!ERR no ingest"));
  EXPECT_EQ(Do({"INGEST", "ABORT", "i"}), "OK");
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_THAT(Do({"INGEST", "BEGIN", "i"}), StartsWith("!ERR "));
  EXPECT_THAT(Do({"EXEC"}), StartsWith("!EXECABORT"));
  for (size_t i = 0; i < IngestTable::kMostIngests; ++i)
    ASSERT_EQ(Do({"INGEST", "BEGIN", fmt::format("i{}", i)}), "OK");
  EXPECT_THAT(Do({"INGEST", "BEGIN", "more"}), StartsWith("!ERR 16 ingests"));
  EXPECT_EQ(Do({"INGEST", "ABORT", "i7"}), "OK");
  EXPECT_EQ(Do({"INGEST", "BEGIN", "more"}), "OK");
  const std::string before = Do({"INGEST", "COMMIT", "i1"});
  EXPECT_EQ(Do({"INGEST", "COMMIT", "i2"}), before) << "of nothing";
}

TEST_F(IngestCommandsTest, AQuotaIsCheckedAtTheCommit) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "app", "MAXKEYS", "2"}), "OK");
  ASSERT_EQ(Do({"INGEST", "BEGIN", "i", "NAMESPACE", "app"}), "OK");
  ASSERT_EQ(Do({"INGEST", "ADD", "i", "a", "1", "b", "2", "c", "3"}), "OK");
  EXPECT_THAT(Do({"INGEST", "COMMIT", "i"}), StartsWith("!QUOTA "));
  EXPECT_THAT(Do({"INGEST", "ADD", "i", "d", "4"}), StartsWith("!ERR "));
  ASSERT_EQ(Do({"NAMESPACE", "ALTER", "app", "MAXKEYS", "3"}), "OK");
  EXPECT_THAT(Do({"INGEST", "COMMIT", "i"}), ::testing::Not(StartsWith("!")));
  ASSERT_EQ(Do({"NAMESPACE", "ALTER", "app", "EX", "10"}), "OK");
  EXPECT_THAT(Do({"INGEST", "BEGIN", "i", "NAMESPACE", "app"}), HasSubstr("expiry"));
}

TEST_F(IngestCommandsTest, AUserNeedsTheRightToWriteAllOfIt) {
  const auto alice = LimitedTo("alice", {"~a*"});
  ASSERT_EQ(Ask(*alice, {"INGEST", "BEGIN", "hers"}), "OK");
  EXPECT_THAT(Ask(*alice, {"INGEST", "ADD", "hers", "a1", "1", "b", "2"}), StartsWith("!NOPERM "));
  EXPECT_EQ(Ask(*alice, {"INGEST", "ADD", "hers", "a1", "1", "a3", "1"}), "OK");
  EXPECT_THAT(Ask(*alice, {"INGEST", "BEGIN", "range", "REPLACE", "[a", "[b"}),
              StartsWith("!NOPERM "));
  EXPECT_THAT(Ask(*alice, {"INGEST", "BEGIN", "more", "REPLACE", "-", "+"}),
              HasSubstr("every key in the range - +"));
  EXPECT_EQ(Ask(*alice, {"INGEST", "BEGIN", "range", "REPLACE", "[a", "(b"}), "OK");
  ASSERT_EQ(Do({"INGEST", "BEGIN", "all"}), "OK");
  ASSERT_EQ(Do({"INGEST", "ADD", "all", "b", "1"}), "OK");
  EXPECT_THAT(Ask(*alice, {"INGEST", "COMMIT", "all"}), StartsWith("!NOPERM "));
  EXPECT_THAT(Ask(*alice, {"INGEST", "ABORT", "all"}), StartsWith("!NOPERM "));
  const std::string listed = Ask(*alice, {"INGEST", "LIST"});
  EXPECT_THAT(listed, HasSubstr("id hers"));
  EXPECT_THAT(listed, HasSubstr("id range"));
  EXPECT_THAT(listed, ::testing::Not(HasSubstr("id all")));
  const auto bob = LimitedTo("bob", {"~b*"});
  EXPECT_THAT(Ask(*bob, {"INGEST", "COMMIT", "hers"}), StartsWith("!NOPERM "));
  EXPECT_EQ(Ask(*bob, {"INGEST", "LIST"}), "((id all namespace 0 keys 1 bytes 2 idle_seconds 0))");
  EXPECT_THAT(Ask(*alice, {"INGEST", "COMMIT", "hers"}), ::testing::Not(StartsWith("!")));
  EXPECT_THAT(Ask(*alice, {"INGEST", "COMMIT", "range"}), ::testing::Not(StartsWith("!")));
  EXPECT_EQ(Do({"GET", "a1"}), "nil") << "the range was replaced by nothing";
  const auto reader = LimitedTo("reader", {"%R~*", "-@write"});
  EXPECT_THAT(Ask(*reader, {"INGEST", "BEGIN", "x"}), StartsWith("!NOPERM "));
}

TEST_F(IngestCommandsTest, CachesOfClientsAreTold) {
  ASSERT_EQ(Do({"MSET", "a", "1", "p:1", "1", "p:5", "1"}), "OK");
  testing::CachingClient cache(server_.port());
  ASSERT_EQ(cache.Do({"CLIENT", "TRACKING", "ON"}), "OK");
  cache.Do({"MGET", "a", "p:1", "p:5"});
  ASSERT_EQ(Do({"INGEST", "BEGIN", "load", "REPLACE", "[p:", "(p;"}), "OK");
  ASSERT_EQ(Do({"INGEST", "ADD", "load", "p:5", "2"}), "OK");
  EXPECT_THAT(Do({"INGEST", "COMMIT", "load"}), ::testing::Not(StartsWith("!")));
  EXPECT_THAT(cache.Take(), ::testing::ElementsAre("(invalidate (p:1))", "(invalidate (p:5))"));
}

TEST_F(IngestCommandsTest, OneIngestIsUsedByTwoConnections) {
  ASSERT_EQ(Do({"INGEST", "BEGIN", "load"}), "OK");
  std::atomic<int> added{0};
  const auto add = [&] {
    const auto client = server_.Connect();
    for (int i = 0; i < 500; ++i) {
      const std::string reply =
          Ask(*client, {"INGEST", "ADD", "load", fmt::format("{:04}", i), "v"});
      if (reply == "OK") ++added;
      if (reply != "OK") EXPECT_THAT(reply, HasSubstr("must ascend"));
    }
  };
  std::thread one(add), other(add);
  one.join();
  other.join();
  EXPECT_THAT(Do({"INGEST", "COMMIT", "load"}), ::testing::Not(StartsWith("!")));
  EXPECT_EQ(Do({"COUNT", "-", "+"}), std::to_string(added));
  EXPECT_EQ(Do({"GET", "0499"}), "v");
}

TEST_F(IngestCommandsTest, ACountSeesTheOldNumberOrTheNewOne) {
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    const auto client = server_.Connect();
    while (!stop) {
      const std::string count = Ask(*client, {"COUNT", "-", "+"});
      EXPECT_TRUE(count == "0" || count == "3000" || count == "2000") << count;
    }
  });
  for (const int keys : {3000, 2000}) {
    ASSERT_EQ(Do({"INGEST", "BEGIN", "load", "REPLACE", "-", "+"}), "OK");
    for (int i = 0; i < keys; i += 10) {
      Words add = {"INGEST", "ADD", "load"};
      for (int k = i; k < i + 10; ++k) {
        add.push_back(fmt::format("key{:05}", k));
        add.emplace_back(100, 'v');
      }
      ASSERT_EQ(Do(add), "OK");
    }
    EXPECT_THAT(Do({"INGEST", "COMMIT", "load"}), ::testing::Not(StartsWith("!")));
    EXPECT_EQ(Do({"DBSIZE"}), std::to_string(keys));
  }
  stop = true;
  reader.join();
}

TEST_F(IngestCommandsTest, AnAbandonedOneEnds) {
  IngestTable table(&server_.store());
  const auto opened = std::make_shared<OpenIngest>();
  opened->id = "left";
  ASSERT_TRUE(table.Begin(opened).ok());
  EXPECT_TRUE(table.any());
  table.EndIdle(std::chrono::steady_clock::now() + std::chrono::minutes(59));
  EXPECT_NE(table.Find("left"), nullptr);
  table.EndIdle(std::chrono::steady_clock::now() + std::chrono::minutes(61));
  EXPECT_EQ(table.Find("left"), nullptr);
  EXPECT_FALSE(table.any());
}

}  // namespace
}  // namespace varve
