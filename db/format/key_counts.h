// Key counts are numbers of keys, their bytes and their expiries by namespace generation: what a
// segment holds, or by how much one layer of the tree changes what the layers below it hold (then
// they may be negative).
//
// Thread-safety: plain values.
// Invariants: entries() ascend by generation, each once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/numeric/int128.h"
#include "db/format/value_handle.h"
#include "type/record.h"
#include "type/tree_key.h"
#include "varve/iterator.h"
#include "varve/read_result.h"

namespace varve {

struct KeyCounts {
  int64_t keys = 0;
  int64_t bytes = 0;           // user keys, values and metadata, newest versions only
  int64_t expiring = 0;        // those of the keys that expire
  absl::int128 expiry_ms = 0;  // the sum of the instants at which they expire

  KeyCounts& operator+=(const KeyCounts& other) {
    keys += other.keys;
    bytes += other.bytes;
    expiring += other.expiring;
    expiry_ms += other.expiry_ms;
    return *this;
  }
  friend bool operator==(const KeyCounts&, const KeyCounts&) = default;
};

// Returns what a live record adds, and takes away when it dies. An `expiry_ms` of kNoExpiry: never.
inline KeyCounts CountsOf(size_t user_key_size, size_t value_size, size_t metadata_size,
                          uint64_t expiry_ms) {
  return {1, static_cast<int64_t>(user_key_size + value_size + metadata_size),
          expiry_ms == kNoExpiry ? 0 : 1, expiry_ms};
}
inline KeyCounts CountsOf(const RecordView& record) {
  return CountsOf(UserKeyOf(record.key).size(), ValueSizeOf(record), record.metadata.size(),
                  record.expiry_ms);
}
inline KeyCounts CountsOf(const Iterator& entry) {
  return CountsOf(entry.key().size(), entry.value_size(), entry.metadata().size(),
                  entry.expiry_ms());
}
inline KeyCounts operator-(const KeyCounts& counts) {
  return {-counts.keys, -counts.bytes, -counts.expiring, -counts.expiry_ms};
}

// Returns the mean of the instants at which the keys that expire do so.
inline uint64_t MeanExpiry(const KeyCounts& counts) {
  if (counts.expiring <= 0 || counts.expiry_ms < 0) return kNoExpiry;
  return static_cast<uint64_t>(counts.expiry_ms / counts.expiring);
}

// Returns the counts as the answer to a count. Fewer than none, which a store of an old version can
// have of keys that expire, are none.
inline CountResult ResultOf(const KeyCounts& counts, SequenceNumber durable_after) {
  return {.keys = static_cast<uint64_t>(counts.keys),
          .bytes = static_cast<uint64_t>(counts.bytes),
          .durable_after = durable_after,
          .expiring = static_cast<uint64_t>(std::max<int64_t>(counts.expiring, 0)),
          .mean_expiry_ms = MeanExpiry(counts)};
}

// Returns about `scale` times the counts.
inline KeyCounts Scaled(const KeyCounts& counts, double scale) {
  const auto scaled = [scale](int64_t count) {
    return static_cast<int64_t>(static_cast<double>(count) * scale);
  };
  const int64_t expiring = scaled(counts.expiring);
  // The sum follows from the number, so that the mean stays.
  return {scaled(counts.keys), scaled(counts.bytes), expiring,
          absl::int128(MeanExpiry(counts)) * expiring};
}

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
    const auto place = std::lower_bound(entries_.begin(), entries_.end(), generation, IsBefore);
    return place != entries_.end() && place->generation == generation ? place->counts : KeyCounts();
  }
  // Returns whether Add() was ever told of the generation.
  bool Knows(NamespaceGeneration generation) const {
    const auto place = std::lower_bound(entries_.begin(), entries_.end(), generation, IsBefore);
    return place != entries_.end() && place->generation == generation;
  }
  // The entries ascend by generation.
  const std::vector<Entry>& entries() const { return entries_; }

  friend bool operator==(const GenerationKeyCounts&, const GenerationKeyCounts&) = default;

 private:
  static bool IsBefore(const Entry& entry, NamespaceGeneration generation) {
    return entry.generation < generation;
  }

  // Returns the entry of the generation, which it puts in its place if there was none.
  std::vector<Entry>::iterator Find(NamespaceGeneration generation) {
    if (entries_.back().generation == generation) return std::prev(entries_.end());
    const auto place = std::lower_bound(entries_.begin(), entries_.end(), generation, IsBefore);
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
