#include "db/segment/block_guide.h"

#include <algorithm>
#include <string>

#include "db/format/key_base.h"
#include "db/format/record_format.h"
#include "util/base/assert.h"
#include "util/base/coding.h"

namespace varve {
namespace {

constexpr size_t kHeaderSize = 4;

uint32_t WordOf(std::string_view key) { return static_cast<uint32_t>(LeadingWord(key) >> 32); }

// Returns up to four bytes of the key behind its first `skipped` ones. Keys that descend although
// their checksums are right may have fewer.
std::string WordBehind(size_t skipped, std::string_view shared, std::string_view rest) {
  std::string bytes;
  if (skipped < shared.size()) bytes = shared.substr(skipped, sizeof(uint32_t));
  const size_t skipped_of_rest = std::min(skipped - std::min(skipped, shared.size()), rest.size());
  bytes += rest.substr(skipped_of_rest, sizeof(uint32_t) - bytes.size());
  return bytes;
}

// Returns how the first bytes of `key` compare with the first `size` bytes of another one, which
// has them.
int CompareFirst(size_t size, std::string_view key, std::string_view shared,
                 std::string_view rest) {
  const size_t of_base = std::min(size, shared.size());
  const int order = key.substr(0, of_base).compare(shared.substr(0, of_base));
  if (order != 0 || of_base == size) return order;
  return key.substr(of_base, size - of_base).compare(rest.substr(0, size - of_base));
}

}  // namespace

void BlockGuideBuilder::Write(size_t size, char* destination) const {
  if (size == 0) return;
  const auto whole = [this](const KeyParts& key) {
    return std::string(base_.substr(0, key.shared)).append(key.rest);
  };
  const size_t common = CommonPrefix(whole(first_), whole(last_));
  const size_t count = common > UINT16_MAX ? 0 : named_.size();
  VARVE_ASSERT(kHeaderSize + 6 * count <= size);
  EncodeFixed16(destination, static_cast<uint16_t>(count));
  EncodeFixed16(destination + 2, static_cast<uint16_t>(common));
  for (size_t i = 0; i < count; ++i) {
    const auto& [key, offset] = named_[i];
    EncodeFixed32(destination + kHeaderSize + 4 * i,
                  WordOf(WordBehind(common, base_.substr(0, key.shared), key.rest)));
    EncodeFixed16(destination + kHeaderSize + 4 * count + 2 * i, static_cast<uint16_t>(offset));
  }
}

size_t StartByGuide(std::string_view guide, std::string_view block, std::string_view base,
                    std::string_view key) {
  if (guide.empty()) return 0;
  const size_t count = DecodeFixed16(guide.data());
  const size_t common = DecodeFixed16(guide.data() + 2);
  RecordView first;
  uint32_t shared = 0;
  if (count == 0 || DecodeRecord(block, 0, ChecksumMode::kTrusted, &first, &shared) == 0) return 0;
  VARVE_ASSERT(shared <= base.size() && common <= shared + first.key.size());
  const int order = CompareFirst(common, key, base.substr(0, shared), first.key);
  if (order < 0) return 0;
  const char* const words = guide.data() + kHeaderSize;
  size_t before = count;
  if (order == 0) {
    const uint32_t word = WordOf(key.substr(common));
    before = 0;
    for (size_t i = 0; i < count; ++i) before += DecodeFixed32(words + 4 * i) < word ? 1 : 0;
  }
  return before == 0 ? 0 : DecodeFixed16(words + 4 * count + 2 * (before - 1));
}

}  // namespace varve
