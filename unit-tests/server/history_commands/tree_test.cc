// TREE: the names below a prefix as nested arrays. DELPREFIX.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "server/scans/tree_stream.h"
#include "unit-tests/server/history_commands/path_fixture.h"
#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

using testing::Ask;
using testing::ManualClock;
using testing::TestServer;

class TreeTest : public testing::PathTest {
 protected:
  std::string Tree(Words arguments) {
    arguments.insert(arguments.begin(), "TREE");
    return Do(arguments);
  }

  // Returns the tree as the model makes it.
  std::string ModelTree(const std::string& prefix, int depth) const {
    std::string text = "(";
    for (const auto& [name, keys] : NamesBelow(prefix)) {
      const bool opened = name.ends_with('/') && depth > 1;
      text += (text.size() > 1 ? " " : "") + ("(" + name + " ") +
              (opened ? ModelTree(prefix + name, depth - 1) : "()") + ")";
    }
    return text + ")";
  }
};

TEST_F(TreeTest, EachNameHoldsWhatIsInIt) {
  Put({"c/a/1", "c/a/2", "c/a", "c/a!", "c/b/1/2/3", "c//x", "c/", "c/e/", "d"});
  EXPECT_EQ(Tree({"c/"}),
            "((/ ((x ()))) (a ()) (a! ()) (a/ ((1 ()) (2 ()))) (b/ ((1/ ((2/ ((3 ()))))))) "
            "(e/ ()))");
  EXPECT_EQ(Tree({"c/", "DEPTH", "1"}), "((/ ()) (a ()) (a! ()) (a/ ()) (b/ ()) (e/ ()))");
  EXPECT_EQ(Tree({"c/", "depth", "2"}),
            "((/ ((x ()))) (a ()) (a! ()) (a/ ((1 ()) (2 ()))) (b/ ((1/ ()))) (e/ ()))");
  EXPECT_EQ(Tree({"", "DEPTH", "1"}), "((c/ ()) (d ()))");
  EXPECT_EQ(Tree({"c/a"}), "((! ()) (/ ((1 ()) (2 ()))))") << "the prefix is taken as it is";
  EXPECT_EQ(Tree({"nothing/"}), "()");
  Put({"u:1:name", "u:1:mail", "u:2"});
  EXPECT_EQ(Tree({"u:", "DELIM", ":"}), "((1: ((mail ()) (name ()))) (2 ()))");
}

TEST_F(TreeTest, TheLimitCutsTheTreeInItsOrder) {
  Put({"l/a/1", "l/a/2", "l/b/1", "l/c"});
  EXPECT_EQ(Tree({"l/", "LIMIT", "0"}), "()");
  EXPECT_EQ(Tree({"l/", "LIMIT", "1"}), "((a/ ()))");
  EXPECT_EQ(Tree({"l/", "LIMIT", "2"}), "((a/ ((1 ()))))");
  EXPECT_EQ(Tree({"l/", "LIMIT", "4"}), "((a/ ((1 ()) (2 ()))) (b/ ()))");
  const std::string all = "((a/ ((1 ()) (2 ()))) (b/ ((1 ()))) (c ()))";
  for (const std::string limit : {"6", "100000", "-1"})
    EXPECT_EQ(Tree({"l/", "LIMIT", limit}), all) << limit;
}

TEST_F(TreeTest, SizesOfWhatIsShownAreExact) {
  Put({"s/a/1", "s/a/x/2", "s/a/", "s/b"});  // five bytes of value each
  EXPECT_EQ(Tree({"s/", "WITHSIZES"}),
            "((a/ 3 31 ((1 1 10 ()) (x/ 1 12 ((2 1 12 ()))))) (b 1 8 ()))");
  EXPECT_EQ(Tree({"s/", "WITHSIZES", "DEPTH", "1"}), "((a/ 3 31 ()) (b 1 8 ()))");
  EXPECT_EQ(Do({"CHILDREN", "s/", "WITHSIZES"}), "(a/ 31 b 8)");
}

TEST_F(TreeTest, WhatLiesBelowTheDepthIsNotRead) {
  Put({"t/a/1", "t/c/1"});
  PutMany("t/b/", 50'000);
  ASSERT_TRUE(server_.store().Flush().ok());
  ASSERT_EQ(Do({"COMPACT"}), "OK");
  uint64_t before = Statistic("scan_reads");
  EXPECT_EQ(Tree({"t/", "DEPTH", "1"}), "((a/ ()) (b/ ()) (c/ ()))");
  EXPECT_LT(Statistic("scan_reads") - before, 20u);
  before = Statistic("scan_reads");
  const std::string sizes = Tree({"t/", "DEPTH", "1", "WITHSIZES"});
  EXPECT_LT(Statistic("scan_reads") - before, 40u);
  EXPECT_TRUE(sizes.starts_with("((a/ 1 10 ()) (b/ ")) << sizes;
  const size_t figures = sizes.find("b/ ") + 3;
  const uint64_t keys = std::stoull(sizes.substr(figures));
  const uint64_t bytes = std::stoull(sizes.substr(sizes.find(' ', figures) + 1));
  EXPECT_GT(keys, 48'000u);
  EXPECT_LT(keys, 52'000u);
  EXPECT_GT(bytes, 500'000u);
  EXPECT_LT(bytes, 2'000'000u);
  // EXEC and the past read them.
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Tree({"t/", "DEPTH", "1", "WITHSIZES"}), "QUEUED");
  EXPECT_EQ(Do({"EXEC"}), "(((a/ 1 10 ()) (b/ 50000 800000 ()) (c/ 1 10 ())))");
}

TEST_F(TreeTest, WhatTheLimitLeavesOutIsCountedWhereKeysAreRead) {
  Put({"l/a/1", "l/a/x/2", "l/a/x/y/3", "l/a/z", "l/b"});
  const auto exec = [&](const std::string& limit) {
    EXPECT_EQ(Do({"MULTI"}), "OK");
    EXPECT_EQ(Tree({"l/", "WITHSIZES", "LIMIT", limit}), "QUEUED");
    return Do({"EXEC"});
  };
  EXPECT_EQ(exec("1"), "(((a/ 4 46 ())))");
  EXPECT_EQ(exec("2"), "(((a/ 4 46 ((1 1 10 ())))))");
  EXPECT_EQ(exec("3"), "(((a/ 4 46 ((1 1 10 ()) (x/ 2 26 ())))))");
  EXPECT_EQ(exec("4"), "(((a/ 4 46 ((1 1 10 ()) (x/ 2 26 ((2 1 12 ())))))))");
}

TEST_F(TreeTest, ATreeOfTooManyNamesIsRefused) {
  PutMany("big/", TreeRequest::kMaxNames);
  const std::string whole = Tree({"big/"});
  EXPECT_EQ(whole.size(), 1 + 13 * size_t{TreeRequest::kMaxNames});
  Put({"big/zzz"});
  const std::string refused =
      "!ERR the tree has more than 100000 names or 16777216 bytes of names: use DEPTH, LIMIT or "
      "CHILDREN";
  EXPECT_EQ(Tree({"big/"}), refused);
  EXPECT_EQ(Tree({"big/", "LIMIT", "100000"}), whole);
  EXPECT_EQ(Tree({"", "DEPTH", "1"}), "((big/ ()))");
  for (char c = 'a'; c < 'a' + 18; ++c)
    ASSERT_EQ(Do({"SET", "long/" + std::string(60'000, c), "v"}), "OK");
  EXPECT_NE(Tree({"long/"}), refused);
}

TEST_F(TreeTest, DeepPathsEndAtTheGreatestDepth) {
  std::string key;
  for (int i = 0; i < 100; ++i) key += "d/";
  Put({key + "x"});
  std::string expected = "(d/ ())";
  for (int i = 1; i < 32; ++i) expected = "(d/ (" + expected + "))";
  EXPECT_EQ(Tree({""}), "(" + expected + ")");
}

TEST_F(TreeTest, AModelOfRandomKeysAgrees) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const std::string key = ChangeRandomKey("ab/\xff", 8, &random);
    const std::string prefix = key.substr(0, random() % 3);
    const int depth = 1 + static_cast<int>(random() % 4);
    EXPECT_EQ(Tree({prefix, "DEPTH", std::to_string(depth)}), ModelTree(prefix, depth));
    EXPECT_EQ(Tree({prefix}), ModelTree(prefix, 32));
  }
}

TEST_F(TreeTest, WhatIsGoneIsNotShown) {
  Put({"g/a/1", "g/b/1", "g/c/1", "g/d/1"});
  ASSERT_EQ(Do({"DELRANGE", "[g/b/", "(g/b0"}), "OK");
  ASSERT_EQ(Do({"PEXPIREAT", "g/c/1", "1"}), "1");
  ASSERT_EQ(Do({"DELPREFIX", "g/d/"}), "OK");
  EXPECT_EQ(Tree({"g/"}), "((a/ ((1 ()))))");
  EXPECT_EQ(Do({"CHILDREN", "g/"}), "(a/)");
}

TEST_F(TreeTest, AUserSeesItsOwnPart) {
  Put({"app/a/1", "app/b", "log/1", "secret/1", "secret"});
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "on", "nopass", "+@read", "+delprefix", "+watch",
                "~app/*", "%R~log/*"}),
            "OK");
  ASSERT_EQ(Do({"ACL", "SETUSER", "bob", "on", "nopass", "+@read", "~*1"}), "OK");
  ASSERT_EQ(Do({"AUTH", "alice", "any"}), "OK");
  EXPECT_EQ(Tree({""}), "((app/ ((a/ ((1 ()))) (b ()))) (log/ ((1 ()))))");
  EXPECT_EQ(Tree({"", "DEPTH", "1", "WITHSIZES"}), "((app/ 2 22 ()) (log/ 1 10 ()))");
  EXPECT_EQ(Tree({"secret/"}), "()");
  EXPECT_EQ(Do({"DELPREFIX", "log/"}),
            "!NOPERM this user has no permissions to write every key in the range log/*");
  EXPECT_EQ(Do({"DELPREFIX", "app"}),
            "!NOPERM this user has no permissions to write every key in the range app*");
  EXPECT_EQ(Do({"DELPREFIX", "app/a"}), "OK");
  EXPECT_EQ(Tree({""}), "((app/ ((b ()))) (log/ ((1 ()))))");
  ASSERT_EQ(Do({"AUTH", "bob", "any"}), "OK");
  EXPECT_TRUE(Tree({""}).starts_with("!NOPERM")) << "its keys are no ranges";
}

TEST_F(TreeTest, DelPrefixDeletesThePrefixAndNothingElse) {
  Put({"p", "p/a", "p/b", "p0", "o", "\xff", "\xff\xff\x01"});
  EXPECT_EQ(Do({"DELPREFIX", "p/"}), "OK");
  EXPECT_EQ(Do({"KEYS", "*"}), "(o p p0 \xff \xff\xff\x01)");
  EXPECT_EQ(Do({"DELPREFIX", "\xff\xff"}), "OK");
  EXPECT_EQ(Do({"DELPREFIX", "none"}), "OK");
  EXPECT_EQ(Do({"KEYS", "*"}), "(o p p0 \xff)");
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"DELPREFIX", "p"}), "QUEUED");
  EXPECT_EQ(Do({"EXEC"}), "(OK)");
  EXPECT_EQ(Do({"KEYS", "*"}), "(o \xff)");
  EXPECT_EQ(Do({"DELPREFIX", ""}), "OK");
  EXPECT_EQ(Do({"DBSIZE"}), "0");
}

TEST_F(TreeTest, MistakesAreTold) {
  EXPECT_EQ(Tree({}), "!ERR wrong number of arguments for 'tree' command");
  EXPECT_EQ(Tree({"p", "DELIM", ""}), "!ERR a delimiter has 1 to 16 bytes");
  EXPECT_EQ(Tree({"p", "DELIM", std::string(17, '/')}), "!ERR a delimiter has 1 to 16 bytes");
  EXPECT_EQ(Tree({"p", "DEPTH", "x"}), "!ERR value is not an integer or out of range");
  for (const std::string depth : {"0", "33", "-1"})
    EXPECT_EQ(Tree({"p", "DEPTH", depth}), "!ERR DEPTH is a number from 1 to 32") << depth;
  EXPECT_EQ(Tree({"p", "LIMIT", "100001"}), "!ERR LIMIT is a number up to 100000");
  for (const Words& wrong : std::vector<Words>{{"p", "DELIM"}, {"p", "DEPTH"}, {"p", "NOSUCH"}})
    EXPECT_EQ(Tree(wrong), "!ERR syntax error");
}

TEST(TreeOfThePastTest, ATInFrontAndBehind) {
  ManualClock clock;
  EngineOptions options = TestServer::SmallEngine();
  options.clock = &clock;
  options.history.time_ms = 86'400'000;
  TestServer server({}, options);
  const std::unique_ptr<Client> client = server.Connect();
  ASSERT_EQ(Ask(*client, {"MSET", "p/a/1", "v", "p/b", "v"}), "OK");
  const std::string version = Ask(*client, {"GET", "p/b", "WITHVERSION"});
  const std::string at = version.substr(3, version.size() - 4);
  ASSERT_EQ(Ask(*client, {"DELPREFIX", "p/a"}), "OK");
  EXPECT_EQ(Ask(*client, {"TREE", "p/"}), "((b ()))");
  EXPECT_EQ(Ask(*client, {"TREE", "p/", "AT", at}), "((a/ ((1 ()))) (b ()))");
  EXPECT_EQ(Ask(*client, {"AT", at, "TREE", "p/", "WITHSIZES", "DEPTH", "1"}),
            "((a/ 1 6 ()) (b 1 4 ()))");
  EXPECT_EQ(Ask(*client, {"AT", at, "TREE", "p/", "WITHSIZES", "LIMIT", "1"}), "((a/ 1 6 ()))");
}

}  // namespace
}  // namespace varve
