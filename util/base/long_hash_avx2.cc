// The build compiles this file alone for AVX2. It calls no inline function that another file may
// call, too, as the linker keeps one of them for all; those of xxhash.h are static.
#include <xxhash.h>

#include "util/base/long_hash.h"

#ifdef __x86_64__

#ifndef __AVX2__
#error "this file is compiled for AVX2"
#endif

namespace varve {

uint64_t LongHashByAvx2(const char* bytes, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

}  // namespace varve

#endif
