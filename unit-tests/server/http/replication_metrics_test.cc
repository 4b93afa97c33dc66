// Followers and the link to a primary in the metrics, in those of Redis' exporter, in the status
// document and in the checks of /readyz.
#include "server/http/replication_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/status/server_health.h"
#include "server/status/status_document.h"
#include "unit-tests/server/http/http_client.h"
#include "unit-tests/server/http/programs.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/server_process.h"

namespace varve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ReplicationMetricsTest : public ::testing::Test {
 protected:
  ServerState& state() { return server_.server().state(); }
  std::string Varve() {
    MetricsText text(MetricsText::Format::kPlain);
    WriteVarveReplication(state(), &text);
    return text.Take();
  }
  std::string Redis() {
    MetricsText text(MetricsText::Format::kPlain);
    WriteRedisReplication(state(), &text);
    return text.Take();
  }
  std::string Problem() {
    for (const HealthCheck& check : HealthChecks(state(), state().store->Observe()))
      if (check.name == "following") return check.problem;
    return "there is no such check";
  }
  void Write(int times) {
    for (int i = 0; i < times; ++i) ASSERT_TRUE(client_->Put("key", "value").ok());
  }
  void Join() {
    state().replication.followers.Join({.id = "a",
                                        .address = "10.0.0.7",
                                        .port = 7001,
                                        .applied = 2,
                                        .durable = 1,
                                        .online = true,
                                        .told = std::chrono::steady_clock::now()});
  }
  void Link(LinkPhase phase, const std::string& error = "") {
    state().replication.UpdateLink([&](LinkReport& link) {
      link.phase = phase;
      link.error = error;
      link.primary_version = 10;
      link.last_io = std::chrono::steady_clock::now();
    });
  }

  testing::TestServer server_;
  std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(ReplicationMetricsTest, APrimaryTellsOfItsFollowers) {
  EXPECT_THAT(Varve(), HasSubstr("\nvarve_followers 0\n"));
  EXPECT_THAT(Redis(), HasSubstr("\nredis_connected_slaves 0\n"));
  Write(5);
  Join();
  const std::string varve = Varve();
  const std::string labels = "{address=\"10.0.0.7:7001\",follower=\"a\"} ";
  EXPECT_THAT(varve, HasSubstr("\nvarve_followers 1\n"));
  EXPECT_THAT(varve, HasSubstr("\nvarve_follower_version" + labels + "2\n"));
  EXPECT_THAT(varve, HasSubstr("\nvarve_follower_durable_version" + labels + "1\n"));
  EXPECT_THAT(varve, HasSubstr("\nvarve_follower_versions_behind" + labels + "3\n"));
  EXPECT_THAT(varve, HasSubstr("\nvarve_follower_online" + labels + "1\n"));
  EXPECT_THAT(varve, HasSubstr("\nvarve_follows 0\n"));
  const std::string redis = Redis();
  EXPECT_THAT(redis, HasSubstr("redis_connected_slave_offset_bytes{slave_ip=\"10.0.0.7\","
                               "slave_port=\"7001\",slave_state=\"online\"} 2\n"));
  EXPECT_THAT(redis, HasSubstr("\nredis_master_repl_offset 5\n"));
  EXPECT_THAT(redis, Not(HasSubstr("redis_master_link_up")));
  const std::string document = StatusJson(StatusDocument(state()));
  EXPECT_THAT(document, HasSubstr("\"id\":\"follower 10.0.0.7:7001\",\"sequence\":2"));
  EXPECT_THAT(document, HasSubstr("\"address\":\"10.0.0.7:7001\",\"state\":\"online\","
                                  "\"version\":2,\"durable_version\":1"));
}

TEST_F(ReplicationMetricsTest, AFollowerTellsOfItsPrimary) {
  Write(4);
  state().replication.SetPrimary({"other", 7000});
  Link(LinkPhase::kConnected);
  state().replication.counts.diverged = 3;
  const std::string varve = Varve();
  EXPECT_THAT(varve, HasSubstr("\nvarve_follows 1\n"));
  EXPECT_THAT(varve, HasSubstr("\nvarve_primary_link_up 1\n"));
  EXPECT_THAT(varve, HasSubstr("\nvarve_primary_version 10\n"));
  EXPECT_THAT(varve, HasSubstr("\nvarve_primary_versions_behind 6\n"));
  EXPECT_THAT(varve, HasSubstr("\nvarve_diverged_operations_total 3\n"));
  EXPECT_THAT(Redis(),
              HasSubstr("redis_master_link_up{master_host=\"other\",master_port=\"7000\"} 1\n"));
  const std::string document = StatusJson(StatusDocument(state()));
  EXPECT_THAT(document, HasSubstr("\"primary\":\"other 7000\",\"link\":\"connected\""));
  EXPECT_THAT(document, HasSubstr("\"id\":\"primary\",\"sequence\":10"));
}

TEST_F(ReplicationMetricsTest, AFollowerIsReadyOnceItHadALink) {
  EXPECT_EQ(Problem(), "");
  state().replication.SetPrimary({"other", 7000});
  EXPECT_EQ(Problem(), "there was no link to the primary yet");
  Link(LinkPhase::kConnecting, "connection refused");
  EXPECT_EQ(Problem(), "there was no link to the primary yet: connection refused");
  Link(LinkPhase::kConnected);
  EXPECT_EQ(Problem(), "");
  Link(LinkPhase::kConnecting, "connection refused");
  EXPECT_EQ(Problem(), "") << "it serves what it has";
  Link(LinkPhase::kSync);
  EXPECT_EQ(Problem(), "the server takes a copy of its primary");
  Link(LinkPhase::kConnected);
  state().replication.SetPrimary({"third", 7000});
  EXPECT_EQ(Problem(), "there was no link to the primary yet");
  state().replication.SetPrimary({});
  EXPECT_EQ(Problem(), "");
}

// The lines of INFO are such that Debian's exporter reads them.
TEST_F(ReplicationMetricsTest, DebiansExporterReadsOurInfo) {
  constexpr const char* kExporter = "prometheus-redis-exporter";
  if (!testing::HasProgram(kExporter)) GTEST_SKIP() << kExporter << " is not installed";
  testing::TempDir dir;
  const uint16_t port = testing::FreePort();
  const testing::Process exporter(
      kExporter,
      {"--redis.addr=redis://127.0.0.1:" + std::to_string(server_.port()),
       "--web.listen-address=127.0.0.1:" + std::to_string(port)},
      dir.File("exporter.log"));
  Join();
  std::string exported;
  EXPECT_TRUE(testing::Eventually([&] {
    exported = testing::FetchSimply(port, "/metrics");
    return exported.find("redis_up 1") != std::string::npos;
  })) << exported;
  EXPECT_THAT(exported, HasSubstr("redis_connected_slaves 1\n"));
  EXPECT_THAT(exported, HasSubstr("redis_connected_slave_offset_bytes{slave_ip=\"10.0.0.7\","
                                  "slave_port=\"7001\",slave_state=\"online\"} 2\n"));
  state().replication.SetPrimary({"other", 7000});
  Link(LinkPhase::kConnected);
  exported = testing::FetchSimply(port, "/metrics");
  EXPECT_THAT(exported,
              HasSubstr("redis_master_link_up{master_host=\"other\",master_port=\"7000\"} 1\n"));
  for (const char* name :
       {"redis_master_last_io_seconds_ago", "redis_slave_repl_offset", "redis_slave_priority",
        "redis_slave_info", "redis_replica_resyncs_full", "redis_replica_partial_resync_accepted",
        "redis_replica_partial_resync_denied"}) {
    EXPECT_THAT(exported, HasSubstr(std::string("\n") + name)) << "the exporter";
    EXPECT_THAT(Redis(), HasSubstr(std::string("\n") + name)) << "our own";
  }
}

}  // namespace
}  // namespace varve
