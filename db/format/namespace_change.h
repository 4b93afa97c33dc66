// A namespace change is an operation of the log (RecordKind::kChangeNamespace) that creates,
// alters, drops, swaps or clones a namespace. Segments hold no such record.
//
//   key:   the namespace's id (4 bytes, big-endian)
//   value: 1  verb, then
//          create  4  generation (big-endian), description
//          alter      description
//          drop       nothing
//          swap    4  id of the other namespace (big-endian)
//          clone   4  generation (big-endian), 4  id of the source (big-endian), description;
//                     the operation's sequence is the fork point (db/format/namespace_forks.h)
//          clone of the past
//                  4  generation (big-endian), 4  id of the source (big-endian), fork point
//                     (varint64), instant by which keys had expired (varint64), 4  generation of
//                     the source then (big-endian), forks of that generation and of its ancestors:
//                     count (varint32), and of each, ascending: generation, parent (varint32 each),
//                     fork point, instant (varint64 each); description
//
//   description: string name (varint32 size, bytes)
//                bytes at most, keys at most, default expiry in ms (varint64 each)
//                1 byte sync (0: the store's; else 1 + Durability); 0x80: limits of the history
//                follow, 0x40: an eviction rule follows, 0x20: the compression follows, 0x10: the
//                grouping of keys follows
//                value separation size (varint64)
//                limits of the history: time in ms, bytes (varint64 each)
//                compression: 1 byte method, 1 byte level (varve/compression.h)
//                eviction rule: 1 byte EvictionOrder, with 0x80 if only keys that expire go
//                grouping: 1 byte KeyGrouping::Kind, 1 byte delimiter (0 where there is none)
//
// Thread-safety: stateless functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/format/namespace_forks.h"
#include "type/record.h"
#include "type/tree_key.h"
#include "util/base/coding.h"
#include "varve/namespace.h"
#include "varve/types.h"

namespace varve {

// The record of a clone of the past has this beside what the record of another clone has.
struct ClonedPast {
  SequenceNumber version = kNoSequence;  // the fork point
  uint64_t expired_by_ms = 0;            // NamespaceFork has it
  NamespaceGeneration parent = kNoGeneration;
  std::vector<NamespaceFork> ancestry;  // of the parent, ascending by generation
};

struct NamespaceChange {
  // These numbers are on disk and never change. 6 is that of a kClone of the past.
  enum class Verb : uint8_t { kCreate = 1, kAlter = 2, kDrop = 3, kSwap = 4, kClone = 5 };

  Verb verb = Verb::kCreate;
  NamespaceDescription space;               // its id; kCreate, kAlter and kClone: all of it
  NamespaceGeneration generation = 0;       // kCreate and kClone
  NamespaceId other = 0;                    // kSwap; kClone: the source
  SequenceNumber fork_point = kNoSequence;  // kClone: not in the value
  std::optional<ClonedPast> past;           // kClone: as of an older version
};

// Offset of the generation in the value of a kCreate or a kClone.
inline constexpr size_t kGenerationInChange = 1;

// Returns the operation's value.
std::string EncodeNamespaceChange(const NamespaceChange& change);
// Returns nothing if the operation makes no sense.
std::optional<NamespaceChange> DecodeNamespaceChange(const RecordView& record);

// Encode and decode a compression, and the description without the id. Decoding returns false if
// the bytes make no sense.
void PutCompression(const Compression& compression, std::string* bytes);
bool ReadCompression(ByteReader* reader, Compression* compression);
void EncodeDescription(const NamespaceDescription& space, std::string* bytes);
bool DecodeDescription(ByteReader* reader, NamespaceDescription* space);

}  // namespace varve
