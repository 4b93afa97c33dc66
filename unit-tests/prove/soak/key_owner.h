// A client of a soak that alone writes some keys, and so knows what each of them has to be: the
// value that was acknowledged last, or nothing where it was deleted, and also where the server may
// have evicted it or its time is over.
//
// It sends several requests ahead and holds each reply against what the replies before it came to.
// A write that the server refused because the directory is full has changed nothing.
//
// Thread-safety: one thread at a time uses an object.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "client/client.h"
#include "unit-tests/prove/soak/findings.h"
#include "unit-tests/prove/soak/owned_values.h"

namespace varve::prove {

// What becomes of a key that nobody deletes: it stays, it may be evicted, or it expires.
enum class Fate : uint8_t { kStays, kMayGo, kExpires };

struct OwnerOptions {
  int id = 0;         // no other owner has it
  std::string place;  // a namespace, or the number of a database
  Fate fate = Fate::kStays;
  Filler filler = Filler::kJson;
  size_t keys = 1000;
  size_t depth = 8;  // requests that it sends ahead, at most
  uint64_t seed = 1;
};

// Returns the options of a client that works in a namespace or database and whose connection is
// never made again.
ClientOptions ClientOf(uint16_t port, const std::string& place);

class KeyOwner {
 public:
  // Requires: `findings` outlives the owner.
  KeyOwner(OwnerOptions options, Findings* findings);

  // Calls the server until `ended`. An answer that must not be is a finding, and ends the run.
  void Run(uint16_t port, const absl::Notification& ended);
  // Reads all keys, by a scan and one by one. Requires: nothing is under way.
  absl::Status Check(uint16_t port);

  const OwnerOptions& options() const { return options_; }
  uint64_t requests() const { return requests_; }
  // Values whose writes were acknowledged.
  uint64_t sets() const { return sets_; }
  uint64_t deletes() const { return deletes_; }    // of keys that were there
  uint64_t vanished() const { return vanished_; }  // keys found to be evicted

 private:
  using Clock = std::chrono::system_clock;  // expiries are moments of the machine's clock

  // A key as the replies so far have it.
  struct State {
    uint64_t number = 0;  // of its value; 0: it is not there
    // Where it expires, until when it must be there, and from when on it must not.
    Clock::time_point stays_until{}, gone_from{};
  };
  enum class Kind : uint8_t { kSet, kSetMany, kGet, kDelete };
  struct Call {
    Kind kind = Kind::kGet;
    std::vector<size_t> keys;
    uint64_t first_number = 0;  // of the first key's new value; the others' follow
  };

  size_t DrawKey();
  absl::Status Round(Client* client);
  absl::Status SendOne(Client* client);
  // Holds the reply to a call against what it has to be. `sent`: when the calls left at the
  // earliest.
  absl::Status Take(const Call& call, const Reply& reply, Clock::time_point sent);
  absl::Status TakeSet(const Call& call, const Reply& reply, Clock::time_point sent);
  absl::Status TakeGet(size_t key, const Reply& reply, Clock::time_point sent);
  absl::Status TakeDelete(size_t key, const Reply& reply, Clock::time_point sent);
  // Returns whether the key may be missing, or may be there, for what was asked between the two
  // moments.
  bool MayBeMissing(const State& state, Clock::time_point answered) const;
  bool MayBeThere(const State& state, Clock::time_point sent) const;
  absl::Status Wrong(size_t key, const std::string& what) const;

  const OwnerOptions options_;
  Findings& findings_;
  std::mt19937_64 random_;
  std::vector<State> states_;  // by key
  std::deque<Call> under_way_;
  uint64_t last_number_ = 0;
  std::atomic<uint64_t> requests_{0};
  uint64_t sets_ = 0;
  uint64_t deletes_ = 0;
  uint64_t vanished_ = 0;
};

}  // namespace varve::prove
