// The HTTP server of a running server: over its socket, while the disk hangs, and when its port is
// taken.
#include "server/http/http_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "unit-tests/server/http/http_client.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/server_process.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::FaultFileSystem;
using testing::Fetch;
using testing::ServerProcess;
using testing::TestServer;

ServerConfig OnPort(int port) {
  ServerConfig config;
  config.server.http_port = port;
  return config;
}

TEST(HttpServerTest, OffMeansOff) {
  HttpServer http;
  EXPECT_TRUE(http.Start(OnPort(0)).ok());
  EXPECT_EQ(http.port(), 0);
}

TEST(HttpServerTest, ATakenDefaultPortIsAWarningAndATakenChosenOneAnError) {
  HttpServer first;
  ASSERT_TRUE(first.Start(OnPort(-1)).ok());
  ServerConfig config = OnPort(first.port());
  HttpServer second;
  EXPECT_TRUE(second.Start(config).ok());
  EXPECT_EQ(second.port(), 0);
  config.given.insert("http-port");
  HttpServer third;
  EXPECT_TRUE(absl::IsFailedPrecondition(third.Start(config)));
}

TEST(HttpServerTest, AnswersWhileTheDiskHangs) {
  FaultFileSystem files;
  EngineOptions engine = TestServer::SmallEngine();
  engine.file_system = &files;
  TestServer server({}, engine);
  HttpServer http;
  ASSERT_TRUE(http.Start(OnPort(-1)).ok());
  EXPECT_EQ(Fetch(http.port(), "/readyz").status, 503) << "there is no server yet";
  http.ServeFor(&server.server().state());
  EXPECT_EQ(Fetch(http.port(), "/readyz").status, 200);
  const std::unique_ptr<Client> client = server.Connect();
  EXPECT_EQ(testing::Ask(*client, {"CONFIG", "GET", "http-port"}),
            "(http-port " + std::to_string(http.port()) + ")");
  files.StandStill([&] {
    for (int i = 0; i < 100; ++i)
      ASSERT_TRUE(client->Send({"SET", "key" + std::to_string(i), std::string(10'000, 'v')}).ok());
    EXPECT_TRUE(Eventually([&] {
      return Fetch(http.port(), "/readyz").body.find("[-]log_writable failed: the disk") !=
             std::string::npos;
    }));
    EXPECT_EQ(Fetch(http.port(), "/livez").status, 200);
    EXPECT_EQ(Fetch(http.port(), "/metrics").status, 200);
    EXPECT_NE(Fetch(http.port(), "/status.json").body.find("\"id\":\"sync\""), std::string::npos);
  });
  http.Stop();
}

TEST(HttpServerTest, ProgramServesAndNamesAPortThatItCannotHave) {
  testing::TempDir dir;
  ServerProcess first(VARVE_SERVER_MAIN, dir.File("first"), {"--http-port=-1"});
  ASSERT_NE(first.port(), 0) << first.log();
  const std::string log = first.log();
  const std::string_view before = "HTTP is served at 127.0.0.1:";
  const size_t at = log.find(before);
  ASSERT_NE(at, std::string::npos) << log;
  const int port = std::atoi(log.c_str() + at + before.size());
  EXPECT_EQ(Fetch(static_cast<uint16_t>(port), "/livez").body, "ok\n");
  ServerProcess second(VARVE_SERVER_MAIN, dir.File("second"),
                       {"--http-port=" + std::to_string(port)});
  EXPECT_EQ(second.process().Wait(), 1);
  EXPECT_NE(second.log().find("can't serve HTTP at 127.0.0.1:"), std::string::npos) << second.log();
  first.process().Kill(SIGTERM);
  EXPECT_EQ(first.process().Wait(), 0) << first.log();
}

}  // namespace
}  // namespace varve
