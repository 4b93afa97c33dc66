// The expiry index says which keys expire when: records in a stretch of the tree of their own,
// behind all namespaces. So the index is as durable, as large and as old as the records it speaks
// of, and costs no memory of its own.
//
//   tree key = [ kExpiryGeneration: 4 ][ width: 1 ][ due: 8, big-endian ]
//              [ generation: 4 ][ user key ]
//   value    = [ the instant at which the key expires: 8 ]
//
// An entry is made with each record that has an expiry, in the same step, from that record alone:
// the log doesn't hold it. It says that from `due` on the sweep looks whether the key has expired.
// Instants are in milliseconds since the epoch.
//
// Entries are never changed, and only those that were due are removed, so a key whose expiry is
// moved on again and again leaves a trail of them. They are therefore rounded up to a multiple of
// 2^width, where 2^width is at most 1/16 of the time that is left: a key leaves at most some 32 of
// them, however often it is refreshed. (A timing wheel on disk: Varghese and Lauck, 1987.) Readers
// do not see a key that has expired, whether its entry is due or not; the index only frees its
// space.
//
// Thread-safety: stateless functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "type/record.h"
#include "type/tree_key.h"

namespace varve {

// Bytes of a key of the index before the user key.
inline constexpr size_t kExpiryIndexPrefixSize = 1 + 8 + kGenerationSize;
inline constexpr int kExpiryWidths = 64 - 4;  // 0, 1, 2 ...

struct ExpiryIndexEntry {
  int width = 0;
  uint64_t due_ms = 0;
  std::string_view tree_key;  // the key that expires
};

// Returns the entry for a record that expires at `expiry_ms`, made at `now_ms`.
ExpiryIndexEntry ExpiryIndexEntryFor(std::string_view tree_key, uint64_t expiry_ms,
                                     uint64_t now_ms);

// Returns the index's record for `record`. `*bytes` holds its tree key and its value.
// Requires: `record` has an expiry.
RecordView ExpiryIndexRecord(const RecordView& record, uint64_t now_ms, std::string* bytes);
// Returns the same record from the bytes that the function above filled.
RecordView ExpiryIndexRecord(std::string_view bytes, SequenceNumber sequence);
// Returns when the key of an entry with this value expires, by the newest record for which the
// entry was made; kNoExpiry if the value makes no sense.
uint64_t ExpiryInIndex(std::string_view value);

// Encodes the user key, in kExpirySpace, under which the entry stands.
void EncodeExpiryIndexKey(const ExpiryIndexEntry& entry, std::string* key);
// Returns the smallest such key of that width that is due at `due_ms` or later.
std::string ExpiryIndexBound(int width, uint64_t due_ms);
// Decodes `key`, which comes without the generation of the index; the entry points into it. Returns
// nothing if the bytes make no sense.
std::optional<ExpiryIndexEntry> DecodeExpiryIndexKey(std::string_view key);

}  // namespace varve
