// The hash of a user key, computed once per request and passed down to every structure that probes
// with it: the write buffer's index, the offset tables' fingerprints, the caches' shards and the
// striped locks.
//
// XXH3 in its 64-bit form, header-only so that short keys are hashed inline (about 4 ns for 25
// bytes). The hash decides where a key lies in the offset tables on disk: it is part of the file
// format and never changes. It is not keyed; a client that crafts colliding keys slows its own
// probes down and is never given a wrong answer, as keys are compared. Thread-safety: a pure
// function.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace varve {

inline uint64_t HashKey(std::string_view key) { return XXH3_64bits(key.data(), key.size()); }

}  // namespace varve
