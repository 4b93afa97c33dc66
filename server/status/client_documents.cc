#include "server/status/client_documents.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "server/clients/client_description.h"
#include "server/status/survey_documents.h"

namespace varve {
namespace {

constexpr size_t kMostShownEntries = 128;

uint64_t SecondsSince(std::chrono::steady_clock::time_point then) {
  const auto since = std::chrono::steady_clock::now() - then;
  return static_cast<uint64_t>(
      std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(since).count()));
}

StatusValue ClientPart(const ClientState& client) {
  const ClientLink& link = client.link;
  const std::chrono::steady_clock::time_point active{
      std::chrono::seconds(link.active_at.load(std::memory_order_relaxed))};
  StatusValue map = StatusValue::Map();
  map.Set("id", StatusValue::Integer(client.id)).Set("address", StatusValue::Text(client.address));
  {
    absl::MutexLock lock(&link.names_mutex);
    map.Set("name", StatusValue::Text(client.name))
        .Set("user", StatusValue::Text(client.user_name))
        .Set("library", StatusValue::Text(client.library_name));
  }
  map.Set("age_seconds", StatusValue::Integer(SecondsSince(client.connected)))
      .Set("idle_seconds", StatusValue::Integer(SecondsSince(active)))
      .Set("command", StatusValue::Text(link.last_command.load(std::memory_order_relaxed)))
      .Set("namespace", StatusValue::Integer(link.space.load(std::memory_order_relaxed)))
      .Set("memory_bytes", StatusValue::Integer(ClientBytes(client)))
      .Set("unsent_bytes", StatusValue::Integer(link.output_bytes.load(std::memory_order_relaxed) +
                                                link.mailbox.bytes()));
  return map;
}

}  // namespace

StatusValue ClientsDocument(const ServerState& server) {
  std::vector<std::pair<uint64_t, uint64_t>> largest;  // bytes and id
  server.clients.registry.ForEach(
      [&](const ClientState& client) { largest.emplace_back(ClientBytes(client), client.id); });
  const size_t all = largest.size();
  if (all > kMostShownClients) {
    std::nth_element(largest.begin(), largest.begin() + kMostShownClients, largest.end(),
                     std::greater<>());
    largest.resize(kMostShownClients);
  }
  std::vector<uint64_t> shown;
  for (const auto& [bytes, id] : largest) shown.push_back(id);
  std::sort(shown.begin(), shown.end());
  StatusValue list = StatusValue::List();
  server.clients.registry.ForEach([&](const ClientState& client) {
    if (std::binary_search(shown.begin(), shown.end(), client.id)) list.Add(ClientPart(client));
  });
  return StatusValue::Map()
      .Set("connected", StatusValue::Integer(all))
      .Set("clients", std::move(list));
}

StatusValue SlowLogDocument(const ServerState& server) {
  StatusValue list = StatusValue::List();
  for (const SlowLog::Entry& entry : server.statistics.slow_log.Newest(kMostShownEntries)) {
    StatusValue arguments = StatusValue::List();
    for (const std::string& argument : entry.arguments)
      arguments.Add(StatusValue::Text(ShownKey(argument)));
    list.Add(
        StatusValue::Map()
            .Set("id", StatusValue::Integer(entry.id))
            .Set("unix_seconds", StatusValue::Integer(static_cast<uint64_t>(entry.unix_seconds)))
            .Set("micros", StatusValue::Integer(static_cast<uint64_t>(entry.micros)))
            .Set("arguments", std::move(arguments))
            .Set("client_address", StatusValue::Text(entry.client_address))
            .Set("client_name", StatusValue::Text(entry.client_name)));
  }
  return StatusValue::Map().Set("entries", std::move(list));
}

}  // namespace varve
