// Commands on expiries. Both servers go by the same clock, but not in the same millisecond: so
// times are far ahead, or long past, and no line is spoiled into one that would let a key expire
// while the test runs.
#include <algorithm>
#include <iterator>

#include "server/commands/command_table.h"
#include "unit-tests/differential/command_generator.h"
#include "util/resp/resp_parser.h"

namespace varve::differential {
namespace {

// What is left of them has as many digits at the end of a round as at its beginning.
constexpr const char* kSeconds[] = {"150", "5000", "700000"};
constexpr const char* kMillis[] = {"150000", "5000000", "700000000"};
constexpr const char* kInstantSeconds = "9000000000";
constexpr const char* kInstantMillis = "9000000000000";
constexpr int64_t kFarAhead = 1'000'000'000;

template <size_t kCount>
bool Holds(const char* const (&texts)[kCount], const std::string& text) {
  return std::find(std::begin(texts), std::end(texts), text) != std::end(texts);
}

}  // namespace

bool CommandGenerator::MayExpireSoon(const CommandLine& line) {
  constexpr const char* kNames[] = {"set",    "getex",   "setex",    "psetex",
                                    "expire", "pexpire", "expireat", "pexpireat"};
  const auto is_name = [&](const char* name) { return EqualsIgnoreCase(line[0], name); };
  if (std::none_of(std::begin(kNames), std::end(kNames), is_name)) return false;
  const size_t first = is_name("set") ? 3 : 2;
  bool may_be_past = !is_name("set") && !is_name("getex");
  for (size_t i = first; i < line.size(); ++i) {
    int64_t number = 0;
    if (!ParseRespInteger(line[i], &number) || number <= 0 || number >= kFarAhead) continue;
    const bool in_seconds =
        is_name("expire") || is_name("setex") || EqualsIgnoreCase(line[i - 1], "ex");
    const bool in_millis =
        is_name("pexpire") || is_name("psetex") || EqualsIgnoreCase(line[i - 1], "px");
    if ((in_seconds && Holds(kSeconds, line[i])) || (in_millis && Holds(kMillis, line[i])))
      continue;
    // Both delete the key at once.
    if (may_be_past && (is_name("expireat") || is_name("pexpireat"))) continue;
    return true;
  }
  return false;
}

void CommandGenerator::AddTime(CommandLine* line) {
  switch (Below(4)) {
    case 0:
      line->insert(line->end(), {Word("ex"), kSeconds[Below(std::size(kSeconds))]});
      break;
    case 1:
      line->insert(line->end(), {Word("px"), kMillis[Below(std::size(kMillis))]});
      break;
    case 2:
      line->insert(line->end(), {Word("exat"), kInstantSeconds});
      break;
    default:
      line->insert(line->end(), {Word("pxat"), kInstantMillis});
  }
}

void CommandGenerator::AddExpiry() {
  const auto refused = [this] {
    return Pick({"0", "-1", "abc", "", "9223372036854775807", "-9223372036854775808"});
  };
  const auto time_left = [=, this](const char* name, const auto& times) {
    Add(name, 8, [=, this](CommandLine* line) {
      line->push_back(Key());
      line->push_back(OneIn(8) ? refused() : times());
      if (OneIn(3)) line->push_back(Word(Pick({"nx", "xx", "foo"})));
      if (OneIn(12)) line->push_back(Word(Pick({"nx", "xx"})));
    });
  };
  // Which of two times is the later one must not hang on the millisecond in which they came: each
  // is used once in a while.
  const auto compared = [=, this](const char* name, const char* unit) {
    Add(name, 3, [=, this](CommandLine* line) {
      line->push_back(Key());
      line->push_back(std::to_string(200 + compared_times_++ % 700) + unit);
      line->push_back(Word(Pick({"gt", "lt"})));
      if (OneIn(4)) line->push_back(Word(Pick({"nx", "xx", "gt", "lt"})));
    });
  };
  compared("expire", "");
  compared("pexpire", "000");
  time_left("expire", [this]() -> std::string { return kSeconds[Below(std::size(kSeconds))]; });
  time_left("pexpire", [this]() -> std::string { return kMillis[Below(std::size(kMillis))]; });
  time_left("expireat", [this]() -> std::string { return OneIn(4) ? "1" : kInstantSeconds; });
  time_left("pexpireat", [this]() -> std::string { return OneIn(4) ? "1" : kInstantMillis; });
  for (const char* name : {"ttl", "pttl", "expiretime", "pexpiretime"}) {
    Add(name, 8, [this](CommandLine* line) { line->push_back(Key()); });
  }
  Add("persist", 6, [this](CommandLine* line) { line->push_back(Key()); });
  Add("set", 15, [this](CommandLine* line) {
    line->push_back(Key());
    line->push_back(Value());
    OneIn(4) ? line->push_back(Word("keepttl")) : AddTime(line);
    if (OneIn(4)) line->push_back(Word(Pick({"nx", "xx", "get", "keepttl"})));
  });
  Add("getex", 12, [this](CommandLine* line) {
    line->push_back(Key());
    if (OneIn(4)) return;
    OneIn(3) ? line->push_back(Word("persist")) : AddTime(line);
  });
  Add("setex", 6, [=, this](CommandLine* line) {
    line->push_back(Key());
    line->push_back(OneIn(8) ? refused() : kSeconds[Below(std::size(kSeconds))]);
    line->push_back(std::string("v"));
  });
  Add("psetex", 6, [=, this](CommandLine* line) {
    line->push_back(Key());
    line->push_back(OneIn(8) ? refused() : kMillis[Below(std::size(kMillis))]);
    line->push_back(std::string("v"));
  });
}

}  // namespace varve::differential
