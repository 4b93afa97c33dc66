// The HTTP listener over TLS: the same port for both, or TLS alone.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "server/http/http_listener.h"
#include "server/tls/tls_contexts.h"
#include "unit-tests/server/http/http_client.h"
#include "unit-tests/server/tls/tls_client.h"
#include "unit-tests/testing/temp_dir.h"
#include "unit-tests/testing/test_certificates.h"

namespace varve {
namespace {

using testing::Fetch;
using testing::RawConnection;
using testing::ReceiveAnswer;
using testing::TempDir;
using testing::TestCertificates;
using testing::TlsClient;

class HttpTlsTest : public ::testing::Test {
 protected:
  void Start(TlsMode mode, TlsClientCertificates wanted = TlsClientCertificates::kOptional) {
    certificates_.Issue("server", {.common_name = "server"});
    TlsOptions options;
    options.mode = mode;
    options.certificate_file = certificates_.File("server.crt");
    options.key_file = certificates_.File("server.key");
    options.ca_file = certificates_.authority();
    options.client_certificates = wanted;
    options.user_name = TlsUserName::kUri;
    ASSERT_TRUE(contexts_.Use(options).ok());
    const auto answer = [](const HttpRequest& request, const HttpPeer& peer) {
      std::string names;
      for (const std::string& name : peer.user_names) names += " " + name;
      const size_t size = request.path == "/large" ? 8u << 20 : 0;
      return HttpReply{.body = request.path + names + std::string(size, 'x')};
    };
    ASSERT_TRUE(listener_.Start("127.0.0.1", 0, {.answer = answer, .tick = [] {}}).ok());
  }
  static std::string Request(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  }

  TempDir directory_;
  TestCertificates certificates_{directory_.path()};
  TlsContexts contexts_;
  HttpListener listener_{&contexts_};
};

TEST_F(HttpTlsTest, TheFirstByteTellsTlsFromPlainText) {
  Start(TlsMode::kOptional);
  TlsClient secret(listener_.port(), {.authority = certificates_.authority()});
  ASSERT_TRUE(secret.Send(Request("/a")));
  EXPECT_TRUE(secret.ReceiveAll().ends_with("\r\n\r\n/a"));
  EXPECT_TRUE(secret.ended());
  EXPECT_EQ(Fetch(listener_.port(), "/b").body, "/b");
}

TEST_F(HttpTlsTest, AReplyMayBeLargerThanTheSocketTakes) {
  Start(TlsMode::kOptional);
  TlsClient client(listener_.port());
  ASSERT_TRUE(client.Send(Request("/large")));
  EXPECT_TRUE(client.ReceiveAll().ends_with(std::string(8u << 20, 'x')));
}

TEST_F(HttpTlsTest, PlainTextIsToldThatThePortSpeaksTls) {
  Start(TlsMode::kRequired);
  const testing::HttpAnswer answer = Fetch(listener_.port(), "/a");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.body, "This port speaks TLS.\n");
  TlsClient client(listener_.port());
  EXPECT_TRUE(client.Send(Request("/a")));
  EXPECT_TRUE(client.ReceiveAll().ends_with("\r\n\r\n/a"));
}

TEST_F(HttpTlsTest, ACertificateNamesItsUser) {
  Start(TlsMode::kRequired);
  certificates_.Issue("monitor", {.common_name = "m", .alternatives = "URI:spiffe://here/monitor"});
  TlsClient client(listener_.port(), {.certificate = certificates_.File("monitor.crt"),
                                      .key = certificates_.File("monitor.key")});
  ASSERT_TRUE(client.Send(Request("/a")));
  EXPECT_TRUE(client.ReceiveAll().ends_with("/a spiffe://here/monitor"));
}

TEST_F(HttpTlsTest, AProbeNeedsNoCertificateAndAForeignOneIsRefused) {
  Start(TlsMode::kRequired, TlsClientCertificates::kYes);
  TlsClient probe(listener_.port());
  ASSERT_TRUE(probe.Send(Request("/livez")));
  EXPECT_TRUE(probe.ReceiveAll().ends_with("\r\n\r\n/livez"));
  TempDir elsewhere;
  TestCertificates others(elsewhere.path(), "other");
  others.Issue("monitor", {.common_name = "m", .alternatives = "URI:spiffe://here/monitor"});
  TlsClient foreign(listener_.port(),
                    {.certificate = others.File("monitor.crt"), .key = others.File("monitor.key")});
  foreign.Send(Request("/a"));
  EXPECT_EQ(foreign.ReceiveAll(), "");
}

TEST_F(HttpTlsTest, GarbageAndHalfAHelloHurtNobody) {
  Start(TlsMode::kOptional);
  RawConnection half(listener_.port());
  half.Send(std::string("\x16\x03\x01\x02\x00\x01", 6));
  RawConnection garbage(listener_.port());
  garbage.Send("\x16" + std::string(20000, 'g'));
  garbage.ReceiveAll();
  EXPECT_TRUE(garbage.closed());
  EXPECT_EQ(Fetch(listener_.port(), "/a").status, 200);
  EXPECT_EQ(contexts_.statistics().failures.load(), 1u);
}

}  // namespace
}  // namespace varve
