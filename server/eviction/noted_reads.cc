#include "server/eviction/noted_reads.h"

#include <algorithm>
#include <limits>

#include "util/base/assert.h"
#include "util/base/hash.h"

namespace varve {

void NotedReads::Start() {
  spare_.resize(kSlots);
  for (Shard& shard : shards_) {
    std::vector<Touch> slots(kSlots);
    const SpinLockHolder holder(&shard.lock);
    shard.slots = std::move(slots);
  }
}

void NotedReads::Add(NamespaceId space, std::string_view key) {
  const uint64_t hash = HashKey(key);
  Shard& shard = shards_[ShardOf(hash)];
  const SpinLockHolder holder(&shard.lock);
  VARVE_ASSERT(shard.slots.size() == kSlots);
  size_t slot = SlotOf(hash);
  for (size_t probe = 0; probe < kMostProbes; ++probe, slot = (slot + 1) % kSlots) {
    Touch& touch = shard.slots[slot];
    if (touch.count == 0) {
      touch = {hash, space, 1};
      ++shard.used;
      return;
    }
    if (touch.hash == hash && touch.space == space) {
      if (touch.count < std::numeric_limits<uint32_t>::max()) ++touch.count;
      return;
    }
  }
  dropped_.fetch_add(1, std::memory_order_relaxed);
}

bool NotedReads::Contains(NamespaceId space, uint64_t hash) const {
  const Shard& shard = shards_[ShardOf(hash)];
  const SpinLockHolder holder(&shard.lock);
  if (shard.used == 0) return false;
  size_t slot = SlotOf(hash);
  for (size_t probe = 0; probe < kMostProbes; ++probe, slot = (slot + 1) % kSlots) {
    const Touch& touch = shard.slots[slot];
    if (touch.count == 0) return false;
    if (touch.hash == hash && touch.space == space) return true;
  }
  return false;
}

std::vector<Touch> NotedReads::Take() {
  std::vector<Touch> taken;
  for (Shard& shard : shards_) {
    {
      const SpinLockHolder holder(&shard.lock);
      if (shard.used == 0) continue;
      shard.slots.swap(spare_);
      shard.used = 0;
    }
    for (Touch& touch : spare_) {
      if (touch.count != 0) taken.push_back(touch);
      touch.count = 0;
    }
  }
  return taken;
}

}  // namespace varve
