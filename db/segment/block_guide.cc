#include "db/segment/block_guide.h"

#include <algorithm>
#include <cstring>

#include "db/format/record_format.h"
#include "util/base/assert.h"
#include "util/base/coding.h"

namespace varve {
namespace {

constexpr size_t kHeaderSize = 4;

uint32_t WordOf(std::string_view key, size_t shared) {
  return static_cast<uint32_t>(LeadingWord(key.substr(shared)) >> 32);
}

}  // namespace

void BlockGuideBuilder::Write(size_t size, char* destination) const {
  if (size == 0) return;
  const auto shared = static_cast<size_t>(
      std::mismatch(first_.begin(), first_.end(), last_.begin(), last_.end()).first -
      first_.begin());
  const size_t count = shared > UINT16_MAX ? 0 : named_.size();
  VARVE_ASSERT(kHeaderSize + 6 * count <= size);
  EncodeFixed16(destination, static_cast<uint16_t>(count));
  EncodeFixed16(destination + 2, static_cast<uint16_t>(shared));
  for (size_t i = 0; i < count; ++i) {
    EncodeFixed32(destination + kHeaderSize + 4 * i, WordOf(named_[i].key, shared));
    EncodeFixed16(destination + kHeaderSize + 4 * count + 2 * i,
                  static_cast<uint16_t>(named_[i].offset));
  }
}

size_t StartByGuide(std::string_view guide, std::string_view block, std::string_view key) {
  if (guide.empty()) return 0;
  const size_t count = DecodeFixed16(guide.data());
  const size_t shared = DecodeFixed16(guide.data() + 2);
  RecordView first;
  if (count == 0 || DecodeRecord(block, 0, ChecksumMode::kTrusted, &first) == 0) return 0;
  VARVE_ASSERT(shared <= first.key.size());
  const int order = key.substr(0, shared).compare(first.key.substr(0, shared));
  if (order < 0) return 0;
  const char* const words = guide.data() + kHeaderSize;
  size_t before = count;
  if (order == 0) {
    const uint32_t word = WordOf(key, shared);
    before = 0;
    for (size_t i = 0; i < count; ++i) before += DecodeFixed32(words + 4 * i) < word ? 1 : 0;
  }
  return before == 0 ? 0 : DecodeFixed16(words + 4 * count + 2 * (before - 1));
}

}  // namespace varve
