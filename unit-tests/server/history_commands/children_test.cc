// CHILDREN: the names directly below a prefix.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/server/history_commands/path_fixture.h"

namespace varve {
namespace {

using testing::Ask;

class ChildrenTest : public testing::PathTest {
 protected:
  std::string Children(Words arguments) {
    arguments.insert(arguments.begin(), "CHILDREN");
    return Do(arguments);
  }
};

TEST_F(ChildrenTest, NamesAndDirectoriesInOrder) {
  Put({"config/a/1", "config/a/2", "config/b", "config/b!", "config/b/1/2/3", "config//x",
       "config/", "config", "config0", "d"});
  EXPECT_EQ(Children({"config/"}), "(/ a/ b b! b/)");
  EXPECT_EQ(Children({"config/", "REV"}), "(b/ b! b a/ /)");
  EXPECT_EQ(Children({"config"}), "(/ 0)") << "the prefix is taken as it is";
  EXPECT_EQ(Children({""}), "(config config/ config0 d)");
  EXPECT_EQ(Children({"config/b/1/"}), "(2/)");
  EXPECT_EQ(Children({"nothing/"}), "()");
  EXPECT_EQ(Children({"config/", "WITHCOUNTS"}), "(/ 1 a/ 2 b 1 b! 1 b/ 1)");
  EXPECT_EQ(Children({"config/", "withcounts", "rev"}), "(b/ 1 b! 1 b 1 a/ 2 / 1)");
  Put({"user:1:name", "user:1:mail", "user:2"});
  EXPECT_EQ(Children({"user:", "DELIM", ":"}), "(1: 2)");
  EXPECT_EQ(Children({"user", "DELIM", ":1:"}), "(:1: :2)");
}

TEST_F(ChildrenTest, PagesJoinToTheWhole) {
  Put({"p/a/1", "p/a/2", "p/b", "p/b/1", "p/c", "p/c0", "p/d/x/y"});
  for (const bool reverse : {false, true}) {
    const std::string whole = reverse ? "(d/ c0 c b/ b a/)" : "(a/ b b/ c c0 d/)";
    for (int limit = 1; limit <= 7; ++limit) {
      std::string joined = "(", after;
      for (;;) {
        Words request = {"p/", "LIMIT", std::to_string(limit)};
        if (!after.empty()) request.insert(request.end(), {"AFTER", after});
        if (reverse) request.push_back("REV");
        const std::string page = Children(request);
        if (page == "()") break;
        const std::string names = page.substr(1, page.size() - 2);
        joined += (joined.size() > 1 ? " " : "") + names;
        after = names.substr(names.rfind(' ') + 1);
      }
      EXPECT_EQ(joined + ")", whole) << limit;
    }
  }
  EXPECT_EQ(Children({"p/", "LIMIT", "0"}), "()");
  EXPECT_EQ(Children({"p/", "LIMIT", "-1", "AFTER", "c"}), "(c0 d/)");
}

TEST_F(ChildrenTest, WhatLiesBelowIsNotRead) {
  Put({"t/a/1", "t/c/1"});
  PutMany("t/b/", 50'000);
  ASSERT_TRUE(server_.store().Flush().ok());
  ASSERT_EQ(Do({"COMPACT"}), "OK");
  const uint64_t before = Statistic("scan_reads");
  EXPECT_EQ(Children({"t/"}), "(a/ b/ c/)");
  EXPECT_LT(Statistic("scan_reads") - before, 20u);
  EXPECT_EQ(Children({"t/", "WITHCOUNTS"}), "(a/ 1 b/ 50000 c/ 1)");
  const std::string sizes = Children({"t/", "WITHSIZES"});
  const uint64_t bytes = std::stoull(sizes.substr(sizes.find("b/ ") + 3));
  EXPECT_GT(bytes, 500'000u);
  EXPECT_LT(bytes, 2'000'000u);
}

TEST_F(ChildrenTest, ManyNamesAreSentInSlices) {
  std::set<std::string> expected;
  for (int i = 0; i < 30'000; i += 500) {
    Words keys;
    for (int k = i; k < i + 500; ++k) {
      const std::string name = "name" + std::to_string(100'000 + k);
      keys.push_back("m/" + name + (k % 3 == 0 ? "/below" : ""));
      expected.insert(name + (k % 3 == 0 ? "/" : ""));
    }
    Put(keys);
  }
  std::string all = "(";
  for (const std::string& name : expected) all += (all.size() > 1 ? " " : "") + name;
  all += ")";
  EXPECT_EQ(Children({"m/"}), all);
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Children({"m/"}), "QUEUED");
  EXPECT_EQ(Do({"EXEC"}), "(" + all + ")");
}

TEST_F(ChildrenTest, AModelOfRandomKeysAgrees) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::string key = ChangeRandomKey("ab/\xff\x01", 6, &random);
    const std::string prefix = key.substr(0, random() % 3);
    std::string expected, reversed;
    for (const auto& [name, count] : NamesBelow(prefix)) {
      const std::string shown = name + " " + std::to_string(count);
      expected += (expected.empty() ? "" : " ") + shown;
      reversed = shown + (reversed.empty() ? "" : " ") + reversed;
    }
    EXPECT_EQ(Children({prefix, "WITHCOUNTS"}), "(" + expected + ")");
    EXPECT_EQ(Children({prefix, "WITHCOUNTS", "REV"}), "(" + reversed + ")");
  }
}

TEST_F(ChildrenTest, ADirectoryBetweenTwoCostsNoMoreForAMillionKeys) {
  Put({"t/a/1", "t/c/1"});
  PutMany("t/b/", 50'000);
  ASSERT_TRUE(server_.store().Flush().ok());
  ASSERT_EQ(Do({"COMPACT"}), "OK");
  const auto reads_of = [&](const Words& request, const std::string& answer) {
    const uint64_t before = Statistic("scan_reads");
    EXPECT_EQ(Children(request), answer);
    return Statistic("scan_reads") - before;
  };
  EXPECT_LE(reads_of({"t/"}, "(a/ b/ c/)"), 6u);
  EXPECT_LE(reads_of({"t/", "REV"}, "(c/ b/ a/)"), 6u);
  EXPECT_LE(reads_of({"t/", "AFTER", "b/"}, "(c/)"), 3u);
  EXPECT_LE(reads_of({"t/", "AFTER", "a/", "LIMIT", "1"}, "(b/)"), 4u);
}

// Each name is listed once and in order, whatever others write beside the lasting ones.
TEST_F(ChildrenTest, WhileEightWrite) {
  constexpr int kWriters = 8;
  Words lasting;
  for (int i = 0; i < 200; ++i) lasting.push_back("w/" + std::to_string(1000 + i) + "/x");
  Put(lasting);
  std::atomic<bool> stop{false};
  std::atomic<int> written{0};
  std::vector<std::thread> writers;
  for (int id = 0; id < kWriters; ++id) {
    writers.emplace_back([&, id] {
      const std::unique_ptr<Client> client = server_.Connect();
      std::mt19937 random(static_cast<uint32_t>(id));
      while (!stop) {
        const std::string key =
            "w/" + std::to_string(1000 + random() % 200) + (random() % 2 == 0 ? "/y" : "+");
        Ask(*client, {random() % 3 == 0 ? "DEL" : "SET", key, "v"});
        ++written;
      }
    });
  }
  for (int round = 0; round < 30 || written < 2000; ++round) {
    std::string listed = Children({"w/"});
    Words names;
    listed = listed.substr(1, listed.size() - 2);
    for (size_t at = 0; at < listed.size();) {
      const size_t end = std::min(listed.find(' ', at), listed.size());
      names.push_back(listed.substr(at, end - at));
      at = end + 1;
    }
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
    const auto directories = std::count_if(names.begin(), names.end(),
                                           [](const auto& name) { return name.ends_with('/'); });
    EXPECT_EQ(directories, 200);
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
}

TEST_F(ChildrenTest, APageAfterTheOtherListsWhatOneCallDoes) {
  for (int i = 0; i < 20'000; i += 500) {
    Words keys;
    for (int k = i; k < i + 500; ++k)
      keys.push_back("m/" + std::to_string(100'000 + k) + (k % 2 == 0 ? "/1" : ""));
    Put(keys);
  }
  for (const bool reverse : {false, true}) {
    Words whole = {"m/"};
    if (reverse) whole.push_back("REV");
    std::string joined = "(", after;
    for (;;) {
      Words request = {"m/", "LIMIT", "1537"};
      if (!after.empty()) request.insert(request.end(), {"AFTER", after});
      if (reverse) request.push_back("REV");
      const std::string page = Children(request);
      if (page == "()") break;
      const std::string names = page.substr(1, page.size() - 2);
      joined += (joined.size() > 1 ? " " : "") + names;
      after = names.substr(names.rfind(' ') + 1);
    }
    EXPECT_EQ(joined + ")", Children(whole));
  }
}

TEST_F(ChildrenTest, WhatIsGoneIsNotListed) {
  Put({"g/a/1", "g/b/1", "g/c/1"});
  ASSERT_EQ(Do({"DELRANGE", "[g/b/", "(g/b0"}), "OK");
  ASSERT_EQ(Do({"PEXPIREAT", "g/c/1", "1"}), "1");
  EXPECT_EQ(Children({"g/"}), "(a/)");
  Put({"g/d/e/1", "g/d/e/2"});
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Children({"g/"}), "QUEUED");
  EXPECT_EQ(Do({"DELRANGE", "[g/d/", "(g/d0"}), "QUEUED");
  EXPECT_EQ(Do({"SET", "g/x/1", "v"}), "QUEUED");
  EXPECT_EQ(Children({"g/"}), "QUEUED");
  EXPECT_EQ(Do({"EXEC"}), "((a/ d/) OK OK (a/ x/))");
}

TEST_F(ChildrenTest, AUserSeesItsOwnPart) {
  Put({"app/a/1", "app/b", "log/1", "secret/1", "secret"});
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "on", "nopass", "+@read", "~app/*", "~log/*"}), "OK");
  ASSERT_EQ(Do({"AUTH", "alice", "any"}), "OK");
  EXPECT_EQ(Children({""}), "(app/ log/)");
  EXPECT_EQ(Children({"", "REV"}), "(log/ app/)");
  EXPECT_EQ(Children({"", "WITHCOUNTS"}), "(app/ 2 log/ 1)");
  EXPECT_EQ(Children({"secret/"}), "()");
  EXPECT_EQ(Children({"app/"}), "(a/ b)");
}

TEST_F(ChildrenTest, MistakesAreTold) {
  EXPECT_EQ(Children({}), "!ERR wrong number of arguments for 'children' command");
  EXPECT_EQ(Children({"p", "DELIM", ""}), "!ERR a delimiter has 1 to 16 bytes");
  EXPECT_EQ(Children({"p", "DELIM", std::string(17, '/')}), "!ERR a delimiter has 1 to 16 bytes");
  EXPECT_EQ(Children({"p", "LIMIT", "x"}), "!ERR value is not an integer or out of range");
  for (const Words& wrong : std::vector<Words>{
           {"p", "DELIM"}, {"p", "AFTER"}, {"p", "NOSUCH"}, {"p", "WITHCOUNTS", "WITHSIZES"}})
    EXPECT_EQ(Children(wrong), "!ERR syntax error");
}

}  // namespace
}  // namespace varve
