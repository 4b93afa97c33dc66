// The clients against Debian's redis-server with TLS: what they exchange, whom they trust, and what
// they say when they do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/async_client.h"
#include "client/client.h"
#include "unit-tests/client/redis_process.h"
#include "unit-tests/testing/temp_dir.h"
#include "unit-tests/testing/test_certificates.h"

namespace varve {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::Process;
using testing::ReadFile;
using testing::RedisProcess;
using testing::TempDir;
using testing::TestCertificates;

// A port that was free a moment ago: redis-server takes none that it may choose itself.
uint16_t FreePort() {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(descriptor, reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(descriptor);
  return ntohs(address.sin_port);
}

class RedisTlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RedisProcess::IsInstalled()) GTEST_SKIP() << "there is no redis-server";
    certificates_.Issue("server", {.common_name = "server"});
    certificates_.Issue("client", {.common_name = "client"});
    options_.tls = {.enabled = true, .ca_file = certificates_.authority()};
    options_.reconnect_for = milliseconds(0);
  }

  // Starts redis-server with that certificate, on a port that another process may take first.
  void Start(const std::string& certificate = "server", const std::string& clients = "no") {
    for (int attempt = 0; attempt < 10; ++attempt) {
      options_.port = FreePort();
      redis_.emplace(
          dir_.path(),
          std::vector<std::string>{"--tls-port", std::to_string(options_.port), "--bind",
                                   "127.0.0.1", "--tls-cert-file",
                                   certificates_.File(certificate + ".crt"), "--tls-key-file",
                                   certificates_.File(certificate + ".key"), "--tls-ca-cert-file",
                                   certificates_.authority(), "--tls-auth-clients", clients});
      if (redis_->Connect() != nullptr) return;
    }
    FAIL() << redis_->log();
  }

  std::unique_ptr<Client> Connect() {
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options_);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

  // What becomes of a PING of the blocking client, and whether the asynchronous one says the same.
  absl::Status Ping() {
    const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options_);
    const absl::Status blocking = client.ok() ? (*client)->Ping() : client.status();
    asio::io_context context;
    AsyncClient asynchronous(context, options_);
    absl::Status other = absl::UnknownError("no reply came");
    asynchronous.Call({"PING"}, [&](const absl::StatusOr<Reply>& reply) {
      other = reply.status();
      asynchronous.Close();
    });
    context.run();
    EXPECT_EQ(blocking.code(), other.code()) << blocking << "; " << other;
    return blocking;
  }

  int Run(std::vector<std::string> arguments, const std::string& input = "/dev/null") {
    arguments.insert(arguments.begin(), {"-p", std::to_string(options_.port), "--tls", "--cacert",
                                         certificates_.authority()});
    return Process(VARVE_CLIENT_MAIN, arguments, dir_.File("out"), input).Wait();
  }
  std::string Output() const { return ReadFile(dir_.File("out")); }

  TempDir dir_;
  TestCertificates certificates_{dir_.path()};
  std::optional<RedisProcess> redis_;
  ClientOptions options_;
};

TEST_F(RedisTlsTest, ValuesOfAllSizesGoThroughAllClients) {
  Start();
  const std::unique_ptr<Client> client = Connect();
  ASSERT_NE(client, nullptr);
  for (const size_t size : {0u, 1u, 16383u, 16384u, 16385u, 5000000u}) {
    const std::string value(size, static_cast<char>('a' + size % 26));
    ASSERT_EQ(client->Put("key", value), absl::OkStatus());
    const auto found = client->Get("key");
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(**found == value) << size;
  }

  constexpr int kRequests = 20000;
  Pipeline& pipeline = client->pipeline();
  for (int i = 0; i < kRequests; ++i) pipeline.Send({"INCR", "n"});
  for (int i = 1; i <= kRequests; ++i) {
    const absl::StatusOr<Reply> reply = pipeline.Receive();
    ASSERT_TRUE(reply.ok()) << reply.status();
    ASSERT_EQ(reply->integer, i);
  }

  asio::io_context context;
  AsyncClient asynchronous(context, options_);
  const std::string large(1000000, 'x');
  int answered = 0;
  for (int i = 1; i <= kRequests; ++i) {
    asynchronous.Call({"INCR", "n"}, [&, i](const absl::StatusOr<Reply>& reply) {
      ASSERT_TRUE(reply.ok()) << reply.status();
      EXPECT_EQ(reply->integer, kRequests + i);
      ++answered;
    });
  }
  for (int i = 0; i < 10; ++i) {
    asynchronous.Call({"ECHO", large}, [&, i](const absl::StatusOr<Reply>& reply) {
      ASSERT_TRUE(reply.ok()) << reply.status();
      EXPECT_TRUE(reply->text == large);
      ++answered;
      if (i == 9) asynchronous.Close();
    });
  }
  context.run();
  EXPECT_EQ(answered, kRequests + 10);
}

TEST_F(RedisTlsTest, AnUnknownAuthorityIsNotTrusted) {
  Start();
  const TempDir elsewhere;
  const TestCertificates others(elsewhere.path(), "others");
  options_.tls.ca_file = others.authority();
  absl::Status status = Ping();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the server's certificate is not accepted: self-signed certificate in"));
  options_.tls.ca_file.clear();  // the authorities of the system do not know it either
  EXPECT_TRUE(absl::IsFailedPrecondition(Ping()));
  options_.tls.insecure = true;
  EXPECT_EQ(Ping(), absl::OkStatus());
}

TEST_F(RedisTlsTest, TheServersNameMustFit) {
  certificates_.Issue("named", {.common_name = "named", .alternatives = "DNS:db.example"});
  Start("named");
  const absl::Status status = Ping();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("IP address mismatch"));
  options_.host = "localhost";
  EXPECT_THAT(std::string(Ping().message()), HasSubstr("hostname mismatch"));
  options_.tls.server_name = "db.example";
  EXPECT_EQ(Ping(), absl::OkStatus());
}

TEST_F(RedisTlsTest, AnExpiredCertificateIsNotAccepted) {
  certificates_.Issue("old", {.common_name = "old", .days = 0});
  Start("old");
  EXPECT_THAT(std::string(Ping().message()), HasSubstr("certificate has expired"));
}

TEST_F(RedisTlsTest, AServerMayWantACertificateOfTheClient) {
  Start("server", "yes");
  options_.reconnect_for = milliseconds(60000);  // a refusal is final, and not tried again for long
  const absl::Status refused = Ping();
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("certificate required"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the client, which has none"));
  options_.tls.certificate_file = certificates_.File("client.crt");
  options_.tls.key_file = certificates_.File("client.key");
  EXPECT_EQ(Ping(), absl::OkStatus());
}

TEST_F(RedisTlsTest, AConnectionThatTheServerClosedRaisesNoSignalAndIsMadeAgain) {
  Start();
  options_.reconnect_for = milliseconds(60000);
  const std::unique_ptr<Client> client = Connect();
  ASSERT_EQ(client->Ping(), absl::OkStatus());
  ASSERT_TRUE(redis_->Connect()->Call({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}).ok());
  // The first finds the end of the connection; it was not sent yet and so is not lost.
  for (int i = 0; i < 10; ++i) EXPECT_EQ(client->Put("key", "value"), absl::OkStatus());
  EXPECT_EQ(client->pipeline().reconnects(), 1u);
  // Here the client writes into a connection that is gone.
  client->pipeline().Send({"GET", "key"});
  ASSERT_TRUE(redis_->Connect()->Call({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}).ok());
  for (int i = 0; i < 10; ++i) {
    client->pipeline().Flush();
    client->pipeline().Send({"GET", "key"});
  }
  while (client->pipeline().outstanding() > 0) EXPECT_TRUE(client->Receive().ok());
}

TEST_F(RedisTlsTest, ClientMainWorksOverTls) {
  Start();
  EXPECT_EQ(Run({"put", "a", "1"}), 0) << Output();
  EXPECT_EQ(Run({"get", "a"}), 0);
  EXPECT_EQ(Output(), "1");
  std::ofstream(dir_.File("lines")) << "SET b 2\nGET b\n";
  EXPECT_EQ(Run({}, dir_.File("lines")), 0);
  EXPECT_EQ(Output(), "OK\n2\n");
  std::ofstream(dir_.File("keys.csv")) << "c,3\nd,4\n";
  EXPECT_EQ(Run({"import", dir_.File("keys.csv")}), 0) << Output();
  EXPECT_EQ(Run({"call", "GET", "d"}), 0);
  EXPECT_EQ(Output(), "4\n");

  EXPECT_EQ(Run({"--sni", "elsewhere", "ping"}), 2);
  EXPECT_THAT(Output(), HasSubstr("the server's certificate is not accepted: hostname mismatch"));
  EXPECT_EQ(Run({"--sni=elsewhere", "--insecure", "ping"}), 0);
  EXPECT_EQ(Run({"--cacert", dir_.File("missing"), "ping"}), 2);
  EXPECT_THAT(Output(), HasSubstr(dir_.File("missing") + " can't be used: No such file"));
}

TEST_F(RedisTlsTest, ClientMainTakesAUrlAndACertificate) {
  Start("server", "yes");
  const std::string url = "rediss://localhost:" + std::to_string(options_.port);
  const std::vector<std::string> certificate = {"--cacert", certificates_.authority(),
                                                "--cert",   certificates_.File("client.crt"),
                                                "--key",    certificates_.File("client.key")};
  std::vector<std::string> arguments = {"-u", url + "/3"};
  arguments.insert(arguments.end(), certificate.begin(), certificate.end());
  arguments.insert(arguments.end(), {"put", "a", "in 3"});
  EXPECT_EQ(Process(VARVE_CLIENT_MAIN, arguments, dir_.File("out")).Wait(), 0) << Output();
  arguments.assign({"VARVE_URL=" + url, VARVE_CLIENT_MAIN, "-n", "3"});
  arguments.insert(arguments.end(), certificate.begin(), certificate.end());
  arguments.insert(arguments.end(), {"get", "a"});
  EXPECT_EQ(Process("env", arguments, dir_.File("out")).Wait(), 0);
  EXPECT_EQ(Output(), "in 3");
  EXPECT_EQ(Run({"ping"}), 2);  // without a certificate
  EXPECT_THAT(Output(), HasSubstr("certificate required"));
}

}  // namespace
}  // namespace varve
