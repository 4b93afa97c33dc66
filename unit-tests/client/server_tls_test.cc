// The clients against server_main with TLS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/async_client.h"
#include "client/client.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"
#include "unit-tests/testing/test_certificates.h"

namespace varve {
namespace {

using ::testing::HasSubstr;
using testing::Process;
using testing::ReadFile;
using testing::ServerProcess;
using testing::TempDir;
using testing::TestCertificates;

class ServerTlsTest : public ::testing::Test {
 protected:
  ServerTlsTest() {
    certificates_.Issue("server", {.common_name = "server"});
    options_.tls = {.enabled = true, .ca_file = certificates_.authority()};
    options_.backoff_first = std::chrono::milliseconds(5);
  }

  void Start(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--tls-cert-file=" + certificates_.File("server.crt"),
                                       "--tls-key-file=" + certificates_.File("server.key")});
    server_.emplace(VARVE_SERVER_MAIN, dir_.File("data"), arguments);
    ASSERT_NE(server_->port(), 0) << server_->log();
    options_.port = server_->port();
  }

  int Run(std::vector<std::string> arguments, const std::string& input = "/dev/null") {
    arguments.insert(arguments.begin(), {"--cacert", certificates_.authority(), "-u",
                                         "rediss://localhost:" + std::to_string(options_.port)});
    return Process(VARVE_CLIENT_MAIN, arguments, dir_.File("out"), input).Wait();
  }
  std::string Output() const { return ReadFile(dir_.File("out")); }

  TempDir dir_;
  TestCertificates certificates_{dir_.path()};
  std::optional<ServerProcess> server_;
  ClientOptions options_;
};

TEST_F(ServerTlsTest, AllClientsUseTheOnePort) {
  Start({"--tls=optional", "--tls-auth-clients=no"});
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options_);
  ASSERT_TRUE(client.ok()) << client.status();
  const std::string large(3000000, 'x');
  ASSERT_EQ((*client)->Put("large", large), absl::OkStatus());
  const auto found = (*client)->Get("large");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(**found == large);
  constexpr int kRequests = 5000;
  for (int i = 0; i < kRequests; ++i) (*client)->pipeline().Send({"INCR", "n"});
  for (int i = 1; i <= kRequests; ++i) ASSERT_EQ((*client)->Receive()->integer, i);
  asio::io_context context;
  AsyncClient asynchronous(context, options_);
  int64_t last = 0;
  for (int i = 1; i <= kRequests; ++i) {
    asynchronous.Call({"INCR", "n"}, [&](const absl::StatusOr<Reply>& reply) {
      ASSERT_TRUE(reply.ok()) << reply.status();
      last = reply->integer;
      if (last == 2 * kRequests) asynchronous.Close();
    });
  }
  context.run();
  EXPECT_EQ(last, 2 * kRequests);
  options_.tls.enabled = false;
  EXPECT_EQ((*Client::Connect(options_))->Ping(), absl::OkStatus());
}

TEST_F(ServerTlsTest, EachSideIsToldWhatTheOtherSpeaks) {
  options_.reconnect_for = std::chrono::milliseconds(0);
  Start({"--tls=required", "--tls-auth-clients=no"});
  ClientOptions plain = options_;
  plain.tls.enabled = false;
  plain.protocol = 3;
  EXPECT_THAT(std::string(Client::Connect(plain).status().message()),
              HasSubstr("this port speaks TLS"));
  Start({"--tls=off"});
  const absl::Status status = Client::Connect(options_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not speak TLS on this port"));
}

TEST_F(ServerTlsTest, ALostConnectionIsMadeAgainWithTls) {
  Start({"--tls=required", "--tls-auth-clients=no"});
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options_);
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_EQ((*client)->Put("key", "value"), absl::OkStatus());
  server_->process().Kill(SIGKILL);
  server_->process().Wait();
  server_.reset();
  Start({"--tls=required", "--tls-auth-clients=no", "--port=" + std::to_string(options_.port)});
  EXPECT_EQ(**(*client)->Get("key"), "value");
  EXPECT_EQ((*client)->pipeline().reconnects(), 1u);
}

TEST_F(ServerTlsTest, ACertificateNamesTheUser) {
  certificates_.Issue("alice", {.common_name = "alice"});
  Start({"--tls=required", "--tls-auth-clients=yes", "--tls-auth-clients-user=CN",
         "--tls-ca-cert-file=" + certificates_.authority()});
  const std::vector<std::string> alice = {"--cert", certificates_.File("alice.crt"), "--key",
                                          certificates_.File("alice.key")};
  const auto as_alice = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), alice.begin(), alice.end());
    return Run(arguments);
  };
  EXPECT_EQ(as_alice({"call", "ACL", "SETUSER", "alice", "on", "nopass", "+@all", "~*"}), 0)
      << Output();
  EXPECT_EQ(as_alice({"call", "ACL", "WHOAMI"}), 0) << Output();
  EXPECT_EQ(Output(), "alice\n");
  EXPECT_EQ(Run({"put", "a", "b"}), 2);
  EXPECT_THAT(Output(), HasSubstr("certificate required"));
  EXPECT_THAT(Output(), HasSubstr("it may want a certificate of the client, which has none"));
}

TEST_F(ServerTlsTest, EverySubcommandOfClientMainSpeaksTls) {
  Start({"--tls=required", "--tls-auth-clients=no"});
  std::ofstream(dir_.File("keys.csv")) << "a,1\nb,2\n";
  EXPECT_EQ(Run({"import", dir_.File("keys.csv")}), 0) << Output();
  EXPECT_EQ(Run({"export", dir_.File("copy.csv")}), 0) << Output();
  EXPECT_THAT(ReadFile(dir_.File("copy.csv")), HasSubstr("a,1,,\nb,2,,\n"));
  EXPECT_EQ(Run({"range"}), 0);
  EXPECT_EQ(Output(), "a\t1\nb\t2\n");
  EXPECT_EQ(Run({"bench", "--seconds=1", "--connections=3", "--pipeline=4"}), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("requests/s"));
  std::ofstream(dir_.File("lines")) << "DEL a\nGET b\n";
  EXPECT_EQ(Run({}, dir_.File("lines")), 0);
  EXPECT_EQ(Output(), "1\n2\n");
}

}  // namespace
}  // namespace varve
