#include "server/http/http_pages.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "server/http/http_access.h"
#include "server/http/metrics_text.h"
#include "server/http/redis_metrics.h"
#include "server/http/varve_metrics.h"
#include "server/status/server_health.h"
#include "server/status/status_document.h"
#include "util/base/assert.h"

namespace varve {
namespace {

constexpr std::string_view kJson = "application/json; charset=utf-8";
constexpr std::string_view kHtml = "text/html; charset=utf-8";
constexpr std::string_view kReadyz = "/readyz";
constexpr std::string_view kOpening = "The store is being opened.\n";

constexpr std::string_view kFrontPage = R"(<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Varve</title></head>
<body>
<h1>Varve</h1>
<ul>
<li><a href="/status.json">/status.json</a>: what the server does, and what limits it</li>
<li><a href="/metrics">/metrics</a>: metrics for Prometheus</li>
<li><a href="/metrics/redis">/metrics/redis</a>: the same as redis_exporter names them</li>
<li><a href="/readyz?verbose">/readyz</a>: whether it is ready to serve</li>
<li><a href="/livez?verbose">/livez</a>: whether the process works</li>
</ul>
</body>
</html>
)";

// The pieces of a list with commas, without blanks around them.
std::vector<std::string> PiecesOf(std::string_view list) {
  std::vector<std::string> pieces;
  while (!list.empty()) {
    const size_t end = list.find(',');
    std::string_view piece = list.substr(0, end);
    list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
    while (piece.starts_with(' ')) piece.remove_prefix(1);
    while (piece.ends_with(' ')) piece.remove_suffix(1);
    if (!piece.empty()) pieces.emplace_back(piece);
  }
  return pieces;
}

bool IsExcluded(const HttpRequest& request, std::string_view check) {
  return std::any_of(request.query.begin(), request.query.end(), [&](const auto& pair) {
    return pair.first == "exclude" && pair.second == check;
  });
}

// Answers checks as etcd and Kubernetes do: a line for each where some fails or `?verbose` asks.
HttpReply ChecksReply(const std::vector<HealthCheck>& checks, const HttpRequest& request) {
  std::string lines;
  bool passes = true;
  for (const HealthCheck& check : checks) {
    const auto out = std::back_inserter(lines);
    if (IsExcluded(request, check.name)) {
      fmt::format_to(out, "[+]{} excluded: ok\n", check.name);
    } else if (check.problem.empty()) {
      fmt::format_to(out, "[+]{} ok\n", check.name);
    } else {
      passes = false;
      fmt::format_to(out, "[-]{} failed: {}\n", check.name, check.problem);
    }
  }
  if (!passes) return {.status = 503, .body = lines + "not ok\n"};
  return {.body = request.Asks("verbose") ? lines + "ok\n" : "ok\n"};
}

// /readyz, /healthz and /readyz/<check>.
HttpReply ReadyReply(const std::vector<HealthCheck>& checks, const HttpRequest& request) {
  VARVE_ASSERT(!checks.empty());
  if (request.path.size() <= kReadyz.size() + 1) return ChecksReply(checks, request);
  const std::string_view name = std::string_view(request.path).substr(kReadyz.size() + 1);
  for (const HealthCheck& check : checks) {
    if (check.name == name) return ChecksReply({check}, request);
  }
  return {.status = 404, .body = "There is no such check; /readyz?verbose lists them.\n"};
}

bool IsReadyz(const std::string& path) {
  return path == kReadyz || path == "/healthz" || path.starts_with("/readyz/");
}

}  // namespace

HttpPages::HttpPages(const ServerOptions& options)
    : hosts_(PiecesOf(options.http_hosts)), prefixes_(PiecesOf(options.metrics_prefixes)) {}

void HttpPages::ServeFor(ServerState* server) {
  VARVE_ASSERT(server != nullptr);
  VARVE_ASSERT(server_.load() == nullptr);
  server_.store(server, std::memory_order_release);
}

void HttpPages::Tick() {
  ServerState* const server = server_.load(std::memory_order_acquire);
  if (server != nullptr) LookAtLoad(*server, server->store->Observe());
}

HttpReply HttpPages::Answer(const HttpRequest& request, const HttpPeer& peer) {
  if (request.has_host && !IsOwnHost(request.host, hosts_)) {
    return {.status = 421,
            .body =
                "This server does not go by that name: use an IP address or localhost, or add "
                "the name to http-hosts.\n"};
  }
  ServerState* const server = server_.load(std::memory_order_acquire);
  if (request.path == "/livez") {
    return ChecksReply({{"io_loops", server == nullptr ? "" : LivenessProblem(*server)}}, request);
  }
  if (IsReadyz(request.path)) {
    return ReadyReply(
        server == nullptr ? ChecksWhileOpening() : HealthChecks(*server, server->store->Observe()),
        request);
  }
  if (server == nullptr) return {.status = 503, .body = std::string(kOpening)};
  if (std::optional<HttpReply> refusal = RefusalOf(*server, request, peer)) return *refusal;
  return Page(*server, request);
}

HttpReply HttpPages::Page(ServerState& server, const HttpRequest& request) const {
  if (request.path == "/") return {.content_type = kHtml, .body = std::string(kFrontPage)};
  if (request.path == "/metrics" || request.path == "/metrics/redis")
    return Metrics(server, request);
  if (request.path == "/status.json")
    return {.content_type = kJson, .body = StatusJson(StatusDocument(server)) + "\n"};
  return {.status = 404, .body = "There is no such page; / lists them.\n"};
}

HttpReply HttpPages::Metrics(ServerState& server, const HttpRequest& request) const {
  const auto format = PrefersOpenMetrics(request.accept) ? MetricsText::Format::kOpenMetrics
                                                         : MetricsText::Format::kPlain;
  MetricsText text(format);
  if (request.path == "/metrics") {
    WriteVarveMetrics(server, prefixes_, &text);
  } else {
    WriteRedisMetrics(server, &text);
  }
  return {.content_type = MetricsText::ContentType(format), .body = text.Take()};
}

}  // namespace varve
