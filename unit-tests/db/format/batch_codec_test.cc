#include "db/format/batch_codec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "db/format/log_format.h"
#include "type/tree_key.h"
#include "util/base/coding.h"
#include "varve/write_batch.h"

namespace varve {
namespace {

using namespace std::string_literals;

// Returns the record of the batch as the log would get it with this first sequence.
std::string Sealed(WriteBatch* batch, SequenceNumber first) {
  std::string record = batch->encoding().record;
  const std::string_view operations = std::string_view(record).substr(kBatchHeaderSize);
  BatchReader reader(operations);
  RecordView operation;
  OperationsHash hash;
  bool has_large = false;
  size_t hashed = 0;
  for (SequenceNumber sequence = first; reader.Next(&operation); ++sequence) {
    if (reader.seal_offset() == 0) continue;
    has_large = true;
    const size_t offset = static_cast<size_t>(reader.bytes().data() - operations.data());
    const uint64_t body = LargeBodyHash(reader.bytes(), reader.seal_offset());
    SealLargeOperation(record.data() + kBatchHeaderSize + offset, reader.seal_offset(), sequence,
                       body);
    hash.Add(operations.substr(hashed, offset - hashed), body);
    hashed = offset + reader.bytes().size();
  }
  EXPECT_TRUE(reader.ok());
  const uint32_t count = static_cast<uint32_t>(batch->size());
  if (has_large) {
    SealBatch(first, count | kHasLargeOperations, hash.Finish(operations.substr(hashed)), &record);
  } else {
    SealBatch(first, count, HashOperations(operations), &record);
  }
  return record;
}

void Fill(WriteBatch* batch) {
  batch->Put("key", "value");
  batch->UseNamespace(3, /*usual_expiry_ms=*/77);
  batch->Put("", "");
  batch->Delete("gone");
  batch->DeleteRange("a", "b");
}

// The bytes on disk never change.
TEST(BatchCodecTest, ATimeMarkIsReadBackAndHasNoOperations) {
  const auto bytes = EncodeTimeMark(42, 1'700'000'000'123);
  const std::string mark(bytes.data(), bytes.size());
  EXPECT_EQ(mark.substr(4, 16), "\x08\0\0\0\x2a\0\0\0\0\0\0\0\0\0\0\x40"s);
  BatchHeader header;
  std::string_view operations;
  ASSERT_EQ(DecodeBatch(mark + "behind it", &header, &operations), mark.size());
  EXPECT_EQ(header.first, 42u);
  EXPECT_EQ(header.count, 0u);
  EXPECT_EQ(header.instant_ms, 1'700'000'000'123u);
  EXPECT_TRUE(operations.empty());
  for (size_t at = 0; at < mark.size(); ++at) {
    std::string changed = mark;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    EXPECT_EQ(DecodeBatch(changed, &header, &operations), 0u) << at;
    EXPECT_EQ(DecodeBatch(mark.substr(0, at), &header, &operations), 0u) << at;
  }
}

TEST(BatchCodecTest, WhatABatchRecordsIsReadBack) {
  WriteBatch batch;
  Fill(&batch);
  const std::string record = Sealed(&batch, 42);
  BatchHeader header;
  std::string_view operations;
  const std::string followed = record + "behind it";
  ASSERT_EQ(DecodeBatch(followed, &header, &operations), record.size());
  EXPECT_EQ(header.first, 42u);
  EXPECT_EQ(header.count, 4u);
  EXPECT_EQ(header.size, operations.size());
  EXPECT_EQ(BatchChecksum(record), DecodeFixed32(record.data()));
  const std::vector<std::pair<RecordKind, std::string>> expected = {
      {RecordKind::kValue, std::string(TreeKey(kDefaultNamespace, "key").view())},
      {RecordKind::kValue, std::string(TreeKey(3, "").view())},
      {RecordKind::kTombstone, std::string(TreeKey(3, "gone").view())},
      {RecordKind::kRangeTombstone, std::string(TreeKey(3, "a").view())}};
  BatchReader reader(operations);
  RecordView operation;
  for (const auto& [kind, key] : expected) {
    ASSERT_TRUE(reader.Next(&operation));
    EXPECT_EQ(operation.kind, kind);
    EXPECT_EQ(operation.key, key);
    EXPECT_EQ(operation.expiry_ms, key == expected[1].second ? 77u : 0u);
  }
  EXPECT_EQ(UserKeyOf(operation.value), "b");
  EXPECT_FALSE(reader.Next(&operation));
  EXPECT_TRUE(reader.ok());
}

TEST(BatchCodecTest, EveryCutAndEveryChangedByteIsNoticed) {
  for (const bool with_large : {false, true}) {
    WriteBatch batch;
    Fill(&batch);
    if (with_large) batch.Put("large", std::string(kSmallestLargeValue, 'v'));
    batch.Put("last", "value");
    const std::string record = Sealed(&batch, 42);
    BatchHeader header;
    std::string_view operations;
    ASSERT_EQ(DecodeBatch(record, &header, &operations), record.size());
    for (size_t size = 0; size < record.size(); ++size)
      ASSERT_EQ(DecodeBatch(record.substr(0, size), &header, &operations), 0u) << size;
    for (size_t at = 0; at < record.size(); ++at) {
      std::string changed = record;
      changed[at] = static_cast<char>(changed[at] ^ 0x04);
      ASSERT_EQ(DecodeBatch(changed, &header, &operations), 0u) << at;
    }
  }
}

// A large operation is read by itself later, and carries its own sequence.
TEST(BatchCodecTest, ALargeOperationThatIsSealedForAnotherPlaceIsNoticed) {
  WriteBatch batch;
  batch.Put("small", "value");
  batch.Put("large", std::string(kSmallestLargeValue, 'v'));
  std::string record = Sealed(&batch, 42);
  BatchHeader header;
  std::string_view operations;
  ASSERT_EQ(DecodeBatch(record, &header, &operations), record.size());
  EXPECT_EQ(header.count, 2u);
  BatchReader reader(operations);
  RecordView operation;
  ASSERT_TRUE(reader.Next(&operation));
  EXPECT_EQ(reader.seal_offset(), 0u);
  ASSERT_TRUE(reader.Next(&operation));
  ASSERT_NE(reader.seal_offset(), 0u);
  SequenceNumber sequence = kNoSequence;
  const uint64_t body = LargeBodyHash(reader.bytes(), reader.seal_offset());
  EXPECT_TRUE(LargeSealFits(reader.bytes(), reader.seal_offset(), body, &sequence));
  EXPECT_EQ(sequence, 43u);
  SealLargeOperation(const_cast<char*>(reader.bytes().data()), reader.seal_offset(), 44, body);
  EXPECT_EQ(DecodeBatch(record, &header, &operations), 0u);
}

TEST(BatchCodecTest, BytesThatMakeNoSenseEndTheWalk) {
  WriteBatch batch;
  batch.Put("key", "value");
  const std::string operations = batch.encoding().record.substr(kBatchHeaderSize);
  for (size_t size = 1; size < operations.size(); ++size) {
    BatchReader reader(std::string_view(operations).substr(0, size));
    RecordView operation;
    EXPECT_FALSE(reader.Next(&operation)) << size;
    EXPECT_FALSE(reader.ok()) << size;
  }
  BatchReader unknown_kind("\x7f");
  RecordView operation;
  EXPECT_FALSE(unknown_kind.Next(&operation));
  EXPECT_FALSE(unknown_kind.ok());
  BatchReader nothing("");
  EXPECT_FALSE(nothing.Next(&operation));
  EXPECT_TRUE(nothing.ok());
}

TEST(BatchCodecTest, TheLimitsOfABatchKeepItAsItWas) {
  WriteBatch batch;
  batch.Put("key", "value");
  const std::string before = batch.encoding().record;
  batch.Put(std::string(kMaxKeySize + 1, 'k'), "value");
  EXPECT_TRUE(absl::IsInvalidArgument(batch.status()));
  batch.Put("more", "value");
  EXPECT_EQ(batch.encoding().record, before) << "a batch with an error takes nothing more";
  EXPECT_EQ(batch.size(), 1u);
  batch.Clear();
  EXPECT_TRUE(batch.status().ok());
  EXPECT_EQ(batch.encoding().record.size(), kBatchHeaderSize);
  EXPECT_TRUE(batch.empty());
}

}  // namespace
}  // namespace varve
