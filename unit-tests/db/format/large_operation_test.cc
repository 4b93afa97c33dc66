#include "db/format/large_operation.h"

#include <gtest/gtest.h>

#include <string>

#include "db/format/batch_codec.h"
#include "db/format/record_format.h"

namespace varve {
namespace {

RecordView Example(uint8_t flags) {
  static const std::string* const key = new std::string(std::string("\0\0\0\1", 4) + "key");
  static const std::string* const value = new std::string(3000, 'v');
  return {.key = *key,
          .value = *value,
          .metadata = (flags & kHasMetadata) != 0 ? std::string_view("metadata") : "",
          .sequence = 42,
          .expiry_ms = (flags & kHasExpiry) != 0 ? uint64_t{123456} : 0,
          .kind = RecordKind::kValue,
          .flags = flags};
}

void ExpectSame(const RecordView& a, const RecordView& b) {
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.metadata, b.metadata);
  EXPECT_EQ(a.expiry_ms, b.expiry_ms);
  EXPECT_EQ(a.flags, b.flags);
}

TEST(LargeOperationTest, WhatIsAppendedIsDecoded) {
  for (const uint8_t flags : {0, +kHasExpiry, +kHasMetadata, kHasExpiry | kHasMetadata}) {
    const RecordView record = Example(flags);
    std::string bytes;
    AppendLargeOperation(record, &bytes);
    EXPECT_EQ(bytes.size(), LargeOperationSizeOf(record));
    EXPECT_EQ(LargeOperationSize(bytes.substr(0, kMaxLargeHeaderSize)), bytes.size());
    RecordView decoded;
    ASSERT_EQ(DecodeLargeOperation(bytes, &decoded), bytes.size());
    ExpectSame(decoded, record);
    EXPECT_EQ(decoded.sequence, 42u);
  }
}

TEST(LargeOperationTest, EveryCutAndEveryChangedByteIsNoticed) {
  std::string bytes;
  AppendLargeOperation(Example(kHasExpiry | kHasMetadata), &bytes);
  RecordView decoded;
  for (size_t size = 0; size < bytes.size(); size += 7)
    EXPECT_EQ(DecodeLargeOperation(std::string_view(bytes).substr(0, size), &decoded), 0u) << size;
  for (size_t at = 0; at < bytes.size(); at += at < 64 ? 1 : 61) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    EXPECT_EQ(DecodeLargeOperation(changed, &decoded), 0u) << at;
  }
}

// The three forms of a record carry expiry and metadata in the same way.
TEST(LargeOperationTest, RecordsAndOperationsOfABatchHaveTheSameExtras) {
  for (const uint8_t flags : {0, +kHasExpiry, +kHasMetadata, kHasExpiry | kHasMetadata}) {
    const RecordView record = Example(flags);
    std::string in_segment, in_log;
    AppendRecord(record, 9, &in_segment);
    AppendLargeOperation(record, &in_log);
    RecordView decoded;
    uint32_t shared = 0;
    ASSERT_EQ(DecodeRecord(in_segment, 9, ChecksumMode::kVerify, &decoded, &shared),
              in_segment.size());
    ExpectSame(decoded, record);
    BatchReader reader(in_log);
    ASSERT_TRUE(reader.Next(&decoded));
    ExpectSame(decoded, record);
    EXPECT_GT(reader.seal_offset(), 0u);
    EXPECT_FALSE(reader.Next(&decoded));
    EXPECT_TRUE(reader.ok());
  }
}

}  // namespace
}  // namespace varve
