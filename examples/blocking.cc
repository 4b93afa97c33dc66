// Keys and ranges with the blocking client: one call, one reply.
//
//   example_blocking [port]
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "client/client.h"

namespace {

absl::Status Run(uint16_t port) {
  absl::StatusOr<std::unique_ptr<varve::Client>> connected = varve::Client::Connect({.port = port});
  if (!connected.ok()) return connected.status();
  varve::Client& client = **connected;

  // All of them or none, on disk when the call returns.
  if (absl::Status put =
          client.PutAll({{"city:1", "Zürich West"}, {"city:2", "Bern"}, {"town:1", "Olten"}});
      !put.ok()) {
    return put;
  }

  absl::StatusOr<std::optional<std::string>> value = client.Get("city:2");
  if (!value.ok()) return value.status();
  std::printf("city:2 is %s\n", value->has_value() ? (*value)->c_str() : "missing");

  // Ranges come in the order of their keys.
  absl::StatusOr<varve::Client::Pairs> cities = client.Prefix("city:", {.reverse = true});
  if (!cities.ok()) return cities.status();
  for (const auto& [key, name] : *cities) std::printf("%s\t%s\n", key.c_str(), name.c_str());

  return client.Delete({"city:1", "city:2", "town:1"}).status();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 7777));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
