// The expiry index says at what time which keys expire. Its entries are records in a stretch of the
// tree of their own, behind all namespaces. So they are as durable as the records that they speak
// of, and the index takes no memory of its own.
//
//   tree key = [ kExpiryGeneration: 4 ][ width: 1 ][ due: 8, big-endian ]
//              [ generation: 4 ][ user key ]
//   value    = [ the instant at which the key expires: 8 ]
//
// A writer that adds a record with an expiry adds the entry in the same step. The entry follows
// from the record alone, so the log does not hold it. From the instant `due` on the expiry sweeper
// looks whether the key has expired. Instants are in milliseconds since the epoch.
//
// Nobody changes an entry, and the sweeper removes only entries that were due. So a key whose
// expiry clients move on again and again leaves many entries behind. To keep them few, the writer
// rounds `due` up to a multiple of 2^width, where 2^width is at most 1/16 of the time that is left:
// a key leaves at most some 32 entries, however often clients refresh it. (This is a timing wheel
// on disk: Varghese and Lauck, 1987.) Readers do not see a key that has expired, whether its entry
// is due or not; the index only frees its space.
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
// Returns the instant in the value of an entry, at which the newest record with this entry expires;
// kNoExpiry if the value makes no sense.
uint64_t ExpiryInIndex(std::string_view value);

// Encodes the user key, in kExpirySpace, under which the entry stands.
void EncodeExpiryIndexKey(const ExpiryIndexEntry& entry, std::string* key);
// Returns the smallest such key of that width that is due at `due_ms` or later.
std::string ExpiryIndexBound(int width, uint64_t due_ms);
// Decodes `key`, which comes without the generation of the index; the entry points into it. Returns
// nothing if the bytes make no sense.
std::optional<ExpiryIndexEntry> DecodeExpiryIndexKey(std::string_view key);

}  // namespace varve
