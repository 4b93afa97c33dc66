// The limits of a user: how many connections it may have, from which addresses, and until when. The
// rules are "maxclients=3", "cidr=10.0.0.0/8" (several are allowed) and "expires=1790000000";
// "maxclients=0", "resetcidr" and "expires=0" take them away.
//
// Thread-safety: plain values, and functions that change only their arguments. All threads may use
// a UserSeats at once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace varve {

// A network is a range of IP addresses. An address of IPv4 is held as one of IPv6 that stands for
// it.
struct Network {
  std::string text;  // "10.0.0.0/8"
  std::array<uint8_t, 16> address{};
  int prefix = 0;  // leading bits that an address in the network shares with `address`

  bool operator==(const Network&) const = default;
};

struct UserLimits {
  uint32_t max_clients = 0;       // 0: any number
  std::vector<Network> networks;  // none: from everywhere
  int64_t expires = 0;            // in seconds since the epoch; 0: never

  // Returns whether the limits may refuse a request of a user who is logged in.
  bool bind_requests() const { return !networks.empty() || expires != 0; }
  bool operator==(const UserLimits&) const = default;
};

// Returns whether the rule is one about limits.
bool IsLimitRule(std::string_view rule);
// Applies such a rule. InvalidArgument says what it takes.
absl::Status ApplyLimitRule(std::string_view rule, UserLimits* limits);
// Returns the rules that make the limits: "maxclients=3 cidr=10.0.0.0/8"; empty: there are none.
std::string DescribeLimits(const UserLimits& limits);

// Returns why the limits forbid the user of that name to work from `address`, with or without a
// port, at the instant `now`, in seconds since the epoch. Empty: they do not. What is no IP address
// is the path of a Unix socket, which counts as 127.0.0.1.
std::string RefusalByLimits(const UserLimits& limits, std::string_view name,
                            std::string_view address, int64_t now);

// The number of connections that a user has. All versions of the user share it.
using UserSeats = std::shared_ptr<std::atomic<uint32_t>>;

// A seat is what one connection takes of the connections that its user may have.
class UserSeat {
 public:
  UserSeat() = default;
  ~UserSeat() { Leave(); }
  UserSeat(const UserSeat&) = delete;
  UserSeat& operator=(const UserSeat&) = delete;

  // Takes a seat instead of the one before. False: `most` are taken, and the seat stays where it
  // is. A `most` of 0 is no limit.
  [[nodiscard]] bool Take(const UserSeats& seats, uint32_t most);
  void Leave();

 private:
  UserSeats seats_;
};

}  // namespace varve
