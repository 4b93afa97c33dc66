// Key tallies are numbers of keys and their bytes by namespace generation: what a segment holds, or
// by how much one layer of the tree changes what the layers below it hold (then they may be
// negative).
//
// Thread-safety: plain values.
// Invariants: entries() ascend by generation, each once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "db/format/value_place.h"
#include "type/record.h"
#include "type/tree_key.h"

namespace varve {

struct KeyTally {
  int64_t keys = 0;
  int64_t bytes = 0;  // user keys and values, newest versions only

  KeyTally& operator+=(const KeyTally& other) {
    keys += other.keys;
    bytes += other.bytes;
    return *this;
  }
  friend bool operator==(const KeyTally&, const KeyTally&) = default;
};

// Returns what a live record adds, and takes away when it dies.
inline KeyTally TallyOf(size_t user_key_size, size_t value_size) {
  return {1, static_cast<int64_t>(user_key_size + value_size)};
}
inline KeyTally TallyOf(const RecordView& record) {
  return TallyOf(UserKeyOf(record.key).size(), ValueSizeOf(record));
}
inline KeyTally operator-(const KeyTally& tally) { return {-tally.keys, -tally.bytes}; }

class KeyTallies {
 public:
  struct Entry {
    NamespaceGeneration generation;
    KeyTally tally;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  // Cheap where generations come in ascending order.
  void Add(NamespaceGeneration generation, const KeyTally& tally) {
    if (entries_.empty() || entries_.back().generation < generation) {
      entries_.push_back({generation, tally});
    } else {
      Find(generation)->tally += tally;
    }
  }
  void Add(const KeyTallies& other) {
    for (const Entry& entry : other.entries_) Add(entry.generation, entry.tally);
  }
  KeyTally Of(NamespaceGeneration generation) const {
    for (const Entry& entry : entries_) {
      if (entry.generation == generation) return entry.tally;
    }
    return {};
  }
  // Returns whether Add() was ever told of the generation.
  bool Knows(NamespaceGeneration generation) const {
    return std::any_of(entries_.begin(), entries_.end(),
                       [&](const Entry& entry) { return entry.generation == generation; });
  }
  // The entries ascend by generation.
  const std::vector<Entry>& entries() const { return entries_; }

  friend bool operator==(const KeyTallies&, const KeyTallies&) = default;

 private:
  // Returns the entry of the generation, which it puts in its place if there was none.
  std::vector<Entry>::iterator Find(NamespaceGeneration generation) {
    if (entries_.back().generation == generation) return std::prev(entries_.end());
    const auto place = std::lower_bound(
        entries_.begin(), entries_.end(), generation,
        [](const Entry& entry, NamespaceGeneration g) { return entry.generation < g; });
    if (place->generation == generation) return place;
    return entries_.insert(place, {generation, {}});
  }

  std::vector<Entry> entries_;
};

// Segments and what they change together (db/counting/key_ledger.h).
struct SettledGroup {
  std::vector<uint64_t> segments;  // numbers, ascending
  KeyTallies change;
};

}  // namespace varve
