#include "server/http/http_pages.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "fmt/format.h"
#include "server/http/front_page.h"
#include "server/http/http_changes.h"
#include "server/http/metrics_text.h"
#include "server/http/redis_metrics.h"
#include "server/http/varve_metrics.h"
#include "server/status/client_documents.h"
#include "server/status/server_health.h"
#include "server/status/status_document.h"
#include "server/status/survey_documents.h"
#include "util/base/assert.h"

namespace varve {
namespace {

constexpr std::string_view kJson = "application/json; charset=utf-8";
constexpr std::string_view kHtml = "text/html; charset=utf-8";
constexpr std::string_view kReadyz = "/readyz";
constexpr std::string_view kOpening = "The store is being opened.\n";

constexpr std::chrono::seconds kBetweenMaps{1};

// Returns what the page shows in the place of figures that only a user with `command` may see.
StatusValue Hidden(std::string_view command) {
  return StatusValue::Map().Set(
      "hidden",
      StatusValue::Text(fmt::format("This is shown to users who may execute {}.", command)));
}

// A browser that was asked for a user at /login gives the same user for the other pages.
HttpReply LoginReply(const User* user) {
  if (user == nullptr) {
    return {.status = 401,
            .body = "Give the name and the password of a user.\n",
            .more_headers = kAskForUser};
  }
  return {.status = 303, .body = "You are known: see /.\n", .more_headers = "Location: /\r\n"};
}

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

HttpPages::HttpPages(const ServerOptions& options, std::function<void()> wake)
    : hosts_(PiecesOf(options.http_hosts)),
      prefixes_(PiecesOf(options.metrics_prefixes)),
      wake_(std::move(wake)) {}

void HttpPages::ServeFor(ServerState* server) {
  VARVE_ASSERT(server != nullptr);
  VARVE_ASSERT(server_.load() == nullptr);
  server_.store(server, std::memory_order_release);
}

void HttpPages::Tick() {
  ServerState* const server = server_.load(std::memory_order_acquire);
  if (server == nullptr) return;
  const StoreObservation seen = server->store->Observe();
  history_.Add(*server, seen, LookAtLoad(*server, seen));
}

std::chrono::milliseconds HttpPages::Delay(const HttpRequest& request, const HttpPeer& peer) const {
  ServerState* const server = server_.load(std::memory_order_acquire);
  return server == nullptr ? std::chrono::milliseconds(0) : PasswordDelay(*server, request, peer);
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
  HttpReader reader = ReaderOf(*server, request, peer);
  if (reader.refusal.has_value()) return *std::move(reader.refusal);
  return Page(*server, request, std::move(reader.user));
}

HttpReply HttpPages::Page(ServerState& server, const HttpRequest& request, UserPointer reader) {
  const User* const user = reader.get();
  const auto json = [](const StatusValue& document) {
    return HttpReply{.content_type = kJson, .body = StatusJson(document) + "\n"};
  };
  const auto may_execute = [&](std::initializer_list<std::string_view> command) {
    return MayExecute(server.clients.users, user, {command.begin(), command.size()});
  };
  const std::string& path = request.path;
  if (path == "/") {
    const FrontPage& page = TheFrontPage();
    return {.content_type = kHtml, .body = std::string(page.html), .policy = page.policy};
  }
  if (path == "/login") return LoginReply(user);
  if (path == "/metrics" || path == "/metrics/redis") return Metrics(server, request);
  if (path == "/status.json") return Status(server, request);
  if (path == "/tree.json") {
    const SurveyedStore* const survey = SurveyOf(server.store);
    return json(
        TreeDocument(survey == nullptr ? TreeSurvey() : survey->SurveyTree(kMostShownSegments),
                     MayReadAllKeys(user)));
  }
  if (path == "/changes") return ChangesReply(&server, std::move(reader), request, wake_);
  if (path == "/keys.json") return json(KeysDocument(Keys(server), MayReadAllKeys(user)));
  if (path == "/clients.json") {
    return json(may_execute({"client", "list"}) ? ClientsDocument(server) : Hidden("CLIENT LIST"));
  }
  if (path == "/slowlog.json") {
    return json(may_execute({"slowlog", "get"}) ? SlowLogDocument(server) : Hidden("SLOWLOG GET"));
  }
  return {.status = 404, .body = "There is no such page; docs/metrics.md lists them.\n"};
}

HttpReply HttpPages::Status(ServerState& server, const HttpRequest& request) const {
  std::string body = StatusJson(StatusDocument(server));
  for (const auto& [name, value] : request.query) {
    if (name != "series") continue;
    uint64_t since = 0;
    if (!value.empty() && !absl::SimpleAtoi(absl::string_view(value), &since))
      return {.status = 400, .body = "series takes the number of the first sample.\n"};
    VARVE_ASSERT(body.ends_with('}'));
    body.pop_back();
    body += ",\"history\":";
    history_.WriteJson(since, &body);
    body += '}';
    break;
  }
  return {.content_type = kJson, .body = body + "\n"};
}

const KeyMap& HttpPages::Keys(const ServerState& server) {
  const Time now = std::chrono::steady_clock::now();
  if (keys_at_ == Time() || now - keys_at_ >= kBetweenMaps) {
    if (SurveyedStore* const survey = SurveyOf(server.store))
      keys_ = survey->MapKeys(kMostShownGroups);
    keys_at_ = now;
  }
  return keys_;
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
