#include "server/following/stream_commands.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace varve {
namespace {

using WordViews = std::vector<std::string_view>;

std::string TypeOf(std::string_view name) { return std::string(FindStreamCommand(name).type); }

// The key and its database, or "none".
std::string Target(const WordViews& words) {
  const std::optional<StreamTarget> target = TargetOf(words);
  return target ? std::string(target->key) + "@" + std::string(target->database) : "none";
}

TEST(StreamCommandsTest, NamesAreFoundInUpperAndLowerCase) {
  EXPECT_EQ(FindStreamCommand("set").action, StreamAction::kExecute);
  EXPECT_EQ(FindStreamCommand("SET").action, StreamAction::kExecute);
  EXPECT_EQ(FindStreamCommand("Append").action, StreamAction::kExecute);
  EXPECT_EQ(FindStreamCommand("ZUNIONSTORE").action, StreamAction::kOverwrite);
  EXPECT_EQ(FindStreamCommand("FLUSHALL").action, StreamAction::kEverywhere);
}

TEST(StreamCommandsTest, UnknownCommandsHaveTheTypeThatTheirNameTells) {
  EXPECT_EQ(TypeOf("LPUSH"), "list");
  EXPECT_EQ(TypeOf("HSETEX"), "hash");
  EXPECT_EQ(TypeOf("XACKDEL"), "stream");
  EXPECT_EQ(TypeOf("ZSOMETHING"), "sorted set");
  EXPECT_EQ(TypeOf("JSON.SET"), "module type");
  EXPECT_EQ(TypeOf("SOMETHING"), "");
  for (const char* name : {"CONFIG", "SHUTDOWN", "ACL", "DELRANGE", "GET"})
    EXPECT_EQ(FindStreamCommand(name).action, StreamAction::kSkip) << name;
}

TEST(StreamCommandsTest, TheTargetIsWhatGoes) {
  EXPECT_EQ(Target({"RENAME", "a", "b"}), "b@");
  EXPECT_EQ(Target({"RENAME", "a", "a"}), "none");
  EXPECT_EQ(Target({"COPY", "a", "b"}), "none");
  EXPECT_EQ(Target({"COPY", "a", "b", "REPLACE"}), "b@");
  EXPECT_EQ(Target({"copy", "a", "b", "db", "3", "replace"}), "b@3");
  EXPECT_EQ(Target({"RESTORE", "a", "0", "payload"}), "none");
  EXPECT_EQ(Target({"RESTORE", "a", "0", "payload", "ABSTTL", "REPLACE"}), "a@");
  EXPECT_EQ(Target({"SORT", "a", "LIMIT", "0", "1", "STORE", "b"}), "b@");
  EXPECT_EQ(Target({"SORT", "a", "BY", "x"}), "none");
  EXPECT_EQ(Target({"GEORADIUS", "a", "1", "2", "3", "km", "STOREDIST", "b"}), "b@");
  EXPECT_EQ(Target({"SUNIONSTORE", "b", "a"}), "b@");
  EXPECT_EQ(Target({"PFADD", "b", "x"}), "b@");
  EXPECT_EQ(Target({"PFMERGE"}), "none");
}

TEST(StreamCommandsTest, TheTypeOfAPayload) {
  EXPECT_EQ(RestoredType(WordViews{"RESTORE", "a", "0", std::string_view("\0x", 2)}), "string");
  EXPECT_EQ(RestoredType(WordViews{"RESTORE", "a", "0", "\x10x"}), "hash");
  EXPECT_EQ(RestoredType(WordViews{"RESTORE", "a", "0", "\x7Fx"}), "");
  EXPECT_EQ(RestoredType(WordViews{"RESTORE", "a", "0", ""}), "");
  EXPECT_EQ(RestoredType(WordViews{"RESTORE", "a"}), "");
}

TEST(StreamCommandsTest, ThePartsOfAnMsetex) {
  const WordViews words = {"MSETEX", "2", "a", "1", "b", "2", "XX", "PXAT", "5"};
  const SetMany parts = PartsOfSetMany(words);
  EXPECT_EQ(WordViews(parts.pairs.begin(), parts.pairs.end()), (WordViews{"a", "1", "b", "2"}));
  EXPECT_EQ(WordViews(parts.options.begin(), parts.options.end()), (WordViews{"PXAT", "5"}));
  const std::vector<WordViews> wrong = {{"MSETEX"},
                                        {"MSETEX", "0", "a", "1"},
                                        {"MSETEX", "-1", "a", "1"},
                                        {"MSETEX", "x", "a", "1"},
                                        {"MSETEX", "2", "a", "1", "b"},
                                        {"MSETEX", "9223372036854775807", "a", "1"}};
  for (const WordViews& each : wrong) EXPECT_TRUE(PartsOfSetMany(each).pairs.empty());
}

}  // namespace
}  // namespace varve
