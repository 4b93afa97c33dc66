#include "db/hbase/row_codec.h"

#include <utility>

#include "util/base/assert.h"
#include "util/base/coding.h"

namespace varve {
namespace {

constexpr uint32_t kBase = 255;
static_assert(kLastGeneration == uint64_t{kBase} * kBase * kBase * kBase - 2);

constexpr size_t kFlagsOffset = kCellIdentitySize;
constexpr uint8_t kRowFormat = 1 << 4;
constexpr uint8_t kFormatBits = 0xf0;
constexpr uint8_t kTombstone = 1;
constexpr uint8_t kExpires = 2;
constexpr uint8_t kRowHasMetadata = 4;
constexpr uint8_t kKnownFlags = kTombstone | kExpires | kRowHasMetadata;

void PutBig64(std::string* bytes, uint64_t value) {
  char big[8];
  EncodeBigEndian64(big, value);
  bytes->append(big, sizeof(big));
}

// Reads the header and leaves the reader behind it.
std::optional<HbaseCell> ReadHeader(ByteReader* reader) {
  HbaseCell cell;
  std::string_view version, writer, expiry;
  uint8_t flags = 0;
  if (!reader->ReadBytes(kCellVersionSize, &version) || !reader->ReadBytes(4, &writer) ||
      !reader->ReadByte(&flags) || (flags & kFormatBits) != kRowFormat ||
      (flags & ~kFormatBits & ~kKnownFlags) != 0)
    return std::nullopt;
  cell.version = DecodeBigEndian64(version.data());
  cell.writer = DecodeBigEndian32(writer.data());
  cell.is_tombstone = (flags & kTombstone) != 0;
  if ((flags & kExpires) != 0) {
    if (!reader->ReadBytes(8, &expiry)) return std::nullopt;
    cell.expiry_ms = DecodeBigEndian64(expiry.data());
  }
  if ((flags & kRowHasMetadata) != 0 && !reader->ReadVarint32(&cell.metadata_size))
    return std::nullopt;
  if (!reader->ReadVarint32(&cell.value_size)) return std::nullopt;
  return cell;
}

}  // namespace

std::string RowPrefix(HbaseGeneration generation, uint8_t left_out) {
  VARVE_ASSERT(generation <= kLastGeneration + 1);
  std::string prefix(kRowPrefixSize, '\0');
  for (size_t i = kRowPrefixSize; i-- > 0; generation /= kBase) {
    const uint32_t digit = generation % kBase;
    prefix[i] = static_cast<char>(digit < left_out ? digit : digit + 1);
  }
  return prefix;
}

std::string RowBehindPrefix(std::string_view prefix, uint8_t left_out) {
  VARVE_ASSERT(prefix.size() == kRowPrefixSize);
  HbaseGeneration generation = 0;
  for (const char c : prefix) {
    const auto byte = static_cast<uint8_t>(c);
    generation = generation * kBase + (byte < left_out ? byte : byte - 1u);
  }
  return RowPrefix(generation + 1, left_out);
}

std::string EncodeCell(const HbaseCell& cell) {
  std::string bytes;
  bytes.reserve(kMaxCellHeader + cell.metadata.size() + cell.value.size());
  PutBig64(&bytes, cell.version);
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<char>(cell.writer >> shift));
  uint8_t flags = kRowFormat;
  if (cell.is_tombstone) flags |= kTombstone;
  if (cell.expiry_ms != kNoExpiry) flags |= kExpires;
  if (!cell.metadata.empty()) flags |= kRowHasMetadata;
  bytes.push_back(static_cast<char>(flags));
  if (cell.expiry_ms != kNoExpiry) PutBig64(&bytes, cell.expiry_ms);
  if (!cell.metadata.empty()) PutVarint32(&bytes, static_cast<uint32_t>(cell.metadata.size()));
  PutVarint32(&bytes, static_cast<uint32_t>(cell.value.size()));
  VARVE_ASSERT(bytes.size() <= kMaxCellHeader);
  bytes.append(cell.metadata).append(cell.value);
  return bytes;
}

std::optional<HbaseCell> DecodeCell(std::string_view bytes) {
  ByteReader reader(bytes);
  std::optional<HbaseCell> cell = ReadHeader(&reader);
  if (!cell || !reader.ReadBytes(cell->metadata_size, &cell->metadata) ||
      !reader.ReadBytes(cell->value_size, &cell->value) || !reader.empty())
    return std::nullopt;
  return cell;
}

std::optional<HbaseCell> DecodeCellHeader(std::string_view bytes) {
  ByteReader reader(bytes);
  return ReadHeader(&reader);
}

std::vector<HbaseValueTest> TestsOfGone(uint64_t now_ms) {
  std::vector<HbaseValueTest> tests;
  for (uint8_t flags = 0; flags <= kKnownFlags; ++flags) {
    const std::string byte(1, static_cast<char>(kRowFormat | flags));
    HbaseValueTest test = {{kFlagsOffset, byte, byte}};
    if ((flags & kTombstone) == 0) {
      if ((flags & kExpires) == 0) continue;
      std::string first, last;
      PutBig64(&first, 0);
      PutBig64(&last, now_ms);
      test.push_back({kFlagsOffset + 1, std::move(first), std::move(last)});
    }
    tests.push_back(std::move(test));
  }
  return tests;
}

std::string CellVersionBytes(SequenceNumber version) {
  std::string bytes;
  PutBig64(&bytes, version);
  return bytes;
}

}  // namespace varve
