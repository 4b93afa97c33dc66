// The order of all writes. Every operation of a batch gets the next number; a record's version is
// its number, and is never zeroed.
#pragma once

#include <cstdint>

namespace varve {

using SequenceNumber = uint64_t;

// "Before the first write": what a fresh store has made visible and durable.
inline constexpr SequenceNumber kNoSequence = 0;

// Larger than any write; a read at this sequence sees everything.
inline constexpr SequenceNumber kMaxSequence = ~SequenceNumber{0};

}  // namespace varve
