// What commands on ranges show to a user who may read a part of the keys, beside a model.
#include "server/scans/selected_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "unit-tests/server/command_fixture.h"
#include "util/base/glob.h"

namespace varve {
namespace {

using testing::Ask;
using testing::RawConnection;
using testing::Resp;
using testing::TestServer;

constexpr char kNoRange[] =
    "!NOPERM this user has no permissions to access all keys, which the command needs";

class SelectedKeysTest : public testing::CommandTest {
 protected:
  SelectedKeysTest() {
    std::mt19937 random(1);
    const std::string letters = "abc:";
    for (int i = 0; i < 400; ++i) {
      std::string key;
      for (size_t n = 1 + random() % 4; n > 0; --n) key += letters[random() % letters.size()];
      keys_.insert(key);
    }
    for (const std::string& key : keys_) EXPECT_EQ(Do({"SET", key, "v" + key}), "OK");
    EXPECT_EQ(Do({"ACL", "SETUSER", "alice", "on", "nopass", "+@all"}), "OK");
    EXPECT_EQ(Ask(*alice_, {"AUTH", "alice", "x"}), "OK");
  }

  void Allow(const std::vector<std::string>& patterns) {
    std::vector<std::string> request = {"ACL", "SETUSER", "alice", "resetkeys"};
    for (const std::string& pattern : patterns) request.push_back("~" + pattern);
    ASSERT_EQ(Do(request), "OK");
    visible_.clear();
    for (const std::string& key : keys_) {
      if (std::any_of(patterns.begin(), patterns.end(),
                      [&](const std::string& pattern) { return GlobMatches(pattern, key); }))
        visible_.push_back(key);
    }
  }
  std::string Alice(const std::vector<std::string>& request) { return Ask(*alice_, request); }

  static std::string List(const std::vector<std::string>& keys) {
    std::string text = "(";
    for (const std::string& key : keys) text += (text.size() > 1 ? " " : "") + key;
    return text + ")";
  }
  std::vector<std::string> Between(const std::string& min, const std::string& max) const {
    std::vector<std::string> keys;
    for (const std::string& key : visible_) {
      if (min <= key && key < max) keys.push_back(key);
    }
    return keys;
  }
  std::string Scanned(const std::string& pattern) {
    std::vector<std::string> found;
    std::string cursor = "0";
    do {
      const std::string reply = Alice({"SCAN", cursor, "MATCH", pattern, "COUNT", "7"});
      cursor = reply.substr(1, reply.find(' ') - 1);
      std::string names = reply.substr(reply.find(" (") + 2);
      names.resize(names.size() - 2);
      for (size_t end; !names.empty(); names.erase(0, end + 1)) {
        end = std::min(names.find(' '), names.size());
        found.push_back(names.substr(0, end));
        if (end == names.size()) break;
      }
    } while (cursor != "0");
    return List(found);
  }

  std::set<std::string> keys_;
  std::vector<std::string> visible_;
  std::unique_ptr<Client> alice_ = server_.Connect();
};

TEST_F(SelectedKeysTest, EveryCommandShowsExactlyTheUsersPart) {
  std::mt19937 random(2);
  const std::string letters = "abc:";
  const auto text = [&](size_t most) {
    std::string made;
    for (size_t n = random() % (most + 1); n > 0; --n) made += letters[random() % letters.size()];
    return made;
  };
  for (int run = 0; run < 60; ++run) {
    std::vector<std::string> patterns;
    for (size_t n = random() % 5; n > 0; --n)
      patterns.push_back(text(3) + (random() % 4 == 0 ? "" : "*"));
    // "*" allows all keys; behind it no other may be named.
    std::erase(patterns, "*");
    Allow(patterns);
    SCOPED_TRACE(List(patterns));
    EXPECT_EQ(Alice({"KEYS", "*"}), List(visible_));
    EXPECT_EQ(Scanned("*"), List(visible_));
    EXPECT_EQ(Alice({"RANGE", "-", "+", "KEYS"}), List(visible_));
    EXPECT_EQ(Alice({"COUNT", "-", "+"}), std::to_string(visible_.size()));
    const std::vector<std::string> backwards(visible_.rbegin(), visible_.rend());
    EXPECT_EQ(Alice({"RANGE", "+", "-", "REV", "KEYS"}), List(backwards));
    const std::string min = text(2), max = text(2) + "d";
    EXPECT_EQ(Alice({"RANGE", "[" + min, "(" + max, "KEYS"}), List(Between(min, max)));
    EXPECT_EQ(Alice({"COUNT", "[" + min, "(" + max}), std::to_string(Between(min, max).size()));
    EXPECT_EQ(Alice({"PREFIX", min, "KEYS"}), List(Between(min, min + "z")));
    std::vector<std::string> part = backwards;
    part.resize(std::min<size_t>(part.size(), 8));
    part.erase(part.begin(),
               part.begin() + static_cast<ptrdiff_t>(std::min<size_t>(3, part.size())));
    EXPECT_EQ(Alice({"RANGE", "+", "-", "REV", "LIMIT", "3", "5", "KEYS"}), List(part));
    const std::string any = Alice({"RANDOMKEY"});
    if (visible_.empty()) {
      EXPECT_EQ(any, "nil");
    } else {
      EXPECT_NE(std::find(visible_.begin(), visible_.end(), any), visible_.end()) << any;
    }
  }
}

TEST_F(SelectedKeysTest, WherePatternsAreNoPrefixesKeysAreFilteredAndRangesRefused) {
  for (const std::vector<std::string>& patterns :
       std::vector<std::vector<std::string>>{{"a?c"}, {"*a"}, {"a*", "[bc]:*"}, {"ab*c", "c"}}) {
    Allow(patterns);
    SCOPED_TRACE(List(patterns));
    EXPECT_EQ(Alice({"KEYS", "*"}), List(visible_));
    EXPECT_EQ(Scanned("*"), List(visible_));
    for (const std::vector<std::string>& request : std::vector<std::vector<std::string>>{
             {"RANGE", "-", "+"}, {"PREFIX", "a"}, {"COUNT", "-", "+"}, {"RANDOMKEY"}})
      EXPECT_EQ(Alice(request), kNoRange) << request[0];
  }
}

TEST_F(SelectedKeysTest, ARangeIsDeletedWhereAllOfItMayBeWritten) {
  Allow({"a*", "c:*"});
  EXPECT_EQ(Alice({"DELRANGE", "[a", "[b"}),
            "!NOPERM this user has no permissions to write every key in the range [a [b");
  EXPECT_EQ(Alice({"DELRANGE", "-", "+"}),
            "!NOPERM this user has no permissions to write every key in the range - +");
  EXPECT_EQ(Do({"DBSIZE"}), std::to_string(keys_.size()));
  EXPECT_EQ(Alice({"DELRANGE", "[a", "(b"}), "OK");
  EXPECT_EQ(Alice({"COUNT", "-", "(b"}), "0");
  EXPECT_EQ(Do({"COUNT", "[a", "(b"}), "0");
  EXPECT_EQ(Alice({"DELRANGE", "wrong", "+"}), "!ERR min or max not valid string range item");
}

TEST_F(SelectedKeysTest, WhatAUserMayOnlyWriteIsNotShown) {
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "resetkeys", "%R~a*", "%W~b*", "(%R~c* +keys)"}), "OK");
  const std::string keys = Alice({"KEYS", "*"});
  EXPECT_EQ(keys.find(" b"), std::string::npos);
  EXPECT_NE(keys.find(" c"), std::string::npos);  // the selector allows KEYS alone
  EXPECT_EQ(Alice({"RANGE", "[b", "+"}), "()");
}

TEST_F(SelectedKeysTest, InsideATransactionToo) {
  Allow({"a*"});
  EXPECT_EQ(Alice({"MULTI"}), "OK");
  EXPECT_EQ(Alice({"COUNT", "-", "+"}), "QUEUED");
  EXPECT_EQ(Alice({"KEYS", "b*"}), "QUEUED");
  EXPECT_EQ(Alice({"EXEC"}), "(" + std::to_string(visible_.size()) + " ())");
}

// The part is found by seeking: what lies between is not read.
TEST_F(SelectedKeysTest, WhatIsBetweenThePartsIsNotLookedAt) {
  constexpr int kMany = 20000;
  std::string load;
  for (int i = 0; i < kMany; ++i) load += Resp({"SET", "m:" + std::to_string(i), "x"});
  RawConnection raw(server_.port());
  ASSERT_TRUE(raw.Send(load));
  ASSERT_EQ(raw.Receive(size_t{5} * kMany).size(), size_t{5} * kMany);
  ASSERT_EQ(Do({"SET", "z:1", "x"}), "OK");
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "resetkeys", "~aa*", "~z:*"}), "OK");
  // One step of a scan looks at a few keys, and finds those on both sides of the many.
  const std::string reply = Alice({"SCAN", "0", "COUNT", "1000"});
  EXPECT_TRUE(reply.starts_with("(0 (aa")) << reply;
  EXPECT_TRUE(reply.ends_with(" z:1))")) << reply;
}

// Of many keys in segments, KEYS of a user with ten reads the blocks of these ten.
TEST_F(SelectedKeysTest, TheKeysOfAPrefixAreFoundWithFewReads) {
  constexpr int kMany = 4000;
  std::string load;
  for (int i = 0; i < kMany; ++i)
    load += Resp({"SET", "m:" + std::to_string(100000 + i), std::string(100, 'v')});
  RawConnection raw(server_.port());
  ASSERT_TRUE(raw.Send(load));
  ASSERT_EQ(raw.Receive(size_t{5} * kMany).size(), size_t{5} * kMany);
  ASSERT_EQ(Do({"COMPACT"}), "OK");
  const auto reads = [&] {
    uint64_t sum = 0;
    for (const auto& [name, value] : server_.store().Statistics()) {
      if (name == "scan_reads" || name == "record_reads" || name == "table_page_reads")
        sum += value;
    }
    return sum;
  };
  // The least of some tries, as the background may read meanwhile.
  const auto least = [&](const auto& ask) {
    uint64_t fewest = ~uint64_t{0};
    for (int i = 0; i < 5; ++i) {
      const uint64_t before = reads();
      ask();
      fewest = std::min(fewest, reads() - before);
    }
    return fewest;
  };
  const uint64_t of_all = least([&] { EXPECT_EQ(Do({"KEYS", "nothing*"}), "()"); });
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "resetkeys", "~m:10399*"}), "OK");
  const uint64_t of_ten = least([&] {
    const std::string keys = Alice({"KEYS", "*"});
    EXPECT_EQ(std::count(keys.begin(), keys.end(), ' '), 9) << keys;
  });
  EXPECT_LE(of_ten, 4u);
  EXPECT_LE(of_all, 4u) << "the pattern is a prefix, too";
  EXPECT_GT(least([&] { EXPECT_EQ(Do({"KEYS", "*nothing"}), "()"); }), of_ten);
}

}  // namespace
}  // namespace varve
