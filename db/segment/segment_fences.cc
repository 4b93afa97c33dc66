#include "db/segment/segment_fences.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "db/format/key_base.h"
#include "db/segment/segment_format.h"
#include "util/base/assert.h"
#include "util/base/checksum.h"

namespace varve {
namespace {

uint64_t ChunkCount(uint64_t body_size) {
  return (body_size + kSegmentPageSize - 1) / kSegmentPageSize;
}

uint32_t ChunkChecksum(std::string_view body, uint64_t chunk, uint64_t segment_number) {
  return Checksum(body.substr(chunk * kSegmentPageSize, kSegmentPageSize),
                  SegmentPartSeed(segment_number, SegmentPart::kFences, chunk));
}

// Returns what is wrong with fences whose checksums are right, as a faulty builder may have written
// them. Readers trust the fences to lead into the data.
std::optional<uint64_t> FindDisorder(std::string_view body, uint64_t count, uint64_t data_size,
                                     uint32_t block_size) {
  const uint64_t keys_size = body.size() - count * 12;
  uint64_t next_start = 0;
  uint32_t key_end = 0;
  for (uint64_t k = 0; k < count; ++k) {
    const uint64_t start = DecodeFixed64(body.data() + k * 8) & ~kFenceContinued;
    if ((k == 0 ? start != 0 : start < next_start) || start >= data_size) return k * 8;
    const uint64_t end_at = count * 8 + k * 4;
    const uint32_t end = DecodeFixed32(body.data() + end_at);
    if (end < key_end || end > keys_size) return end_at;
    next_start = (start | (block_size - uint64_t{1})) + 1;  // blocks are cached by their number
    key_end = end;
  }
  return std::nullopt;
}

}  // namespace

SegmentFencesBuilder::SegmentFencesBuilder(uint32_t block_size)
    : block_shift_(std::countr_zero(block_size)) {}

void SegmentFencesBuilder::AddFence(std::string_view key, uint64_t offset,
                                    std::string_view previous_key, uint64_t block) {
  VARVE_ASSERT(block_ == ~uint64_t{0} || block > block_);
  VARVE_ASSERT(starts_.empty() || offset > (starts_.back() & ~kFenceContinued));
  block_ = block;
  if (starts_.empty()) {
    starts_.push_back(offset);
  } else {
    const size_t common = CommonPrefix(key, previous_key);
    const bool continued = common == key.size() && common == previous_key.size();
    starts_.push_back(offset | (continued ? kFenceContinued : 0));
    keys_.append(key.substr(0, common + 1));
  }
  key_ends_.push_back(static_cast<uint32_t>(keys_.size()));
}

uint64_t SegmentFencesBuilder::size() const { return body_size() + 4 * ChunkCount(body_size()); }

void SegmentFencesBuilder::Write(uint64_t segment_number, char* destination) const {
  char* at = destination;
  for (const uint64_t start : starts_) {
    EncodeFixed64(at, start);
    at += 8;
  }
  for (const uint32_t end : key_ends_) {
    EncodeFixed32(at, end);
    at += 4;
  }
  if (!keys_.empty()) std::memcpy(at, keys_.data(), keys_.size());
  at += keys_.size();
  const std::string_view body(destination, body_size());
  for (uint64_t chunk = 0; chunk < ChunkCount(body.size()); ++chunk) {
    EncodeFixed32(at, ChunkChecksum(body, chunk, segment_number));
    at += 4;
  }
}

SegmentFences::SegmentFences(const char* bytes, uint32_t count, uint64_t data_size,
                             uint32_t block_size)
    : bytes_(bytes),
      count_(count),
      data_size_(data_size),
      block_shift_(std::countr_zero(block_size)) {
  if (count_ < 2) return;
  const std::string_view last = Key(count_ - 1);
  shared_ = CommonPrefix(Key(1), last);
  keys_end_ = last.data() + last.size();
}

double ShareBetween(std::string_view low, std::string_view key, std::string_view high) {
  if (key <= low) return 0;
  if (key >= high) return 1;
  const size_t shared = CommonPrefix(low, high);
  const auto place = [shared](std::string_view bytes) {
    uint64_t number = 0;
    for (size_t i = shared; i < shared + sizeof(number); ++i)
      number = number << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0);
    return static_cast<double>(number);
  };
  const double all = place(high) - place(low);
  return all <= 0 ? 0.5 : std::clamp((place(key) - place(low)) / all, 0.0, 1.0);
}

double SegmentFences::ShareBefore(std::string_view key, std::string_view largest) const {
  if (count_ == 0 || data_size_ == 0) return 0;
  const size_t block = Find(key);
  VARVE_ASSERT(block < count_);
  const BlockSpan span = Span(block);
  const double within =
      ShareBetween(Key(block), key, block + 1 < count_ ? Key(block + 1) : largest);
  return (static_cast<double>(span.begin) + within * static_cast<double>(span.end - span.begin)) /
         static_cast<double>(data_size_);
}

size_t SegmentFences::Find(std::string_view key) const {
  // The search is for the last fence whose key is not greater; the first fence's key is empty.
  if (count_ < 2) return 0;
  if (const int order = key.substr(0, shared_).compare(Key(1).substr(0, shared_)); order != 0)
    return order < 0 ? 0 : count_ - 1;
  const uint64_t word = LeadingWord(key.substr(shared_));
  size_t low = 0;
  size_t high = count_;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    const uint64_t fence = WordOf(middle);
    if (fence != word ? fence < word : Key(middle) <= key) {
      low = middle;
    } else {
      high = middle;
    }
  }
  while (low > 0 && IsContinued(low) && Key(low) == key) --low;
  return low;
}

size_t SegmentFences::BlockOf(uint64_t offset) const {
  // If a record begins in every block, fence k is that of block k.
  size_t high = std::min<size_t>(count_ - 1, offset >> block_shift_);
  if (Start(high) <= offset && (high + 1 == count_ || Start(high + 1) > offset)) return high;
  size_t low = 0;
  ++high;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    if (Start(middle) <= offset) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

std::optional<uint64_t> SegmentFences::FindDamage(std::string_view bytes, uint32_t count,
                                                  uint64_t data_size, uint32_t block_size,
                                                  uint64_t segment_number) {
  if (count == 0) return bytes.empty() ? std::nullopt : std::optional<uint64_t>(0);
  if (bytes.size() < count * uint64_t{12}) return 0;
  // The size of the keys follows from the last key's end, which is right if the checksums are.
  const uint64_t body_size =
      count * uint64_t{12} +
      DecodeFixed32(bytes.data() + count * uint64_t{8} + (count - uint64_t{1}) * 4);
  if (body_size + 4 * ChunkCount(body_size) != bytes.size()) return 0;
  const std::string_view body = bytes.substr(0, body_size);
  for (uint64_t chunk = 0; chunk < ChunkCount(body_size); ++chunk) {
    if (DecodeFixed32(bytes.data() + body_size + chunk * 4) !=
        ChunkChecksum(body, chunk, segment_number)) {
      return chunk * kSegmentPageSize;
    }
  }
  return FindDisorder(body, count, data_size, block_size);
}

}  // namespace varve
