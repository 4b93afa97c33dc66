// The history of a key: what the writes that a store still keeps did to it, and the values that its
// deletion left behind (StoreHistory::HistoryOf, StoreHistory::FindRemoved).
//
// Thread-safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "varve/changes.h"
#include "varve/types.h"

namespace varve {

// One change of what readers of the key see. A write that changes nothing for them, such as the
// deletion of a missing key, is none.
struct KeyEvent {
  ChangeOperation::Kind kind = ChangeOperation::Kind::kSet;
  // The version of the write; of a key that expired and was not removed yet, the newest one then.
  SequenceNumber version = kNoSequence;
  // When, as StoreHistory::InstantOf() tells; of kExpired the instant of the expiry. 0: not known.
  uint64_t instant_ms = 0;
  bool has_value = false;  // the key is there from then on
  uint64_t value_size = 0;
  uint64_t expiry_ms = kNoExpiry;
};

// The state of a key says what became of it.
enum class KeyState : uint8_t {
  kFound,
  kDeleted,
  kExpired,
  kNeverThere,
  kBelowHorizon,  // it is missing, and whether it ever was there is not kept any more
};

struct KeyHistory {
  // Newest first, down to the oldest version that can be read; what the key had then is the last
  // one, with the version of its own write.
  std::vector<KeyEvent> events;
  bool more = false;  // there are older ones than were asked for
  KeyState state = KeyState::kNeverThere;
  SequenceNumber durable_after = kNoSequence;  // as in ReadResult
};

// A key that is missing, with the newest value that it had before.
struct RemovedKey {
  std::string key;
  std::string value;
  std::string metadata;
  uint64_t expiry_ms = kNoExpiry;
  SequenceNumber version = kNoSequence;  // of that value
};

struct RemovedKeys {
  std::vector<RemovedKey> keys;  // ascending
  // The point of the store's order of writes at which they were missing
  // (WriteBatch::RequireNotPut).
  SequenceNumber read_sequence = kNoSequence;
  SequenceNumber durable_after = kNoSequence;  // as in ReadResult
};

// A request says what FindRemoved() looks for.
struct RemovedKeysRequest {
  NamespaceId space = kDefaultNamespace;
  std::string lower;          // keys in [lower, upper)
  std::string upper;          // empty: no end
  bool also_present = false;  // also keys that are there, with the value that they have
  size_t most_keys = SIZE_MAX;
  size_t most_bytes = SIZE_MAX;  // of keys, values and metadata together
};

}  // namespace varve
