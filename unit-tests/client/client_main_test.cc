// client_main against server_main: what it prints and how it ends.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "type/version.h"
#include "unit-tests/client/restarting_server.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::Process;
using testing::ReadFile;
using testing::ServerProcess;
using testing::TempDir;

class ClientMainTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(server_.port(), 0) << server_.log(); }

  int Run(std::vector<std::string> arguments, const std::string& input = "/dev/null") {
    arguments.insert(arguments.begin(), "--port=" + std::to_string(server_.port()));
    return Process(VARVE_CLIENT_MAIN, arguments, dir_.File("out"), input).Wait();
  }
  std::string Output() const { return ReadFile(dir_.File("out")); }

  TempDir dir_;
  ServerProcess server_{VARVE_SERVER_MAIN, dir_.File("data")};
};

TEST_F(ClientMainTest, PutGetDelete) {
  EXPECT_EQ(Run({"put", "test/val", "this is a test val"}), 0);
  EXPECT_EQ(Output(), "");
  EXPECT_EQ(Run({"get", "test/val"}), 0);
  EXPECT_EQ(Output(), "this is a test val");
  EXPECT_EQ(Run({"get", "missing"}), 1);
  EXPECT_EQ(Output(), "");
  EXPECT_EQ(Run({"put", "empty", ""}), 0);
  EXPECT_EQ(Run({"get", "empty"}), 0);
  EXPECT_EQ(Output(), "");
  EXPECT_EQ(Run({"delete", "test/val", "missing"}), 0);
  EXPECT_EQ(Output(), "1\n");
  EXPECT_EQ(Run({"delete", "test/val"}), 1);
  EXPECT_EQ(Run({"--", "put", "--odd", "--value"}), 0);
  EXPECT_EQ(Run({"get", "--", "--odd"}), 0);
  EXPECT_EQ(Output(), "--value");
}

TEST_F(ClientMainTest, DrawsATree) {
  for (const char* key : {"c/a/1", "c/a/2", "c/a", "c/b\n", "c/d/e/f", "x:y"})
    ASSERT_EQ(Run({"put", key, "value"}), 0);
  EXPECT_EQ(Run({"tree"}), 0);
  EXPECT_EQ(Output(),
            ".\n"
            "├── c/\n"
            "│   ├── a\n"
            "│   ├── a/\n"
            "│   │   ├── 1\n"
            "│   │   └── 2\n"
            "│   ├── b\\n\n"
            "│   └── d/\n"
            "│       └── e/\n"
            "│           └── f\n"
            "└── x:y\n"
            "\n"
            "4 directories, 6 keys\n");
  EXPECT_EQ(Run({"tree", "c/", "--ascii", "--depth=1", "--sizes"}), 0);
  EXPECT_EQ(Output(),
            "c/\n"
            "|-- a  8 B\n"
            "|-- a/  2 keys, 20 B\n"
            "|-- b\\n  9 B\n"
            "`-- d/  1 key, 12 B\n"
            "\n"
            "2 directories, 2 keys\n");
  EXPECT_EQ(Run({"tree", "--delim", ":", "--limit=2", "x"}), 0);
  EXPECT_EQ(Output(), "x\n└── :\n    └── y\n\n1 directory, 1 key\n");
  EXPECT_EQ(Run({"tree", "c/d/", "--json"}), 0);
  EXPECT_EQ(Output(), "[[\"e/\",[[\"f\",[]]]]]\n");
  EXPECT_EQ(Run({"tree", "none/"}), 0);
  EXPECT_EQ(Output(), "none/\n\n0 directories, 0 keys\n");
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "d/";
  ASSERT_EQ(Run({"put", deep + "x", "v"}), 0);
  EXPECT_EQ(Run({"tree", "d/", "--ascii"}), 0);
  EXPECT_TRUE(Output().ends_with("`-- d/\n\n32 directories, 0 keys\n")) << Output();
  EXPECT_EQ(Run({"tree", "c/", "--depth=33"}), 2);
  EXPECT_EQ(Run({"get", "a", "--depth=3"}), 2);
  EXPECT_EQ(Run({"tree", "a", "b"}), 2);
}

TEST_F(ClientMainTest, CountsAKeyThatIsNamedAsItsDirectory) {
  for (const char* key : {"a/", "b/", "b/c", "b/d/", "b/d/e", "f"})
    ASSERT_EQ(Run({"put", key, "value"}), 0);
  EXPECT_EQ(Run({"tree", "--ascii"}), 0);
  EXPECT_EQ(Output(),
            ".\n"
            "|-- a/\n"
            "|-- b/\n"
            "|   |-- c\n"
            "|   `-- d/\n"
            "|       `-- e\n"
            "`-- f\n"
            "\n"
            "3 directories, 6 keys\n");
  EXPECT_EQ(Run({"tree", "--ascii", "--depth=2"}), 0);
  EXPECT_TRUE(Output().ends_with("3 directories, 4 keys\n")) << "without those in d/: " << Output();
  EXPECT_EQ(Run({"tree", "--ascii", "--limit=3"}), 0);
  EXPECT_TRUE(Output().ends_with("`-- c\n\n2 directories, 2 keys\n")) << Output();
}

TEST_F(ClientMainTest, WorksInADatabaseOrANamespace) {
  EXPECT_EQ(Run({"--db=2", "put", "key", "two"}), 0);
  EXPECT_EQ(Run({"get", "key"}), 1);
  EXPECT_EQ(Run({"--db", "2", "get", "key"}), 0);
  EXPECT_EQ(Output(), "two");
  EXPECT_EQ(Run({"--db=16", "get", "key"}), 2);
  EXPECT_EQ(Run({"--namespace=users", "get", "key"}), 2);
  EXPECT_EQ(Run({"call", "NAMESPACE", "CREATE", "users"}), 0);
  EXPECT_EQ(Run({"--namespace=users", "put", "key", "users"}), 0);
  EXPECT_EQ(Run({"--namespace=users", "export", dir_.File("users.csv")}), 0);
  EXPECT_EQ(Run({"--db=5", "import", dir_.File("users.csv")}), 0);
  EXPECT_EQ(Run({"--db=5", "range"}), 0);
  EXPECT_EQ(Output(), "key\tusers\n");
}

TEST_F(ClientMainTest, AValueOfAnyBytesGoesThroughStandardInput) {
  std::string value;
  for (uint32_t i = 0; i < 3000000; ++i) value.push_back(static_cast<char>(i * 7919 >> 8));
  std::ofstream(dir_.File("in"), std::ios::binary) << value;
  EXPECT_EQ(Run({"put", "bytes"}, dir_.File("in")), 0);
  EXPECT_EQ(Run({"get", "bytes"}), 0);
  EXPECT_TRUE(Output() == value);
}

TEST_F(ClientMainTest, InputAndOutputThatFailAreErrors) {
  EXPECT_EQ(Run({"put", "truncated"}, "/"), 2);  // a directory can't be read
  EXPECT_NE(Output().find("standard input"), std::string::npos) << Output();
  EXPECT_EQ(Run({"get", "truncated"}), 1);
  std::ofstream(dir_.File("in"), std::ios::binary) << std::string(100000, 'v');
  EXPECT_EQ(Run({"put", "large"}, dir_.File("in")), 0);
  const std::string get =
      std::string(VARVE_CLIENT_MAIN) + " --port=" + std::to_string(server_.port()) + " get large";
  EXPECT_EQ(Process("/bin/sh", {"-c", get + " >/dev/full"}, dir_.File("out")).Wait(), 2);
  EXPECT_NE(Output().find("standard output"), std::string::npos) << Output();
}

TEST(ClientMainChangesTest, PrintsWhatWasCommitted) {
  TempDir dir;
  ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"), {"--change-retention-bytes=16MiB"});
  ASSERT_NE(server.port(), 0) << server.log();
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--port=" + std::to_string(server.port()));
    return Process(VARVE_CLIENT_MAIN, arguments, dir.File("out")).Wait();
  };
  ASSERT_EQ(run({"call", "MSET", "a", "1", "b", "2"}), 0);
  ASSERT_EQ(run({"delete", "a"}), 0);
  ASSERT_EQ(run({"changes", "--raw"}), 0);
  const std::string all = ReadFile(dir.File("out"));
  EXPECT_NE(all.find("\tset\t0\ta\t1\n"), std::string::npos) << all;
  EXPECT_NE(all.find("\tdel\t0\ta\t\n"), std::string::npos) << all;
  ASSERT_EQ(run({"changes", "--json", "--prefix=b"}), 0);
  const std::string json = ReadFile(dir.File("out"));
  EXPECT_TRUE(json.starts_with("{\"version\":")) << json;
  EXPECT_TRUE(
      json.ends_with(",\"ops\":[{\"op\":\"set\",\"namespace\":\"0\",\"key\":\"b\","
                     "\"value\":\"2\",\"expires_ms\":0}]}\n"))
      << json;
  EXPECT_EQ(run({"changes", "--since=999999"}), 2);
  EXPECT_EQ(run({"get", "a", "--follow"}), 2);
  EXPECT_EQ(run({"changes", "more"}), 2);
}

TEST_F(ClientMainTest, Ranges) {
  for (const char* key : {"a", "b", "ba", "c"})
    EXPECT_EQ(Run({"put", key, std::string("v") + key}), 0);
  EXPECT_EQ(Run({"range"}), 0);
  EXPECT_EQ(Output(), "a\tva\nb\tvb\nba\tvba\nc\tvc\n");
  EXPECT_EQ(Run({"range", "[b", "(c", "--keys"}), 0);
  EXPECT_EQ(Output(), "b\nba\n");
  EXPECT_EQ(Run({"range", "[a", "(c", "--reverse", "--limit=2", "--keys"}), 0);
  EXPECT_EQ(Output(), "ba\nb\n");
  EXPECT_EQ(Run({"prefix", "b", "--limit", "1"}), 0);
  EXPECT_EQ(Output(), "b\tvb\n");
  EXPECT_EQ(Run({"count"}), 0);
  EXPECT_EQ(Output(), "4\n");
  EXPECT_EQ(Run({"count", "(a", "+"}), 0);
  EXPECT_EQ(Output(), "3\n");
  EXPECT_EQ(Run({"ping"}), 0);
  EXPECT_EQ(Output(), "PONG\n");
}

TEST_F(ClientMainTest, JsonAndTables) {
  EXPECT_EQ(Run({"put", "a", "x \"y\"\n"}), 0);
  EXPECT_EQ(Run({"put", "b", "\xff"}), 0);
  EXPECT_EQ(Run({"get", "a", "--json"}), 0);
  EXPECT_EQ(Output(), "{\"key\":\"a\",\"value\":\"x \\\"y\\\"\\n\"}\n");
  EXPECT_EQ(Run({"range", "--json", "--reverse"}), 0);
  EXPECT_EQ(
      Output(),
      "{\"key\":\"b\",\"value_base64\":\"/w==\"}\n{\"key\":\"a\",\"value\":\"x \\\"y\\\"\\n\"}\n");
  EXPECT_EQ(Run({"range", "--json", "--keys"}), 0);
  EXPECT_EQ(Output(), "\"a\"\n\"b\"\n");
  EXPECT_EQ(Run({"range", "--table"}), 0);
  EXPECT_EQ(Output(), "key  value\na    x \"y\"\\n\nb    \\xff\n(2 keys)\n");
  EXPECT_EQ(Run({"call", "mget", "a", "c"}), 0);
  EXPECT_EQ(Output(), "x \"y\"\n\n\n");
  EXPECT_EQ(Run({"call", "mget", "a", "c", "--json"}), 0);
  EXPECT_EQ(Output(), "[\"x \\\"y\\\"\\n\",null]\n");
  EXPECT_EQ(Run({"get", "a", "--json", "--raw"}), 2);
}

TEST_F(ClientMainTest, DumpsFilesOfAStore) {
  EXPECT_EQ(Run({"put", "city:1", "Bern"}), 0);
  EXPECT_EQ(Run({"dump-log", dir_.File("data")}), 0);
  EXPECT_NE(Output().find("put generation 1 \"city:1\" = \"Bern\" (4 bytes)"), std::string::npos)
      << Output();
  EXPECT_EQ(Run({"dump-segment", dir_.File("missing")}), 2);
  EXPECT_EQ(Run({"dump-log"}), 2);
}

TEST_F(ClientMainTest, ErrorsHaveTheirOwnExitCode) {
  EXPECT_EQ(Run({"get"}), 2);
  EXPECT_EQ(Output(), "client_main: get is used as: client_main get KEY\n");
  EXPECT_EQ(Run({"export"}), 2);
  EXPECT_EQ(Output(), "client_main: export is used as: client_main export FILE [MIN MAX]\n");
  EXPECT_EQ(Run({"prefx", "a"}), 2);
  EXPECT_EQ(Output(),
            "client_main: there is no command prefx (did you mean prefix?); --help lists them, and "
            "`call prefx` sends it "
            "to the server as it is\n");
  EXPECT_EQ(Run({"bundel", "a.tar.gz"}), 2);
  EXPECT_NE(Output().find("(did you mean bundle?)"), std::string::npos) << Output();
  EXPECT_EQ(Run({"dump-manifets", "data"}), 2);
  EXPECT_NE(Output().find("(did you mean dump-manifest?)"), std::string::npos) << Output();
  EXPECT_EQ(Run({"get", "a", "--nonsense"}), 2);
  EXPECT_EQ(Run({"range", "--revers"}), 2);
  EXPECT_EQ(Output(),
            "client_main: --revers is no option (did you mean --reverse?); --help lists them\n");
  EXPECT_EQ(Run({"range", "a", "b"}), 2);
  EXPECT_EQ(Output(), "client_main: ERR min or max not valid string range item\n");
  EXPECT_EQ(Run({"export", dir_.File("all.csv"), "--limit=1", "--reverse"}), 2);
  EXPECT_EQ(Output(), "client_main: export does not take --reverse, which is for range, prefix\n");
  EXPECT_FALSE(std::filesystem::exists(dir_.File("all.csv")));
  EXPECT_EQ(Run({"export", dir_.File("all.csv"), "--json"}), 2);
  EXPECT_EQ(Run({"get", "a", "--seconds=3"}), 2);
  EXPECT_EQ(Run({"--resume"}), 2);
  EXPECT_EQ(Output(),
            "client_main: the prompt does not take --resume, which is for import, export\n");
  EXPECT_EQ(Run({"--namespace=", "put", "a", "b"}), 2);
  EXPECT_EQ(Output(), "client_main: --namespace needs a name\n");
  EXPECT_EQ(Run({"--namespace=a", "--db=1", "get", "a"}), 2);
  EXPECT_EQ(Output(), "client_main: --db and --namespace exclude each other\n");
  EXPECT_EQ(Run({"--port=1", "ping"}), 2);
  EXPECT_NE(Output().find("127.0.0.1:1"), std::string::npos) << Output();
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_EQ(Run({"--version"}), 0);
  EXPECT_EQ(Output(), std::string("varve ") + kVarveVersion + "\n");
}

TEST_F(ClientMainTest, LinesFromStandardInputAreCommands) {
  const std::string in = dir_.File("in");
  EXPECT_EQ(Run({}), 0);
  EXPECT_EQ(Output(), "");
  std::ofstream(in) << "SET a \"x \\x41\"\n\n  get 'a'\r\nincr n";
  EXPECT_EQ(Run({}, in), 0);
  EXPECT_EQ(Output(), "OK\nx A\n1\n");
  std::ofstream(in) << "incr a\nget 'open\nclient reply off\nget a\nQUIT\ndel a\n";
  EXPECT_EQ(Run({}, in), 1);
  EXPECT_EQ(
      Output(),
      "ERR value is not an integer or out of range\n"
      "client_main: line 2: the quotes are not balanced\n"
      "client_main: CLIENT REPLY OFF and SKIP are not sent: this client waits for each reply\n"
      "x A\n");
  EXPECT_EQ(Run({"--json"}, in), 1);
  EXPECT_TRUE(Output().ends_with("\"x A\"\n")) << Output();
  EXPECT_EQ(Run({}, "/"), 2);  // a directory can't be read
  std::ofstream(in) << "shutdown nosave\nget a\n";
  EXPECT_EQ(Run({}, in), 2);
}

TEST_F(ClientMainTest, SubscriptionsOutlastTheLines) {
  std::ofstream(dir_.File("in")) << "ssubscribe news\necho beside\n";
  Process listener(VARVE_CLIENT_MAIN, {"--port=" + std::to_string(server_.port())},
                   dir_.File("out"), dir_.File("in"));
  const std::unique_ptr<Client> publisher =
      *Client::Connect("127.0.0.1", server_.port(), std::chrono::seconds(30));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const std::string expected = "ssubscribe\nnews\n1\nbeside\n";
  while (Output() != expected && std::chrono::steady_clock::now() < deadline) usleep(10000);
  EXPECT_EQ(Output(), expected);
  EXPECT_EQ(publisher->Call({"SPUBLISH", "news", "late"})->integer, 1);
  while (!Output().ends_with("late\n") && std::chrono::steady_clock::now() < deadline)
    usleep(10000);
  EXPECT_EQ(Output(), expected + "smessage\nnews\nlate\n");
  server_.process().Kill(SIGKILL);
  EXPECT_EQ(listener.Wait(), 2);
}

TEST_F(ClientMainTest, InvalidationsAreShownBetweenReplies) {
  std::ofstream(dir_.File("in"))
      << "set k 1\nclient tracking on\nget k\nset k 2\necho end\nflushdb\necho end\n";
  EXPECT_EQ(Run({}, dir_.File("in")), 0);
  EXPECT_TRUE(Output().starts_with("OK\nOK\n1\nOK\ninvalidate\nk\nend\nOK\ninvalidate\n"))
      << Output();
}

TEST_F(ClientMainTest, MapsAreObjectsInJson) {
  EXPECT_EQ(Run({"call", "config", "get", "maxclients", "--json"}), 0);
  EXPECT_EQ(Output(), "{\"maxclients\":\"10000\"}\n");
}

TEST_F(ClientMainTest, TheLibraryPipelinesAndReportsErrors) {
  absl::StatusOr<std::unique_ptr<Client>> connected =
      Client::Connect("localhost", server_.port(), std::chrono::milliseconds(30000));
  ASSERT_TRUE(connected.ok()) << connected.status();
  Client& client = **connected;
  for (int i = 0; i < 5000; ++i)
    ASSERT_TRUE(client.Send({"SET", "p" + std::to_string(i), std::to_string(i)}).ok());
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(client.Receive()->text, "OK");
  EXPECT_EQ(*client.Count("[p", "(q"), 5000);
  EXPECT_EQ((*client.Prefix("p1", {.keys_only = true})).size(), 1111u);
  EXPECT_EQ(client.PutAll({{"x", "1"}, {"y", "2"}}), absl::OkStatus());
  EXPECT_EQ(*client.Delete({"x", "y", "z"}), 2);
  EXPECT_TRUE(absl::IsFailedPrecondition(client.Call({"NOSUCH"}).status()));
  server_.process().Kill(SIGKILL);
  EXPECT_TRUE(absl::IsUnavailable(client.Ping()));
  EXPECT_TRUE(absl::IsUnavailable(client.Put("a", "b")));
}

class GuardedServerTest : public testing::RestartingServer {
 protected:
  void SetUp() override {
    RestartingServer::SetUp();
    UsePassword("secret");
    Restart();
  }
  int Run(const std::vector<std::string>& arguments, const std::string& input = "/dev/null") {
    return Process(VARVE_CLIENT_MAIN, arguments, dir_.File("out"), input).Wait();
  }
  // With a variable in the environment.
  int RunWith(const std::string& variable, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {variable, VARVE_CLIENT_MAIN});
    return Process("env", arguments, dir_.File("out")).Wait();
  }
  std::string Output() const { return ReadFile(dir_.File("out")); }
};

TEST_F(GuardedServerTest, APasswordAndASocket) {
  for (const std::string& where :
       {"--unixsocket=" + Socket(), "--port=" + std::to_string(options_.port)}) {
    EXPECT_EQ(Run({where, "ping"}), 2);
    EXPECT_NE(Output().find("VARVE_PASSWORD"), std::string::npos) << Output();
    EXPECT_EQ(Run({where, "--password=wrong", "ping"}), 2);
    EXPECT_NE(Output().find("WRONGPASS"), std::string::npos) << Output();
    EXPECT_EQ(Output().find("VARVE_PASSWORD"), std::string::npos) << "one was given: " << Output();
    EXPECT_EQ(Run({where, "--password=secret", "put", "a", "1"}), 0) << Output();
    EXPECT_EQ(Run({where, "--password=secret", "--user=default", "call", "get", "a"}), 0)
        << Output();
    EXPECT_EQ(Output(), "1\n");
    std::filesystem::remove(dir_.File("all.csv"));
    EXPECT_EQ(Run({where, "--password=secret", "export", dir_.File("all.csv")}), 0) << Output();
    EXPECT_EQ(Run({where, "--password=secret", "import", dir_.File("all.csv")}), 0) << Output();
    EXPECT_EQ(Run({where, "--password=secret", "bench", "--seconds=1", "--connections=2"}), 0)
        << Output();
    EXPECT_EQ(Run({where, "import", dir_.File("all.csv")}), 2);
    EXPECT_NE(Output().find("NOAUTH"), std::string::npos) << Output();
  }
  const std::string in_environment =
      "VARVE_PASSWORD=secret " VARVE_CLIENT_MAIN " --unixsocket=" + Socket() + " get a";
  EXPECT_EQ(Process("/bin/sh", {"-c", in_environment}, dir_.File("out")).Wait(), 0);
  EXPECT_EQ(Output(), "1");
}

TEST_F(GuardedServerTest, TakesTheOptionsOfRedisCli) {
  const std::string port = std::to_string(options_.port);
  EXPECT_EQ(Run({"-h", "localhost", "-p", port, "-a", "secret", "put", "a", "-1"}), 0);
  EXPECT_EQ(Output(),
            "Warning: Using a password with '-a' or '-u' option on the command line interface may "
            "not be safe.\n");
  EXPECT_EQ(Run({"-s", Socket(), "--user", "default", "--pass", "secret", "--no-auth-warning", "-n",
                 "2", "put", "a", "-2"}),
            0);
  EXPECT_EQ(Output(), "");
  EXPECT_EQ(Run({"--no-auth-warning", "-a", "secret", "-p", port, "-n", "2", "get", "a"}), 0);
  EXPECT_EQ(Output(), "-2");
  EXPECT_EQ(RunWith("REDISCLI_AUTH=secret", {"-p", port, "get", "a"}), 0);
  EXPECT_EQ(Output(), "-1");

  std::ofstream(dir_.File("in")) << "from input";
  EXPECT_EQ(RunWith("VARVE_PASSWORD=secret",
                    {"-s", Socket(), "-2", "--json", "call", "CONFIG", "GET", "maxclients"}),
            0);
  EXPECT_EQ(Output(), "[\"maxclients\",\"10000\"]\n");
  EXPECT_EQ(Run({"-a", "secret", "-s", Socket(), "--no-auth-warning", "-x", "call", "SET", "x"},
                dir_.File("in")),
            0);
  EXPECT_EQ(RunWith("VARVE_PASSWORD=secret", {"-s", Socket(), "get", "x"}), 0);
  EXPECT_EQ(Output(), "from input");

  EXPECT_EQ(Run({"-q", "ping"}), 2);
  EXPECT_EQ(Output(), "client_main: -q is no option; --help lists them\n");
  EXPECT_EQ(Run({"-p", "x", "ping"}), 2);
  EXPECT_EQ(Run({"-p"}), 2);
  EXPECT_EQ(Output(), "client_main: -p needs a value\n");
  EXPECT_EQ(Run({"-2", "-3", "call", "PING"}), 2);
  EXPECT_EQ(Run({"--insecure", "ping"}), 2);
  EXPECT_NE(Output().find("need --tls beside them"), std::string::npos) << Output();
}

TEST_F(GuardedServerTest, TakesAUrl) {
  const std::string port = std::to_string(options_.port);
  const std::string url = "redis://default:secret@127.0.0.1:" + port;
  EXPECT_EQ(Run({"-u", url + "/2", "--no-auth-warning", "put", "a", "in 2"}), 0) << Output();
  EXPECT_EQ(RunWith("VARVE_URL=unix://:secret@" + Socket() + "?db=2", {"get", "a"}), 0);
  EXPECT_EQ(Output(), "in 2");
  // What else stands on the command line says more than the URL there, and that one more than the
  // environment.
  EXPECT_EQ(RunWith("VARVE_URL=redis://:secret@127.0.0.1:1/2", {"-p", port, "get", "a"}), 0);
  EXPECT_EQ(Output(), "in 2");
  EXPECT_EQ(RunWith("VARVE_URL=unix://:secret@/nowhere?db=3",
                    {"--no-auth-warning", "-n", "2", "-h", "127.0.0.1", "-u", url, "get", "a"}),
            0);
  EXPECT_EQ(Output(), "in 2");
  EXPECT_EQ(Run({"-u", "http://localhost", "ping"}), 2);
  EXPECT_EQ(Output(),
            "client_main: -u: the URL of the server: 'http://' is unknown; there are redis://, "
            "rediss:// and unix://\n");
  EXPECT_EQ(RunWith("VARVE_URL=redis://host:x", {"ping"}), 2);
  EXPECT_EQ(Output(),
            "client_main: VARVE_URL: the URL of the server: the port is no number from 0 to "
            "65535\n");
}

}  // namespace
}  // namespace varve
