// Creating, altering, dropping and swapping namespaces: one operation each in the log (RecordKind::kChangeNamespace), none in segments.
//
//   key:   the namespace's id (4 bytes, big-endian)
//   value: 1  verb, then
//          create  4  generation (big-endian), description
//          alter      description
//          drop       nothing
//          swap    4  id of the other namespace (big-endian)
//
//   description: string name (varint32 size, bytes), bytes at most, keys at most, default expiry in ms (varint64 each),
//                1 byte sync (0: the store's; else 1 + Durability), value separation size (varint64)
//
// Stateless functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "type/namespace.h"
#include "type/record.h"
#include "util/coding.h"

namespace varve {

struct NamespaceChange {
  enum class Verb : uint8_t { kCreate = 1, kAlter = 2, kDrop = 3, kSwap = 4 };  // on disk: never renumber

  Verb verb = Verb::kCreate;
  NamespaceDescription space;          // its id; kCreate and kAlter: all of it
  NamespaceGeneration generation = 0;  // kCreate
  NamespaceId other = 0;               // kSwap
};

// Where the generation stands in the value of a kCreate.
inline constexpr size_t kGenerationInChange = 1;

// The operation's value.
std::string EncodeNamespaceChange(const NamespaceChange& change);
// Nothing: it makes no sense.
std::optional<NamespaceChange> DecodeNamespaceChange(const RecordView& record);

// The description without the id.
void EncodeDescription(const NamespaceDescription& space, std::string* bytes);
bool DecodeDescription(ByteReader* reader, NamespaceDescription* space);

}  // namespace varve
