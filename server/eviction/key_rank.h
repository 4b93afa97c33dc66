// The rank of a key says when it is its turn to be evicted: the key with the lowest rank goes
// first. A rank follows from the record of the key, which the store has, and from its last access,
// which the access index has. Until the key is read or written again it stays the same, so an order
// by ranks has to be mended only where something happened. A rank of kRandom never changes, one of
// kTtl falls when its key is given less time, and all others only grow:
//
//   kLru     the instant of the last read or write
//   kLfu     the instant at which the count of uses will have decayed to 0. A count grows by reads,
//            with a probability that falls as the count rises, and falls by one a minute, as in
//            Redis; two counts decay alike, so their order stays. A write gives a key at least the
//            count of a new one, as the key may have been deleted before
//   kTtl     the instant of the expiry; keys that never expire come last
//   kRandom  the hash of the key; the evictor begins anywhere in this order
//
// Thread-safety: the functions are stateless but for VersionTimes, of which one thread at a time
// uses an object.
#pragma once

#include <cstdint>

#include "server/eviction/access_index.h"
#include "varve/store.h"

namespace varve {

// Uses, as Redis counts them (LFU_INIT_VAL, lfu-log-factor, lfu-decay-time).
inline constexpr uint8_t kUsesOfNewKey = 5;
inline constexpr uint64_t kMillisPerUse = 60'000;

// The version of a record, and when it expires, tell all that ranks need of it.
struct RankedKey {
  uint64_t written_ms = 0;
  uint64_t expiry_ms = 0;
  uint64_t hash = 0;
  KeyAccess access;
};

uint64_t RankOf(EvictionOrder order, const RankedKey& key);
// Returns how much of the count of uses is left at `now_ms`.
uint8_t UsesAt(const RankedKey& key, uint64_t now_ms);
// Returns when the key was last read or written.
inline uint64_t LastUseOf(const RankedKey& key) {
  return key.access.at_ms > key.written_ms ? key.access.at_ms : key.written_ms;
}
// Reads of a key, which had at least so many uses before them.
struct KeyReads {
  uint32_t count = 0;
  uint8_t least_uses = 0;
};
// Returns the access after more reads at `now_ms`. `random` is a source of random numbers that each
// call changes.
KeyAccess AfterReads(const KeyAccess& before, KeyReads reads, uint64_t now_ms, uint64_t* random);

// Tells when versions were written, between the marks of the store's time map by interpolation. It
// is right to a second for writes of the last hour. Of older ones the map keeps one mark a minute,
// and they are told up to a minute too early (StoreHistory::InstantOf()).
class VersionTimes {
 public:
  // Requires: the store outlives it.
  explicit VersionTimes(const Store& store) : store_(store) {}

  // Returns the instant in milliseconds since the epoch; 0: it is not known, so it is long ago.
  uint64_t MillisOf(SequenceNumber version);

 private:
  const Store& store_;
  // Versions in [first_, end_) were written between the instants.
  SequenceNumber first_ = kNoSequence;
  SequenceNumber end_ = kNoSequence;
  uint64_t from_ms_ = 0;
  uint64_t until_ms_ = 0;
};

}  // namespace varve
