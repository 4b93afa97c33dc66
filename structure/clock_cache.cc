#include "structure/clock_cache.h"

#include <algorithm>
#include <bit>
#include <new>

#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/prefetch.h"

namespace varve {
namespace {

constexpr size_t kMaxShards = 64;
constexpr size_t kMinShardCapacity = size_t{1} << 20;
constexpr size_t kFirstSlots = 16;
// Bytes; the processor's own prefetcher goes on from there.
constexpr size_t kMostPrefetched = 512;

}  // namespace

ClockCache::Table::Table(size_t slots)
    : memory_(slots * sizeof(Slot)),
      slots_(reinterpret_cast<Slot*>(memory_.data())),
      mask_(slots - 1) {
  std::uninitialized_default_construct_n(slots_, slots);
}

ClockCache::ClockCache(size_t capacity)
    : capacity_(capacity),
      shard_count_(std::clamp(std::bit_floor(capacity / kMinShardCapacity), size_t{1}, kMaxShards)),
      shard_capacity_(capacity / shard_count_),
      shards_(std::make_unique<Shard[]>(shard_count_)) {}

ClockCache::~ClockCache() {
  for (size_t i = 0; i < shard_count_; ++i) {
    Shard& shard = shards_[i];
    SpinLockHolder lock(&shard.lock);
    for (Entry* entry : shard.ring) Handle{entry}.Release();
  }
}

ClockCache::Handle ClockCache::New(size_t size, uint16_t notes_size) const {
  auto* entry = new (::operator new(sizeof(Entry) + size + notes_size)) Entry;
  entry->size = size;
  entry->notes_size = notes_size;
  return Handle(entry);
}

void ClockCache::Free(Entry* entry) {
  VARVE_ASSERT(entry->references.load(std::memory_order_relaxed) == 0);
  entry->~Entry();
  ::operator delete(entry);
}

uint64_t ClockCache::Mix(uint64_t first, uint64_t second) {
  uint64_t hash = (first * 0x9e3779b97f4a7c15u ^ second) * 0xd6e8feb86659fd93u;
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93u;
  return hash ^ hash >> 32;
}

ClockCache::Match ClockCache::NextMatch(const Table& table, uint64_t hash, size_t* i) {
  while (true) {
    const Slot& slot = table[(*i)++];
    Entry* const entry = slot.entry.load(std::memory_order_relaxed);
    if (entry == nullptr) return {};
    if (slot.hash.load(std::memory_order_relaxed) != static_cast<uint32_t>(hash)) continue;
    return {entry, slot.base.load(std::memory_order_relaxed)};
  }
}

const char* ClockCache::PrefetchBytes(const Match& match, uint64_t position, size_t size) {
  const char* const wanted = match.entry->bytes() + (static_cast<uint32_t>(position) - match.base);
  PrefetchLines(wanted, 0, std::clamp<size_t>(size, 128, kMostPrefetched));
  return wanted;
}

ClockCache::Entry* ClockCache::Find(const Shard& shard, uint64_t hash, uint64_t first,
                                    uint64_t second, uint64_t position, size_t size) {
  const Table* const table = TableOf(shard);
  if (table == nullptr) return nullptr;
  size_t i = hash;
  while (true) {
    const Match match = NextMatch(*table, hash, &i);
    if (match.entry == nullptr) return nullptr;
    PrefetchBytes(match, position, size);
    if (match.entry->first == first && match.entry->second == second) return match.entry;
  }
}

void ClockCache::PrefetchSlot(uint64_t first, uint64_t second) const {
  const uint64_t hash = Mix(first, second);
  const Table* const table = TableOf(ShardOf(hash));
  if (table != nullptr) PrefetchLine(&(*table)[hash]);
}

const char* ClockCache::PrefetchEntry(uint64_t first, uint64_t second, uint64_t position) const {
  const uint64_t hash = Mix(first, second);
  const Table* const table = TableOf(ShardOf(hash));
  if (table == nullptr) return nullptr;
  size_t i = hash;
  const Match match = NextMatch(*table, hash, &i);
  if (match.entry == nullptr) return nullptr;
  PrefetchLine(match.entry);
  return PrefetchBytes(match, position, 0);
}

ClockCache::Handle ClockCache::Lookup(uint64_t first, uint64_t second, uint64_t position,
                                      size_t size) {
  const uint64_t hash = Mix(first, second);
  Shard& shard = ShardOf(hash);
  SpinLockHolder lock(&shard.lock);
  Entry* entry = Find(shard, hash, first, second, position, size);
  if (entry == nullptr) return {};
  entry->references.fetch_add(1, std::memory_order_relaxed);
  if (!entry->recently_used.load(std::memory_order_relaxed)) {
    entry->recently_used.store(true, std::memory_order_relaxed);
  }
  return Handle(entry);
}

ClockCache::Handle ClockCache::Insert(uint64_t first, uint64_t second, Handle buffer) {
  VARVE_ASSERT(buffer && buffer.entry_->references.load(std::memory_order_relaxed) == 1);
  const size_t charge = ChargeOf(*buffer.entry_);
  if (charge > shard_capacity_) return buffer;
  const uint64_t hash = Mix(first, second);
  Shard& shard = ShardOf(hash);
  std::vector<Handle> victims;  // freed after the lock
  SpinLockHolder lock(&shard.lock);
  if (Entry* other = Find(shard, hash, first, second, 0, 0); other != nullptr) {
    other->references.fetch_add(1, std::memory_order_relaxed);
    victims.push_back(std::move(buffer));
    return Handle(other);
  }
  if (!MakeRoom(shard, charge, &victims)) return buffer;
  if (shard.tables.empty() || (shard.ring.size() + 1) * 2 > shard.tables.back()->size())
    Grow(shard);
  ReserveMore(&shard.ring, 1);  // from here on nothing needs memory
  Entry* entry = buffer.entry_;
  entry->first = first;
  entry->second = second;
  entry->hash = hash;
  entry->references.fetch_add(1, std::memory_order_relaxed);
  Link(*shard.tables.back(), entry);
  entry->ring_position = static_cast<uint32_t>(shard.ring.size());
  shard.ring.push_back(entry);
  shard.usage.fetch_add(charge, std::memory_order_relaxed);
  VARVE_ASSERT(shard.usage.load(std::memory_order_relaxed) <= shard_capacity_);
  VARVE_ASSERT(shard.ring.size() * 2 <= shard.tables.back()->size());
  return buffer;
}

void ClockCache::Evict(Shard& shard, Entry* entry, std::vector<Handle>* victims) {
  // Only the cache holds it, and no other thread can reach it without the lock.
  if (entry->references.load(std::memory_order_acquire) > 1) return;
  victims->emplace_back();
  Unlink(shard, entry);
  victims->back() = Handle(entry);
}

bool ClockCache::MakeRoom(Shard& shard, size_t charge, std::vector<Handle>* victims) {
  // Two rounds: the first may only clear bits. What is still held after that is in use.
  for (size_t steps = 2 * shard.ring.size();
       shard.usage.load(std::memory_order_relaxed) + charge > shard_capacity_; --steps) {
    if (steps == 0) return false;
    if (shard.hand >= shard.ring.size()) shard.hand = 0;
    Entry* entry = shard.ring[shard.hand];
    if (entry->recently_used.load(std::memory_order_relaxed)) {
      entry->recently_used.store(false, std::memory_order_relaxed);
    } else {
      Evict(shard, entry, victims);  // the newest entry takes its place, behind the hand
    }
    ++shard.hand;
  }
  return true;
}

void ClockCache::Link(const Table& table, Entry* entry) {
  VARVE_ASSERT(entry != nullptr);
  size_t i = entry->hash;
  while (table[i].entry.load(std::memory_order_relaxed) != nullptr) ++i;
  table[i].Set(static_cast<uint32_t>(entry->hash), static_cast<uint32_t>(entry->base), entry);
}

void ClockCache::Unlink(Shard& shard, Entry* entry) {
  const Table& table = *shard.tables.back();
  const size_t mask = table.size() - 1;
  size_t hole = entry->hash;
  while (table[hole].entry.load(std::memory_order_relaxed) != entry) ++hole;
  // Close the hole: what follows moves up if its probe sequence passes the hole.
  for (size_t i = hole + 1; table[i].entry.load(std::memory_order_relaxed) != nullptr; ++i) {
    const size_t home = table[i].hash.load(std::memory_order_relaxed);
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    table[hole].Set(table[i]);
    hole = i;
  }
  table[hole].Set(0, 0, nullptr);
  VARVE_ASSERT(shard.ring[entry->ring_position] == entry);
  VARVE_ASSERT(shard.usage.load(std::memory_order_relaxed) >= ChargeOf(*entry));
  Entry* last = shard.ring.back();
  shard.ring[entry->ring_position] = last;
  last->ring_position = entry->ring_position;
  shard.ring.pop_back();
  shard.usage.fetch_sub(ChargeOf(*entry), std::memory_order_relaxed);
}

void ClockCache::Grow(Shard& shard) {
  ReserveMore(&shard.tables, 1);
  Table* const old = shard.tables.empty() ? nullptr : shard.tables.back().get();
  shard.tables.push_back(std::make_unique<Table>(old == nullptr ? kFirstSlots : 2 * old->size()));
  const Table* const table = shard.tables.back().get();
  for (Entry* entry : shard.ring) Link(*table, entry);
  shard.table.store(table, std::memory_order_release);
  VARVE_ASSERT((shard.ring.size() + 1) * 2 <= table->size());
  if (old != nullptr) old->Empty();
}

size_t ClockCache::usage() const {
  size_t sum = 0;
  for (size_t i = 0; i < shard_count_; ++i) sum += shards_[i].usage.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace varve
