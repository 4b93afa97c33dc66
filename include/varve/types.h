// The numbers that every part of the interface speaks of: the order of writes, namespaces, and
// instants of expiry. Plain values.
#pragma once

#include <cstdint>

namespace varve {

// The place of an operation in the order of all writes. Every operation of a batch gets the next
// number; a record's version is its number, and is never zeroed.
using SequenceNumber = uint64_t;

// "Before the first write": what a fresh store has made visible and durable.
inline constexpr SequenceNumber kNoSequence = 0;

// Larger than any write; a read at this sequence sees everything.
inline constexpr SequenceNumber kMaxSequence = ~SequenceNumber{0};

// A namespace as its users name it; stays the same when the namespace is emptied.
using NamespaceId = uint32_t;
inline constexpr NamespaceId kDefaultNamespace = 0;
// In a WriteBatch: the namespace that the batch was told to use. No namespace has this id.
inline constexpr NamespaceId kSelectedNamespace = ~NamespaceId{0};

// Why a key is written, as readers of the change feed are told. A put of kExpiryChange or
// kMetadataChange has the value that is there.
enum class WriteCause : uint8_t {
  kWrite,
  kExpiryChange,
  kMetadataChange,
  kExpired,  // of a delete: the key's time was over
  kEvicted,  // of a delete: room was needed
};

// Instants at which a key expires are in milliseconds since the epoch.
inline constexpr uint64_t kNoExpiry = 0;  // never
// In a WriteBatch: the expiry that is usual in its namespace.
inline constexpr uint64_t kUsualExpiry = ~uint64_t{0};

}  // namespace varve
