#include "server/eviction/noted_reads.h"

#include <algorithm>

#include "util/base/assert.h"
#include "util/base/hash.h"
#include "util/base/memory_guard.h"

namespace varve {

void NotedReads::Start() {
  spare_.resize(kSlots);
  for (Shard& shard : shards_) {
    std::vector<Touch> slots(kSlots);
    const SpinLockHolder holder(&shard.lock);
    shard.slots = std::move(slots);
  }
}

void NotedReads::SetAges(const Ages& ages) {
  for (size_t minutes = 0; minutes < kAges; ++minutes)
    ages_[minutes].store(ages[minutes], std::memory_order_relaxed);
}

uint8_t NotedReads::UsesOf(SequenceNumber version) const {
  size_t minutes = 0;
  while (minutes < kAges && version != kNoSequence &&
         version <= ages_[minutes].load(std::memory_order_relaxed))
    ++minutes;
  return static_cast<uint8_t>(kAges - minutes);
}

void NotedReads::Add(NamespaceId space, std::string_view key, SequenceNumber version) {
  const uint64_t hash = HashKey(key);
  const uint8_t uses = UsesOf(version);
  Shard& shard = shards_[ShardOf(hash)];
  const SpinLockHolder holder(&shard.lock);
  VARVE_ASSERT(shard.slots.size() == kSlots);
  size_t slot = SlotOf(hash);
  for (size_t probe = 0; probe < kMostProbes; ++probe, slot = (slot + 1) % kSlots) {
    Touch& touch = shard.slots[slot];
    if (touch.count == 0) {
      touch = {hash, space, 1, uses};
      ++shard.used;
      return;
    }
    if (touch.hash == hash && touch.space == space) {
      if (touch.count < Touch::kMostCount) ++touch.count;
      touch.least_uses = std::max(touch.least_uses, uses);
      return;
    }
  }
  dropped_.fetch_add(1, std::memory_order_relaxed);
}

Touch NotedReads::Find(NamespaceId space, uint64_t hash) const {
  const Shard& shard = shards_[ShardOf(hash)];
  const SpinLockHolder holder(&shard.lock);
  if (shard.used == 0) return {};
  size_t slot = SlotOf(hash);
  for (size_t probe = 0; probe < kMostProbes; ++probe, slot = (slot + 1) % kSlots) {
    const Touch& touch = shard.slots[slot];
    if (touch.count == 0 || (touch.hash == hash && touch.space == space)) return touch;
  }
  return {};
}

size_t NotedReads::TakeShard(Shard* shard, size_t room) {
  const SpinLockHolder holder(&shard->lock);
  const size_t used = shard->used;
  if (used == 0 || used > room) return used;
  shard->slots.swap(spare_);
  shard->used = 0;
  return used;
}

std::vector<Touch> NotedReads::Take() {
  std::vector<Touch> taken;
  for (Shard& shard : shards_) {
    size_t used = 0;
    // The table may have filled further by the time that there is room.
    for (size_t room = 0; (used = TakeShard(&shard, room)) > room;
         room = taken.capacity() - taken.size()) {
      if (!TryWithMemory([&] { ReserveMore(&taken, used); })) return taken;
    }
    if (used == 0) continue;
    for (Touch& touch : spare_) {
      if (touch.count != 0) taken.push_back(touch);
      touch.count = 0;
    }
  }
  return taken;
}

}  // namespace varve
