// Socket activation: server_main takes over sockets that listened before it ran.
#include "server/net/passed_sockets.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "unit-tests/server/http/http_client.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/server/tls/tls_client.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/test_certificates.h"

namespace varve {
namespace {

using testing::Ask;
using ::testing::HasSubstr;
using testing::Process;
using testing::RawConnection;
using testing::ReadFile;
using testing::ServerProcess;
using testing::TempDir;

const char kServer[] = VARVE_SERVER_MAIN;

// A socket that listens, as the service manager holds it.
class HeldSocket {
 public:
  // On a free port of 127.0.0.1.
  HeldSocket() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    Open(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    socklen_t size = sizeof(address);
    EXPECT_EQ(::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  explicit HeldSocket(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    Open(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
  ~HeldSocket() { ::close(descriptor_); }
  HeldSocket(const HeldSocket&) = delete;
  HeldSocket& operator=(const HeldSocket&) = delete;

  int descriptor() const { return descriptor_; }
  uint16_t port() const { return port_; }

 private:
  void Open(int family, const sockaddr* address, socklen_t size) {
    const int opened = ::socket(family, SOCK_STREAM, 0);
    EXPECT_EQ(::bind(opened, address, size), 0);
    EXPECT_EQ(::listen(opened, 16), 0);
    // Above those that become the server's.
    descriptor_ = ::fcntl(opened, F_DUPFD, 100);
    EXPECT_GE(descriptor_, 100);
    ::close(opened);
  }

  int descriptor_ = -1;
  uint16_t port_ = 0;
};

// The command that starts a program, which follows, with the sockets as descriptors 3, 4, and so
// on, and tells it of them. exec keeps the number of the process.
std::vector<std::string> Passing(const std::vector<const HeldSocket*>& sockets,
                                 const std::string& names = "") {
  std::string script;
  for (size_t i = 0; i < sockets.size(); ++i)
    script +=
        "exec " + std::to_string(3 + i) + "<&" + std::to_string(sockets[i]->descriptor()) + "-; ";
  script += "export LISTEN_PID=$$ LISTEN_FDS=" + std::to_string(sockets.size()) + "; ";
  if (!names.empty()) script += "export LISTEN_FDNAMES=" + names + "; ";
  return {"bash", "-c", script + "exec \"$0\" \"$@\""};
}

TEST(PassedSocketsTest, WhoConnectsWhileNoServerRunsIsAnswered) {
  TempDir dir;
  const HeldSocket socket;
  std::string value = "none";
  for (int start = 0; start < 3; ++start) {
    RawConnection early(socket.port());
    ASSERT_TRUE(early.Send(testing::Resp({"GETSET", "k", std::to_string(start)})));
    ServerProcess server(kServer, dir.File("data"), {}, Passing({&socket}));
    ASSERT_EQ(server.port(), socket.port()) << server.log();
    const std::string reply = start == 0 ? "$-1\r\n" : "$1\r\n" + value + "\r\n";
    EXPECT_EQ(early.Receive(reply.size()), reply) << server.log();
    value = std::to_string(start);
    // Both ends of a server, the graceful one and the other.
    server.process().Kill(start == 0 ? SIGTERM : SIGKILL);
    EXPECT_EQ(server.process().Wait(), start == 0 ? 0 : 1000 + SIGKILL);
  }
}

TEST(PassedSocketsTest, TheNameSaysWhatASocketBecomes) {
  TempDir dir;
  testing::TestCertificates certificates(dir.path());
  certificates.Issue("server", {.common_name = "server"});
  const HeldSocket http;
  const HeldSocket data;
  const HeldSocket tls;
  const HeldSocket local(dir.File("varve.sock"));
  ServerProcess server(
      kServer, dir.File("data"),
      {"--tls-auth-clients=no", "--tls-cert-file=" + certificates.File("server.crt"),
       "--tls-key-file=" + certificates.File("server.key")},
      Passing({&http, &data, &tls, &local}, "http:varve-server.socket:tls:local"));
  ASSERT_EQ(server.port(), data.port()) << server.log();
  EXPECT_EQ(testing::Fetch(http.port(), "/readyz").status, 200);
  EXPECT_EQ(testing::TlsClient(tls.port()).serial(), certificates.last_serial());
  ClientOptions options;
  options.unix_socket = dir.File("varve.sock");
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(Ask(**client, {"CONFIG", "GET", "http-port", "port", "tls-port"}),
            "(http-port " + std::to_string(http.port()) + " port " + std::to_string(data.port()) +
                " tls-port " + std::to_string(tls.port()) + ")");
  EXPECT_THAT(Ask(**client, {"CLIENT", "INFO"}),
              HasSubstr("addr=" + dir.File("varve.sock") + ":0"));
  EXPECT_THAT(server.log(), HasSubstr(" on 127.0.0.1:" + std::to_string(data.port()) +
                                      " and 127.0.0.1:" + std::to_string(tls.port()) +
                                      " (TLS) and " + dir.File("varve.sock") + ", opened in "));
  // The file of a socket that the server did not make stays for the next server.
  server.process().Kill(SIGTERM);
  EXPECT_EQ(server.process().Wait(), 0);
  EXPECT_TRUE(std::filesystem::exists(dir.File("varve.sock")));
}

TEST(PassedSocketsTest, WhatIsWrongKeepsTheServerFromStarting) {
  TempDir dir;
  const HeldSocket first;
  const HeldSocket second;
  const HeldSocket local(dir.File("varve.sock"));
  const std::string before = "export LISTEN_PID=$$ ";
  const std::string after = "; exec \"$0\" \"$@\"";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {before + after, "LISTEN_FDS=: takes 1 to 64"},
      {before + "LISTEN_FDS=x" + after, "LISTEN_FDS=x: takes 1 to 64"},
      {before + "LISTEN_FDS=0" + after, "LISTEN_FDS=0: takes 1 to 64"},
      {before + "LISTEN_FDS=65" + after, "LISTEN_FDS=65: takes 1 to 64"},
      {"exec 3<&-; " + before + "LISTEN_FDS=1" + after, "descriptor 3: Bad file descriptor"},
      {"exec 3</dev/null; " + before + "LISTEN_FDS=1" + after,
       "descriptor 3: is no stream socket that listens"},
      {Passing({&first}, "a:b")[2], "LISTEN_FDNAMES=a:b: has 2 names for 1 sockets"},
      {Passing({&first, &second}, "a:b")[2],
       "descriptor 4 (b): the data port has a socket already"},
      {Passing({&local}, "http")[2], "descriptor 3 (http): HTTP takes no socket of this kind"}};
  for (const auto& [script, message] : cases) {
    const std::string output = dir.File("output");
    Process process(
        "bash", {"-c", script, kServer, "--dir=" + dir.File("data"), "--port=0", "--http-port=0"},
        output);
    EXPECT_EQ(process.Wait(), 2) << script;
    EXPECT_EQ(ReadFile(output).find("server_main: sockets of the service manager: " + message), 0u)
        << script << ": " << ReadFile(output);
    EXPECT_FALSE(std::filesystem::exists(dir.File("data"))) << script;
  }
}

TEST(PassedSocketsTest, WhatIsMeantForAnotherProcessIsLeftAlone) {
  TempDir dir;
  const std::string script = "exec 3</dev/null; export LISTEN_PID=1 LISTEN_FDS=1; ";
  ServerProcess server(kServer, dir.File("data"), {},
                       {"bash", "-c", script + "exec \"$0\" \"$@\""});
  EXPECT_NE(server.port(), 0) << server.log();
}

TEST(PassedSocketsTest, NoChildFindsTheVariables) {
  for (const std::string& process : {std::to_string(::getpid()), std::string("1")}) {
    ::setenv("LISTEN_PID", process.c_str(), 1);
    ::setenv("LISTEN_FDS", "none", 1);
    ::setenv("LISTEN_FDNAMES", "http", 1);
    EXPECT_EQ(PassedSockets::FromEnvironment().ok(), process == "1");
    for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"})
      EXPECT_EQ(std::getenv(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace varve
