// What each path answers, to whom, and that the metrics agree with INFO.
#include "server/http/http_pages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "type/version.h"
#include "unit-tests/server/command_fixture.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

const HttpPeer kHere{.address = "127.0.0.1:1", .is_loopback = true};

HttpPeer Away(const std::string& address) { return {.address = address, .is_loopback = false}; }

HttpRequest RequestOf(const std::string& target, const std::string& headers = "") {
  HttpRequest request;
  const std::string host = headers.starts_with("Host: ") ? "" : "Host: localhost\r\n";
  const HttpParse parsed =
      ParseHttpHead("GET " + target + " HTTP/1.1\r\n" + host + headers + "\r\n", &request);
  EXPECT_EQ(parsed.result, HttpParse::Result::kComplete) << parsed.why;
  return request;
}

class HttpPagesTest : public testing::CommandTest {
 protected:
  HttpPagesTest() { pages_.ServeFor(&server_.server().state()); }

  HttpReply Get(const std::string& target, const std::string& headers = "") {
    return pages_.Answer(RequestOf(target, headers), kHere);
  }
  // The value of a sample in /metrics; "" if there is none.
  std::string Metric(const std::string& sample) {
    const std::string text = "\n" + Get("/metrics").body;
    const size_t at = text.find("\n" + sample + " ");
    if (at == std::string::npos) return "";
    const size_t begin = at + sample.size() + 2;
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  HttpPages pages_{
      ServerOptions{.http_hosts = "metrics.example, other", .metrics_prefixes = "user:,none:"}};
};

TEST_F(HttpPagesTest, HealthIsOkAtRest) {
  EXPECT_EQ(Get("/livez").body, "ok\n");
  EXPECT_EQ(Get("/livez?verbose").body, "[+]io_loops ok\nok\n");
  EXPECT_EQ(Get("/readyz").body, "ok\n");
  EXPECT_EQ(Get("/healthz").body, "ok\n");
  EXPECT_EQ(Get("/readyz?verbose&exclude=disk_space").body,
            "[+]recovered ok\n[+]log_writable ok\n[+]disk_space excluded: ok\n[+]io_loops ok\n"
            "[+]no_damage ok\n[+]following ok\n[+]accepting ok\nok\n");
  EXPECT_EQ(Get("/readyz/log_writable").body, "ok\n");
  EXPECT_EQ(Get("/readyz/unknown").status, 404);
}

TEST_F(HttpPagesTest, AServerThatStopsIsNotReadyAndAlive) {
  client_.reset();
  server_.server().Stop();
  const HttpReply ready = Get("/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_NE(ready.body.find("[-]accepting failed: the server stops\n"), std::string::npos)
      << ready.body;
  EXPECT_EQ(Get("/readyz?exclude=accepting").status, 200);
  EXPECT_EQ(Get("/readyz/accepting").status, 503);
  EXPECT_EQ(Get("/livez").status, 200);
}

TEST_F(HttpPagesTest, WhileTheStoreIsBeingOpened) {
  HttpPages pages{ServerOptions{}};
  EXPECT_EQ(pages.Answer(RequestOf("/livez"), kHere).status, 200);
  const HttpReply ready = pages.Answer(RequestOf("/readyz"), kHere);
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.body, "[-]recovered failed: the store is being opened\nnot ok\n");
  for (const char* path : {"/metrics", "/status.json", "/"})
    EXPECT_EQ(pages.Answer(RequestOf(path), kHere).status, 503) << path;
}

TEST_F(HttpPagesTest, AnswersOnlyToItsOwnNames) {
  for (const char* host : {"127.0.0.1", "localhost:7778", "[::1]:7778", "Metrics.Example", "other"})
    EXPECT_EQ(Get("/livez", "Host: " + std::string(host) + "\r\n").status, 200) << host;
  for (const char* host : {"evil.example", "localhost.evil", "127.0.0.1.evil", "[::zz]"})
    EXPECT_EQ(Get("/metrics", "Host: " + std::string(host) + "\r\n").status, 421) << host;
}

TEST_F(HttpPagesTest, FromElsewhereACertificateStandsForThePassword) {
  ASSERT_EQ(Do({"acl", "setuser", "monitor", "on", "+status"}), "OK");
  ASSERT_EQ(Do({"acl", "setuser", "other", "on", "+get", "~*"}), "OK");
  HttpPeer peer = Away("192.0.2.1:40000");
  const auto get = [&] { return pages_.Answer(RequestOf("/metrics"), peer).status; };
  EXPECT_EQ(get(), 403);
  peer.user_names = {"nobody", "monitor"};
  EXPECT_EQ(get(), 200);
  peer.user_names = {"other"};
  EXPECT_EQ(get(), 403) << "a user who may not execute STATUS";
  EXPECT_EQ(pages_.Answer(RequestOf("/metrics"), peer).body,
            "The certificate names the user other, who may not execute STATUS or may not come from "
            "there.\n");
  ASSERT_EQ(Do({"acl", "setuser", "monitor", "off"}), "OK");
  peer.user_names = {"monitor"};
  EXPECT_EQ(get(), 403) << "a user who is off";
}

TEST_F(HttpPagesTest, FromElsewhereAnyUsersPasswordWillDo) {
  HttpPeer away = Away("192.0.2.1:40000");
  const auto get = [&](const std::string& headers = "") {
    return pages_.Answer(RequestOf("/login", headers), away);
  };
  const auto asks = [](const HttpReply& reply) {
    return reply.status == 401 &&
           reply.more_headers.find("WWW-Authenticate: Basic") != std::string_view::npos;
  };
  ASSERT_EQ(Do({"acl", "setuser", "open", "on", "nopass", "+status"}), "OK");
  ASSERT_EQ(Do({"acl", "setuser", "alice", "off", ">secret", "+status"}), "OK");
  EXPECT_EQ(get().status, 403) << "nobody who is on has a password";
  ASSERT_EQ(Do({"acl", "setuser", "alice", "on"}), "OK");
  EXPECT_TRUE(asks(get())) << "the default user has none, but alice has";
  EXPECT_EQ(get("Authorization: Basic YWxpY2U6c2VjcmV0\r\n").status, 303);
  ASSERT_EQ(Do({"acl", "setuser", "other", "on", "+get", "~*"}), "OK");
  away.user_names = {"other"};
  const HttpReply refused = get();
  EXPECT_TRUE(asks(refused)) << "somebody else may log in";
  EXPECT_NE(refused.body.find("names the user other"), std::string::npos) << refused.body;
}

TEST_F(HttpPagesTest, FromElsewherePagesTakeThePassword) {
  const HttpPeer away = Away("192.0.2.1:40000");
  const auto get = [&](const std::string& target, const std::string& headers = "") {
    return pages_.Answer(RequestOf(target, headers), away);
  };
  EXPECT_EQ(get("/metrics").status, 403) << "there is no password to give";
  ASSERT_EQ(Do({"config", "set", "requirepass", "pw"}), "OK");
  for (const char* path : {"/", "/metrics", "/status.json", "/none"}) {
    const HttpReply refused = get(path);
    EXPECT_EQ(refused.status, 401) << path;
    EXPECT_NE(refused.more_headers.find("WWW-Authenticate: Basic"), std::string_view::npos);
  }
  EXPECT_EQ(get("/livez").status, 200);
  EXPECT_EQ(get("/readyz").status, 200);
  EXPECT_EQ(get("/metrics", "Authorization: Basic ZGVmYXVsdDpwdw==\r\n").status, 200);
  EXPECT_EQ(get("/metrics", "Authorization: basic OnB3\r\n").status, 200) << "no user: default";
  EXPECT_EQ(Get("/metrics").status, 200) << "this machine needs none";
  for (const char* header :
       {"Basic ZGVmYXVsdDpubw==", "Basic !!!!", "Bearer x", "Basic b2JvZHk="}) {
    EXPECT_EQ(get("/metrics", "Authorization: " + std::string(header) + "\r\n").status, 401)
        << header;
  }
  EXPECT_NE(Do({"acl", "log"}).find("reason auth context http object http username default"),
            std::string::npos)
      << Do({"acl", "log"});
  EXPECT_NE(Do({"info", "stats"}).find("acl_access_denied_auth:4\r\n"), std::string::npos);
}

TEST_F(HttpPagesTest, ManyWrongPasswordsSlowDownTheirAddress) {
  ASSERT_EQ(Do({"config", "set", "requirepass", "pw"}), "OK");
  const HttpRequest right = RequestOf("/metrics", "Authorization: Basic ZGVmYXVsdDpwdw==\r\n");
  const HttpRequest wrong = RequestOf("/metrics", "Authorization: Basic ZGVmYXVsdDpubw==\r\n");
  const HttpPeer away = Away("192.0.2.1:40000");
  EXPECT_EQ(pages_.Delay(right, away).count(), 0);
  for (uint32_t i = 0; i <= LoginGuard::kFree; ++i)
    EXPECT_EQ(pages_.Answer(wrong, away).status, 401);
  EXPECT_EQ(pages_.Delay(right, away), LoginGuard::kDelay);
  EXPECT_EQ(pages_.Answer(right, away).status, 200) << "after the delay nobody is locked out";
  EXPECT_EQ(pages_.Delay(RequestOf("/livez"), away).count(), 0);
  EXPECT_EQ(pages_.Delay(right, Away("192.0.2.2:40000")).count(), 0);
}

TEST_F(HttpPagesTest, LimitsOfUsersHoldOnThisMachineToo) {
  ASSERT_EQ(Do({"acl", "setuser", "past", "on", ">pw", "+@all", "~*", "expires=1"}), "OK");
  ASSERT_EQ(Do({"acl", "setuser", "now", "on", ">pw", "+@all", "~*"}), "OK");
  EXPECT_EQ(Get("/metrics", "Authorization: Basic cGFzdDpwdw==\r\n").status, 401);
  EXPECT_EQ(Get("/metrics", "Authorization: Basic bm93OnB3\r\n").status, 200);
}

TEST_F(HttpPagesTest, MetricsCountWhatClientsDo) {
  EXPECT_EQ(Metric("varve_build_info{version=\"0.1.0\",commit=\"" + std::string(kVarveCommit) +
                   "\",format=\"" + std::to_string(kManifestFormatVersion) + "\"}"),
            "1");
  for (int i = 0; i < 10; ++i) Do({"set", "user:" + std::to_string(i), std::string(100, 'x')});
  Do({"get", "user:1"});
  Do({"get", "missing"});
  EXPECT_TRUE(
      testing::Eventually([&] { return Metric("varve_commands_total{cmd=\"set\"}") == "10"; }));
  EXPECT_EQ(Metric("varve_command_duration_seconds_count{cmd=\"set\"}"), "10");
  EXPECT_EQ(Metric("varve_command_duration_seconds_bucket{cmd=\"set\",le=\"+Inf\"}"), "10");
  Do({"set", "too few"});
  EXPECT_EQ(Metric("varve_commands_rejected_calls_total{cmd=\"set\"}"), "1");
  EXPECT_EQ(Metric("varve_keyspace_hits_total"), "1");
  EXPECT_EQ(Metric("varve_keyspace_misses_total"), "1");
  EXPECT_EQ(Metric("varve_connected_clients"), "1");
  EXPECT_EQ(Metric("varve_healthy"), "1");
  EXPECT_EQ(Metric("varve_namespace_keys{namespace=\"0\"}"), "10");
  EXPECT_NE(Metric("varve_log_sync_duration_seconds_count"), "0");
  EXPECT_EQ(Metric("varve_flush_duration_seconds_count"), "0");
  ASSERT_TRUE(server_.store().Flush().ok());
  EXPECT_TRUE(
      testing::Eventually([&] { return Metric("varve_flush_duration_seconds_count") == "1"; }));
  EXPECT_EQ(Metric("varve_namespace_keys{namespace=\"0\"}"), "10");
  EXPECT_EQ(Metric("varve_prefix_bytes{prefix=\"none:\"}"), "0");
  EXPECT_GT(std::stod(Metric("varve_prefix_bytes{prefix=\"user:\"}")), 500);
}

TEST_F(HttpPagesTest, MetricsAreOpenMetricsWhereAskedFor) {
  const HttpReply plain = Get("/metrics");
  EXPECT_EQ(plain.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(plain.body.find("# EOF"), std::string::npos);
  const HttpReply open = Get("/metrics", "Accept: application/openmetrics-text\r\n");
  EXPECT_EQ(open.content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
  EXPECT_TRUE(open.body.ends_with("# EOF\n"));
}

TEST_F(HttpPagesTest, TheOtherPages) {
  const HttpReply page = Get("/");
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_TRUE(page.policy.starts_with("default-src 'none'; script-src 'sha256-")) << page.policy;
  EXPECT_EQ(Get("/status.json").policy, kClosedPolicy);
  EXPECT_EQ(Get("/nothing").status, 404);
  const HttpReply status = Get("/status.json");
  EXPECT_EQ(status.content_type, "application/json; charset=utf-8");
  EXPECT_NE(status.body.find("\"healthy\":true,\"limited_by\":{\"id\":\""), std::string::npos)
      << status.body;
}

TEST_F(HttpPagesTest, TheFrontPageIsOneDocument) {
  const std::string page = Get("/").body;
  EXPECT_LT(page.size(), 100'000u);
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  for (const char* outside : {"src=", "@import", "url(http", "@STYLE@", "@SCRIPT@", " style=\""})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
}

TEST_F(HttpPagesTest, StatusHasTheHistoryWhereItIsAskedFor) {
  EXPECT_EQ(Get("/status.json").body.find("\"history\""), std::string::npos);
  EXPECT_NE(Get("/status.json?series=0").body.find("\"history\":{\"first\":0,\"next\":0,"),
            std::string::npos);
  EXPECT_EQ(Get("/status.json?series=x").status, 400);
  pages_.Tick();
  Do({"set", "a", "b"});
  pages_.Tick();
  pages_.Tick();
  const std::string all = Get("/status.json?series").body;
  EXPECT_NE(all.find("\"history\":{\"first\":0,\"next\":2,"), std::string::npos) << all;
  EXPECT_NE(all.find("\"connections\":[1,1]"), std::string::npos) << all;
  const std::string rest = Get("/status.json?series=1").body;
  EXPECT_NE(rest.find("\"connections\":[1]"), std::string::npos) << rest;
  EXPECT_NE(Get("/status.json?series=9").body.find("\"first\":0,\"next\":2,"), std::string::npos)
      << "who knows of more samples than there are knew another process";
}

TEST_F(HttpPagesTest, StatusTellsThePositionsInTheLogAndWhatAPowerCutWouldTake) {
  Do({"set", "a", "b"});
  const std::string status = Get("/status.json").body;
  EXPECT_NE(status.find("{\"id\":\"flushed\",\"sequence\":0,"), std::string::npos) << status;
  EXPECT_NE(status.find("{\"id\":\"visible\",\"sequence\":1,"), std::string::npos) << status;
  EXPECT_NE(status.find("\"power_cut\":{\"undurable_writes\":0,\"acknowledged_writes_at_most\":0,"),
            std::string::npos)
      << status;
  EXPECT_NE(status.find("{\"mode\":\"always\",\"acknowledged\":false,\"writes_at_most\":0}"),
            std::string::npos)
      << status;
}

TEST_F(HttpPagesTest, KeysSegmentsClientsAndSlowLog) {
  Do({"config", "set", "slowlog-log-slower-than", "0"});
  Do({"client", "setname", "tester"});
  for (int i = 0; i < 200; ++i) {
    Do({"set", "user:" + std::to_string(i), std::string(100, 'v')});
    Do({"set", std::string("bad:\x01\xff:", 7) + std::to_string(i), std::string(100, 'v')});
  }
  ASSERT_TRUE(server_.store().Flush().ok());
  const std::string keys = Get("/keys.json").body;
  EXPECT_NE(keys.find("\"prefix\":\"user:\",\"keys_estimate\":"), std::string::npos) << keys;
  EXPECT_NE(keys.find("\"buffer_records\":0,\"known_buffer_records\":0"), std::string::npos)
      << keys;
  EXPECT_NE(keys.find("\"prefix\":\"bad:\\\\x01\\\\xff:\""), std::string::npos) << keys;
  const std::string tree = Get("/tree.json").body;
  EXPECT_NE(tree.find("\"last_key\":\"user:99\""), std::string::npos) << tree;
  EXPECT_NE(Get("/slowlog.json").body.find("\"user:199\""), std::string::npos);
  EXPECT_NE(Get("/clients.json").body.find("\"name\":\"tester\",\"user\":\"default\""),
            std::string::npos);
}

TEST_F(HttpPagesTest, TheMapOfKeysTellsTheGroupsOfANamespace) {
  Do({"set", "a", "b"});
  Do({"namespace", "create", "users", "group", ":"});
  Do({"namespace", "use", "users"});
  Do({"set", "user:1", "value"});
  ASSERT_TRUE(server_.store().Flush().ok());
  const std::string keys = Get("/keys.json").body;
  EXPECT_NE(keys.find(R"("name":"users","grouping":"GROUP :")"), std::string::npos) << keys;
  EXPECT_NE(keys.find(R"("name":"0","grouping":"")"), std::string::npos) << keys;
}

TEST_F(HttpPagesTest, NamesOfKeysAreForThoseWhoMayReadThem) {
  Do({"set", "user:1", "value"});
  ASSERT_TRUE(server_.store().Flush().ok());
  ASSERT_EQ(Do({"acl", "setuser", "part", "on", ">part", "~user:*", "+@all"}), "OK");
  ASSERT_EQ(Do({"acl", "setuser", "keys", "on", ">keys", "%R~*", "+get"}), "OK");
  ASSERT_EQ(Do({"config", "set", "requirepass", "pw"}), "OK");
  const auto as = [](const std::string& user_and_password) {
    return "Authorization: Basic " + user_and_password + "\r\n";
  };
  const std::string nobody, part = as("cGFydDpwYXJ0"), keys = as("a2V5czprZXlz");
  const auto shows_keys = [&](const std::string& headers) {
    const bool in_map = Get("/keys.json", headers).body.find("user:") != std::string::npos;
    EXPECT_EQ(Get("/tree.json", headers).body.find("user:") != std::string::npos, in_map);
    return in_map;
  };
  EXPECT_FALSE(shows_keys(nobody)) << "the default user needs a password";
  EXPECT_FALSE(shows_keys(part));
  EXPECT_TRUE(shows_keys(keys));
  EXPECT_TRUE(shows_keys(as("ZGVmYXVsdDpwdw==")));
  const auto is_hidden = [&](const std::string& path, const std::string& headers) {
    return Get(path, headers).body.find("\"hidden\":") != std::string::npos;
  };
  for (const char* path : {"/clients.json", "/slowlog.json"}) {
    EXPECT_TRUE(is_hidden(path, nobody)) << path;
    EXPECT_TRUE(is_hidden(path, keys)) << path;
    EXPECT_FALSE(is_hidden(path, part)) << path;
  }
  EXPECT_EQ(Get("/login").status, 401);
  EXPECT_EQ(Get("/login", part).status, 303);
  EXPECT_EQ(Get("/status.json", as("cGFydDp3cm9uZw==")).status, 401) << "a wrong password";
}

}  // namespace
}  // namespace varve
