// What a store holds, as its user knows it, and whether a store shows just that: namespaces with
// their names and options, and keys with their values and the instants at which they expire. Plain
// values; the checks read a store in all ways there are.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "varve/namespace.h"
#include "varve/options.h"
#include "varve/storage_engine.h"
#include "varve/types.h"

namespace varve::testing {

// Shared between the contents of successive moments. Each write has one of its own, also where the
// bytes are the same.
using Value = std::shared_ptr<const std::string>;

struct Entry {
  Value value;
  uint64_t expiry_ms = kNoExpiry;
  uint64_t moment = 0;  // of the write, in changes of the clock (Known)
  std::string metadata = {};
};

struct SpaceContents {
  NamespaceDescription description;
  std::map<std::string, Entry, std::less<>> keys;
};

struct Contents {
  std::map<NamespaceId, SpaceContents> spaces{{kDefaultNamespace, {}}};
  NamespaceId next_named = kFirstNamedNamespace;
};

// What is known of the keys that expire, besides the contents.
struct Known {
  struct Clock {
    uint64_t moment;
    uint64_t instant_ms;  // or less, from this moment to the next
  };
  std::vector<Clock> clocks;  // of the store
  std::set<Value> gone;       // what somebody has seen expired: never to be seen again

  // The latest that the store's clock may have shown since `moment`.
  uint64_t LatestSince(uint64_t moment) const;
};

// While the store's clock shows `now_ms`. kEither: its time was up before the clock was set back,
// and nobody saw that, but it may have been removed.
enum class Presence : uint8_t { kThere, kGone, kEither };
Presence PresenceOf(const Entry& entry, const Known& known, uint64_t now_ms);

// FailedPrecondition: the store shows something else, and what. Other errors are the store's.
// `*gone` (if not null): the values of `contents` that it didn't show.
absl::Status CheckContents(StorageEngine* store, const Contents& contents, const Known& known,
                           std::vector<Value>* gone = nullptr);

// FailedPrecondition: what the store shows of `version` is not `then`, and what. It may refuse to
// show a namespace whose horizon is above the version.
absl::Status CheckPast(StorageEngine* store, SequenceNumber version, const Contents& then);

// The answer to a Get.
absl::Status CheckAnswer(std::string_view key, const ReadResult& read, std::string_view value,
                         const Entry* entry, const Known& known, uint64_t now_ms);

absl::Status WrongAnswer(const std::string& what);

}  // namespace varve::testing
