#include "unit-tests/server/store_needs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/execution/store_capability.h"
#include "unit-tests/server/reply_text.h"

namespace varve::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Words = std::vector<std::string>;

// Requests that show a row: the last one is answered so, and those before it make ready.
struct Sample {
  std::string command;
  StoreNeed need;
  std::vector<Words> requests;
  ::testing::Matcher<std::string> reply;
};
using Samples = std::vector<Sample>;

const Words kUseUsers = {"NAMESPACE", "USE", "users"};  // whose keys have groups by ':'

// Each command once with keys of two groups, and once with keys of one.
Samples OneGroupSamples() {
  const auto set = [](const std::string& key) { return Words{"SET", key, "v"}; };
  const auto crosses = StartsWith("!CROSSGROUP");
  const StoreNeed need = StoreNeed::kAnyKeys;
  return {
      {"bitop", need, {{"BITOP", "OR", "bitop:3", "bitop:1", "bitop:2"}}, crosses},
      {"bitop", need, {kUseUsers, set("b:1"), {"BITOP", "OR", "b:3", "b:1", "b:2"}}, "1"},
      {"copy", need, {set("copy:1"), {"COPY", "copy:1", "copy:2"}}, crosses},
      {"copy", need, {kUseUsers, set("copy:1"), {"COPY", "copy:1", "copy:2"}}, "1"},
      {"exec", need, {{"MULTI"}, set("exec:1"), set("exec:2"), {"EXEC"}}, crosses},
      {"exec", need, {kUseUsers, {"MULTI"}, set("exec:1"), set("exec:2"), {"EXEC"}}, "(OK OK)"},
      {"move", need, {set("move:1"), {"MOVE", "move:1", "1"}}, crosses},
      {"mset", need, {{"MSET", "mset:1", "v", "mset:2", "v"}}, crosses},
      {"mset", need, {kUseUsers, {"MSET", "mset:1", "v", "mset:2", "v"}}, "OK"},
      {"msetnx", need, {{"MSETNX", "msetnx:1", "v", "msetnx:2", "v"}}, crosses},
      {"msetnx", need, {kUseUsers, {"MSETNX", "msetnx:1", "v", "msetnx:2", "v"}}, "1"},
      {"rename", need, {set("rename:1"), {"RENAME", "rename:1", "rename:2"}}, crosses},
      {"rename", need, {kUseUsers, set("rename:1"), {"RENAME", "rename:1", "rename:2"}}, "OK"},
      {"renamenx", need, {set("renamenx:1"), {"RENAMENX", "renamenx:1", "renamenx:2"}}, crosses},
      {"renamenx",
       need,
       {kUseUsers, set("renamenx:1"), {"RENAMENX", "renamenx:1", "renamenx:2"}},
       "1"},
  };
}

Samples GroupByGroupSamples() {
  Samples samples;
  const auto add = [&](const std::string& command, StoreNeed need, const std::string& reply) {
    const std::string one = command + ":1", two = command + ":2";
    samples.push_back({command,
                       need,
                       {{"SET", one, "v"}, {"SET", two, "v"}, {command, one, two, command + ":3"}},
                       reply});
  };
  for (const char* command : {"del", "delete", "unlink"}) add(command, StoreNeed::kAnyKeys, "2");
  for (const char* command : {"exists", "touch"}) add(command, StoreNeed::kSnapshots, "2");
  add("mget", StoreNeed::kSnapshots, "(v v nil)");
  // Two namespaces are never one group.
  for (const char* database : {"0", "1"}) {
    samples.push_back({"flushall",
                       StoreNeed::kAnyKeys,
                       {{"SET", "flushall:1", "v"},
                        {"SELECT", "1"},
                        {"SET", "flushall:1", "v"},
                        {"FLUSHALL"},
                        {"SELECT", database},
                        {"EXISTS", "flushall:1"}},
                       "0"});
  }
  return samples;
}

Samples InPartsAndSlicesSamples() {
  const std::string both = "(parts:a parts:b)";
  const std::vector<std::pair<Words, std::string>> reads = {
      {{"CHILDREN", "parts:"}, "(a b)"},
      {{"COUNT", "[parts:", "(parts;"}, "2"},
      {{"KEYS", "parts:*"}, both},
      {{"PREFIX", "parts:", "KEYS"}, both},
      {{"RANGE", "[parts:", "(parts;", "KEYS"}, both},
      {{"SCAN", "0", "MATCH", "parts:*", "COUNT", "1000"}, "(0 " + both + ")"},
      {{"TREE", "parts:"}, "((a ()) (b ()))"}};
  Samples samples;
  for (const auto& [request, reply] : reads) {
    samples.push_back({std::string(FindCommand(request[0])->name),
                       StoreNeed::kSnapshots,
                       {{"SET", "parts:a", "v"}, {"SET", "parts:b", "v"}, request},
                       reply});
  }
  for (const Words& request :
       std::vector<Words>{{"DELPREFIX", "slices:"}, {"DELRANGE", "[slices:", "(slices;"}}) {
    const std::string command(FindCommand(request[0])->name);
    const StoreNeed need = StoreNeed::kRangeDelete;
    samples.push_back({command,
                       need,
                       {{"SET", "slices:a", "v"},
                        {"SET", "slices:b", "v"},
                        request,
                        {"EXISTS", "slices:a", "slices:b"}},
                       "0"});
    samples.push_back({command, need, {{"MULTI"}, request}, StartsWith("!ERR " + LackOf(need))});
  }
  return samples;
}

Samples CountSamples() {
  const StoreNeed counts = StoreNeed::kExactCounts;
  return {
      {"dbsize",
       counts,
       {{"NAMESPACE", "CREATE", "counted"},
        {"NAMESPACE", "USE", "counted"},
        {"SET", "a", "v"},
        {"SET", "b", "v"},
        {"DBSIZE"}},
       "2"},
      {"info", counts, {{"SET", "k", "v"}, {"INFO"}}, Not(HasSubstr("db0:keys="))},
      {"info", counts, {{"SET", "k", "v"}, {"INFO", "keyspace"}}, HasSubstr("db0:keys=")},
      {"memory|stats",
       counts,
       {{"SET", "k", "v"}, {"MEMORY", "STATS"}},
       AllOf(HasSubstr(" keys.count "), Not(HasSubstr(" keys.count 0 ")))},
      // The samples come in the order of the table.
      {"namespace|info", counts, {{"NAMESPACE", "INFO", "counted"}}, HasSubstr(" keys 2 ")},
      {"namespace|info",
       StoreNeed::kSizeEstimates,
       {{"NAMESPACE", "INFO", "counted"}},
       Not(HasSubstr("value_bytes"))},
  };
}

// More keys in one directory than are counted where a store estimates.
Samples SizeSamples() {
  std::vector<Words> fill = {{"SET", "sizes/e", "v"}};
  for (int i = 100; i < 300; ++i) fill.push_back({"SET", "sizes/d/" + std::to_string(i), "v"});
  Samples samples = {
      {"children", {}, {{"CHILDREN", "sizes/", "WITHSIZES"}}, "(d/ 2400 e 8)"},
      {"tree",
       {},
       {{"TREE", "sizes/", "DEPTH", "1", "WITHSIZES"}},
       "((d/ 200 2400 ()) (e 1 8 ()))"},
      {"tree",
       {},
       {{"TREE", "sizes/", "LIMIT", "2", "WITHSIZES"}},
       "((d/ 200 2400 ((100 1 12 ()))))"},
  };
  for (Sample& sample : samples) {
    sample.need = StoreNeed::kSizeEstimates;
    sample.requests.insert(sample.requests.begin(), fill.begin(), fill.end());
  }
  return samples;
}

// Every option that is refused, and one that is not.
Samples OptionSamples() {
  const std::vector<std::pair<StoreNeed, std::vector<std::string>>> refused = {
      {StoreNeed::kQuotas, {"MAXKEYS", "MAXBYTES", "EVICT", "EVICTABLE"}},
      {StoreNeed::kHistory, {"KEEP", "KEEPBYTES"}},
      {StoreNeed::kOwnFiles, {"SYNC", "VALUESIZE", "COMPRESS"}}};
  Samples samples;
  for (const auto& [need, options] : refused) {
    const std::string of_need(NameOf(need));
    samples.push_back(
        {"namespace|create", need, {{"NAMESPACE", "CREATE", of_need, "EX", "60"}}, "OK"});
    samples.push_back(
        {"namespace|alter", need, {{"NAMESPACE", "ALTER", "users", "EX", "60"}}, "OK"});
    for (const std::string& option : options) {
      const auto reply = StartsWith("!ERR " + LackOf(need));
      samples.push_back(
          {"namespace|create", need, {{"NAMESPACE", "CREATE", "no", option, "1"}}, reply});
      samples.push_back(
          {"namespace|alter", need, {{"NAMESPACE", "ALTER", "users", option, "1"}}, reply});
    }
  }
  return samples;
}

// A program that has its store compacted goes on over any store.
Samples UpkeepSamples() {
  const StoreNeed need = StoreNeed::kOwnFiles;
  return {{"compact", need, {{"SET", "compact:a", "v"}, {"COMPACT"}}, "OK"},
          {"compact", need, {{"COMPACT", "[compact:", "(compact;"}}, "OK"},
          {"compact", need, {{"COMPACT"}, {"GET", "compact:a"}}, "v"}};
}

Samples AllSamples() {
  Samples all;
  for (const auto make : {OneGroupSamples, GroupByGroupSamples, InPartsAndSlicesSamples,
                          CountSamples, SizeSamples, OptionSamples, UpkeepSamples}) {
    for (Sample& sample : make()) all.push_back(std::move(sample));
  }
  return all;
}

void ExpectSample(Client& client, const Sample& sample) {
  Ask(client, {"DISCARD"});  // there may be a transaction
  ASSERT_EQ(Ask(client, {"SELECT", "0"}), "OK");
  for (const Words& request : sample.requests) {
    const std::string reply = Ask(client, request);
    if (&request == &sample.requests.back()) {
      EXPECT_THAT(reply, sample.reply) << ::testing::PrintToString(request);
    } else {
      EXPECT_THAT(reply, Not(StartsWith("!"))) << ::testing::PrintToString(request);
    }
  }
  Ask(client, {"DISCARD"});
}

void ExpectRefusal(Client& client, const CommandNeed& row) {
  const std::string name(row.command);
  const size_t bar = name.find('|');
  const Command* const command = FindCommand(name.substr(0, bar));
  ASSERT_NE(command, nullptr);
  Words words = {name.substr(0, bar)};
  if (bar != std::string::npos) words.push_back(name.substr(bar + 1));
  while (!ArityMatches(command->arity, words.size()) || words.size() < 4) {
    if (command->arity >= 0 && words.size() >= static_cast<size_t>(command->arity)) break;
    words.push_back("1");
  }
  EXPECT_EQ(Ask(client, words), "!ERR " + LackOf(row.need));
}

}  // namespace

void ExpectWhatTheTableSays(Client& client, const StoreCapabilities& capabilities) {
  ASSERT_EQ(Ask(client, {"NAMESPACE", "CREATE", "users", "GROUP", ":"}), "OK");
  const Samples samples = AllSamples();
  size_t shown = 0;
  for (const CommandNeed& row : CommandNeeds()) {
    const std::string name(row.command);
    SCOPED_TRACE(name + " without " + std::string(NameOf(row.need)));
    EXPECT_NE(FindCommand(name.substr(0, name.find('|'))), nullptr);
    EXPECT_TRUE(name.find('|') == std::string::npos || FindSubcommand(name) != nullptr);
    EXPECT_FALSE(Meets(capabilities, row.need));
    if (row.without == WithoutNeed::kRefused) {
      ExpectRefusal(client, row);
      continue;
    }
    const size_t before = shown;
    for (const Sample& sample : samples) {
      if (sample.command != row.command || sample.need != row.need) continue;
      ExpectSample(client, sample);
      ++shown;
    }
    EXPECT_GT(shown, before) << "no request shows this row";
  }
  EXPECT_EQ(shown, samples.size()) << "there are requests of no row";
}

}  // namespace varve::testing
