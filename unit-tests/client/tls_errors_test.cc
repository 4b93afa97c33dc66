// What the clients say where TLS cannot begin: files that are of no use, and servers that do not
// speak it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "client/async_client.h"
#include "client/client.h"
#include "unit-tests/testing/temp_dir.h"
#include "unit-tests/testing/test_certificates.h"

namespace varve {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::TestCertificates;

// Accepts connections of both clients and treats each alike, in a thread of its own.
class Listener {
 public:
  // `reply`: what a connection gets once something came from it, before it is closed; if empty, it
  // is left open.
  explicit Listener(std::string reply, bool answers = true)
      : descriptor_(socket(AF_INET, SOCK_STREAM, 0)), reply_(std::move(reply)), answers_(answers) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(descriptor_, 10), 0);
    EXPECT_EQ(getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    if (answers_) thread_ = std::thread([this] { Serve(); });
  }
  ~Listener() {
    shutdown(descriptor_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    close(descriptor_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  uint16_t port() const { return port_; }

 private:
  void Serve() {
    while (true) {
      const int client = accept(descriptor_, nullptr, nullptr);
      if (client < 0) return;
      char bytes[4096];
      EXPECT_GT(recv(client, bytes, sizeof(bytes), 0), 0);
      if (!reply_.empty()) send(client, reply_.data(), reply_.size(), MSG_NOSIGNAL);
      close(client);
    }
  }

  const int descriptor_;
  const std::string reply_;
  const bool answers_;
  uint16_t port_ = 0;
  std::thread thread_;
};

class TlsErrorsTest : public ::testing::Test {
 protected:
  TlsErrorsTest() {
    options_.tls.enabled = true;
    options_.reconnect_for = milliseconds(0);
    options_.connect_timeout = milliseconds(60000);
  }

  // The error of the blocking client; that of the asynchronous one is of the same kind.
  absl::Status Failure() {
    const absl::Status blocking = Client::Connect(options_).status();
    asio::io_context context;
    AsyncClient client(context, options_);
    absl::Status asynchronous;
    client.Call({"PING"}, [&](const absl::StatusOr<Reply>& reply) {
      asynchronous = reply.status();
      client.Close();
    });
    context.run();
    EXPECT_EQ(blocking.code(), asynchronous.code()) << blocking << "; " << asynchronous;
    return blocking;
  }

  TempDir dir_;
  ClientOptions options_;
};

TEST_F(TlsErrorsTest, AServerOfPlainTextIsRecognized) {
  const Listener listener("-ERR Protocol error: this port speaks no TLS\r\n");
  options_.port = listener.port();
  const absl::Status status = Failure();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr(std::to_string(listener.port()) + ": the server does not speak TLS on this port"));
}

TEST_F(TlsErrorsTest, AServerMayHangUpInTheHandshake) {
  const Listener listener("");
  options_.port = listener.port();
  const absl::Status status = Failure();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("in the TLS handshake"));
}

TEST_F(TlsErrorsTest, AServerThatIsSilentIsGivenUp) {
  const Listener listener("", /*answers=*/false);
  options_.port = listener.port();
  options_.connect_timeout = milliseconds(50);
  const absl::Status status = Failure();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the TLS handshake did not end within 50 ms"));
}

TEST_F(TlsErrorsTest, AFileThatIsOfNoUseIsNamed) {
  TestCertificates certificates(dir_.path());
  certificates.Issue("one", {.common_name = "one"});
  certificates.Issue("other", {.common_name = "other"});
  std::ofstream(dir_.File("text")) << "no certificate\n";
  std::filesystem::create_directory(dir_.File("directory"));
  const Listener listener("", /*answers=*/false);
  options_.port = listener.port();
  const auto refusal = [this](const ClientTlsOptions& tls) {
    options_.tls = tls;
    options_.tls.enabled = true;
    const absl::Status status = Failure();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(refusal({.ca_file = dir_.File("missing")}),
            "the file of trusted certificates " + dir_.File("missing") +
                " can't be used: No such file or directory");
  EXPECT_THAT(refusal({.ca_file = dir_.File("text")}), HasSubstr(dir_.File("text")));
  EXPECT_THAT(refusal({.ca_file = dir_.File("directory")}), HasSubstr(dir_.File("directory")));
  EXPECT_THAT(refusal({.certificate_file = dir_.File("text")}),
              HasSubstr("the certificate " + dir_.File("text") + " can't be used"));
  EXPECT_THAT(refusal({.certificate_file = certificates.File("one.crt"),
                       .key_file = dir_.File("directory")}),
              HasSubstr("the key " + dir_.File("directory") + " can't be used"));
  EXPECT_THAT(refusal({.certificate_file = certificates.File("one.crt"),
                       .key_file = certificates.File("other.key")}),
              HasSubstr("other.key can't be used: key values mismatch"));
  EXPECT_THAT(refusal({.certificate_file = certificates.File("one.crt")}),
              HasSubstr("the key " + certificates.File("one.crt") + " can't be used"));
  EXPECT_THAT(refusal({.key_file = certificates.File("one.key")}),
              HasSubstr("needs a certificate beside it"));
}

}  // namespace
}  // namespace varve
