#include "benchmark/server/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmark/process.h"

namespace varve::bench {
namespace {

constexpr std::string_view kPrefix = "list/";
constexpr uint64_t kKeysAtOnce = 1000;
constexpr size_t kLeastRuns = 3;

using Names = std::set<std::string, std::less<>>;

const Names& Expected() {
  static const auto* const names = new Names{"a/", "b/", "c/"};
  return *names;
}

}  // namespace

Listing::Listing(std::string server, uint16_t port) : server_(std::move(server)) {
  ClientOptions options;
  options.port = port;
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(std::move(options));
  if (!client.ok()) Fail(fmt::format("{}: {}", server_, client.status().ToString()));
  client_ = *std::move(client);
}

Reply Listing::Ask(const std::vector<std::string>& request) {
  const std::vector<std::string_view> words(request.begin(), request.end());
  absl::StatusOr<Reply> reply = client_->Call(words);
  if (!reply.ok()) Fail(fmt::format("{}: {}", server_, reply.status().ToString()));
  return *std::move(reply);
}

void Listing::Fill(uint64_t keys, size_t value_size) {
  const std::string value(value_size, 'v');
  Ask({"MSET", "list/a/1", value, "list/c/1", value});
  for (uint64_t begin = 2; begin < keys; begin += kKeysAtOnce) {
    std::vector<std::string> request = {"MSET"};
    for (uint64_t i = begin; i < std::min(keys, begin + kKeysAtOnce); ++i) {
      request.push_back(fmt::format("list/b/{:09}", i));
      request.push_back(value);
    }
    Ask(request);
  }
}

uint64_t Listing::ListByChildren() {
  const Reply reply = Ask({"CHILDREN", std::string(kPrefix)});
  Names names;
  for (const Reply& name : reply.elements) names.insert(name.text);
  if (names != Expected()) Fail(fmt::format("{}: CHILDREN lists other names", server_));
  return 1;
}

uint64_t Listing::ListByScan() {
  Names names;
  std::string cursor = "0";
  uint64_t requests = 0;
  do {
    const Reply reply = Ask({"SCAN", cursor, "MATCH", fmt::format("{}*", kPrefix), "COUNT",
                             std::to_string(kKeysAtOnce)});
    ++requests;
    if (reply.elements.size() != 2) Fail(fmt::format("{}: no reply to SCAN", server_));
    cursor = reply.elements[0].text;
    for (const Reply& key : reply.elements[1].elements) {
      const std::string_view name = std::string_view(key.text).substr(kPrefix.size());
      const std::string_view child = name.substr(0, name.find('/') + 1);
      if (!names.contains(child)) names.emplace(child);
    }
  } while (cursor != "0");
  if (names != Expected()) Fail(fmt::format("{}: SCAN lists other names", server_));
  return requests;
}

ListingResult Listing::Run(bool by_children, double seconds) {
  ListingResult result;
  std::vector<double> times;
  const auto begin = std::chrono::steady_clock::now();
  const auto since = [](std::chrono::steady_clock::time_point from) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  };
  while (times.size() < kLeastRuns || since(begin) < seconds) {
    const auto from = std::chrono::steady_clock::now();
    result.requests = by_children ? ListByChildren() : ListByScan();
    times.push_back(since(from));
  }
  std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 2),
                   times.end());
  result.p50 = times[times.size() / 2];
  return result;
}

}  // namespace varve::bench
