// The settings from all sides: bounds, words, the command line, the file and which goes first, the
// example and the manual.
#include "server/config/server_flags.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "server/config/config_file.h"
#include "server/config/configuration.h"
#include "server/config/environment.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::ReadFile;
using testing::TempDir;

absl::StatusOr<ServerCommandLine> Parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "server_main");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return ParseServerCommandLine(static_cast<int>(argv.size()), argv.data());
}

std::string Problem(const std::vector<std::string>& arguments) {
  return std::string(Parse(arguments).status().message());
}

absl::StatusOr<ServerCommandLine> ParseWith(const std::vector<const char*>& variables,
                                            std::vector<std::string> arguments = {}) {
  std::vector<const char*> environment = variables;
  environment.push_back(nullptr);
  arguments.insert(arguments.begin(), "server_main");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return ParseServerCommandLine(static_cast<int>(argv.size()), argv.data(), environment.data());
}

std::string ProblemWith(const std::vector<const char*>& variables) {
  return std::string(ParseWith(variables).status().message());
}

std::map<std::string, std::string> Shown(const ServerConfig& config) {
  const Configuration configuration(config, config, "");
  const std::string_view everything = "*";
  const auto settings = configuration.Get({&everything, 1});
  return {settings.begin(), settings.end()};
}

struct Bounds {
  std::string name;
  std::string below;
  std::string min;
  std::string max;
  std::string above;
  std::string min_shown = {};  // where it differs
  std::string max_shown = {};
};

const std::vector<Bounds>& AllBounds() {
  static const std::vector<Bounds> bounds = {
      {"port", "-1", "0", "65535", "65536"},
      {"http-port", "-2", "-1", "65535", "65536"},
      {"tls-port", "-2", "-1", "65535", "65536"},
      {"maxmemory", "-1", "0", "16TiB", "17592186044417", "0", "17592186044416"},
      {"tls-session-cache-size", "-1", "0", "1000000", "1000001"},
      {"tls-session-cache-timeout", "0", "1", "31536000", "31536001"},
      {"tls-auto-reload-interval", "-1", "0", "31536000", "31536001"},
      {"unixsocketperm", "-1", "0", "777", "1000"},
      {"threads", "-1", "0", "256", "257"},
      {"io-threads", "-1", "0", "256", "257"},
      {"store-threads", "0", "1", "4096", "4097"},
      {"max-background-jobs", "-1", "0", "256", "257"},
      {"maxclients", "0", "1", "1000000", "1000001"},
      {"databases", "0", "1", "1024", "1025"},
      {"slowlog-log-slower-than", "-2", "-1", "1000000000000", "1000000000001"},
      {"tracking-table-max-keys", "-1", "0", "1000000000", "1000000001"},
      {"acllog-max-len", "-1", "0", "1000000", "1000001"},
      {"slowlog-max-len", "-1", "0", "1000000", "1000001"},
      {"timeout", "-1", "0", "31536000", "31536001"},
      {"login-timeout", "-1", "0", "31536000", "31536001"},
      {"tcp-keepalive", "-1", "0", "32767", "32768"},
      {"backup-sealed-ttl", "-1", "0", "31536000", "31536001"},
      {"write-buffer-size", "4095", "4KiB", "64GiB", "68719476737", "4096", "68719476736"},
      {"group-max-bytes", "4095", "4KiB", "1GiB", "1073741825", "4096", "1073741824"},
      {"memory-limit", "-1", "0", "16TiB", "17592186044417", "0", "17592186044416"},
      {"offset-table-cache-size", "-1", "0", "16TiB", "17592186044417", "0", "17592186044416"},
      {"block-cache-size", "-1", "0", "16TiB", "17592186044417", "0", "17592186044416"},
      {"max-disk-bytes", "-1", "0", "1024TiB", "1125899906842625", "0", "1125899906842624"},
      {"mapped-read-budget", "-1", "0", "16TiB", "17592186044417", "0", "17592186044416"},
      {"maxmemory-clients", "-1", "0", "16TiB", "17592186044417", "0", "17592186044416"},
      {"unsent-max-bytes", "16383", "16KiB", "1GiB", "1073741825", "16384", "1073741824"},
      {"proto-max-bulk-len", "1048575", "1MiB", "512MiB", "536870913", "1048576", "536870912"},
      {"keep", "-1s", "0", "36500d", "3153600001s"},
      {"keep-bytes", "-1", "0", "16TiB", "17592186044417", "0", "17592186044416"},
      {"change-retention-bytes", "-1", "0", "16TiB", "17592186044417", "0", "17592186044416"},
      {"change-retention-time", "-1s", "0", "36500d", "3153600001s"},
      {"replica-announce-port", "-1", "0", "65535", "65536"},
      {"replica-priority", "-1", "0", "2147483647", "2147483648"},
      {"replica-retention-bytes", "1048575", "1MiB", "16TiB", "17592186044417", "1048576",
       "17592186044416"},
      {"sync-replicas", "-1", "0", "1000", "1001"},
      {"min-replicas-to-write", "-1", "0", "1000", "1001"},
      {"min-replicas-max-lag", "-1", "0", "31536000", "31536001"},
      {"value-separation-size", "-1", "0", "1GiB", "1073741825", "0", "1073741824"},
      {"group-max-delay", "-1s", "0", "10s", "10001ms"},
      {"store-deadline", "-1s", "0", "10min", "601s"},
      {"hbase-max-value", "1023", "1KiB", "16MiB", "16777217", "1024", "16777216"},
      {"snapshot-max-age", "-1s", "0", "365d", "31536001s"},
  };
  return bounds;
}

const std::map<std::string, std::vector<std::string>>& Words() {
  static const std::map<std::string, std::vector<std::string>> words = {
      {"bind", {"127.0.0.1", "::1", "localhost"}},
      {"unixsocket", {"", "varve.sock"}},
      {"backupdirname", {"backupdir", "copies"}},
      {"http-bind", {"127.0.0.1", "::1", "localhost"}},
      {"acl-log-file", {"", "/var/log/varve/audit.log"}},
      {"maxmemory-policy", {"noeviction"}},
      {"tls", {"off", "optional", "required"}},
      {"tls-auth-clients", {"yes", "no", "optional"}},
      {"tls-cert-file", {"", "server.crt"}},
      {"tls-key-file", {"", "server.key"}},
      {"tls-ca-cert-file", {"", "ca.crt"}},
      {"tls-ca-cert-dir", {"", "/etc/ssl/certs"}},
      {"tls-crl-file", {"", "revoked.pem"}},
      {"tls-auth-clients-user", {"off", "CN", "URI"}},
      {"tls-protocols", {"", "TLSv1.3", "TLSv1.2 TLSv1.3"}},
      {"tls-ciphers", {"", "HIGH"}},
      {"tls-ciphersuites", {"", "TLS_AES_256_GCM_SHA384"}},
      {"tls-prefer-server-ciphers", {"yes", "no"}},
      {"tls-dh-params-file", {"", "dh.pem"}},
      {"tls-session-caching", {"yes", "no"}},
      {"http-hosts", {"", "metrics.example,other"}},
      {"metrics-prefixes", {"", "user:,session:"}},
      {"dir", {"data", "/srv/x y"}},
      {"store", {"embedded"}},
      {"hbase-quorum", {"a:2181,b:2181"}},
      {"hbase-masters", {"a:16000"}},
      {"hbase-znode-parent", {"/hbase", "/hbase-unsecure"}},
      {"hbase-table", {"varve", "team:varve"}},
      {"hbase-create", {"yes", "no"}},
      {"hbase-security", {"simple"}},
      {"sync", {"always", "everysec", "no"}},
      {"sync-backend", {"auto", "pwrite", "direct"}},
      {"replicaof", {"", "10.0.0.7 7777", "::1 1", "primary.example 65535"}},
      {"primary-user", {"", "follower"}},
      {"tls-replication", {"yes", "no"}},
      {"replica-announce-ip", {"", "10.0.0.8"}},
      {"replica-read-only", {"yes"}},
      {"replica-serve-stale-data", {"yes", "no"}},
      {"execution", {"adaptive", "pool", "inline"}},
      {"compression", {"none", "lz4", "zstd", "zstd:1", "zstd:19"}},
      {"protected-mode", {"yes", "no"}},
      {"finalize-upgrade", {"yes", "no"}},
      {"loglevel", {"trace", "debug", "info", "warning", "error", "critical", "off"}},
      {"logfile", {"", "/var/log/varve.log"}},
      {"aclfile", {"", "/etc/varve/users.acl"}},
      {"acl-pubsub-default", {"resetchannels", "allchannels"}},
  };
  return words;
}

void ExpectShown(const std::string& name, const std::string& value, const std::string& shown) {
  std::vector<std::string> flags;
  if (name.starts_with("hbase-")) flags.push_back("--store=hbase");
  // The flag behind it wins if it is the quorum, too.
  if (!flags.empty() && name != "hbase-masters") flags.push_back("--hbase-quorum=q:2181");
  flags.push_back("--" + name + "=" + value);
  const absl::StatusOr<ServerCommandLine> line = Parse(flags);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(Shown(line->config).at(name), shown) << name;
}

TEST(EnvironmentTest, AVariableGoesBeforeTheFileAndAFlagBeforeTheVariable) {
  TempDir dir;
  const std::string file = dir.File("varve.toml");
  std::ofstream(file) << "maxclients = 5\ntimeout = 6\nbind = \"127.0.0.2\"\n";
  const auto line = ParseWith({"VARVE_MAXCLIENTS=7", "VARVE_TIMEOUT=8", "VARVE_SYNC=no", "HOME=/",
                               "VARVE_BIND=", "VARVE_REQUIREPASS=word"},
                              {"--config", file, "--timeout=9"});
  ASSERT_TRUE(line.ok()) << line.status();
  auto shown = Shown(line->config);
  EXPECT_EQ(shown["maxclients"], "7");
  EXPECT_EQ(shown["timeout"], "9");
  EXPECT_EQ(shown["sync"], "no");
  EXPECT_EQ(shown["bind"], "127.0.0.2") << "an empty variable is none";
  EXPECT_EQ(line->config.server.password, "word");
  EXPECT_TRUE(line->config.given.contains("maxclients"));
}

TEST(EnvironmentTest, EverySettingHasAVariable) {
  const ServerConfig defaults;
  for (const Setting& setting : AllSettings()) {
    if (setting.kind == SettingKind::kText) continue;
    const std::string variable = VariableOf(setting.name) + "=" + WriteSetting(setting, defaults);
    const auto line = ParseWith({variable.c_str()});
    if (WriteSetting(setting, defaults).empty()) continue;
    ASSERT_TRUE(line.ok()) << variable << ": " << line.status();
    EXPECT_TRUE(line->config.given.contains(setting.name)) << variable;
  }
}

TEST(EnvironmentTest, AFileHoldsASecret) {
  TempDir dir;
  const std::string file = dir.File("word");
  std::ofstream(file) << "secret\nand more\n";
  const std::string own = "VARVE_REQUIREPASS_FILE=" + file;  // of requirepass-file
  const auto line = ParseWith({own.c_str()});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->config.server.password, "secret");
  EXPECT_EQ(line->config.password_file, file);

  const std::string other = "VARVE_UNIXSOCKET_FILE=" + file;
  const auto with_other = ParseWith({other.c_str()});
  ASSERT_TRUE(with_other.ok()) << with_other.status();
  EXPECT_EQ(with_other->config.server.unix_socket, "secret");
  EXPECT_EQ(ProblemWith({other.c_str(), "VARVE_UNIXSOCKET=x"}),
            "VARVE_UNIXSOCKET and VARVE_UNIXSOCKET_FILE: only one of them can be set");
  EXPECT_EQ(ProblemWith({"VARVE_UNIXSOCKET_FILE=/nowhere/word"}),
            "VARVE_UNIXSOCKET_FILE: /nowhere/word can't be read");
}

TEST(EnvironmentTest, MistakesNameTheVariable) {
  EXPECT_EQ(ProblemWith({"VARVE_MAXCLIENTS=0"}), "VARVE_MAXCLIENTS=0: takes 1 to 1000000");
  EXPECT_EQ(ProblemWith({"VARVE_MAXCLIENT=5"}),
            "VARVE_MAXCLIENT: there is no such setting, did you mean VARVE_MAXCLIENTS?");
  EXPECT_EQ(ProblemWith({"VARVE_PORT=tcp://10.0.0.1:7777"}),
            "VARVE_PORT=tcp://10.0.0.1:7777: takes 0 to 65535 (enableServiceLinks: false keeps "
            "Kubernetes from setting it)");
  // Variables of the client, of tests and of Kubernetes.
  EXPECT_EQ(ProblemWith({"VARVE_PASSWORD=x", "VARVE_URL=redis://h", "VARVE_HOST=h", "VARVE_USER=u",
                         "VARVE_SERVICE_HOST=10.0.0.1", "VARVE_SERVICE_PORT=7777",
                         "VARVE_PORT_7777_TCP=tcp://10.0.0.1:7777", "VARVE_PORT_7777_TCP_ADDR=x",
                         "VARVE_TEST_DAMAGE_STEP=3"}),
            "");
}

TEST(ServerFlagsTest, EverySettingHasATestOfItsBoundsOrWords) {
  std::vector<std::string> tested = {
      "client-output-buffer-limit", "notify-keyspace-events", "primary-auth", "requirepass",
      "requirepass-file",           "tls-key-file-pass"};
  for (const Bounds& bounds : AllBounds()) tested.push_back(bounds.name);
  for (const auto& [name, words] : Words()) tested.push_back(name);
  std::sort(tested.begin(), tested.end());
  std::vector<std::string> all;
  for (const Setting& setting : AllSettings()) all.emplace_back(setting.name);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(tested, all);
}

TEST(ServerFlagsTest, APrimaryIsAHostAndAPort) {
  for (const char* wrong : {"x", "x ", " 7", "x 0", "x 65536", "x 7 8", "x y", "x -1", "x\t7"}) {
    EXPECT_EQ(Problem({"--replicaof", wrong}),
              std::string("--replicaof=") + wrong +
                  ": takes a host and a port with a space between, or nothing");
  }
  EXPECT_EQ(Problem({"--replica-read-only=no"}),
            "--replica-read-only=no: takes yes; the versions of a follower are those of its "
            "primary, so it takes no writes of its own");
}

TEST(ServerFlagsTest, BoundsAreTakenAndShownAndWhatIsBeyondIsRefused) {
  for (const Bounds& bounds : AllBounds()) {
    for (const std::string& beyond :
         {bounds.below, bounds.above, std::string("many"), std::string()}) {
      EXPECT_NE(Problem({"--" + bounds.name + "=" + beyond})
                    .find("--" + bounds.name + "=" + beyond + ": takes "),
                std::string::npos)
          << Problem({"--" + bounds.name + "=" + beyond});
    }
    ExpectShown(bounds.name, bounds.min, bounds.min_shown.empty() ? bounds.min : bounds.min_shown);
    ExpectShown(bounds.name, bounds.max, bounds.max_shown.empty() ? bounds.max : bounds.max_shown);
  }
}

TEST(ServerFlagsTest, WordsAreTakenAndShown) {
  for (const auto& [name, words] : Words()) {
    for (const std::string& word : words) ExpectShown(name, word, word);
  }
  EXPECT_EQ(Problem({"--sync=other"}), "--sync=other: takes always, everysec, no");
  EXPECT_EQ(Problem({"--execution="}), "--execution=: takes adaptive, pool, inline");
  EXPECT_EQ(Problem({"--protected-mode=maybe"}), "--protected-mode=maybe: takes yes or no");
}

TEST(ServerFlagsTest, OutputLimitsAreTakenClassByClass) {
  const std::string name = "client-output-buffer-limit";
  ExpectShown(name, "pubsub 1MiB 0 7", "normal 0 0 0 pubsub 1048576 0 7");
  ExpectShown(name, "  pubsub 1 2 3  normal 2GiB 1m 31536000",
              "normal 2147483648 1048576 31536000 pubsub 1 2 3");
  for (const char* wrong :
       {"", " ", "normal", "normal 1 2", "normal 1 2 3 4", "slave 1 2 3", "normal x 2 3",
        "normal 1 2 -3", "normal 1 2 31536001", "normal 1 2 3s"}) {
    EXPECT_EQ(Problem({"--" + name + "=" + wrong}),
              "--" + name + "=" + wrong +
                  ": takes normal or pubsub, bytes, bytes, seconds; such as: pubsub 32MiB 8MiB 60");
  }
}

TEST(ServerFlagsTest, AFlagIsWrittenInSeveralWays) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--write-buffer-size=1MiB"},
        {"--write_buffer_size=1MiB"},
        {"--write-buffer-size", "1m"}}) {
    const absl::StatusOr<ServerCommandLine> line = Parse(flags);
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_EQ(line->config.engine.write_buffer_size, 1u << 20);
  }
  EXPECT_EQ(Parse({"--port=1", "--port=2"})->config.server.port, 2);
}

TEST(ServerFlagsTest, WhatIsUnknownIsRefusedWithTheNearestName) {
  EXPECT_EQ(Problem({"--maxclient=5"}), "--maxclient is no setting, did you mean --maxclients?");
  EXPECT_EQ(Problem({"--appendfsync=no"}), "--appendfsync is no setting, did you mean --sync?");
  EXPECT_EQ(Problem({"--nonsense-of-a-flag=5"}),
            "--nonsense-of-a-flag is no setting; --help lists them");
  EXPECT_EQ(Problem({"stray"}), "stray is no setting; --help lists them");
  EXPECT_EQ(Problem({"--port"}), "--port needs a value");
}

TEST(ServerFlagsTest, AStoreOverHbaseNeedsAClusterThatCanBeAsked) {
  EXPECT_EQ(Problem({"--store=elsewhere"}), "--store=elsewhere: takes embedded, hbase");
  EXPECT_EQ(Problem({"--store=hbase", "--hbase-quorum=a:2181"}), "");
  EXPECT_EQ(Problem({"--store=hbase", "--hbase-masters=a:16000"}), "");
  const std::string which =
      "store=hbase takes one of hbase-quorum and hbase-masters, which say where the cluster is";
  EXPECT_EQ(Problem({"--store=hbase"}), which);
  EXPECT_EQ(Problem({"--store=hbase", "--hbase-quorum=a:2181", "--hbase-masters=a:16000"}), which);
  for (const auto& [flag, word] : std::map<std::string, std::string>{
           {"--hbase-security=kerberos", "Kerberos is not supported"},
           {"--store-deadline=99ms", "too short"},
           {"--hbase-znode-parent=hbase", "begins with /"},
           {"--hbase-znode-parent=/hbase/", "does not end with it"},
           {"--hbase-znode-parent=", "begins with /"},
           {"--replicaof=10.0.0.7 7777", "none of them follows another"},
           {"--maxmemory=1GiB", "no server can bound"},
           {"--maxmemory-policy=allkeys-lru", "no server can bound"},
           {"--max-disk-bytes=1GiB", "no server can bound"}}) {
    const std::string problem = Problem({"--store=hbase", "--hbase-quorum=a:2181", flag});
    EXPECT_NE(problem.find(word), std::string::npos) << flag << ": " << problem;
  }
}

TEST(ServerFlagsTest, SettingsOfAClusterAreRefusedWhereTheyHaveNoEffect) {
  const std::string why =
      ": settings of an HBase cluster take store=hbase, and store is embedded, which keeps all "
      "keys in dir; set store=hbase, too, or leave them out";
  for (const std::string setting :
       {"hbase-quorum=a:2181", "hbase-masters=a:16000", "hbase-znode-parent=/hbase-unsecure",
        "hbase-table=t", "hbase-create=no", "hbase-security=kerberos", "hbase-max-value=2MiB"}) {
    EXPECT_EQ(Problem({"--" + setting}), setting + why);
    EXPECT_EQ(Problem({"--store=embedded", "--" + setting}), setting + why);
  }
  EXPECT_EQ(Problem({"--hbase-table=t", "--hbase-quorum=a:2181"}),
            "hbase-quorum=a:2181, hbase-table=t" + why);
  EXPECT_EQ(ProblemWith({"VARVE_HBASE_QUORUM=a:2181"}), "hbase-quorum=a:2181" + why);
  // A file may list all settings with their defaults.
  for (const Setting& setting : AllSettings()) {
    if (!setting.name.starts_with("hbase-")) continue;
    const std::string value = WriteSetting(setting, ServerConfig());
    EXPECT_EQ(Problem({"--" + std::string(setting.name) + "=" + value}), "");
  }

  const std::vector<std::string> by_masters = {"--store=hbase", "--hbase-masters=a:16000"};
  EXPECT_EQ(Problem({by_masters[0], by_masters[1], "--hbase-znode-parent=/hbase"}), "");
  EXPECT_EQ(Problem({by_masters[0], by_masters[1], "--hbase-znode-parent=/hbase-unsecure"}),
            "hbase-znode-parent and hbase-masters: the node is one of ZooKeeper, and masters are "
            "asked instead of it; give hbase-quorum in place of hbase-masters, or leave the node "
            "out");
}

TEST(ServerFlagsTest, TextsThatCantServeAreRefused) {
  EXPECT_EQ(Problem({"--bind=everywhere"}), "--bind=everywhere: takes an IP address");
  EXPECT_EQ(Problem({"--dir="}), "--dir=: takes a path");
  const std::string path(108, 'x');
  EXPECT_EQ(Problem({"--unixsocket=" + path}),
            "--unixsocket=" + path + ": takes a path of at most 107 bytes");
}

TEST(ServerFlagsTest, ThePasswordComesFromAFileAlone) {
  TempDir dir;
  const std::string file = dir.File("password");
  EXPECT_NE(Problem({"--requirepass=secret"}).find("can be read by others"), std::string::npos);
  EXPECT_EQ(Problem({"--requirepass=secret"}).find("secret"), std::string::npos);
  EXPECT_EQ(Problem({"--requirepass-file=" + file}),
            "requirepass-file: " + file + " can't be read");
  std::ofstream(file) << "\nsecond line\n";
  EXPECT_EQ(Problem({"--requirepass-file=" + file}),
            "requirepass-file: " + file + " holds no password in its first line");
  std::ofstream(file) << "pass word\r\nsecond line\n";
  const absl::StatusOr<ServerCommandLine> line = Parse({"--requirepass-file=" + file});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->config.server.password, "pass word");
  std::ofstream(dir.File("toml")) << "requirepass = \"other\"\n";
  EXPECT_EQ(Problem({"--config=" + dir.File("toml"), "--requirepass-file=" + file}),
            "requirepass and requirepass-file: only one of them can hold the password");
}

TEST(ServerFlagsTest, AFlagGoesBeforeTheFileAndTheFileBeforeTheDefault) {
  TempDir dir;
  const std::string file = dir.File("varve.toml");
  std::ofstream(file)
      << "port = 1234\nmaxclients = 5 # few\nsync = \"everysec\"\nwrite-buffer-size = \"1MiB\"\n"
      << "block-cache-size = 65536\nprotected-mode = false\ngroup-max-delay = \"200us\"\n";
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--maxclients=7", "--config", file},
        {"--config=" + file, "--maxclients=7"}}) {
    const absl::StatusOr<ServerCommandLine> line = Parse(flags);
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_EQ(line->config_file, file);
    EXPECT_EQ(line->config.server.port, 1234);
    EXPECT_EQ(line->config.server.max_clients, 7u);
    EXPECT_EQ(line->config.engine.sync, Durability::kEverySecond);
    EXPECT_EQ(line->config.engine.write_buffer_size, 1u << 20);
    EXPECT_EQ(line->config.engine.block_cache_size, 65536u);
    EXPECT_FALSE(line->config.server.protected_mode);
    EXPECT_EQ(line->config.engine.group_max_delay, std::chrono::microseconds(200));
    EXPECT_EQ(line->config.server.bind, "127.0.0.1");
  }
  EXPECT_NE(Problem({"--config=" + dir.File("missing")}).find("missing: can't be read"),
            std::string::npos);
}

TEST(ServerFlagsTest, HelpListsEveryFlagWithItsDefault) {
  const std::string help = ServerHelp();
  for (const Setting& setting : AllSettings()) {
    const std::string line =
        "\n  --" + std::string(setting.name) + "=" + WriteSetting(setting, ServerConfig()) + "\n";
    EXPECT_EQ(help.find(line) != std::string::npos, !setting.secret) << line;
  }
}

// Each of these fails when a setting was added, or its default or description changed, and the file
// was not.
TEST(ServerFlagsTest, TheExampleFileIsWhatTheSettingsSay) {
  EXPECT_EQ(ReadFile(VARVE_SOURCE_DIR "/packaging/varve.toml"), ExampleConfig())
      << "make it anew: server_main --example-config > packaging/varve.toml";
}

TEST(ServerFlagsTest, TheManualHasEverySettingWithItsDefault) {
  const std::string manual = ReadFile(VARVE_SOURCE_DIR "/docs/operations.md");
  for (const Setting& setting : AllSettings()) {
    const std::string value = WriteSetting(setting, ServerConfig());
    const std::string live = setting.apply != nullptr ? "live" : "";
    const auto cell = [](const std::string& text) { return text.empty() ? "" : text + " "; };
    const std::string row =
        "\n| `" + std::string(setting.name) + "` | " + cell(value) + "| " + cell(live) + "| ";
    EXPECT_NE(manual.find(row), std::string::npos) << row;
  }
}

TEST(ServerFlagsTest, TheExampleWithoutItsCommentMarksHasTheDefaults) {
  std::string text;
  std::istringstream lines{ExampleConfig()};
  for (std::string line; std::getline(lines, line);) {
    const bool is_setting =
        std::any_of(AllSettings().begin(), AllSettings().end(), [&](const Setting& setting) {
          return line.starts_with("# " + std::string(setting.name) + " = ");
        });
    if (is_setting) text += line.substr(2) + "\n";
  }
  ServerConfig config;
  config.server.port = 1;
  config.engine.sync = Durability::kNone;
  config.server.bind = "changed";
  const absl::Status parsed = ParseConfigText(text, "example", &config);
  ASSERT_TRUE(parsed.ok()) << parsed;
  for (const Setting& setting : AllSettings()) {
    EXPECT_EQ(WriteSetting(setting, config), WriteSetting(setting, ServerConfig())) << setting.name;
  }
}

}  // namespace
}  // namespace varve
