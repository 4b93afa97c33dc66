// GET WITHVERSION and the condition IFVERSION over a socket and through the C++ client.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/server/command_fixture.h"

namespace varve {
namespace {

class VersionTest : public testing::CommandTest {
 protected:
  // Of a key that is there.
  std::string VersionOf(const std::string& key) {
    const absl::StatusOr<std::optional<VersionedValue>> read = client_->GetWithVersion(key);
    if (!read.ok() || !read->has_value()) return "none";
    return std::to_string((*read)->version);
  }
};

TEST_F(VersionTest, GetAnswersValueAndVersion) {
  EXPECT_EQ(Do({"GET", "k", "WITHVERSION"}), "nil");
  Do({"SET", "k", ""});
  EXPECT_EQ(Do({"GET", "k", "withversion"}), "( " + VersionOf("k") + ")");
  EXPECT_EQ(Do({"GET", "k"}), "");
  EXPECT_EQ(Do({"GET", "k", "WITHVERSIONS"}), "!ERR wrong number of arguments for 'get' command");
  EXPECT_EQ(Do({"GET", "k", "WITHVERSION", "x"}),
            "!ERR wrong number of arguments for 'get' command");
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "GET", "k", "WITHVERSION"}), "(k)");
}

TEST_F(VersionTest, APutThatKnowsTheVersionSucceeds) {
  EXPECT_EQ(Do({"PUT", "k", "a", "IFVERSION", "1"}), "nil");
  const std::string first = Do({"PUT", "k", "a", "IFVERSION", "0"});
  EXPECT_EQ(first, VersionOf("k"));
  EXPECT_EQ(Do({"PUT", "k", "b", "IFVERSION", "0"}), "nil");
  const std::string second = Do({"PUT", "k", "b", "IFVERSION", first});
  EXPECT_EQ(second, VersionOf("k"));
  EXPECT_NE(second, first);
  EXPECT_EQ(Do({"PUT", "k", "c", "IFVERSION", first}), "nil");
  EXPECT_EQ(Do({"GET", "k"}), "b");
  const std::string third = Do({"SET", "k", "c", "ifversion", second});
  EXPECT_EQ(third, VersionOf("k"));
}

TEST_F(VersionTest, EveryWriteMakesAnotherVersion) {
  std::vector<std::string> versions;
  for (const std::vector<std::string>& write : {std::vector<std::string>{"SET", "k", "1"},
                                                {"SET", "k", "1"},
                                                {"APPEND", "k", ""},
                                                {"INCR", "k"},
                                                {"EXPIRE", "k", "100"},
                                                {"PERSIST", "k"},
                                                {"MSET", "other", "x", "k", "1"},
                                                {"SETBIT", "k", "0", "1"}}) {
    Do(write);
    versions.push_back(VersionOf("k"));
    for (size_t i = 0; i + 1 < versions.size(); ++i) {
      EXPECT_NE(versions[i], versions.back()) << write[0];
      EXPECT_EQ(Do({"PUT", "k", "lost", "IFVERSION", versions[i]}), "nil") << write[0];
    }
  }
  Do({"DEL", "k"});
  Do({"SET", "k", "1"});
  EXPECT_EQ(Do({"PUT", "k", "lost", "IFVERSION", versions.back()}), "nil");
  EXPECT_EQ(Do({"DELEX", "k", "IFVERSION", versions.back()}), "0");
  EXPECT_EQ(Do({"DELEX", "k", "IFVERSION", VersionOf("k")}), "1");
  EXPECT_EQ(Do({"DELEX", "k", "IFVERSION", "0"}), "0");
}

TEST_F(VersionTest, VersionsStay) {
  Do({"SET", "k", "a"});
  Do({"SELECT", "1"});
  Do({"SET", "k", "b"});
  const std::string there = VersionOf("k");
  Do({"SELECT", "0"});
  const std::string here = VersionOf("k");
  ASSERT_TRUE(server_.store().Flush().ok());
  EXPECT_EQ(Do({"COMPACT"}), "OK");
  EXPECT_EQ(VersionOf("k"), here);
  Do({"SWAPDB", "0", "1"});
  EXPECT_EQ(VersionOf("k"), there);
  Restart();
  EXPECT_EQ(VersionOf("k"), there);
  EXPECT_EQ(Do({"PUT", "k", "c", "IFVERSION", here}), "nil");
  const std::string next = Do({"PUT", "k", "c", "IFVERSION", there});
  EXPECT_EQ(next, VersionOf("k"));
}

TEST_F(VersionTest, GoesTogetherWithExpiries) {
  const std::string first = Do({"PUT", "k", "a", "IFVERSION", "0", "EX", "100"});
  EXPECT_EQ(first, VersionOf("k"));
  EXPECT_EQ(Do({"TTL", "k"}), "100");
  const std::string second = Do({"PUT", "k", "b", "KEEPTTL", "IFVERSION", first});
  EXPECT_EQ(Do({"TTL", "k"}), "100");
  const std::string third = Do({"PUT", "k", "c", "IFVERSION", second});
  EXPECT_EQ(Do({"TTL", "k"}), "-1");
  // What has expired is missing.
  const std::string fourth = Do({"PUT", "k", "d", "PXAT", "1", "IFVERSION", third});
  EXPECT_GT(std::stoull(fourth), std::stoull(third));
  EXPECT_EQ(Do({"GET", "k", "WITHVERSION"}), "nil");
  const std::string fifth = Do({"PUT", "k", "e", "IFVERSION", "0"});
  EXPECT_EQ(fifth, VersionOf("k"));
}

TEST_F(VersionTest, RefusesWhatIsNoVersion) {
  for (const char* version : {"", "x", "-1", "1.0", "99999999999999999999"}) {
    EXPECT_EQ(Do({"PUT", "k", "v", "IFVERSION", version}),
              "!ERR a version is an integer, and 0 that of a missing key");
  }
  for (const std::vector<std::string>& options : {std::vector<std::string>{"IFVERSION"},
                                                  {"IFVERSION", "0", "GET"},
                                                  {"GET", "IFVERSION", "0"},
                                                  {"IFVERSION", "0", "NX"},
                                                  {"XX", "IFVERSION", "0"},
                                                  {"IFVERSION", "0", "IFEQ", "v"}}) {
    std::vector<std::string> line = {"PUT", "k", "v"};
    line.insert(line.end(), options.begin(), options.end());
    EXPECT_EQ(Do(line), "!ERR syntax error");
  }
  EXPECT_EQ(Do({"EXISTS", "k"}), "0");
}

TEST_F(VersionTest, InsideExecTheNewVersionIsNotKnown) {
  Do({"SET", "a", "1"});
  const std::string version = VersionOf("a");
  Do({"MULTI"});
  for (const std::vector<std::string>& request :
       {std::vector<std::string>{"GET", "a", "WITHVERSION"},
        {"PUT", "a", "2", "IFVERSION", "1234567"},
        {"PUT", "a", "2", "IFVERSION", version},
        {"GET", "a", "WITHVERSION"},
        {"PUT", "a", "3", "IFVERSION", version},
        {"PUT", "a", "3", "IFVERSION", "0"},
        {"PUT", "b", "1", "IFVERSION", "0"}}) {
    EXPECT_EQ(Do(request), "QUEUED");
  }
  EXPECT_EQ(Do({"EXEC"}), "((1 " + version + ") nil OK (2 nil) nil nil OK)");
  const std::string next = Do({"PUT", "a", "4", "IFVERSION", VersionOf("a")});
  EXPECT_EQ(next, VersionOf("a"));
  Do({"MULTI"});
  EXPECT_EQ(Do({"GET", "a", "b"}), "!ERR wrong number of arguments for 'get' command");
  EXPECT_EQ(Do({"EXEC"}), "!EXECABORT Transaction discarded because of previous errors.");
}

TEST_F(VersionTest, AmongPipelinedReadsAndWrites) {
  Do({"SET", "k", "v"});
  const std::string version = VersionOf("k");
  const std::vector<std::vector<std::string_view>> requests = {
      {"GET", "k"},      {"GET", "k"},      {"GET", "k", "WITHVERSION"},         {"GET", "k"},
      {"SET", "l", "1"}, {"SET", "l", "2"}, {"SET", "l", "3", "IFVERSION", "0"}, {"GET", "l"}};
  for (const std::vector<std::string_view>& request : requests)
    ASSERT_TRUE(client_->Send(request).ok());
  std::string replies;
  for (size_t i = 0; i < requests.size(); ++i) {
    const absl::StatusOr<Reply> reply = client_->Receive();
    ASSERT_TRUE(reply.ok()) << reply.status();
    replies += Text(*reply) + ",";
  }
  EXPECT_EQ(replies, "v,v,(v " + version + "),v,OK,OK,nil,2,");
}

// Each adds 1 by reading, deciding and writing: none is lost.
TEST_F(VersionTest, CountersOfManyAddUp) {
  constexpr int kThreads = 4;
  constexpr int kEach = 100;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      const std::unique_ptr<Client> client = server_.Connect();
      for (int added = 0; added < kEach;) {
        const auto read = client->GetWithVersion("counter");
        ASSERT_TRUE(read.ok()) << read.status();
        const VersionedValue old = read->value_or(VersionedValue{"0", 0});
        const auto put =
            client->PutIfVersion("counter", std::to_string(std::stoi(old.value) + 1), old.version);
        ASSERT_TRUE(put.ok()) << put.status();
        if (put->has_value()) ++added;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Do({"GET", "counter"}), std::to_string(kThreads * kEach));
}

}  // namespace
}  // namespace varve
