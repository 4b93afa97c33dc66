#include "unit-tests/differential/differences.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "server/commands/command_table.h"
#include "type/reply.h"
#include "util/resp/resp_parser.h"
#include "util/resp/resp_reply.h"

namespace varve::differential {
namespace {

bool Is(const CommandLine& line, std::string_view name) { return EqualsIgnoreCase(line[0], name); }

bool HasWord(const CommandLine& line, std::string_view word) {
  return std::any_of(line.begin() + 1, line.end(),
                     [&](const std::string& text) { return EqualsIgnoreCase(text, word); });
}

bool HasNumberBelow(const CommandLine& line, int64_t bound) {
  return std::any_of(line.begin() + 1, line.end(), [&](const std::string& text) {
    int64_t number = 0;
    return ParseRespInteger(text, &number) && number < bound;
  });
}

bool IsBitField(const CommandLine& line) { return Is(line, "bitfield") || Is(line, "bitfield_ro"); }

constexpr Difference kDifferences[] = {
    {"OBJECT ENCODING and REFCOUNT: Redis tells how the value came about, Varve what a value of "
     "its kind has at first",
     false,
     [](const CommandLine& line) {
       return Is(line, "object") && line.size() == 3 &&
              (EqualsIgnoreCase(line[1], "encoding") || EqualsIgnoreCase(line[1], "refcount"));
     }},
    {"SCAN in several steps: Varve goes in the order of keys, and its cursors are its own", false,
     [](const CommandLine& line) { return Is(line, "scan") && !HasWord(line, "1000"); }},
    {"SCAN with a cursor that no SCAN gave: Varve refuses it", false,
     [](const CommandLine& line) { return Is(line, "scan") && line.size() > 1 && line[1] != "0"; }},
    {"KEYS and SCAN with the pattern **: in Redis it doesn't match the empty key", false,
     [](const CommandLine& line) {
       return (Is(line, "keys") || Is(line, "scan")) && HasWord(line, "**");
     }},
    {"INFO of anything but the keyspace: each server tells of itself", false,
     [](const CommandLine& line) {
       return Is(line, "info") && (line.size() != 2 || !EqualsIgnoreCase(line[1], "keyspace"));
     }},
    {"words of more than 1,024 bytes: Varve's errors repeat no more of them, and connections and "
     "channels have no "
     "longer "
     "names",
     false,
     [](const CommandLine& line) {
       constexpr std::string_view kCommands[] = {"client", "hello",   "latency",  "publish",
                                                 "expire", "pexpire", "expireat", "pexpireat"};
       return std::any_of(std::begin(kCommands), std::end(kCommands),
                          [&](std::string_view name) { return Is(line, name); }) &&
              std::any_of(line.begin() + 1, line.end(),
                          [](const std::string& text) { return text.size() > 1024; });
     }},
    {"COMMAND without the names of commands: each server has its own", false,
     [](const CommandLine& line) { return Is(line, "command") && line.size() <= 2; }},
    {"CONFIG GET with a pattern: each server has its own settings", false,
     [](const CommandLine& line) {
       return Is(line, "config") &&
              std::any_of(line.begin() + 1, line.end(), [](const std::string& text) {
                return text.find_first_of("*?[") != std::string::npos;
              });
     }},
    {"CLIENT LIST: each server has its own connections", false,
     [](const CommandLine& line) {
       return Is(line, "client") && HasWord(line, "list") && !HasWord(line, "type");
     }},
    {"BITFIELD with OVERFLOW SAT, SET of a number near -2^63 to a narrower signed field: Redis "
     "stores the largest "
     "number, as "
     "its comparison overflows, Varve the smallest",
     true,
     [](const CommandLine& line) {
       return IsBitField(line) && HasWord(line, "sat") && HasWord(line, "set") &&
              HasNumberBelow(line, INT64_MIN / 2);
     }},
    {"BITFIELD with an offset #N of which N times the width is beyond 64 bits: Redis takes what is "
     "left of it, Varve "
     "refuses",
     true,
     [](const CommandLine& line) {
       return IsBitField(line) &&
              std::any_of(line.begin() + 1, line.end(), [](const std::string& text) {
                int64_t fields = 0;
                return text.starts_with('#') &&
                       ParseRespInteger(std::string_view(text).substr(1), &fields) &&
                       (fields >= INT64_MAX / 64 || fields <= INT64_MIN / 64);
              });
     }},
};

constexpr Difference kRangeInTransaction = {
    "KEYS, SCAN, RANDOMKEY and DBSIZE inside EXEC: a store without snapshots reads and counts no "
    "ranges of keys there",
    false, [](const CommandLine& line) {
      return Is(line, "keys") || Is(line, "scan") || Is(line, "randomkey") || Is(line, "dbsize");
    }};

std::string Sorted(const Reply& reply) {
  std::vector<std::string> texts;
  for (const Reply& element : reply.elements) texts.push_back(element.text);
  std::sort(texts.begin(), texts.end());
  // SCAN may tell of a key twice.
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  std::string sorted;
  for (const std::string& text : texts) sorted += std::to_string(text.size()) + ":" + text + "\n";
  return sorted;
}

// How long a key has left, or until when it lives: the servers ask the clock one after the other.
bool TellsTime(const CommandLine& line) {
  return Is(line, "ttl") || Is(line, "pttl") || Is(line, "expiretime") || Is(line, "pexpiretime");
}

// "expires=1,avg_ttl=100": Redis estimates the average from keys that it looks at now and then.
std::string WithoutAverages(std::string text) {
  for (size_t at = text.find(",avg_ttl="); at != std::string::npos;
       at = text.find(",avg_ttl=", at + 1)) {
    text.erase(at, std::min(text.find('\r', at), text.size()) - at);
  }
  return text.substr(std::min(text.find("\r\n"), text.size()));  // without its length
}

// The settings of CONFIG GET come in any order.
std::string SortedPairs(const Reply& reply) {
  std::vector<std::string> pairs;
  for (size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
    pairs.push_back(reply.elements[i].text + "=" + reply.elements[i + 1].text + "\n");
  }
  std::sort(pairs.begin(), pairs.end());
  std::string sorted = reply.type == Reply::Type::kMap ? "map\n" : "array\n";
  for (const std::string& pair : pairs) sorted += pair;
  return sorted;
}

// HELLO without what a server is called, and its numbers of versions and connections.
std::string WithoutIdentity(const Reply& reply) {
  std::string text = reply.type == Reply::Type::kMap ? "map\n" : "array\n";
  for (size_t i = 0; i < reply.elements.size(); ++i) {
    const std::string& name = reply.elements[i - i % 2].text;
    const bool own = i % 2 == 1 && (name == "server" || name == "version" || name == "id");
    text += own ? "\n" : reply.elements[i].text + std::to_string(reply.elements[i].integer) + "\n";
  }
  return text;
}

bool IsPairs(const Reply& reply) {
  return reply.type == Reply::Type::kMap || reply.type == Reply::Type::kArray;
}

}  // namespace

std::string Comparable(const CommandLine& line, const std::string& reply) {
  if (TellsTime(line) && reply.starts_with(':') && !reply.starts_with(":-")) {
    return "a number of " + std::to_string(reply.size()) + " bytes";
  }
  if (Is(line, "info")) return WithoutAverages(reply);
  const bool scan = Is(line, "scan");
  const bool config = Is(line, "config");
  const bool hello = Is(line, "hello");
  if (!scan && !config && !hello && !Is(line, "keys") && !Is(line, "randomkey")) return reply;
  Reply parsed;
  size_t consumed = 0;
  if (ParseReply(reply, &parsed, &consumed) != ReplyResult::kReply) return reply;
  if (Is(line, "randomkey")) return parsed.type == Reply::Type::kBulk ? "some key" : reply;
  if ((config || hello) && IsPairs(parsed))
    return config ? SortedPairs(parsed) : WithoutIdentity(parsed);
  if (parsed.type != Reply::Type::kArray) return reply;
  if (!scan) return Sorted(parsed);
  if (parsed.elements.size() != 2) return reply;
  return "cursor " + parsed.elements[0].text + "\n" + Sorted(parsed.elements[1]);
}

const Difference* Explain(const CommandLine& line) {
  for (const Difference& difference : kDifferences) {
    if (difference.applies(line)) return &difference;
  }
  return nullptr;
}

const Difference* ExplainInTransaction(const CommandLine& line) {
  return kRangeInTransaction.applies(line) ? &kRangeInTransaction : Explain(line);
}

}  // namespace varve::differential
