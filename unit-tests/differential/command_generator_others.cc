// The commands that concern no data: the connection, channels, and what the server tells of
// commands.
#include "server/commands/command_table.h"
#include "unit-tests/differential/command_generator.h"

namespace varve::differential {

using namespace std::string_literals;

void CommandGenerator::AddOthers() {
  Add("ping", 3, [this](CommandLine* line) {
    if (OneIn(2)) line->push_back(Value());
  });
  Add("echo", 3, [this](CommandLine* line) { line->push_back(Value()); });
  Add("select", 12, [this](CommandLine* line) { line->push_back(Database()); });
  Add("move", 10, [this](CommandLine* line) {
    line->push_back(Key());
    line->push_back(Database());
  });
  Add("swapdb", 4, [this](CommandLine* line) {
    for (int i = 0; i < 2; ++i) line->push_back(Database());
  });
  Add("publish", 3, [this](CommandLine* line) {
    line->push_back(Key());
    line->push_back(Value());
  });
  Add("pubsub", 3, [this](CommandLine* line) {
    line->push_back(
        Word(Pick({"channels", "numsub", "numpat", "shardchannels", "shardnumsub", "foo"})));
    if (OneIn(2)) line->push_back(Pattern());
  });
  Add("latency", 2, [this](CommandLine* line) {
    line->push_back(Word(Pick({"latest", "history", "reset", "graph", "foo"})));
    if (OneIn(2)) line->push_back(Value());
  });
  Add("command", 5, [this](CommandLine* line) {
    line->push_back(Word(Pick({"info", "getkeys", "getkeysandflags", "foo"})));
    const bool info = EqualsIgnoreCase((*line)[1], "info");
    line->push_back(
        info || OneIn(2)
            ? Pick({"get", "set", "mset", "del", "bitop", "copy", "lcs", "bitfield", "ping", "foo"})
            : Pick({"object", "config", "client", "rename", "msetnx", "publish", "move", "auth"}));
    if (!info && OneIn(4)) line->push_back(Word(Pick({"encoding", "get", "usage", "and", "foo"})));
    for (uint64_t i = 1 + Below(4); i > 0; --i) line->push_back(OneIn(5) ? Word("get") : Key());
  });
  kinds_.push_back({"nosuchcommand", 2, [this](CommandLine* line) {
                      for (uint64_t i = Below(4); i > 0; --i) line->push_back(Key());
                    }});
  weights_ += kinds_.back().weight;
}

void CommandGenerator::AddTransactions() {
  Add("multi", 25, [](CommandLine*) {});
  Add("exec", 3, [](CommandLine*) {});
  Add("discard", 2, [](CommandLine*) {});
  Add("watch", 25, [this](CommandLine* line) {
    for (uint64_t i = 1 + Below(2); i > 0; --i) line->push_back(Key());
  });
  Add("unwatch", 3, [](CommandLine*) {});
}

void CommandGenerator::AddConnection() {
  Add("auth", 1, [this](CommandLine* line) {
    if (OneIn(3)) line->push_back("default");
    for (uint64_t i = OneIn(5) ? Below(4) : 1; i > 0; --i)
      line->push_back(line->size() == 1 ? "default" : Value());
  });
  Add("hello", 4, [this](CommandLine* line) {
    if (OneIn(6)) return;
    line->push_back(OneIn(4) ? Pick({"1", "4", "-3", "abc", "", "3 ", "99999999999999999999"})
                             : Pick({"2", "3"}));
    // Redis goes by each option as it comes to it, even if a wrong one follows: that one has to be
    // the first.
    if (OneIn(8)) return line->push_back(Word(Pick({"foo", "setname", "auth", ""})));
    if (OneIn(3)) line->insert(line->end(), {Word("auth"), "default", Value()});
    if (OneIn(3)) line->insert(line->end(), {Word("setname"), Pick({"x", "a b", "", "name"})});
  });
  Add("reset", 1, [](CommandLine*) {});
  Add("client", 6, [this](CommandLine* line) {
    const std::string word =
        Pick({"getname", "getredir", "unpause", "setname", "unblock", "caching", "kill", "foo",
              "no-evict", "reply", "tracking", "trackinginfo", "list"});
    line->push_back(Word(word));
    if (word == "no-evict") line->push_back(Word(Pick({"on", "off", "foo", ""})));
    if (word == "reply") line->push_back(Word(Pick({"on", "foo", ""})));
    if (word == "tracking") line->push_back(Word(Pick({"off", "foo", ""})));
    if (word == "tracking") Options(line, {"bcast", "noloop"});
    if (word == "list")
      line->insert(line->end(), {Word("type"), Word(Pick({"replica", "pubsub", "foo", ""}))});
    if (word == "kill" && OneIn(2)) {
      for (uint64_t i = 1 + Below(2); i > 0; --i) {
        line->push_back(Word(Pick({"id", "type", "addr", "laddr", "user", "foo"})));
        line->push_back(
            Pick({"999999", "replica", "pubsub", "1.2.3.4:5", "nobody", "0", "-1", "abc"}));
      }
    }
    if (word == "setname" || OneIn(5)) line->push_back(Value());
  });
  Add("config", 4, [this](CommandLine* line) {
    line->push_back(Word(Pick({"get", "get", "get", "resetstat", "foo"})));
    if (!EqualsIgnoreCase(line->back(), "get") && OneIn(2)) return;
    // What both set alike.
    for (uint64_t i = 1 + Below(3); i > 0; --i) {
      line->push_back(Word(Pick({"maxmemory", "maxmemory-policy", "cluster-enabled", "requirepass",
                                 "timeout", "save", "tcp-keepalive", "slowlog-max-len",
                                 "slowlog-log-slower-*", "nosuch", ""})));
    }
  });
  Add("slowlog", 1, [this](CommandLine* line) {
    line->push_back(Word(Pick({"reset", "foo"})));
    if (OneIn(3)) line->push_back(Value());
  });
}

}  // namespace varve::differential
