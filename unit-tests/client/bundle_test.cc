// What `client_main bundle` writes, and what it keeps to itself.
#include "client/bundle/bundle.h"

#include <archive.h>
#include <archive_entry.h>
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/bundle/redactor.h"
#include "client/client.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"
#include "unit-tests/testing/test_certificates.h"

namespace varve {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Process;
using testing::ReadFile;
using testing::ServerProcess;
using testing::TempDir;

using Words = std::vector<std::string>;

constexpr const char* kPassword = "pa55word-of-the-owner";
constexpr const char* kSecrets[] = {kPassword,           "secret-key:4711",
                                    "secret-value-0815", "secret-client",
                                    "secret-user",       "secret-prefix:",
                                    "secret-mistyped",   "secret-password2",
                                    "secret-member",     "secret-in-the-place-of-a-command"};

class BundleTest : public ::testing::Test {
 protected:
  void Start(const Words& more = {}) {
    std::ofstream(dir_.File("password")) << kPassword << "\n";
    Words arguments = {"--requirepass-file=" + dir_.File("password"), "--slowlog-log-slower-than=0",
                       "--metrics-prefixes=secret-prefix:,secret-key:"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    server_ = std::make_unique<ServerProcess>(VARVE_SERVER_MAIN, dir_.File("data"), arguments);
    ASSERT_NE(server_->port(), 0) << server_->log();
    ClientOptions options;
    options.port = server_->port();
    options.password = kPassword;
    options.name = "secret-client";
    auto client = Client::Connect(options);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    ASSERT_TRUE(Call({"SET", "secret-key:4711", "secret-value-0815"}).ok());
    ASSERT_TRUE(Call({"SET", "secret-prefix:1", "secret-value-0815"}).ok());
    ASSERT_TRUE(
        Call({"ACL", "SETUSER", "secret-user", "on", ">secret-password2", "~*", "+@all"}).ok());
    EXPECT_FALSE(Call({"EVAL", "secret-mistyped", "1", "secret-member"}).ok());
    EXPECT_FALSE(Call({"GET", "secret-key:4711", "secret-mistyped"}).ok());
    EXPECT_FALSE(Call({"secret-in-the-place-of-a-command"}).ok());
  }

  absl::StatusOr<Reply> Call(const Words& request) {
    return client_->Call(std::vector<std::string_view>(request.begin(), request.end()));
  }

  // The exit code; what was printed is in Output().
  int Bundle(const Words& arguments, const char* password = kPassword) {
    Words all = {"--port=" + std::to_string(server_->port())};
    all.insert(all.end(), arguments.begin(), arguments.end());
    setenv("VARVE_PASSWORD", password, 1);
    const int code = Process(VARVE_CLIENT_MAIN, all, dir_.File("out")).Wait();
    unsetenv("VARVE_PASSWORD");
    return code;
  }
  std::string Output() const { return ReadFile(dir_.File("out")); }

  // The names of the archive's files in order; what they hold is in `unpacked_`.
  Words Unpack(const std::string& path) {
    Words names;
    unpacked_.clear();
    archive* const opened = archive_read_new();
    archive_read_support_filter_all(opened);
    archive_read_support_format_tar(opened);
    EXPECT_EQ(archive_read_open_filename(opened, path.c_str(), 1 << 16), ARCHIVE_OK);
    for (archive_entry* entry = nullptr; archive_read_next_header(opened, &entry) == ARCHIVE_OK;) {
      names.emplace_back(archive_entry_pathname(entry));
      EXPECT_EQ(archive_entry_perm(entry), 0600u);
      std::string content(static_cast<size_t>(archive_entry_size(entry)), '\0');
      EXPECT_EQ(archive_read_data(opened, content.data(), content.size()), std::ssize(content));
      unpacked_[names.back()] = std::move(content);
    }
    archive_read_free(opened);
    return names;
  }

  TempDir dir_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
  std::map<std::string, std::string> unpacked_;
};

TEST_F(BundleTest, TellsHowTheServerFaresAndNoSecret) {
  ASSERT_NO_FATAL_FAILURE(Start({"--http-port=-1"}));
  for (const std::string name : {"one.tar.gz", "two.tar.zst"}) {
    ASSERT_EQ(Bundle({"bundle", dir_.File(name)}), 0) << Output();
    const std::string folder = name.substr(0, 3);
    const Words names = Unpack(dir_.File(name));
    ASSERT_FALSE(names.empty());
    EXPECT_EQ(names[0], folder + "/MANIFEST.json");
    std::string everything = Output();
    for (const char* file :
         {"MANIFEST.json", "status.json", "info_1.txt", "info_2.txt", "metrics_1.txt",
          "metrics_2.txt", "config.json", "clients.txt", "slowlog.json", "latency.json",
          "server.log", "machine.txt", "store.txt", "history.json"}) {
      EXPECT_THAT(names, ::testing::Contains(folder + "/" + file));
      everything += unpacked_[folder + "/" + file];
    }
    for (const char* secret : kSecrets) EXPECT_THAT(everything, Not(HasSubstr(secret)));
    EXPECT_THAT(unpacked_[folder + "/MANIFEST.json"], HasSubstr("\"missing\":{}"));
    EXPECT_THAT(unpacked_[folder + "/status.json"], HasSubstr("\"limited_by\""));
    EXPECT_THAT(unpacked_[folder + "/slowlog.json"], AllOf(HasSubstr("\"SET\""), HasSubstr("\"#")));
    EXPECT_THAT(unpacked_[folder + "/clients.txt"], HasSubstr(" name=#"));
    EXPECT_THAT(unpacked_[folder + "/config.json"], HasSubstr("\"requirepass\":\"(removed)\""));
    EXPECT_THAT(unpacked_[folder + "/metrics_2.txt"], HasSubstr("varve_prefix_bytes{prefix=\"#"));
    EXPECT_THAT(unpacked_[folder + "/server.log"], HasSubstr(" serves "));
    EXPECT_THAT(unpacked_[folder + "/store.txt"], HasSubstr("flushed up to sequence"));
    EXPECT_THAT(unpacked_[folder + "/machine.txt"], HasSubstr("== /proc/meminfo"));
  }
  EXPECT_EQ(Bundle({"bundle", dir_.File("one.tar.gz")}), 2) << "it is there already";
}

TEST_F(BundleTest, WhatTheUserMayNotAskIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_TRUE(
      Call({"ACL", "SETUSER", "reader", "on", ">word", "~*", "+@read", "+info", "+status"}).ok());
  ASSERT_EQ(Bundle({"--user=reader", "bundle", dir_.File("one.tgz")}, "word"), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("see MANIFEST.json"));
  const Words names = Unpack(dir_.File("one.tgz"));
  EXPECT_THAT(names, ::testing::Contains("one/status.json"));
  EXPECT_THAT(names, Not(::testing::Contains("one/slowlog.json")));
  EXPECT_THAT(unpacked_["one/MANIFEST.json"],
              AllOf(HasSubstr("\"slowlog.json\":\"NOPERM"), HasSubstr("\"metrics_1.txt\":")));
}

// A server whose connections open, and which then answers each request with the next of `answers`
// and hangs: behind the last one it sends a byte now and then for as long as the client waits.
// Without any, it says nothing at all.
class HangingServer {
 public:
  explicit HangingServer(Words answers) : answers_(std::move(answers)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    if (!answers_.empty()) thread_ = std::thread([this] { Answer(); });
  }
  ~HangingServer() {
    ::shutdown(listener_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    ::close(listener_);
  }
  std::string port() const { return std::to_string(port_); }

 private:
  void Answer() {
    const int client = ::accept(listener_, nullptr, nullptr);
    char request[4096];
    for (const std::string& answer : answers_) {
      if (::recv(client, request, sizeof(request), 0) <= 0) break;
      ::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    pollfd gone{client, POLLIN, 0};
    while (::poll(&gone, 1, /*timeout=*/50) == 0 && ::send(client, "x", 1, MSG_NOSIGNAL) == 1) {
    }
    ::close(client);
  }

  const Words answers_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

TEST_F(BundleTest, OfAServerThatHangsThereIsWhatHttpTells) {
  ASSERT_NO_FATAL_FAILURE(Start({"--http-port=-1"}));
  const std::string http_port = Call({"CONFIG", "GET", "http-port"})->elements[1].text;
  const HangingServer hangs({});
  ASSERT_EQ(Bundle({"--port=" + hangs.port(), "--http-port=" + http_port, "bundle",
                    dir_.File("one.tar")}),
            0)
      << Output();
  EXPECT_THAT(Unpack(dir_.File("one.tar")), ElementsAre("one/MANIFEST.json", "one/metrics_1.txt",
                                                        "one/history.json", "one/metrics_2.txt"));
  EXPECT_THAT(unpacked_["one/MANIFEST.json"],
              AllOf(HasSubstr("\"status.json\":\"the server did not answer in time\""),
                    HasSubstr("\"store.txt\":\"")));
  EXPECT_THAT(unpacked_["one/history.json"], HasSubstr("\"limited_by\""));
  for (const auto& [name, content] : unpacked_) {
    for (const char* secret : kSecrets) EXPECT_THAT(content, Not(HasSubstr(secret)));
  }
}

TEST_F(BundleTest, NothingThatHangsKeepsABundleLong) {
  ASSERT_NO_FATAL_FAILURE(Start());
  const HangingServer says_nothing({});
  EXPECT_EQ(Bundle({"--port=" + says_nothing.port(), "--http-port=" + says_nothing.port(), "bundle",
                    dir_.File("one.tar")}),
            2);
  EXPECT_THAT(Output(), HasSubstr("the server did not answer in time"));
  EXPECT_FALSE(std::filesystem::exists(dir_.File("one.tar")));

  // Each byte comes in time, and the reply to STATUS has no end.
  const HangingServer drips(
      {"%0\r\n", "%1\r\n$3\r\ndir\r\n$1\r\n.\r\n", "$7\r\n# Stats\r\n", "$100000\r\n"});
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(Bundle({"--port=" + drips.port(), "bundle", dir_.File("two.tar")}), 0) << Output();
  // Less than five, and as many again where the machine is busy.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_THAT(Unpack(dir_.File("two.tar")),
              ElementsAre("two/MANIFEST.json", "two/config.json", "two/info_1.txt"));
  EXPECT_THAT(unpacked_["two/MANIFEST.json"],
              AllOf(HasSubstr("\"status.json\":\"the time that a bundle may take was over\""),
                    HasSubstr("\"server.log\":\"the time that a bundle may take was over\"")));
}

// The socket never speaks TLS, and HTTP then speaks nothing else.
TEST_F(BundleTest, OverAUnixSocketOfAServerThatRequiresTls) {
  const std::string socket = dir_.File("socket");
  testing::TestCertificates certificates(dir_.path());
  certificates.Issue("server", {.common_name = "server"});
  do {  // another program may take the port that was free
    const std::string port = HangingServer({}).port();
    server_ = std::make_unique<ServerProcess>(
        VARVE_SERVER_MAIN, dir_.File("data"),
        Words{"--port=" + port, "--unixsocket=" + socket, "--http-port=-1", "--tls=required",
              "--tls-auth-clients=no", "--tls-cert-file=" + certificates.File("server.crt"),
              "--tls-key-file=" + certificates.File("server.key")});
  } while (server_->port() == 0 && server_->log().find("in use") != std::string::npos);
  ASSERT_NE(server_->port(), 0) << server_->log();
  ASSERT_EQ(Bundle({"--unixsocket=" + socket, "bundle", dir_.File("one.tar")}, ""), 0) << Output();
  EXPECT_THAT(Unpack(dir_.File("one.tar")), ::testing::Contains("one/metrics_2.txt"));
  EXPECT_THAT(unpacked_["one/MANIFEST.json"], HasSubstr("\"missing\":{}"));
}

TEST_F(BundleTest, AWrongCommandLineSaysSo) {
  ASSERT_NO_FATAL_FAILURE(Start());
  EXPECT_EQ(Bundle({"bundle"}), 2);
  EXPECT_EQ(Bundle({"bundle", dir_.File("one.zip")}), 2);
  EXPECT_THAT(Output(), HasSubstr(".tar.gz"));
  EXPECT_FALSE(std::filesystem::exists(dir_.File("one.zip")));
  EXPECT_EQ(Bundle({"bundle", dir_.File("missing/one.tar.gz")}), 2);
  server_->process().Kill(SIGKILL);
  server_->process().Wait();
  EXPECT_EQ(Bundle({"bundle", dir_.File("two.tar.gz")}), 2);
  EXPECT_FALSE(std::filesystem::exists(dir_.File("two.tar.gz")));
}

TEST(RedactorTest, ASecretIsRecognizedWithinOneBundleAlone) {
  Redactor one = *Redactor::Create();
  Redactor other = *Redactor::Create();
  EXPECT_EQ(one.Hash("key"), one.Hash("key"));
  EXPECT_NE(one.Hash("key"), one.Hash("kez"));
  EXPECT_NE(one.Hash("key"), other.Hash("key"));
  EXPECT_EQ(one.Hash(""), "");
  EXPECT_EQ(one.Hash("key").size(), 17u);
}

TEST(RedactorTest, TextIsCleanedOfWhatWasHashed) {
  Redactor redactor = *Redactor::Create();
  const std::string hash = redactor.Hash("word");
  redactor.Hash("ab");
  EXPECT_EQ(redactor.Clean("a word, words; ab"), "a " + hash + ", " + hash + "s; ab");
  EXPECT_EQ(redactor.RedactClients("id=1 name= user=default age=1\nid=2 name=word user=word age=2"),
            "id=1 name= user=default age=1\nid=2 name=" + hash + " user=" + hash + " age=2");
  EXPECT_EQ(redactor.RedactMetrics("a{prefix=\"word\"} 1\n"), "a{prefix=\"" + hash + "\"} 1\n");
  // A quote in a prefix is escaped.
  EXPECT_EQ(redactor.RedactMetrics(R"(a{prefix="o\"dd\\"} 1)"),
            "a{prefix=\"" + redactor.Hash(R"(o\"dd\\)") + "\"} 1");
  EXPECT_EQ(redactor.RedactClients("id=1 user=word\nid=2 name=word\n"),
            "id=1 user=" + hash + "\nid=2 name=" + hash + "\n");
}

}  // namespace
}  // namespace varve
