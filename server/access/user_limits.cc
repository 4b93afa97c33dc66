#include "server/access/user_limits.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/letter_case.h"

namespace varve {
namespace {

constexpr std::string_view kMaxClients = "maxclients=", kCidr = "cidr=", kExpires = "expires=";
constexpr std::string_view kResetCidr = "resetcidr";
constexpr std::string_view kThisMachine = "127.0.0.1";  // as which a Unix socket counts
constexpr int kBitsOfIpv4 = 32, kBitsOfIpv6 = 128;
constexpr uint32_t kMostClients = 1'000'000;  // as many as the server serves
constexpr size_t kMostNetworks = 1000;

bool HasPrefix(std::string_view rule, std::string_view prefix) {
  return EqualsIgnoreCase(rule.substr(0, prefix.size()), prefix);
}

template <typename Number>
std::optional<Number> ParseNumber(std::string_view text, Number most) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number > most)
    return std::nullopt;
  return number;
}

// Reads an address. `*is_ipv4` says whether it is one of IPv4, which comes as the one of IPv6 that
// stands for it.
bool ParseAddress(std::string_view text, std::array<uint8_t, 16>* address, bool* is_ipv4) {
  if (text.find('\0') != std::string_view::npos) return false;
  const std::string copy(text);
  in_addr ipv4{};
  *is_ipv4 = inet_pton(AF_INET, copy.c_str(), &ipv4) == 1;
  if (!*is_ipv4) return inet_pton(AF_INET6, copy.c_str(), address->data()) == 1;
  *address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  std::memcpy(address->data() + 12, &ipv4, sizeof(ipv4));
  return true;
}

std::optional<Network> ParseNetwork(std::string_view text) {
  Network network{.text = std::string(text)};
  const size_t slash = std::min(text.find('/'), text.size());
  bool is_ipv4 = false;
  if (!ParseAddress(text.substr(0, slash), &network.address, &is_ipv4)) return std::nullopt;
  const int bits = is_ipv4 ? kBitsOfIpv4 : kBitsOfIpv6;
  const std::optional<int> prefix =
      slash == text.size() ? bits : ParseNumber(text.substr(slash + 1), bits);
  if (!prefix) return std::nullopt;
  network.prefix = *prefix + kBitsOfIpv6 - bits;
  return network;
}

bool Holds(const Network& network, const std::array<uint8_t, 16>& address) {
  VARVE_ASSERT(network.prefix >= 0 && network.prefix <= kBitsOfIpv6);
  const auto whole = static_cast<size_t>(network.prefix / 8);
  if (std::memcmp(network.address.data(), address.data(), whole) != 0) return false;
  const int rest = network.prefix % 8;
  return rest == 0 || (network.address[whole] ^ address[whole]) >> (8 - rest) == 0;
}

// Returns the IP address in the address of a client: what is before the port, without brackets.
std::string_view HostOf(std::string_view address) {
  std::string_view host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host.substr(0, host.find('%'));
}

}  // namespace

bool IsLimitRule(std::string_view rule) {
  return HasPrefix(rule, kMaxClients) || HasPrefix(rule, kCidr) || HasPrefix(rule, kExpires) ||
         EqualsIgnoreCase(rule, kResetCidr);
}

absl::Status ApplyLimitRule(std::string_view rule, UserLimits* limits) {
  VARVE_ASSERT(IsLimitRule(rule));
  if (EqualsIgnoreCase(rule, kResetCidr)) {
    limits->networks.clear();
    return absl::OkStatus();
  }
  const std::string_view value = rule.substr(rule.find('=') + 1);
  if (HasPrefix(rule, kMaxClients)) {
    const std::optional<uint32_t> number = ParseNumber(value, kMostClients);
    if (!number) {
      return absl::InvalidArgumentError(fmt::format(
          "maxclients= takes a number of connections from 0 to {}, 0: any number", kMostClients));
    }
    limits->max_clients = *number;
  } else if (HasPrefix(rule, kExpires)) {
    const std::optional<int64_t> instant = ParseNumber(value, std::numeric_limits<int64_t>::max());
    if (!instant) {
      return absl::InvalidArgumentError(
          "expires= takes an instant in seconds since 1970, 0: never");
    }
    limits->expires = *instant;
  } else {
    const std::optional<Network> network = ParseNetwork(value);
    if (!network) {
      return absl::InvalidArgumentError(
          "cidr= takes a network such as 10.0.0.0/8 or fd00::/8, or an address");
    }
    if (limits->networks.size() >= kMostNetworks)
      return absl::InvalidArgumentError(fmt::format("a user has at most {} cidr=", kMostNetworks));
    if (std::find(limits->networks.begin(), limits->networks.end(), *network) ==
        limits->networks.end()) {
      limits->networks.push_back(*network);
    }
  }
  return absl::OkStatus();
}

std::string DescribeLimits(const UserLimits& limits) {
  std::string text;
  const auto append = [&](std::string_view rule, const auto& value) {
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", rule, value);
  };
  if (limits.max_clients != 0) append(kMaxClients, limits.max_clients);
  for (const Network& network : limits.networks) append(kCidr, network.text);
  if (limits.expires != 0) append(kExpires, limits.expires);
  return text;
}

std::string RefusalByLimits(const UserLimits& limits, std::string_view name,
                            std::string_view address, int64_t now) {
  if (limits.expires != 0 && now >= limits.expires)
    return fmt::format("NOPERM the user '{}' has expired (expires={})", name, limits.expires);
  if (limits.networks.empty()) return "";
  std::array<uint8_t, 16> parsed{};
  bool is_ipv4 = false;
  if (!ParseAddress(address, &parsed, &is_ipv4) &&
      !ParseAddress(HostOf(address), &parsed, &is_ipv4)) {
    ParseAddress(kThisMachine, &parsed, &is_ipv4);
  }
  for (const Network& network : limits.networks) {
    if (Holds(network, parsed)) return "";
  }
  return fmt::format("NOPERM the user '{}' may not work from {} (cidr=)", name, address);
}

bool UserSeat::Take(const UserSeats& seats, uint32_t most) {
  VARVE_ASSERT(seats != nullptr);
  if (seats == seats_) return true;
  uint32_t taken = seats->load(std::memory_order_relaxed);
  do {
    if (most != 0 && taken >= most) return false;
  } while (!seats->compare_exchange_weak(taken, taken + 1, std::memory_order_relaxed));
  Leave();
  seats_ = seats;
  return true;
}

void UserSeat::Leave() {
  if (seats_ == nullptr) return;
  const uint32_t before = seats_->fetch_sub(1, std::memory_order_relaxed);
  VARVE_ASSERT(before > 0);
  seats_.reset();
}

}  // namespace varve
