#include "unit-tests/prove/failover/servers.h"

#include <signal.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

using testing::Eventually;
using testing::ServerProcess;
using Words = std::vector<std::string>;

std::string TextOf(const Reply& reply) {
  if (reply.is_null()) return "(nil)";
  if (reply.type == Reply::Type::kInteger) return std::to_string(reply.integer);
  std::string text = reply.text;
  for (const Reply& element : reply.elements) text += TextOf(element) + "\n";
  return text;
}

}  // namespace

Servers::Servers(std::string program, const std::string& directory, size_t count, Words flags)
    : program_(std::move(program)), flags_(std::move(flags)), nodes_(count) {
  for (size_t i = 0; i < count; ++i) {
    nodes_[i].directory = fmt::format("{}/server{}", directory, i);
    nodes_[i].clients = std::make_unique<Proxy>();
    for (size_t j = 0; j < count; ++j) nodes_[i].links.push_back(std::make_unique<Proxy>());
  }
}

absl::Status Servers::Start(size_t server) {
  Node& node = nodes_[server];
  node.client = nullptr;
  uint16_t port = 0;
  // A server that begins anew with a copy keeps the port only if it was named. Another program may
  // be quicker to take it.
  for (int tries = 0; port == 0 && tries < 3; ++tries) {
    Words flags = flags_;
    flags.push_back(fmt::format("--port={}", Proxy::FreePort()));
    node.process = std::make_unique<ServerProcess>(program_, node.directory, std::move(flags));
    port = node.process->port();
    if (log(server).find("in use") == std::string::npos) break;
  }
  if (port == 0)
    return absl::InternalError(fmt::format("server {} does not start: {}", server, log(server)));
  node.clients->SetTarget(port);
  for (const std::unique_ptr<Proxy>& link : node.links) link->SetTarget(port);
  return absl::OkStatus();
}

void Servers::Kill(size_t server) {
  Node& node = nodes_[server];
  if (node.process == nullptr) return;
  node.process->process().Kill(SIGKILL);
  node.process->process().Wait();
  node.process = nullptr;
  node.client = nullptr;
}

void Servers::Isolate(size_t server) {
  for (size_t i = 0; i < size(); ++i) {
    if (i == server) continue;
    Link(i, server).Cut();
    Link(server, i).Cut();
  }
}

void Servers::Rejoin(size_t server) {
  for (size_t i = 0; i < size(); ++i) {
    if (i == server) continue;
    Link(i, server).Restore();
    Link(server, i).Restore();
  }
}

std::string Servers::Ask(size_t server, const Words& words) {
  Node& node = nodes_[server];
  if (node.process == nullptr) return "(lost)";
  if (node.client == nullptr || node.client->pipeline().closed()) {
    auto made = Client::Connect("127.0.0.1", node.process->port(), std::chrono::seconds(60));
    if (!made.ok()) return "(lost)";
    node.client = *std::move(made);
  }
  const std::vector<std::string_view> views(words.begin(), words.end());
  if (!node.client->Send(views).ok()) return "(lost)";
  const absl::StatusOr<Reply> reply = node.client->Receive();
  return reply.ok() ? TextOf(*reply) : "(lost)";
}

std::string Servers::Info(size_t server, const std::string& section, const std::string& field) {
  const std::string text = Ask(server, {"INFO", section});
  const std::string begin = "\n" + field + ":";
  const size_t at = text.find(begin);
  if (at == std::string::npos) return "";
  const size_t from = at + begin.size();
  return text.substr(from, text.find('\r', from) - from);
}

absl::Status Servers::Say(size_t server, const Words& words) {
  std::string answer;
  // It may be about to begin anew with a copy.
  if (Eventually([&] { return (answer = Ask(server, words)) == "OK"; })) return absl::OkStatus();
  return absl::InternalError(
      fmt::format("server {} says {} to {}: {}", server, answer, words[0], log(server)));
}

absl::Status Servers::Follow(size_t follower, size_t primary) {
  return Say(follower, {"REPLICAOF", "127.0.0.1", std::to_string(Link(follower, primary).port())});
}

absl::Status Servers::Promote(size_t server) { return Say(server, {"REPLICAOF", "NO", "ONE"}); }

absl::Status Servers::AwaitLink(size_t follower, size_t primary) {
  const std::string port = std::to_string(Link(follower, primary).port());
  const bool is_up = Eventually([&] {
    return Info(follower, "replication", "master_link_status") == "up" &&
           Info(follower, "replication", "master_port") == port;
  });
  if (is_up) return absl::OkStatus();
  return absl::InternalError(
      fmt::format("server {} does not follow server {}: {}\n{}\n{}", follower, primary,
                  Info(follower, "replication", "master_link_error"), log(follower), log(primary)));
}

absl::Status Servers::AwaitAll(size_t follower, size_t primary) {
  VARVE_RETURN_IF_ERROR(AwaitLink(follower, primary));
  std::string mine, wanted;
  const bool has_all = Eventually([&] {
    wanted = Info(primary, "replication", "master_repl_offset");
    mine = Info(follower, "replication", "slave_repl_offset");
    return mine == wanted;
  });
  if (has_all) return absl::OkStatus();
  return absl::InternalError(fmt::format("server {} has version {} and not {} of server {}: {}",
                                         follower, mine, wanted, primary, log(follower)));
}

std::string Servers::log(size_t server) const {
  return testing::ReadFile(nodes_[server].directory + ".log");
}

}  // namespace varve::prove
