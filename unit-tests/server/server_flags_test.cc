// The command line: bounds of every setting, and that each is shown as it was given.
#include "server/server_flags.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace varve {
namespace {

absl::StatusOr<ServerCommandLine> Parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "server_main");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return ParseServerCommandLine(static_cast<int>(argv.size()), argv.data());
}

std::map<std::string, std::string> Shown(const ServerCommandLine& line) {
  const auto settings = ServerSettings(line);
  return {settings.begin(), settings.end()};
}

// From --help: what a new setting can't be left out of.
std::map<std::string, std::string> Defaults() {
  std::map<std::string, std::string> defaults;
  const std::string help = ServerHelp();
  for (size_t at = help.find("\n  --"); at != std::string::npos; at = help.find("\n  --", at + 1)) {
    const std::string line = help.substr(at + 5, help.find('\n', at + 1) - at - 5);
    if (const size_t equals = line.find('='); equals != std::string::npos) {
      defaults[line.substr(0, equals)] = line.substr(equals + 1);
    }
  }
  return defaults;
}

struct Bounds {
  std::string name;
  std::string below;  // empty: there is nothing below
  std::string min;
  std::string max;
  std::string above;
  std::string min_shown = {};  // where it differs
  std::string max_shown = {};
};

const std::vector<Bounds>& AllBounds() {
  static const std::vector<Bounds> bounds = {
      {"port", "-1", "0", "65535", "65536"},
      {"threads", "-1", "0", "256", "257"},
      {"io-threads", "-1", "0", "256", "257"},
      {"maxclients", "0", "1", "1000000", "1000001"},
      {"timeout", "-1", "0", "31536000", "31536001"},
      {"tcp-keepalive", "-1", "0", "32767", "32768"},
      {"write-buffer-size", "4095", "4KiB", "64GiB", "68719476737", "4096", "68719476736"},
      {"group-max-bytes", "4095", "4KiB", "1GiB", "1073741825", "4096", "1073741824"},
      {"offset-table-cache-size", "-1", "0", "16TiB", "17592186044417", "0", "17592186044416"},
      {"block-cache-size", "-1", "0", "16TiB", "17592186044417", "0", "17592186044416"},
      {"value-separation-size", "-1", "0", "0", "1"},
      {"group-max-delay", "-1s", "0", "10s", "10001ms"},
      {"snapshot-max-age", "-1s", "0", "8760h", "31536001s"},
  };
  return bounds;
}

const std::map<std::string, std::vector<std::string>>& Words() {
  static const std::map<std::string, std::vector<std::string>> words = {
      {"bind", {"127.0.0.1", "::1"}},
      {"dir", {"data", "/srv/x y"}},
      {"sync", {"always", "everysec", "no"}},
      {"execution", {"adaptive", "pool", "inline"}},
      {"loglevel", {"trace", "debug", "info", "warning", "error", "critical", "off"}},
      {"logfile", {"", "/var/log/varve.log"}},
  };
  return words;
}

class ServerFlagsTest : public ::testing::Test {
 protected:
  // Flags are global and keep what a test set.
  void TearDown() override {
    std::vector<std::string> arguments;
    for (const auto& [name, value] : Defaults()) arguments.push_back("--" + name + "=" + value);
    EXPECT_TRUE(Parse(arguments).ok());
  }
  static void ExpectShown(const std::string& name, const std::string& value, const std::string& shown) {
    const absl::StatusOr<ServerCommandLine> line = Parse({"--" + name + "=" + value});
    ASSERT_TRUE(line.ok()) << line.status();
    const std::map<std::string, std::string> settings = Shown(*line);
    ASSERT_EQ(settings.count(name), 1u) << name;
    EXPECT_EQ(settings.at(name), shown) << name;
  }
};

TEST_F(ServerFlagsTest, EverySettingHasATestOfItsBoundsOrWords) {
  std::vector<std::string> tested;
  for (const Bounds& bounds : AllBounds()) tested.push_back(bounds.name);
  for (const auto& [name, words] : Words()) tested.push_back(name);
  std::sort(tested.begin(), tested.end());
  std::vector<std::string> all;
  for (const auto& [name, value] : Defaults()) all.push_back(name);
  EXPECT_EQ(tested, all);
}

TEST_F(ServerFlagsTest, BoundsAreTakenAndShownAndWhatIsBeyondIsRefused) {
  for (const Bounds& bounds : AllBounds()) {
    for (const std::string& beyond : {bounds.below, bounds.above}) {
      const absl::StatusOr<ServerCommandLine> line = Parse({"--" + bounds.name + "=" + beyond});
      ASSERT_FALSE(line.ok()) << bounds.name << "=" << beyond;
      EXPECT_NE(line.status().ToString().find("--" + bounds.name), std::string::npos) << line.status();
    }
    ExpectShown(bounds.name, bounds.min, bounds.min_shown.empty() ? bounds.min : bounds.min_shown);
    ExpectShown(bounds.name, bounds.max, bounds.max_shown.empty() ? bounds.max : bounds.max_shown);
  }
}

TEST_F(ServerFlagsTest, WordsAreTakenAndShown) {
  for (const auto& [name, words] : Words()) {
    for (const std::string& word : words) ExpectShown(name, word, word);
  }
  for (const char* name : {"sync", "execution", "loglevel"}) {
    EXPECT_FALSE(Parse({std::string("--") + name + "=other"}).ok()) << name;
    ASSERT_TRUE(Parse({std::string("--") + name + "=" + Words().at(name)[0]}).ok());
  }
}

TEST_F(ServerFlagsTest, RedisNamesShowTheSameSettings) {
  const absl::StatusOr<ServerCommandLine> line = Parse({"--sync=everysec"});
  ASSERT_TRUE(line.ok()) << line.status();
  const std::map<std::string, std::string> settings = Shown(*line);
  EXPECT_EQ(settings.at("appendfsync"), "everysec");
  EXPECT_EQ(settings.at("appendonly"), "yes");
  EXPECT_EQ(settings.at("timeout"), "0");
  EXPECT_EQ(settings.at("tcp-keepalive"), "300");
}

}  // namespace
}  // namespace varve
