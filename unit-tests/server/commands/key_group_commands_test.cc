// Declared groups of keys over a socket, on the embedded engine: the same requests are refused as
// on a store that is atomic within a group only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit-tests/server/command_fixture.h"

namespace varve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class KeyGroupCommandsTest : public testing::CommandTest {
 protected:
  KeyGroupCommandsTest() {
    EXPECT_EQ(Do({"NAMESPACE", "CREATE", "users", "GROUP", ":"}), "OK");
    EXPECT_EQ(Do({"NAMESPACE", "CREATE", "all", "TOGETHER", "yes"}), "OK");
    Use("users");
  }
  void Use(const std::string& name) { ASSERT_EQ(Do({"NAMESPACE", "USE", name}), "OK"); }
  // Returns the value of a field of NAMESPACE INFO.
  std::string Info(const std::string& name, const std::string& field) {
    const absl::StatusOr<Reply> info = client_->Call({"NAMESPACE", "INFO", name});
    EXPECT_TRUE(info.ok()) << info.status();
    for (size_t i = 0; info.ok() && i + 1 < info->elements.size(); i += 2) {
      if (info->elements[i].text == field) return Text(info->elements[i + 1]);
    }
    return "(no such field)";
  }
};

const std::string kCrossed = "CROSSGROUP";

TEST_F(KeyGroupCommandsTest, WhatWritesSeveralKeysStaysWithinAGroup) {
  EXPECT_EQ(Do({"MSET", "a:1", "x", "a:2", "y"}), "OK");
  EXPECT_EQ(Do({"MSETNX", "a:3", "z", "a:4", "z"}), "1");
  EXPECT_EQ(Do({"RENAME", "a:4", "a:5"}), "OK");
  EXPECT_EQ(Do({"COPY", "a:5", "a:6"}), "1");
  EXPECT_EQ(Do({"BITOP", "AND", "a:7", "a:1", "a:2"}), "1");
  const std::string before = Do({"RANGE", "-", "+"});
  for (const std::vector<std::string>& request :
       std::vector<std::vector<std::string>>{{"MSET", "a:1", "1", "b:1", "1"},
                                             {"MSETNX", "a:9", "1", "b:9", "1"},
                                             {"RENAME", "a:1", "b:1"},
                                             {"RENAME", "missing:1", "b:1"},
                                             {"RENAMENX", "a:1", "a"},
                                             {"COPY", "a:1", "b:1"},
                                             {"COPY", "a:1", "a:1", "DB", "3"},
                                             {"MOVE", "a:1", "3"},
                                             {"BITOP", "AND", "b:1", "a:1", "a:2"},
                                             {"BITOP", "AND", "a:8", "a:1", "b:2"}}) {
    EXPECT_THAT(Do(request), HasSubstr(kCrossed)) << request[0];
  }
  EXPECT_EQ(Do({"RANGE", "-", "+"}), before);
  EXPECT_EQ(Do({"EXISTS", "b:1", "b:9", "a", "a:1"}), "1");
}

TEST_F(KeyGroupCommandsTest, TheRefusalSaysWhichKeysAndWhyAndWhatToDo) {
  const std::string refusal = Do({"MSET", "a:1", "x", "b\r\n:1", "y"});
  EXPECT_THAT(refusal, HasSubstr("keys 'a:1' and 'b\\x0d\\x0a:1' are not of one group"));
  EXPECT_THAT(refusal, HasSubstr("what stands before the first ':'"));
  EXPECT_THAT(refusal, HasSubstr("by a request of its own"));
  // A key without the delimiter is not of the group that has its name.
  EXPECT_THAT(Do({"MSET", "a", "x", "a:1", "y"}), HasSubstr("'a' and 'a:1'"));
}

TEST_F(KeyGroupCommandsTest, ReadsAndDeletesOfManyKeysGoOnGroupByGroup) {
  for (const char* key : {"a:1", "b:1", "c"}) ASSERT_EQ(Do({"SET", key, "v"}), "OK");
  EXPECT_EQ(Do({"MGET", "c", "a:1", "b:1", "d"}), "(v v v nil)");
  EXPECT_EQ(Do({"EXISTS", "c", "a:1", "b:1", "d"}), "3");
  EXPECT_EQ(Do({"TOUCH", "c", "a:1", "b:1", "d"}), "3");
  EXPECT_EQ(Do({"RANGE", "-", "+", "KEYS"}), "(a:1 b:1 c)");
  EXPECT_EQ(Do({"DEL", "c", "a:1", "d", "a:1"}), "2");
  EXPECT_EQ(Do({"UNLINK", "b:1", "c"}), "1");
  EXPECT_EQ(Do({"DBSIZE"}), "0");
}

TEST_F(KeyGroupCommandsTest, WhatWasDeletedComesBackWithinAGroup) {
  Do({"NAMESPACE", "CREATE", "kept", "GROUP", ":", "KEEP", "1d"});
  Use("kept");
  for (const char* key : {"a:1", "a:2", "b:1"}) ASSERT_EQ(Do({"SET", key, "v"}), "OK");
  ASSERT_EQ(Do({"DEL", "a:1", "a:2", "b:1"}), "3");
  EXPECT_THAT(Do({"UNDELETE", "RANGE", "-", "+"}), HasSubstr(kCrossed));
  EXPECT_EQ(Do({"DBSIZE"}), "0");
  EXPECT_EQ(Do({"UNDELETE", "PREFIX", "a:"}), "2");
  EXPECT_EQ(Do({"UNDELETE", "b:1"}), "1");
  EXPECT_EQ(Do({"RANGE", "-", "+", "KEYS"}), "(a:1 a:2 b:1)");
}

TEST_F(KeyGroupCommandsTest, PipelinedWritesOfSeveralGroupsAreWritten) {
  std::vector<std::vector<std::string>> requests;
  for (int i = 0; i < 100; ++i) requests.push_back({"SET", std::to_string(i) + ":x", "v"});
  for (const std::vector<std::string>& request : requests) EXPECT_EQ(Do(request), "OK");
  EXPECT_EQ(Do({"DBSIZE"}), "100");
  EXPECT_EQ(Do({"DELRANGE", "-", "+"}), "OK");
  EXPECT_EQ(Do({"DBSIZE"}), "0");
}

TEST_F(KeyGroupCommandsTest, ATransactionStaysWithinAGroup) {
  ASSERT_EQ(Do({"MSET", "a:1", "1", "a:2", "2"}), "OK");
  ASSERT_EQ(Do({"SET", "b:1", "1"}), "OK");
  ASSERT_EQ(Do({"WATCH", "a:1"}), "OK");
  Do({"MULTI"});
  Do({"INCR", "a:2"});
  Do({"GET", "a:1"});
  EXPECT_EQ(Do({"EXEC"}), "(3 1)");

  Do({"MULTI"});
  Do({"SET", "a:1", "lost"});
  Do({"GET", "b:1"});
  EXPECT_THAT(Do({"EXEC"}), HasSubstr(kCrossed));

  Do({"MULTI"});
  EXPECT_EQ(Do({"MSET", "a:1", "lost", "b:1", "lost"}), "QUEUED");
  EXPECT_THAT(Do({"EXEC"}), HasSubstr(kCrossed));
  EXPECT_THAT(Do({"EXEC"}), HasSubstr("without MULTI"));

  ASSERT_EQ(Do({"WATCH", "a:1", "b:1"}), "OK");
  Do({"MULTI"});
  Do({"GET", "a:1"});
  EXPECT_THAT(Do({"EXEC"}), HasSubstr(kCrossed));

  Do({"MULTI"});
  Do({"SET", "a:1", "lost"});
  Do({"SELECT", "0"});
  Do({"SET", "a:1", "lost"});
  EXPECT_THAT(Do({"EXEC"}), HasSubstr("two namespaces"));

  for (const std::vector<std::string>& whole : std::vector<std::vector<std::string>>{
           {"DELRANGE", "-", "+"}, {"DELPREFIX", "a:"}, {"FLUSHDB"}}) {
    Do({"MULTI"});
    Do(whole);
    EXPECT_THAT(Do({"EXEC"}), HasSubstr(kCrossed)) << whole[0];
  }
  // Reads alone are one snapshot here, whatever they read.
  Do({"MULTI"});
  Do({"GET", "a:1"});
  Do({"GET", "b:1"});
  EXPECT_EQ(Do({"EXEC"}), "(1 1)");
  EXPECT_EQ(Do({"RANGE", "-", "+"}), "(a:1 1 a:2 3 b:1 1)");
}

TEST_F(KeyGroupCommandsTest, ANamespaceTogetherIsOneGroup) {
  Use("all");
  EXPECT_EQ(Do({"MSET", "a:1", "1", "b:1", "2", "c", "3"}), "OK");
  Do({"MULTI"});
  Do({"SET", "d", "4"});
  Do({"DEL", "a:1", "b:1"});
  EXPECT_EQ(Do({"EXEC"}), "(OK 2)");
  EXPECT_EQ(Do({"RENAME", "c", "e:1"}), "OK");
  EXPECT_EQ(Do({"RANGE", "-", "+"}), "(d 4 e:1 3)");
  Do({"SELECT", "0"});
  EXPECT_EQ(Do({"MSET", "a:1", "1", "b:1", "2"}), "OK") << "no groups are declared here";
}

TEST_F(KeyGroupCommandsTest, GroupsAreDeclaredOnceAndStay) {
  EXPECT_THAT(Do({"NAMESPACE", "CREATE", "n", "GROUP", "::"}), HasSubstr("one byte"));
  EXPECT_THAT(Do({"NAMESPACE", "CREATE", "n", "GROUP", ""}), HasSubstr("one byte"));
  EXPECT_THAT(Do({"NAMESPACE", "CREATE", "n", "GROUP"}), HasSubstr("syntax"));
  EXPECT_THAT(Do({"NAMESPACE", "CREATE", "n", "TOGETHER", "x"}), HasSubstr("yes or no"));
  EXPECT_THAT(Do({"NAMESPACE", "CREATE", "n", "TOGETHER", "yes", "GROUP", ":"}),
              HasSubstr("exclude each other"));
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "plain", "TOGETHER", "no"}), "OK");
  for (const std::string space : {"users", "all", "plain", "0"}) {
    EXPECT_THAT(Do({"NAMESPACE", "ALTER", space, "TOGETHER", "yes"}), HasSubstr("never change"));
    EXPECT_THAT(Do({"NAMESPACE", "ALTER", space, "MAXKEYS", "9", "GROUP", ":"}),
                HasSubstr("never change"));
  }
  EXPECT_EQ(Do({"NAMESPACE", "ALTER", "users", "MAXKEYS", "9"}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "CLONE", "users", "branch"}), "OK");
  EXPECT_THAT(Do({"NAMESPACE", "CLONE", "users", "other", "GROUP", ";"}),
              HasSubstr("those of its source"));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(Info("users", "group"), ":");
    EXPECT_EQ(Info("users", "together"), "no");
    EXPECT_EQ(Info("branch", "group"), ":");
    EXPECT_EQ(Info("all", "together"), "yes");
    EXPECT_EQ(Info("all", "atomicity"), "keys of a group");
    EXPECT_EQ(Info("plain", "atomicity"), "any keys");
    EXPECT_EQ(Info("plain", "group"), "");
    Restart();
  }
  Use("branch");
  EXPECT_THAT(Do({"MSET", "a:1", "1", "b:1", "1"}), HasSubstr(kCrossed));
}

TEST_F(KeyGroupCommandsTest, InfoSaysWhatTheNamespaceProvides) {
  const std::string provides =
      "(snapshots range-delete clone exact-counts size-estimates quotas history swaps own-files)";
  EXPECT_EQ(Info("users", "provides"), provides);
  EXPECT_EQ(Info("0", "provides"), "(any-keys " + provides.substr(1));
}

TEST_F(KeyGroupCommandsTest, CommandDocsSayWhatACommandNeeds) {
  EXPECT_THAT(Do({"COMMAND", "DOCS", "mset"}),
              HasSubstr("store_needs (any-keys refused with CROSSGROUP unless its keys are of one "
                        "group)"));
  EXPECT_THAT(Do({"COMMAND", "DOCS", "namespace|clone"}), HasSubstr("store_needs (clone refused)"));
  EXPECT_THAT(Do({"COMMAND", "DOCS", "get"}), Not(HasSubstr("store_needs")));
  EXPECT_THAT(Do({"COMMAND", "DOCS", "namespace|alter"}),
              AllOf(HasSubstr("quotas refused with MAXKEYS, MAXBYTES, EVICT or EVICTABLE"),
                    HasSubstr("history refused with KEEP or KEEPBYTES"),
                    HasSubstr("own-files refused with SYNC, VALUESIZE or COMPRESS")));
}

}  // namespace
}  // namespace varve
