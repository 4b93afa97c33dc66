// The commands that concern no data: the connection, channels, and what the server tells of commands.
#include "server/command_table.h"
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
    line->push_back(Word(Pick({"channels", "numsub", "numpat", "shardchannels", "shardnumsub", "foo"})));
    if (OneIn(2)) line->push_back(Pattern());
  });
  Add("client", 4, [this](CommandLine* line) {
    line->push_back(Word(Pick({"getname", "getredir", "unpause", "setname", "unblock", "caching", "kill", "foo"})));
    if (EqualsIgnoreCase(line->back(), "setname") || OneIn(3)) line->push_back(Value());
  });
  Add("latency", 2, [this](CommandLine* line) {
    line->push_back(Word(Pick({"latest", "history", "reset", "graph", "foo"})));
    if (OneIn(2)) line->push_back(Value());
  });
  Add("command", 5, [this](CommandLine* line) {
    line->push_back(Word(Pick({"info", "getkeys", "getkeysandflags", "foo"})));
    line->push_back(Pick({"get", "set", "mset", "del", "bitop", "copy", "lcs", "bitfield", "ping", "foo"}));
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

}  // namespace varve::differential
