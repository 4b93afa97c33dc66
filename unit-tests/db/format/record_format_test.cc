#include "db/format/record_format.h"

#include <gtest/gtest.h>

#include "unit-tests/testing/segment_fixture.h"

namespace varve {
namespace {

using testing::Copy;
using testing::OwnedRecord;
using testing::RandomRecords;
using namespace std::string_literals;

constexpr uint64_t kSeed = 17;

std::string Encode(const OwnedRecord& record) {
  std::string bytes;
  const size_t size = AppendRecord(record.view(), kSeed, &bytes);
  EXPECT_EQ(size, bytes.size());
  return bytes;
}

// Decodes a record that holds its whole key.
size_t Decode(std::string_view data, uint64_t seed, ChecksumMode mode, RecordView* view) {
  uint32_t shared = 0;
  const size_t size = DecodeRecord(data, seed, mode, view, &shared);
  EXPECT_EQ(shared, 0u);
  return size;
}

// Golden bytes: this is on disk, so it never changes.
TEST(RecordFormatTest, RecordsAreTheseBytes) {
  OwnedRecord record;
  record.key = "\0\0\0\1key"s;
  record.value = "value";
  record.sequence = 300;
  EXPECT_EQ(Encode(record).substr(4), "\x01\x07\x05\xac\x02\0\0\0\1keyvalue"s);
  record.kind = RecordKind::kTombstone;
  record.value.clear();
  record.flags = kHasExpiry | kHasMetadata | kCompressed;
  record.expiry_ms = 0x0102030405060708;
  record.metadata = "meta";
  EXPECT_EQ(Encode(record),
            "c\xd8"
            "f\xc8\x72\x07\x00\xac\x02\x08\x07\x06\x05\x04\x03\x02\x01\x04meta\0\0\0\1key"s);
}

TEST(RecordFormatTest, ACauseIsPartOfTheKind) {
  const std::pair<RecordView, char> records[] = {
      {{.kind = RecordKind::kValue, .cause = WriteCause::kExpiryChange}, '\x07'},
      {{.kind = RecordKind::kValue, .cause = WriteCause::kMetadataChange}, '\x08'},
      {{.kind = RecordKind::kTombstone, .cause = WriteCause::kExpired}, '\x09'},
      {{.kind = RecordKind::kTombstone, .cause = WriteCause::kEvicted}, '\x0a'},
  };
  for (auto [record, kind] : records) {
    record.key = "\0\0\0\1key";
    record.sequence = 300;
    std::string bytes;
    AppendRecord(record, kSeed, &bytes);
    EXPECT_EQ(bytes[4], kind);
    bytes.append(kMaxRecordHeaderSize, '\0');
    RecordView view;
    ASSERT_NE(Decode(bytes, kSeed, ChecksumMode::kVerify, &view), 0u);
    EXPECT_EQ(view.kind, record.kind);
    EXPECT_EQ(view.cause, record.cause);
    EXPECT_EQ(view.sequence, 300u);
  }
  std::string other;
  AppendRecord({.key = "\0\0\0\1key"}, kSeed, &other);
  for (const char kind : {'\x00', '\x05', '\x06', '\x0b', '\x0f'}) {
    other[4] = kind;
    RecordView view;
    EXPECT_EQ(Decode(other, kSeed, ChecksumMode::kTrusted, &view), 0u) << int{kind};
  }
}

TEST(RecordFormatTest, ARecordThatSharesItsKeyIsTheseBytes) {
  OwnedRecord record;
  record.key = "\0\0\0\1key"s;
  record.value = "value";
  record.sequence = 300;
  for (const bool has_expiry : {false, true}) {
    record.flags = has_expiry ? kHasExpiry : kNoFlags;
    record.expiry_ms = has_expiry ? 5 : 0;
    std::string bytes;
    AppendRecord(record.view(), kSeed, &bytes, 5);
    const std::string expiry = has_expiry ? "\5\0\0\0\0\0\0\0"s : "";
    EXPECT_EQ(bytes.substr(4),
              (has_expiry ? "\x1d"s : "\x0d"s) + "\x05\x02\x05\xac\x02"s + expiry + "eyvalue");
    EXPECT_EQ(RecordSize(bytes), bytes.size());
    RecordView view;
    uint32_t shared = 0;
    for (const std::string& padding : {std::string(), std::string(64, '\0')}) {
      ASSERT_EQ(DecodeRecord(bytes + padding, kSeed, ChecksumMode::kVerify, &view, &shared),
                bytes.size());
      EXPECT_EQ(shared, 5u);
      EXPECT_EQ(view.kind, RecordKind::kValue);
    }
    ASSERT_NE(DecodeRecord(bytes, kSeed, ChecksumMode::kVerify, &view, &shared), 0u);
    EXPECT_EQ(view.key, "ey");
    EXPECT_EQ(view.value, "value");
    // Fewer than two bytes are never shared.
    bytes[5] = '\1';
    bytes.append(64, '\0');
    EXPECT_EQ(DecodeRecord(bytes, kSeed, ChecksumMode::kTrusted, &view, &shared), 0u);
  }
}

TEST(RecordFormatTest, RecordsComeBackAsTheyWere) {
  for (const OwnedRecord& record :
       RandomRecords(1, 500, {0, 1, 127, 128, 16383, 16384, 20000}, 3)) {
    const std::string bytes = Encode(record) + "what follows";
    RecordView view;
    ASSERT_EQ(Decode(bytes, kSeed, ChecksumMode::kVerify, &view), bytes.size() - 12);
    EXPECT_EQ(Copy(view), record);
    ASSERT_EQ(Decode(bytes, 0, ChecksumMode::kTrusted, &view), bytes.size() - 12);
    EXPECT_EQ(Copy(view), record);
    EXPECT_EQ(RecordSize(std::string_view(bytes).substr(0, kMaxRecordHeaderSize)),
              bytes.size() - 12);
  }
}

TEST(RecordFormatTest, ARecordCutShortIsRefusedAtEachLength) {
  for (const OwnedRecord& record : RandomRecords(2, 50, {0, 1, 200}, 3)) {
    const std::string bytes = Encode(record);
    RecordView view;
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_EQ(
          Decode(std::string_view(bytes).substr(0, size), kSeed, ChecksumMode::kVerify, &view), 0u);
      EXPECT_EQ(
          Decode(std::string_view(bytes).substr(0, size), kSeed, ChecksumMode::kTrusted, &view),
          0u);
    }
  }
}

TEST(RecordFormatTest, EachFlippedBitIsFound) {
  for (const OwnedRecord& record : RandomRecords(3, 20, {0, 1, 100}, 3)) {
    std::string bytes = Encode(record);
    const std::string padding(64, '\0');
    RecordView view;
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
      EXPECT_EQ(Decode(bytes, kSeed, ChecksumMode::kVerify, &view), 0u) << bit;
      EXPECT_EQ(Decode(bytes + padding, kSeed, ChecksumMode::kVerify, &view), 0u) << bit;
      bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
    }
  }
}

TEST(RecordFormatTest, ARecordOfAnotherFileIsRefused) {
  OwnedRecord record;
  record.key = "key";
  RecordView view;
  EXPECT_EQ(Decode(Encode(record), kSeed + 1, ChecksumMode::kVerify, &view), 0u);
}

TEST(RecordFormatTest, ZerosAreNoRecord) {
  RecordView view;
  EXPECT_EQ(Decode(std::string(100, '\0'), kSeed, ChecksumMode::kTrusted, &view), 0u);
  EXPECT_EQ(RecordSize(std::string(100, '\0')), 0u);
}

}  // namespace
}  // namespace varve
