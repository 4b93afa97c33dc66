// server_main as a service: its configuration file, signals, Unix socket, service manager, and how
// it is told to stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/service_manager.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/server/tls/tls_client.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/test_certificates.h"

namespace varve {
namespace {

using testing::Ask;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing::Process;
using testing::ReadFile;
using testing::ServerProcess;
using ::testing::StartsWith;
using testing::TempDir;
using testing::TestServer;

const char kServer[] = VARVE_SERVER_MAIN;

std::unique_ptr<Client> Connect(const ServerProcess& server) {
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect("127.0.0.1", server.port(), std::chrono::seconds(60));
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

std::unique_ptr<Client> ConnectUnix(const std::string& path) {
  ClientOptions options;
  options.unix_socket = path;
  options.reconnect_for = std::chrono::milliseconds(0);
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options);
  return client.ok() ? *std::move(client) : nullptr;
}

// Waits until the file holds the text.
bool Holds(const std::string& path, const std::string& text) {
  return testing::Eventually([&] { return ReadFile(path).find(text) != std::string::npos; });
}

// Sends SIGHUP, and waits for what the server says of it. ThreadSanitizer may hold a signal back
// that arrives before the server waits for signals, until the next one comes.
bool HangsUp(Process& process, const std::string& log, const std::string& text) {
  process.Kill(SIGHUP);
#if defined(__SANITIZE_THREAD__)
  return testing::Eventually([&] {
    if (ReadFile(log).find(text) != std::string::npos) return true;
    process.Kill(SIGHUP);
    return false;
  });
#else
  return Holds(log, text);
#endif
}

TEST(ProgramTest, CertificatesAreCheckedWithoutStartingAndUsedAnewAtSighup) {
  TempDir dir;
  testing::TestCertificates certificates(dir.path());
  certificates.Issue("server", {.common_name = "server"});
  const std::string output = dir.File("output");
  std::vector<std::string> flags = {"--tls=optional", "--tls-auth-clients=no",
                                    "--tls-cert-file=" + certificates.File("server.crt")};
  std::vector<std::string> check = flags;
  check.push_back("--check-config");
  Process wrong(kServer, check, output);  // there is no key in that file
  EXPECT_EQ(wrong.Wait(), 1);
  EXPECT_TRUE(Holds(output, "server_main: tls-key-file: ")) << ReadFile(output);
  flags.push_back("--tls-key-file=" + certificates.File("server.key"));
  check.insert(check.end(), flags.begin(), flags.end());
  Process fine(kServer, check, output);
  EXPECT_EQ(fine.Wait(), 0) << ReadFile(output);
  flags.push_back("--tls-auto-reload-interval=0");
  ServerProcess server(kServer, dir.File("data"), flags);
  ASSERT_NE(server.port(), 0) << server.log();
  EXPECT_EQ(testing::TlsClient(server.port()).serial(), certificates.last_serial());
  certificates.Issue("server", {.common_name = "server"});
  server.process().Kill(SIGHUP);
  EXPECT_TRUE(Holds(dir.File("data.log"), "certificates, if any, were opened anew"));
  EXPECT_EQ(testing::TlsClient(server.port()).serial(), certificates.last_serial());
  std::filesystem::remove(certificates.File("server.key"));
  server.process().Kill(SIGHUP);
  EXPECT_TRUE(Holds(dir.File("data.log"), "SIGHUP: the old certificate and key stay in use: "));
  EXPECT_EQ(testing::TlsClient(server.port()).serial(), certificates.last_serial());
}

TEST(ProgramTest, ConfigurationsAreCheckedWithoutStarting) {
  TempDir dir;
  const std::string file = dir.File("varve.toml");
  const std::string output = dir.File("output");
  std::ofstream(file) << "maxclients = 5\n";
  Process fine(kServer, {"--config", file, "--check-config", "--dir=" + dir.File("data")}, output);
  EXPECT_EQ(fine.Wait(), 0) << ReadFile(output);
  EXPECT_FALSE(std::filesystem::exists(dir.File("data")));
  std::ofstream(file) << "\nmaxclient = 5\n";
  Process wrong(kServer, {"--config", file, "--check-config"}, output);
  EXPECT_EQ(wrong.Wait(), 1);
  EXPECT_NE(ReadFile(output).find(file + ":2: maxclient is no setting, did you mean maxclients?"),
            std::string::npos)
      << ReadFile(output);
  const std::string users = dir.File("users.acl");
  std::ofstream(users) << "user alice on +get\nuser bob on +nonsense\n";
  for (const bool only_check : {true, false}) {
    std::vector<std::string> flags = {"--aclfile=" + users, "--dir=" + dir.File("data")};
    if (only_check) flags.push_back("--check-config");
    Process bad_user(kServer, flags, output);
    EXPECT_EQ(bad_user.Wait(), 1);
    EXPECT_NE(ReadFile(output).find(users + ":2: "), std::string::npos) << ReadFile(output);
    EXPECT_FALSE(std::filesystem::exists(dir.File("data"))) << "the store is not touched";
  }
  Process flag(kServer, {"--check-config", "--port=x"}, output);
  EXPECT_EQ(flag.Wait(), 1);
  Process start(kServer, {"--config", file}, output);
  EXPECT_EQ(start.Wait(), 2);
}

TEST(ProgramTest, AFileIsServedWithAndRewritten) {
  TempDir dir;
  const std::string file = dir.File("varve.toml");
  std::ofstream(file) << "# small\nmaxclients = 5\nsync = \"no\"\ndir = \"elsewhere\"\n";
  ServerProcess server(kServer, dir.File("data"), {"--config=" + file, "--sync=everysec"});
  ASSERT_NE(server.port(), 0) << server.log();
  const std::unique_ptr<Client> client = Connect(server);
  EXPECT_EQ(Ask(*client, {"CONFIG", "GET", "maxclients", "sync", "dir"}),
            "(dir " + dir.File("data") + " maxclients 5 sync everysec)");
  EXPECT_EQ(Ask(*client, {"CONFIG", "SET", "maxclients", "6"}), "OK");
  EXPECT_EQ(Ask(*client, {"CONFIG", "REWRITE"}), "OK");
  EXPECT_EQ(ReadFile(file), "# small\nmaxclients = 6\nsync = \"everysec\"\ndir = \"" +
                                dir.File("data") + "\"\nport = 0\nhttp-port = 0\n");
}

TEST(ProgramTest, SizesThatAreGivenAreKeptAndTheOthersChosen) {
  TempDir dir;
  const std::string file = dir.File("varve.toml");
  std::ofstream(file) << "block-cache-size = \"512MiB\"\n";  // the default
  ServerProcess server(kServer, dir.File("data"), {"--config=" + file, "--memory-limit=2GiB"});
  ASSERT_NE(server.port(), 0) << server.log();
  const std::unique_ptr<Client> client = Connect(server);
  EXPECT_EQ(Ask(*client, {"CONFIG", "GET", "block-cache-size"}), "(block-cache-size 536870912)");
  // A third of what is left.
  EXPECT_EQ(Ask(*client, {"CONFIG", "GET", "maxmemory-clients"}), "(maxmemory-clients 439003818)");
  EXPECT_EQ(Ask(*client, {"CONFIG", "SET", "maxmemory-clients", "2GiB"}), "OK");
  EXPECT_EQ(Ask(*client, {"CONFIG", "REWRITE"}), "OK");
  EXPECT_EQ(ReadFile(file),
            "block-cache-size = \"512MiB\"\nport = 0\nhttp-port = 0\nmaxmemory-clients = "
            "\"2GiB\"\ndir = \"" +
                dir.File("data") + "\"\nmemory-limit = \"2GiB\"\n");
}

TEST(ProgramTest, HangupOpensTheLogAnew) {
  TempDir dir;
  const std::string log = dir.File("varve.log");
  const std::string socket = dir.File("varve.sock");
  Process process(kServer, {"--dir=" + dir.File("data"), "--port=0", "--http-port=0",
                            "--unixsocket=" + socket, "--logfile=" + log});
  ASSERT_TRUE(Holds(log, " on " + socket + ", opened in ")) << ReadFile(log);
  std::filesystem::rename(log, log + ".1");
  ASSERT_TRUE(HangsUp(process, log, "SIGHUP"));
  EXPECT_EQ(ReadFile(log).find("opened in"), std::string::npos);
  struct stat written {};
  ASSERT_EQ(stat(log.c_str(), &written), 0);
  EXPECT_EQ(written.st_mode & 0777, 0600u);
  // A path that can't be opened: the old file stays in use.
  std::filesystem::rename(log, log + ".2");
  std::filesystem::create_directory(log);
  ASSERT_TRUE(HangsUp(process, log + ".2", "the old file stays in use")) << ReadFile(log + ".2");
  process.Kill(SIGTERM);
  EXPECT_EQ(process.Wait(), 0);
  EXPECT_TRUE(Holds(log + ".2", "Stopped"));
}

TEST(ProgramTest, HangupReadsThePasswordAnew) {
  TempDir dir;
  const std::string file = dir.File("password");
  std::ofstream(file) << "first\n";
  ServerProcess server(kServer, dir.File("data"), {"--requirepass-file=" + file});
  ASSERT_NE(server.port(), 0) << server.log();
  EXPECT_EQ(Ask(*Connect(server), {"AUTH", "first"}), "OK");
  std::ofstream(file) << "second\n";
  server.process().Kill(SIGHUP);
  ASSERT_TRUE(Holds(dir.File("data") + ".log", "SIGHUP"));
  const std::unique_ptr<Client> client = Connect(server);
  EXPECT_EQ(Ask(*client, {"AUTH", "second"}), "OK");
  EXPECT_EQ(Ask(*client, {"CONFIG", "SET", "requirepass", "third"}),
            "!ERR CONFIG SET failed (possibly related to argument 'requirepass') - it comes from "
            "requirepass-file: change "
            "that file and send SIGHUP");
  std::ofstream(file) << "";
  server.process().Kill(SIGHUP);
  ASSERT_TRUE(Holds(dir.File("data") + ".log", "the old password stays in force"));
  EXPECT_EQ(Ask(*Connect(server), {"AUTH", "second"}), "OK");
}

TEST(ProgramTest, AUnixSocketStandsBesideTcpOrAlone) {
  TempDir dir;
  const std::string socket = dir.File("varve.sock");
  ServerOptions options;
  options.unix_socket = socket;
  options.unix_socket_mode = 0660;
  absl::StatusOr<std::unique_ptr<StorageEngine>> store = StorageEngine::Open(dir.File("data"), {});
  ASSERT_TRUE(store.ok());
  {
    options.port = 0;
    auto alone = Server::Start(store->get(), {.server = options});
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_EQ((*alone)->port(), 0);
    const std::unique_ptr<Client> client = ConnectUnix(socket);
    ASSERT_NE(client, nullptr);
    EXPECT_EQ(Ask(*client, {"SET", "k", "v"}), "OK");
    EXPECT_NE(Ask(*client, {"CLIENT", "INFO"}).find("addr=" + socket + ":0"), std::string::npos);
    EXPECT_EQ(Ask(*client, {"CONFIG", "GET", "port"}), "(port 0)");
    struct stat made {};
    ASSERT_EQ(stat(socket.c_str(), &made), 0);
    EXPECT_EQ(made.st_mode & 0777, 0660u);
    // Somebody serves it: a second server doesn't take it away.
    auto second = Server::Start(store->get(), {.server = options});
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.status().ToString().find(socket + ": --unixsocket: another process serves it"),
              std::string::npos)
        << second.status();
    EXPECT_EQ(Ask(*client, {"GET", "k"}), "v");
  }
  EXPECT_FALSE(std::filesystem::exists(socket));
  std::ofstream(socket) << "precious";
  EXPECT_FALSE(Server::Start(store->get(), {.server = options}).ok());
  EXPECT_EQ(ReadFile(socket), "precious");
}

TEST(ProgramTest, ASocketThatACrashLeftBehindIsReplaced) {
  TempDir dir;
  const std::string socket = dir.File("varve.sock");
  for (int i = 0; i < 2; ++i) {
    const std::string log = dir.File("log" + std::to_string(i));
    Process process(
        kServer,
        {"--dir=" + dir.File("data"), "--port=0", "--http-port=0", "--unixsocket=" + socket}, log);
    ASSERT_TRUE(Holds(log, "opened in")) << ReadFile(log);
    const std::unique_ptr<Client> client = ConnectUnix(socket);
    ASSERT_NE(client, nullptr);
    EXPECT_EQ(Ask(*client, {"PING"}), "PONG");
    process.Kill(SIGKILL);
    process.Wait();
    EXPECT_TRUE(std::filesystem::exists(socket));
  }
}

TEST(ProgramTest, ShutdownStopsAsASignalDoes) {
  TempDir dir;
  for (const std::vector<std::string>& request : {std::vector<std::string>{"SHUTDOWN"},
                                                  {"SHUTDOWN", "NOSAVE", "NOW", "FORCE"},
                                                  {"SHUTDOWN", "SAVE"}}) {
    ServerProcess server(kServer, dir.File("data"));
    ASSERT_NE(server.port(), 0) << server.log();
    const std::unique_ptr<Client> client = Connect(server);
    EXPECT_EQ(Ask(*client, {"SHUTDOWN", "SAVE", "NOSAVE"}), "!ERR syntax error");
    EXPECT_EQ(Ask(*client, {"SHUTDOWN", "ABORT", "NOW"}), "!ERR syntax error");
    EXPECT_EQ(Ask(*client, {"SHUTDOWN", "soon"}), "!ERR syntax error");
    EXPECT_EQ(Ask(*client, {"SHUTDOWN", "ABORT"}), "!ERR No shutdown in progress.");
    EXPECT_EQ(Ask(*client, {"SET", "k", request.back()}), "OK");
    // No reply, and what was asked before it is answered.
    testing::RawConnection connection(server.port());
    ASSERT_TRUE(connection.Send("GET k\r\n" + testing::Resp(request) + "GET k\r\n"));
    EXPECT_EQ(connection.ReceiveAll(),
              "$" + std::to_string(request.back().size()) + "\r\n" + request.back() + "\r\n");
    EXPECT_TRUE(connection.closed());
    EXPECT_EQ(server.process().Wait(), 0);
    EXPECT_NE(server.log().find("SHUTDOWN: stopping"), std::string::npos) << server.log();
    EXPECT_NE(server.log().find("Stopped"), std::string::npos);
  }
}

// A service manager's end of the socket.
class NotifySocket {
 public:
  explicit NotifySocket(const std::string& name) : descriptor_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof(address.sun_path) - 1);
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), length), 0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~NotifySocket() {
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    ::close(descriptor_);
  }
  // The next datagram; "" after ten seconds without one.
  std::string Receive() {
    pollfd waiting{descriptor_, POLLIN, 0};
    if (::poll(&waiting, 1, 10000) != 1) return "";
    char buffer[256];
    const ssize_t got = ::recv(descriptor_, buffer, sizeof(buffer), 0);
    return std::string(buffer, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }

 private:
  const int descriptor_;
};

TEST(ProgramTest, TheServiceManagerIsToldOfTheStartTheStopAndThatAllIsWell) {
  TempDir dir;
  NotifySocket manager(dir.File("notify"));
  setenv("WATCHDOG_USEC", "4000000", 1);
  ServerProcess server(kServer, dir.File("data"));
  const std::string ready = manager.Receive();
  ASSERT_NE(server.port(), 0) << server.log();  // what it told was true
  EXPECT_EQ(ready, "READY=1\nSTATUS=serving 127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(manager.Receive(), "WATCHDOG=1");
  server.process().Kill(SIGTERM);
  EXPECT_EQ(manager.Receive(), "STOPPING=1\nSTATUS=stopping");
  EXPECT_EQ(server.process().Wait(), 0);
}

TEST(ProgramTest, TheServiceManagerIsToldHowFarTheReplayHasCome) {
  TempDir dir;
  {
    ServerProcess server(kServer, dir.File("data"));
    ASSERT_NE(server.port(), 0) << server.log();
    const std::unique_ptr<Client> client = Connect(server);
    const std::string value(512 << 10, 'x');
    for (int i = 0; i < 24; ++i)
      ASSERT_EQ(Ask(*client, {"SET", "k" + std::to_string(i), value}), "OK");
    server.process().Kill(SIGKILL);
    server.process().Wait();
  }
  NotifySocket manager(dir.File("notify"));
  ServerProcess server(kServer, dir.File("data"));
  ASSERT_NE(server.port(), 0) << server.log();
  EXPECT_THAT(manager.Receive(), MatchesRegex("STATUS=replaying 0 % of [0-9.]+ MiB of log\n"
                                              "EXTEND_TIMEOUT_USEC=120000000"));
  std::string before;
  std::string told = manager.Receive();
  int steps = 0;
  for (; told.starts_with("STATUS=replaying"); ++steps)
    before = std::exchange(told, manager.Receive());
  EXPECT_GE(steps, 2);
  EXPECT_THAT(before, StartsWith("STATUS=replaying 100 % of "));
  EXPECT_THAT(told, StartsWith("READY=1\nSTATUS=serving "));
  server.process().Kill(SIGHUP);
  EXPECT_THAT(manager.Receive(), MatchesRegex("RELOADING=1\nMONOTONIC_USEC=[0-9]+"));
  EXPECT_EQ(manager.Receive(), told);
}

TEST(ProgramTest, TheNewestLinesOfTheLogCanBeAskedFor) {
  TempDir dir;
  ServerProcess server(kServer, dir.File("data"));
  ASSERT_NE(server.port(), 0) << server.log();
  const std::unique_ptr<Client> client = Connect(server);
  EXPECT_THAT(Ask(*client, {"SERVERLOG"}), HasSubstr(" I varve 0.1.0 serves "));
  server.process().Kill(SIGHUP);
  ASSERT_TRUE(testing::Eventually([&] {
    return Ask(*client, {"SERVERLOG", "1"}).find("opened anew") != std::string::npos;
  }));
  EXPECT_EQ(Ask(*client, {"SERVERLOG", "1"}).find("serves"), std::string::npos);
  EXPECT_THAT(Ask(*client, {"SERVERLOG", "-1"}), HasSubstr("serves"));
  EXPECT_EQ(Ask(*client, {"SERVERLOG", "-2"}), "!ERR count should be greater than or equal to -1");
  EXPECT_EQ(Ask(*client, {"SERVERLOG", "1", "2"}), "!ERR syntax error");
}

TEST(ProgramTest, NobodyIsToldWhoDoesntListen) {
  TempDir dir;
  {
    NotifySocket manager("@varve-test-" + std::to_string(getpid()));  // in the abstract namespace
    ServiceManager().Notify("READY=1");
    EXPECT_EQ(manager.Receive(), "READY=1");
  }
  ServiceManager().Notify("READY=1");
  setenv("NOTIFY_SOCKET", dir.File("missing").c_str(), 1);
  ServiceManager().Notify("READY=1");
  setenv("NOTIFY_SOCKET", std::string(200, 'x').c_str(), 1);
  ServiceManager().Notify("READY=1");
  unsetenv("NOTIFY_SOCKET");
  EXPECT_EQ(ServiceManager().watchdog().count(), 0);
  setenv("WATCHDOG_USEC", "3000000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(ServiceManager().watchdog().count(), 0);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  EXPECT_EQ(ServiceManager().watchdog(), std::chrono::seconds(3));
  unsetenv("WATCHDOG_PID");
  unsetenv("WATCHDOG_USEC");
}

TEST(SaveTest, RedisCommandsAboutSavingMeanWhatTheyPromise) {
  EngineOptions engine = TestServer::SmallEngine();
  engine.sync = Durability::kNone;
  TestServer server({}, engine);
  const std::unique_ptr<Client> client = server.Connect();
  const int64_t started = std::stoll(Ask(*client, {"LASTSAVE"}));
  EXPECT_NEAR(static_cast<double>(started), static_cast<double>(std::time(nullptr)), 60);
  const std::vector<std::pair<std::vector<std::string>, std::string>> requests = {
      {{"SAVE"}, "OK"},
      {{"BGSAVE"}, "Background saving started"},
      {{"BGSAVE", "SCHEDULE"}, "Background saving started"},
      {{"WAIT", "1", "10"}, "0"}};
  for (const auto& [request, reply] : requests) {
    EXPECT_EQ(Ask(*client, {"SET", "k", "v"}), "OK");
    EXPECT_EQ(Ask(*client, request), reply);
    uint64_t sequence = 0;
    for (const auto& [name, value] : server.store().Statistics()) {
      if (name == "sequence") sequence = value;
    }
    EXPECT_GE(server.store().durable_sequence(), sequence) << request[0];
  }
  EXPECT_TRUE(testing::Eventually([&] {
    EXPECT_EQ(Ask(*client, {"SAVE"}), "OK");
    return std::stoll(Ask(*client, {"LASTSAVE"})) > started;
  }));
  EXPECT_EQ(Ask(*client, {"BGSAVE", "now"}), "!ERR syntax error");
  EXPECT_EQ(Ask(*client, {"WAIT", "x", "10"}), "!ERR value is not an integer or out of range");
  EXPECT_EQ(Ask(*client, {"WAIT", "1", "x"}), "!ERR timeout is not an integer or out of range");
  EXPECT_EQ(Ask(*client, {"WAIT", "1", "-1"}), "!ERR timeout is negative");
}

TEST(SaveTest, WhatThereIsNoneOfIsAnsweredClearly) {
  TestServer server;
  const std::unique_ptr<Client> client = server.Connect();
  EXPECT_EQ(Ask(*client, {"FUNCTION", "FLUSH"}), "OK");
  EXPECT_EQ(Ask(*client, {"FUNCTION", "FLUSH", "ASYNC"}), "OK");
  EXPECT_EQ(Ask(*client, {"FUNCTION", "FLUSH", "x"}),
            "!ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  EXPECT_EQ(Ask(*client, {"FUNCTION", "LIST"}), "()");
  EXPECT_EQ(Ask(*client, {"FUNCTION", "LOAD", "x"}),
            "!ERR Varve runs no functions: of FUNCTION there are FLUSH and LIST");
  EXPECT_EQ(Ask(*client, {"SWAPDB", "0", "0"}), "OK");
  EXPECT_EQ(Ask(*client, {"SWAPDB", "0", "16"}), "!ERR DB index is out of range");
  EXPECT_EQ(Ask(*client, {"SWAPDB", "x", "1"}), "!ERR invalid first DB index");
  EXPECT_EQ(Ask(*client, {"SWAPDB", "0", "x"}), "!ERR invalid second DB index");
  EXPECT_EQ(Ask(*client, {"MOVE", "k", "16"}), "!ERR DB index is out of range");
  EXPECT_EQ(Ask(*client, {"MOVE", "k", "0"}), "!ERR source and destination objects are the same");
  EXPECT_EQ(Ask(*client, {"SHUTDOWN"}),
            "!ERR this server is stopped by the program that it is a part of");
  const std::string time = Ask(*client, {"TIME"});
  EXPECT_NEAR(std::stod(time.substr(1)), static_cast<double>(std::time(nullptr)), 60);
}

}  // namespace
}  // namespace varve
