// Key counts are numbers of keys and their bytes by namespace generation: what a segment holds, or
// by how much one layer of the tree changes what the layers below it hold (then they may be
// negative).
//
// Thread-safety: plain values.
// Invariants: entries() ascend by generation, each once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "db/format/value_handle.h"
#include "type/record.h"
#include "type/tree_key.h"

namespace varve {

struct KeyCounts {
  int64_t keys = 0;
  int64_t bytes = 0;  // user keys and values, newest versions only

  KeyCounts& operator+=(const KeyCounts& other) {
    keys += other.keys;
    bytes += other.bytes;
    return *this;
  }
  friend bool operator==(const KeyCounts&, const KeyCounts&) = default;
};

// Returns what a live record adds, and takes away when it dies.
inline KeyCounts CountsOf(size_t user_key_size, size_t value_size) {
  return {1, static_cast<int64_t>(user_key_size + value_size)};
}
inline KeyCounts CountsOf(const RecordView& record) {
  return CountsOf(UserKeyOf(record.key).size(), ValueSizeOf(record));
}
inline KeyCounts operator-(const KeyCounts& counts) { return {-counts.keys, -counts.bytes}; }

class GenerationKeyCounts {
 public:
  struct Entry {
    NamespaceGeneration generation;
    KeyCounts counts;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  // Adds `counts` to those of the generation. This is cheap where generations come in ascending
  // order.
  void Add(NamespaceGeneration generation, const KeyCounts& counts) {
    if (entries_.empty() || entries_.back().generation < generation) {
      entries_.push_back({generation, counts});
    } else {
      Find(generation)->counts += counts;
    }
  }
  void Add(const GenerationKeyCounts& other) {
    for (const Entry& entry : other.entries_) Add(entry.generation, entry.counts);
  }
  KeyCounts Of(NamespaceGeneration generation) const {
    for (const Entry& entry : entries_) {
      if (entry.generation == generation) return entry.counts;
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

  friend bool operator==(const GenerationKeyCounts&, const GenerationKeyCounts&) = default;

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

// A counted group is a group of segments with what all of them together change
// (db/counting/segment_key_counts.h).
struct CountedGroup {
  std::vector<uint64_t> segments;  // numbers, ascending
  GenerationKeyCounts change;
};

}  // namespace varve
