#include "unit-tests/prove/soak/state_sum.h"

#include <array>
#include <cstring>
#include <memory>

#include "unit-tests/prove/soak/key_owner.h"
#include "util/base/hash.h"
#include "util/base/status.h"

namespace varve::prove {

uint64_t RecordSum(std::string_view key, std::string_view value) {
  const std::array<uint64_t, 2> hashes = {HashKey(key), HashKey(value)};
  std::array<char, sizeof(hashes)> bytes;
  std::memcpy(bytes.data(), hashes.data(), sizeof(hashes));
  return HashKey({bytes.data(), bytes.size()});
}

uint64_t NamespaceSum(std::string_view name, uint64_t records) {
  return records * (HashKey(name) | 1);
}

absl::StatusOr<uint64_t> ReadRecordSum(uint16_t port, const std::string& name) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                         Client::Connect(ClientOf(port, name)));
  uint64_t sum = 0;
  VARVE_RETURN_IF_ERROR(client->StreamRange(
      "-", "+", {}, {.pair = [&](std::string&& key, std::string&& value, uint64_t) {
        sum += RecordSum(key, value);
        return true;
      }}));
  return sum;
}

absl::StatusOr<std::vector<std::string>> ReadPlaces(uint16_t port) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(ClientOf(port, "")));
  VARVE_ASSIGN_OR_RETURN(const Reply names, client->Call({"NAMESPACE", "LIST"}));
  std::vector<std::string> places = {"0", "1"};
  for (const Reply& name : names.elements) places.push_back(name.text);
  return places;
}

absl::StatusOr<uint64_t> ReadStateSum(uint16_t port, const std::set<std::string>& left_out) {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> places, ReadPlaces(port));
  uint64_t sum = 0;
  for (const std::string& place : places) {
    if (left_out.contains(place)) continue;
    VARVE_ASSIGN_OR_RETURN(const uint64_t records, ReadRecordSum(port, place));
    sum += NamespaceSum(place, records);
  }
  return sum;
}

}  // namespace varve::prove
