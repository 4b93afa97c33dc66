#include "util/redis_format/lzf.h"

#include <cstdint>

namespace varve {

bool DecompressLzf(std::string_view compressed, size_t size, std::string* out) {
  out->clear();
  const auto* in = reinterpret_cast<const unsigned char*>(compressed.data());
  const auto* const end = in + compressed.size();
  while (in < end) {
    const size_t control = *in++;
    if (control < 32) {
      const size_t length = control + 1;
      if (static_cast<size_t>(end - in) < length || size - out->size() < length) return false;
      out->append(reinterpret_cast<const char*>(in), length);
      in += length;
      continue;
    }
    size_t length = (control >> 5) + 2;
    if (length == 9) {
      if (in == end) return false;
      length += *in++;
    }
    if (in == end) return false;
    const size_t distance = ((control & 0x1F) << 8 | *in++) + 1;
    if (distance > out->size() || size - out->size() < length) return false;
    // Byte by byte: the copy may overlap what it appends.
    for (size_t i = 0; i < length; ++i) out->push_back((*out)[out->size() - distance]);
  }
  return out->size() == size;
}

}  // namespace varve
