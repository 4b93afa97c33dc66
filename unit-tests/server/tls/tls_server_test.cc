// TLS on the one port and on a port of its own: who is served, as whom, and what the others are
// told.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "server/tls/hashed_directory.h"
#include "server/tls/tls_contexts.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/server/tls/tls_client.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/log_lines.h"
#include "unit-tests/testing/temp_dir.h"
#include "unit-tests/testing/test_certificates.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::RawConnection;
using testing::Resp;
using testing::TempDir;
using testing::TestCertificates;
using testing::TestServer;
using testing::TlsClient;

class TlsServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_.File("tls"));
    certificates_ = std::make_unique<TestCertificates>(directory_.File("tls"));
    certificates_->Issue("server", {.common_name = "server"});
  }

  ServerOptions Options(TlsMode mode, int tls_port = 0) {
    ServerOptions options;
    options.tls.mode = mode;
    options.tls.port = tls_port;
    options.tls.certificate_file = certificates_->File("server.crt");
    options.tls.key_file = certificates_->File("server.key");
    options.tls.client_certificates = TlsClientCertificates::kNo;
    options.tls.reload_seconds = 0;
    return options;
  }
  ServerOptions VerifyingOptions(TlsMode mode, TlsClientCertificates wanted) {
    ServerOptions options = Options(mode);
    options.tls.client_certificates = wanted;
    options.tls.ca_file = certificates_->authority();
    options.tls.user_name = TlsUserName::kCommonName;
    return options;
  }
  TlsClient::Options As(const std::string& name) const {
    return {.certificate = certificates_->File(name + ".crt"),
            .key = certificates_->File(name + ".key")};
  }

  TempDir directory_;
  std::unique_ptr<TestCertificates> certificates_;
};

TEST_F(TlsServerTest, TheFirstByteTellsTlsFromPlainText) {
  TestServer server(Options(TlsMode::kOptional));
  TlsClient secret(server.port(), {.authority = certificates_->authority()});
  ASSERT_TRUE(secret.connected());
  EXPECT_EQ(secret.Ask(Resp({"SET", "k", "v"}), "+OK\r\n"), "+OK\r\n");
  RawConnection plain(server.port());
  plain.Send("GET k\r\n");
  EXPECT_EQ(plain.Receive(7), "$1\r\nv\r\n");
  EXPECT_EQ(secret.Ask("GET k\r\n", "$1\r\nv\r\n"), "$1\r\nv\r\n");
}

TEST_F(TlsServerTest, PlainTextIsToldThatThePortSpeaksTls) {
  TestServer server(Options(TlsMode::kRequired, -1));
  for (const uint16_t port : {server.port(), server.tls_port()}) {
    EXPECT_TRUE(TlsClient(port).connected());
    RawConnection plain(port);
    plain.Send("GET k\r\n");
    EXPECT_EQ(plain.ReceiveAll(), "-ERR this port speaks TLS\r\n");
    EXPECT_TRUE(plain.closed());
  }
}

TEST_F(TlsServerTest, ThePortOfTlsAloneIsBesideAPlainOne) {
  TestServer server(Options(TlsMode::kOff, -1));
  ASSERT_NE(server.tls_port(), server.port());
  EXPECT_TRUE(TlsClient(server.tls_port()).connected());
  RawConnection tls_on_plain(server.port());
  tls_on_plain.Send(std::string("\x16\x03\x01\x02\x00", 5));
  EXPECT_EQ(tls_on_plain.ReceiveAll(), "-ERR Protocol error: TLS is not spoken on this port\r\n");
}

TEST_F(TlsServerTest, LargeValuesAndPipelinesPassWhole) {
  TestServer server(Options(TlsMode::kOptional));
  TlsClient client(server.port());
  std::string value(3 << 20, 'x');
  for (size_t i = 0; i < value.size(); i += 97) value[i] = static_cast<char>(i);
  EXPECT_EQ(client.Ask(Resp({"SET", "large", value}), "+OK\r\n"), "+OK\r\n");
  const std::string reply = "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
  // The client takes nothing until all is asked for, so that the server's sends block.
  std::string requests;
  std::string replies;
  for (int i = 0; i < 8; ++i) {
    requests +=
        Resp({"GET", "large"}) + Resp({"SET", "k" + std::to_string(i), value.substr(0, 999)});
    replies += reply + "+OK\r\n";
  }
  EXPECT_TRUE(client.Ask(requests, replies) == replies);
}

TEST_F(TlsServerTest, MessagesOfOtherConnectionsArrive) {
  TestServer server(Options(TlsMode::kOptional));
  TlsClient subscriber(server.port());
  const std::string subscribed = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
  ASSERT_EQ(subscriber.Ask(Resp({"SUBSCRIBE", "c"}), subscribed), subscribed);
  TlsClient publisher(server.port());
  EXPECT_EQ(publisher.Ask(Resp({"PUBLISH", "c", "hello"}), ":1\r\n"), ":1\r\n");
  const std::string message = "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5\r\nhello\r\n";
  EXPECT_EQ(subscriber.Receive(message.size()), message);
}

TEST_F(TlsServerTest, OldVersionsAreRefused) {
  TestServer server(Options(TlsMode::kOptional));
  EXPECT_FALSE(TlsClient(server.port(), {.version = TLS1_1_VERSION}).connected());
  EXPECT_TRUE(TlsClient(server.port(), {.version = TLS1_2_VERSION}).connected());
  EXPECT_TRUE(TlsClient(server.port(), {.version = TLS1_3_VERSION}).connected());
  ServerOptions options = Options(TlsMode::kOptional);
  options.tls.protocols = "TLSv1.3";
  TestServer strict(options);
  EXPECT_FALSE(TlsClient(strict.port(), {.version = TLS1_2_VERSION}).connected());
  EXPECT_TRUE(TlsClient(strict.port(), {.version = TLS1_3_VERSION}).connected());
}

TEST_F(TlsServerTest, ACertificateMakesTheClientItsUser) {
  TestServer server(VerifyingOptions(TlsMode::kOptional, TlsClientCertificates::kOptional));
  certificates_->Issue("alice", {.common_name = "alice"});
  certificates_->Issue("bob", {.common_name = "bob"});
  TlsClient nobody(server.port());
  ASSERT_EQ(
      nobody.Ask(Resp({"ACL", "SETUSER", "alice", "on", "~a:*", "+@all", ">secret"}), "+OK\r\n"),
      "+OK\r\n");
  ASSERT_EQ(nobody.Ask(Resp({"ACL", "SETUSER", "bob", "off", "~*", "+@all"}), "+OK\r\n"),
            "+OK\r\n");
  const std::string whoami = Resp({"ACL", "WHOAMI"});
  TlsClient alice(server.port(), As("alice"));
  EXPECT_EQ(alice.Ask(whoami, "$5\r\nalice\r\n"), "$5\r\nalice\r\n");
  EXPECT_EQ(alice.Ask("GET b\r\n", "-NOPERM"), "-NOPERM");
  TlsClient bob(server.port(), As("bob"));
  EXPECT_EQ(bob.Ask(whoami, "$7\r\ndefault\r\n"), "$7\r\ndefault\r\n") << "a user who is off";
  EXPECT_EQ(nobody.Ask(whoami, "$7\r\ndefault\r\n"), "$7\r\ndefault\r\n");
}

TEST_F(TlsServerTest, ACertificateStandsForAPassword) {
  ServerOptions options = VerifyingOptions(TlsMode::kOptional, TlsClientCertificates::kOptional);
  options.password = "secret";
  TestServer server(options);
  certificates_->Issue("default", {.common_name = "default"});
  TlsClient known(server.port(), As("default"));
  EXPECT_EQ(known.Ask("PING\r\n", "+PONG\r\n"), "+PONG\r\n");
  TlsClient unknown(server.port());
  EXPECT_EQ(unknown.Ask("PING\r\n", "-NOAUTH"), "-NOAUTH");
}

TEST_F(TlsServerTest, CertificatesOfOtherAuthoritiesAreRefused) {
  TestServer server(VerifyingOptions(TlsMode::kOptional, TlsClientCertificates::kYes));
  std::filesystem::create_directories(directory_.File("other"));
  TestCertificates others(directory_.File("other"), "somebody else");
  others.Issue("alice", {.common_name = "alice"});
  TlsClient forged(server.port(),
                   {.certificate = others.File("alice.crt"), .key = others.File("alice.key")});
  EXPECT_EQ(forged.Ask("PING\r\n", "+PONG\r\n"), "");
  TlsClient without(server.port());
  EXPECT_EQ(without.Ask("PING\r\n", "+PONG\r\n"), "");
  certificates_->Issue("alice", {.common_name = "alice"});
  TlsClient good(server.port(), As("alice"));
  EXPECT_EQ(good.Ask("PING\r\n", "+PONG\r\n"), "+PONG\r\n");
  EXPECT_EQ(server.state().tls->statistics().failures.load(), 2u);
}

TEST_F(TlsServerTest, TooManyClientsAreToldInTheirLanguage) {
  ServerOptions options = Options(TlsMode::kOptional, -1);
  options.max_clients = 1;
  TestServer server(options);
  TlsClient served(server.port());
  ASSERT_EQ(served.Ask("PING\r\n", "+PONG\r\n"), "+PONG\r\n");
  for (const uint16_t port : {server.port(), server.tls_port()}) {
    TlsClient refused(port);
    ASSERT_TRUE(refused.connected());
    EXPECT_EQ(refused.ReceiveAll(), "-ERR max number of clients reached\r\n");
    EXPECT_TRUE(refused.ended()) << "the end is inside TLS, too";
  }
  RawConnection plain(server.port());
  plain.Send("PING\r\n");
  EXPECT_EQ(plain.ReceiveAll(), "-ERR max number of clients reached\r\n");
  RawConnection silent(server.port());
  EXPECT_EQ(silent.ReceiveAll(), "-ERR max number of clients reached\r\n");
  RawConnection plain_on_tls(server.tls_port());
  plain_on_tls.Send("PING\r\n");
  EXPECT_EQ(plain_on_tls.ReceiveAll(), "-ERR this port speaks TLS\r\n");
  EXPECT_EQ(served.Ask("PING\r\n", "+PONG\r\n"), "+PONG\r\n");
}

TEST_F(TlsServerTest, GarbageAndHalfAHelloHurtNobody) {
  TestServer server(Options(TlsMode::kOptional));
  RawConnection half(server.port());
  half.Send(std::string("\x16\x03\x01\x02\x00\x01", 6));  // and nothing more
  RawConnection garbage(server.port());
  garbage.Send("\x16" + std::string(20000, 'g'));
  garbage.ReceiveAll();
  EXPECT_TRUE(garbage.closed());
  TlsClient client(server.port());
  EXPECT_EQ(client.Ask("PING\r\n", "+PONG\r\n"), "+PONG\r\n");
  EXPECT_EQ(server.state().tls->statistics().failures.load(), 1u);
  EXPECT_EQ(server.state().tls->statistics().connections.load(), 1u);
}

TEST_F(TlsServerTest, HalfAHelloHasTenSeconds) {
  TestServer server(Options(TlsMode::kOptional));
  RawConnection half(server.port());
  half.Send(std::string("\x16\x03\x01\x02\x00\x01", 6));
  EXPECT_EQ(half.ReceiveAll(), "");
  EXPECT_TRUE(half.closed());
}

// The pool takes one batch at a time, and has one thread.
TEST_F(TlsServerTest, ACrowdOfNewClientsIsServedThroughAFullPool) {
  ServerOptions options = Options(TlsMode::kOptional);
  options.threads = 1;
  options.pool_queue_capacity = 1;
  options.io_threads = 1;
  TestServer server(options);
  std::vector<std::thread> crowd;
  for (int i = 0; i < 40; ++i) {
    crowd.emplace_back([&] {
      for (int round = 0; round < 3; ++round) {
        TlsClient client(server.port());
        EXPECT_TRUE(client.connected());
        EXPECT_EQ(client.Ask("PING\r\n", "+PONG\r\n"), "+PONG\r\n");
      }
    });
  }
  for (std::thread& client : crowd) client.join();
  EXPECT_EQ(server.state().tls->statistics().handshakes.load(), 120u);
  EXPECT_GE(server.state().statistics.batches_pooled.load(), 120u) << "no I/O thread shakes hands";
}

TEST_F(TlsServerTest, RevokedCertificatesOfEveryListAreRefused) {
  TempDir elsewhere;
  TestCertificates others(elsewhere.path(), "other");
  for (TestCertificates* const authority : {certificates_.get(), &others}) {
    authority->Issue("good", {.common_name = "good"});
    authority->Issue("bad", {.common_name = "bad"});
    authority->WriteRevocations("list", {authority->last_serial()});
    std::ofstream(directory_.File("authorities"), std::ios::app)
        << std::ifstream(authority->authority()).rdbuf();
    std::ofstream(directory_.File("lists"), std::ios::app)
        << std::ifstream(authority->File("list")).rdbuf();
  }
  ServerOptions options = VerifyingOptions(TlsMode::kRequired, TlsClientCertificates::kYes);
  options.tls.ca_file = directory_.File("authorities");
  options.tls.crl_file = directory_.File("lists");
  TestServer server(options);
  for (TestCertificates* const authority : {certificates_.get(), &others}) {
    const auto answer = [&](const std::string& name) {
      TlsClient client(server.port(), {.certificate = authority->File(name + ".crt"),
                                       .key = authority->File(name + ".key")});
      return client.Ask("PING\r\n", "+PONG\r\n");
    };
    EXPECT_EQ(answer("good"), "+PONG\r\n");
    EXPECT_NE(answer("bad"), "+PONG\r\n");
  }
}

TEST_F(TlsServerTest, RsaKeysAndResumedSessionsWork) {
  certificates_->Issue("server", {.common_name = "server", .rsa = true});
  TestServer server(Options(TlsMode::kRequired));
  TlsClient first(server.port(), {.authority = certificates_->authority()});
  EXPECT_EQ(first.Ask("PING\r\n", "+PONG\r\n"), "+PONG\r\n");
  EXPECT_FALSE(first.resumed());
  const auto session = first.Session();
  TlsClient second(server.port(),
                   {.authority = certificates_->authority(), .session = session.get()});
  EXPECT_EQ(second.Ask("PING\r\n", "+PONG\r\n"), "+PONG\r\n");
  EXPECT_TRUE(second.resumed());
}

TEST_F(TlsServerTest, AUserWhoMayNotComeIsLogged) {
  TestServer server(VerifyingOptions(TlsMode::kOptional, TlsClientCertificates::kOptional));
  certificates_->Issue("bob", {.common_name = "bob"});
  const std::unique_ptr<Client> admin = server.Connect();
  ASSERT_EQ(testing::Ask(*admin, {"ACL", "SETUSER", "bob", "off"}), "OK");
  TlsClient bob(server.port(), As("bob"));
  const std::string whoami = Resp({"ACL", "WHOAMI"});
  EXPECT_EQ(bob.Ask(whoami, "$7\r\ndefault\r\n"), "$7\r\ndefault\r\n");
  const std::string log = testing::Ask(*admin, {"ACL", "LOG", "1"});
  EXPECT_NE(log.find("reason tls-cert context toplevel object bob username bob"), std::string::npos)
      << log;
}

TEST_F(TlsServerTest, TheEndOfACertificateIsToldOnceForEachWarning) {
  TlsContexts contexts;
  ServerOptions options = Options(TlsMode::kOptional);
  ASSERT_TRUE(contexts.Use(options.tls).ok());
  const testing::LogLines log;
  const auto now = std::chrono::system_clock::now();
  for (const int day : {1, 15, 16, 17, 27, 29, 31, 32})
    contexts.LookAtFiles(now + std::chrono::hours(24 * day));
  EXPECT_EQ(log.Count("expires in"), 3u) << "14 days, 2 days and the last day";
  EXPECT_EQ(log.Count("has expired"), 1u);
}

TEST_F(TlsServerTest, NewFilesServeNewConnectionsAndWrongOnesNobody) {
  ServerOptions options = Options(TlsMode::kOptional);
  options.tls.reload_seconds = 3600;
  TestServer server(options);
  TlsContexts& contexts = *server.server().state().tls;
  const auto now = std::chrono::system_clock::now();
  TlsClient old(server.port());
  const long old_serial = certificates_->last_serial();
  EXPECT_EQ(old.serial(), old_serial);
  certificates_->Issue("server", {.common_name = "server"});
  contexts.LookAtFiles(now);
  TlsClient renewed(server.port());
  EXPECT_EQ(renewed.serial(), old_serial + 1);
  EXPECT_EQ(old.Ask("PING\r\n", "+PONG\r\n"), "+PONG\r\n");
  // A key of another certificate.
  certificates_->Issue("other", {.common_name = "other"});
  std::filesystem::rename(certificates_->File("other.key"), certificates_->File("server.key"));
  contexts.LookAtFiles(now);
  const absl::Status mismatch = contexts.Reload();
  EXPECT_FALSE(mismatch.ok());
  EXPECT_NE(mismatch.message().find("it is not the key of the certificate in"), std::string::npos)
      << mismatch;
  EXPECT_EQ(TlsClient(server.port()).serial(), old_serial + 1);
  // A key file that is a directory.
  std::filesystem::remove(certificates_->File("server.key"));
  std::filesystem::create_directory(certificates_->File("server.key"));
  contexts.LookAtFiles(now);
  EXPECT_NE(contexts.Reload().message().find("server.key: it is no file"), std::string::npos);
  EXPECT_EQ(TlsClient(server.port()).serial(), old_serial + 1);
  std::filesystem::remove(certificates_->File("server.key"));
  certificates_->Issue("server", {.common_name = "server"});
  contexts.LookAtFiles(now);
  EXPECT_EQ(TlsClient(server.port()).serial(), certificates_->last_serial());
}

// OpenSSL keeps every authority that it has read from the directory, so what is removed or replaced
// counts once the context is a new one.
class TlsAuthoritiesTest : public TlsServerTest {
 protected:
  void SetUp() override {
    TlsServerTest::SetUp();
    std::filesystem::create_directories(authorities_);
    certificates_->Issue("client", {.common_name = "client"});
    Put(*certificates_);
  }
  TlsOptions WatchingOptions() {
    TlsOptions options = VerifyingOptions(TlsMode::kRequired, TlsClientCertificates::kYes).tls;
    options.ca_file.clear();
    options.ca_directory = authorities_;
    options.reload_seconds = 3600;
    return options;
  }
  // Another authority, whose files lie in a directory of their own, and a client of it.
  std::unique_ptr<TestCertificates> Found(const std::string& name, const std::string& directory) {
    std::filesystem::create_directories(directory_.File(directory));
    auto authority = std::make_unique<TestCertificates>(directory_.File(directory), name);
    authority->Issue("client", {.common_name = "client"});
    return authority;
  }
  std::string PathOf(const TestCertificates& authority) const {
    return authorities_ + "/" + authority.HashedName();
  }
  // Puts the authority's certificate into the directory, in place of one of the same name.
  void Put(const TestCertificates& authority) {
    std::filesystem::copy_file(authority.authority(), authorities_ + "/new");
    std::filesystem::rename(authorities_ + "/new", PathOf(authority));
  }
  // Returns whether the server serves the client of the authority.
  static bool Serves(const TestServer& server, const TestCertificates& authority) {
    TlsClient client(server.port(), {.certificate = authority.File("client.crt"),
                                     .key = authority.File("client.key")});
    return client.Ask("PING\r\n", "+PONG\r\n") == "+PONG\r\n";
  }

  const std::string authorities_ = directory_.File("authorities");
  const std::chrono::system_clock::time_point now_ = std::chrono::system_clock::now();
};

TEST_F(TlsAuthoritiesTest, WhatComesAndGoesInTheDirectoryCounts) {
  ServerOptions options;
  options.tls = WatchingOptions();
  TestServer server(options);
  TlsContexts& contexts = *server.server().state().tls;
  const std::unique_ptr<TestCertificates> other = Found("other", "other");
  EXPECT_TRUE(Serves(server, *certificates_));
  EXPECT_FALSE(Serves(server, *other));
  Put(*other);
  contexts.LookAtFiles(now_);
  EXPECT_TRUE(Serves(server, *other));
  EXPECT_TRUE(Serves(server, *certificates_));
  std::filesystem::remove(PathOf(*certificates_));
  contexts.LookAtFiles(now_);
  EXPECT_FALSE(Serves(server, *certificates_));
  EXPECT_TRUE(Serves(server, *other));
  // An authority of the same name with another key.
  const std::unique_ptr<TestCertificates> renewed = Found("other", "renewed");
  ASSERT_EQ(renewed->HashedName(), other->HashedName());
  Put(*renewed);
  contexts.LookAtFiles(now_);
  EXPECT_FALSE(Serves(server, *other));
  EXPECT_TRUE(Serves(server, *renewed));
}

TEST_F(TlsAuthoritiesTest, ADirectoryThatCannotBeReadChangesNothing) {
  ServerOptions options;
  options.tls = WatchingOptions();
  TestServer server(options);
  TlsContexts& contexts = *server.server().state().tls;
  EXPECT_TRUE(Serves(server, *certificates_));
  const auto before = contexts.Get();
  const std::string aside = directory_.File("aside");
  {
    const testing::LogLines log;
    std::filesystem::rename(authorities_, aside);
    contexts.LookAtFiles(now_);
    contexts.LookAtFiles(now_);
    EXPECT_EQ(log.Count("The old certificate and key stay in use: tls-ca-cert-dir: " +
                        authorities_ + ": No such file or directory"),
              1u);
    std::filesystem::rename(aside, authorities_);
    contexts.LookAtFiles(now_);
    std::filesystem::rename(authorities_, aside);
    contexts.LookAtFiles(now_);
    EXPECT_EQ(log.Count("No such file or directory"), 2u) << "it was there in between";
    std::ofstream(authorities_) << "no directory";
    contexts.LookAtFiles(now_);
    EXPECT_EQ(log.Count("tls-ca-cert-dir: " + authorities_ + ": it is no directory"), 1u);
  }
  EXPECT_EQ(contexts.Get(), before);
  EXPECT_FALSE(contexts.Reload().ok());
  EXPECT_TRUE(Serves(server, *certificates_));
  std::filesystem::remove(authorities_);
  std::filesystem::rename(aside, authorities_);
  std::filesystem::remove(PathOf(*certificates_));
  contexts.LookAtFiles(now_);
  EXPECT_NE(contexts.Get(), before);
  EXPECT_FALSE(Serves(server, *certificates_));
}

TEST_F(TlsAuthoritiesTest, OnlyAChangeMakesANewContext) {
  TlsContexts contexts;
  ASSERT_TRUE(contexts.Use(WatchingOptions()).ok());
  // Returns whether the next look makes a new context.
  const auto renews = [&] {
    const auto before = contexts.Get();
    contexts.LookAtFiles(now_);
    return contexts.Get() != before;
  };
  EXPECT_FALSE(renews());
  std::ofstream(authorities_ + "/README") << "of a name that OpenSSL does not look for";
  EXPECT_FALSE(renews());
  const std::string target = directory_.File("target.pem");
  std::ofstream(target) << "a";
  std::filesystem::create_symlink(target, authorities_ + "/01234567.r0");
  EXPECT_TRUE(renews());
  std::ofstream(target, std::ios::app) << "b";
  EXPECT_TRUE(renews()) << "the file behind the link has changed";
  std::filesystem::remove(target);
  EXPECT_TRUE(renews()) << "the link leads nowhere";
  EXPECT_FALSE(renews());
}

TEST_F(TlsAuthoritiesTest, ADirectoryHasABoundedNumberOfEntries) {
  std::filesystem::remove(PathOf(*certificates_));
  for (size_t i = 0; i < kMaxHashedEntries; ++i)
    std::ofstream(authorities_ + "/" + std::to_string(i));
  EXPECT_TRUE(TlsContexts().Use(WatchingOptions()).ok());
  std::ofstream(authorities_ + "/more");
  EXPECT_EQ(TlsContexts().Use(WatchingOptions()).message(),
            "tls-ca-cert-dir: " + authorities_ + ": it has more than 10000 entries");
}

TEST_F(TlsServerTest, TheServerLooksAtTheFilesByItself) {
  ServerOptions options = Options(TlsMode::kOptional);
  options.tls.reload_seconds = 1;
  TestServer server(options);
  certificates_->Issue("server", {.common_name = "server"});
  const long wanted = certificates_->last_serial();
  EXPECT_TRUE(Eventually([&] { return TlsClient(server.port()).serial() == wanted; }));
}

TEST_F(TlsServerTest, ConfigSetChangesAllOrNothing) {
  TestServer server(Options(TlsMode::kOptional));
  RawConnection plain(server.port());
  certificates_->Issue("second", {.common_name = "second"});
  const std::string second = certificates_->File("second.crt");
  plain.Send(Resp({"CONFIG", "SET", "tls-cert-file", second}));
  const std::string error = "-ERR CONFIG SET failed (possibly related to argument 'tls-cert-file')";
  EXPECT_EQ(plain.Receive(error.size()), error);
  EXPECT_EQ(TlsClient(server.port()).serial(), certificates_->last_serial() - 1);
  RawConnection other(server.port());
  other.Send(Resp({"CONFIG", "SET", "tls-cert-file", second, "tls-key-file",
                   certificates_->File("second.key")}));
  EXPECT_EQ(other.Receive(5), "+OK\r\n");
  EXPECT_EQ(TlsClient(server.port()).serial(), certificates_->last_serial());
  other.Send(Resp({"CONFIG", "SET", "tls", "off"}));
  EXPECT_EQ(other.Receive(5), "+OK\r\n");
  EXPECT_FALSE(TlsClient(server.port()).connected());
}

TEST_F(TlsServerTest, WrongSettingsAreNamed) {
  const auto error_of = [](const TlsOptions& options) {
    return std::string(TlsContexts().Use(options).message());
  };
  TlsOptions options;
  options.mode = TlsMode::kOptional;
  EXPECT_EQ(
      error_of(options),
      "tls-cert-file: TLS takes a certificate and its key: set tls-cert-file and tls-key-file");
  options = Options(TlsMode::kOptional).tls;
  options.client_certificates = TlsClientCertificates::kYes;
  EXPECT_TRUE(error_of(options).starts_with("tls-auth-clients: clients' certificates are checked"));
  options = Options(TlsMode::kOptional).tls;
  options.certificate_file = certificates_->File("none");
  EXPECT_EQ(error_of(options),
            "tls-cert-file: " + options.certificate_file + ": No such file or directory");
  std::ofstream(options.certificate_file) << "no certificate";
  EXPECT_EQ(error_of(options),
            "tls-cert-file: " + options.certificate_file + ": it holds no certificate in PEM form");
  options = Options(TlsMode::kOptional).tls;
  options.ciphers = "NOTHING";
  EXPECT_EQ(error_of(options),
            "tls-ciphers: NOTHING: OpenSSL knows none of these ciphers of TLS 1.2");
}

// A damaged block in the middle of a file is not its end.
TEST_F(TlsServerTest, ADamagedSecondCertificateIsNamed) {
  const auto with_damage = [this](const std::string& name) {
    std::stringstream good;
    good << std::ifstream(certificates_->File(name)).rdbuf();
    const std::string path = certificates_->File("damaged-" + name);
    std::ofstream(path) << good.str()
                        << "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    return path;
  };
  TlsOptions options = VerifyingOptions(TlsMode::kOptional, TlsClientCertificates::kYes).tls;
  EXPECT_TRUE(TlsContexts().Use(options).ok());
  options.ca_file = with_damage("ca.crt");
  EXPECT_TRUE(TlsContexts().Use(options).message().find("tls-ca-cert-file: " + options.ca_file) ==
              0)
      << TlsContexts().Use(options);
  options = Options(TlsMode::kOptional).tls;
  options.certificate_file = with_damage("server.crt");
  EXPECT_TRUE(
      TlsContexts().Use(options).message().find("tls-cert-file: " + options.certificate_file) == 0)
      << TlsContexts().Use(options);
}

}  // namespace
}  // namespace varve
