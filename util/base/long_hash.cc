#include "util/base/long_hash.h"

#include <xxhash.h>

namespace varve {

uint64_t LongHash(std::string_view bytes, uint64_t seed) {
#ifdef __x86_64__
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return LongHashByAvx2(bytes.data(), bytes.size(), seed);
#endif
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace varve
