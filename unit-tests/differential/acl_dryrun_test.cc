// Users with random rules in both servers: ACL SETUSER takes and refuses the same rules, and ACL
// DRYRUN allows and denies the same requests with the same words.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "unit-tests/differential/differential_run.h"

namespace varve::differential {
namespace {

constexpr int kUsers = 400;
constexpr int kRequests = 40;  // for each user

class RandomRights {
 public:
  std::string Rule() {
    switch (Below(12)) {
      case 0:
        return Pick({"on", "off", "nopass", "resetpass", ">pw", "<pw", "#x", "reset"});
      case 1:
      case 2:
        return Pick({"~", "~", "%R~", "%W~", "%RW~", "%RR~", "%~", "%Q~"}) + Pattern();
      case 3:
        return Pick({"allkeys", "resetkeys", "~*", "allchannels", "resetchannels", "&*"});
      case 4:
        return "&" + Pattern();
      case 5:
        return Pick({"+@all", "-@all", "allcommands", "nocommands"});
      case 6:
      case 7:
        return Pick({"+@", "-@"}) + Category();
      case 8:
        return Selector();
      case 9:
        return Pick({"clearselectors", "nosuch", "+nosuch", "-select|1", "+select|", "+get|a|b",
                     "(~a", "()", "+config|nosuch"});
      default:
        return Pick({"+", "-"}) + Command();
    }
  }

  CommandLine Request() {
    const std::vector<CommandLine> requests = {
        {"get", Key()},
        {"set", Key(), "v"},
        {"set", Key(), "v", "GET"},
        {"getset", Key(), "v"},
        {"getdel", Key()},
        {"getex", Key()},
        {"append", Key(), "v"},
        {"incr", Key()},
        {"strlen", Key()},
        {"exists", Key(), Key()},
        {"ttl", Key()},
        {"expire", Key(), "1"},
        {"type", Key()},
        {"touch", Key()},
        {"del", Key(), Key()},
        {"unlink", Key()},
        {"mget", Key(), Key(), Key()},
        {"mset", Key(), "v", Key(), "v"},
        {"msetnx", Key(), "v", Key(), "v"},
        {"rename", Key(), Key()},
        {"renamenx", Key(), Key()},
        {"copy", Key(), Key()},
        {"lcs", Key(), Key()},
        {"bitop", "and", Key(), Key(), Key()},
        {"bitcount", Key()},
        {"bitfield", Key(), "get", "u8", "0"},
        {"bitfield", Key(), "set", "u8", "0", "1"},
        {"setbit", Key(), "0", "1"},
        {"dump", Key()},
        {"restore", Key(), "0", "x"},
        {"object", "encoding", Key()},
        {"memory", "usage", Key()},
        {"watch", Key(), Key()},
        {"publish", Key(), "m"},
        {"spublish", Key(), "m"},
        {"subscribe", Key(), Key()},
        {"ssubscribe", Key()},
        {"psubscribe", Pattern()},
        {"unsubscribe", Key()},
        {"ping"},
        {"auth", "a", "b"},
        {"hello"},
        {"multi"},
        {"exec"},
        {"info"},
        {"client", "id"},
        {"client", "kill", "x"},
        {"config", "get", "x"},
        {"config", "set", "x", "y"},
        {"acl", "whoami"},
        {"acl", "list"},
        {"select", Pick({"0", "1", "2"})},
        {"nosuch", Key()},
        {"get"},
        {"config", "nosuch"},
    };
    return requests[Below(requests.size())];
  }

 private:
  size_t Below(size_t bound) { return random_() % bound; }
  std::string Pick(const std::vector<std::string>& words) { return words[Below(words.size())]; }
  std::string Key() { return Pick({"a", "b", "ab", "a:1", "a:2", "b:1", "x*", ""}); }
  std::string Pattern() {
    return Pick({"a", "a*", "b*", "a:*", "?", "[ab]:*", "x\\*", "*b", "*1"});
  }
  std::string Category() {
    return Pick({"read", "write", "keyspace", "string", "bitmap", "connection", "dangerous",
                 "admin", "pubsub", "transaction", "hash", "nosuch", "READ"});
  }
  std::string Command() {
    return Pick({"get",        "set",        "mget",
                 "del",        "config",     "config|get",
                 "config|set", "client",     "client|kill",
                 "select|0",   "select|1",   "select",
                 "acl",        "acl|whoami", "GET",
                 "publish",    "subscribe",  "psubscribe",
                 "bitop",      "rename",     "object|encoding",
                 "hset",       "eval",       "copy",
                 "expire",     "getex"});
  }
  std::string Selector() {
    std::string text = "(";
    for (size_t i = Below(4); i > 0; --i) {
      text += Pick({"~" + Pattern(), "%R~" + Pattern(), "&" + Pattern(), "+" + Command(),
                    "-" + Command(), "+@" + Category(), "+@all", "~*"}) +
              " ";
    }
    return text + ")";
  }

  std::mt19937_64 random_{17};
};

std::string LineText(const CommandLine& line) {
  std::string text;
  for (const std::string& word : line) text += "'" + word + "' ";
  return text;
}

TEST(AclDryRunTest, AllowsAndDeniesAsRedisDoes) {
  RunOptions options;
  options.varve_server = VARVE_SERVER_MAIN;
  if (!ProgramExists(options.redis_server)) GTEST_SKIP() << "redis-server is not installed";
  const auto run = DifferentialRun::Start(options);
  ASSERT_TRUE(run.ok()) << run.status();
  RandomRights random;
  int allowed = 0;
  int denied = 0;
  const auto compare = [&](const CommandLine& line, const std::vector<CommandLine>& rules) {
    const auto answers = (*run)->Ask(line);
    ASSERT_TRUE(answers.ok()) << answers.status();
    (answers->varve.text == "OK" ? allowed : denied) += 1;
    std::string history;
    for (const CommandLine& rule : rules) history += LineText(rule) + "\n";
    EXPECT_EQ(answers->varve.text, answers->redis.text) << LineText(line) << "\n" << history;
  };
  for (int user = 0; user < kUsers && !::testing::Test::HasFailure(); ++user) {
    std::vector<CommandLine> rules = {{"ACL", "SETUSER", "u", "reset"}};
    compare(rules.back(), rules);
    for (int i = 0; i < 8; ++i) {
      rules.push_back({"ACL", "SETUSER", "u", random.Rule()});
      compare(rules.back(), rules);
    }
    for (int i = 0; i < kRequests; ++i) {
      CommandLine line = {"ACL", "DRYRUN", "u"};
      for (const std::string& word : random.Request()) line.push_back(word);
      compare(line, rules);
    }
  }
  EXPECT_GT(allowed, kUsers * kRequests / 10);
  EXPECT_GT(denied, kUsers * kRequests / 10);
}

}  // namespace
}  // namespace varve::differential
