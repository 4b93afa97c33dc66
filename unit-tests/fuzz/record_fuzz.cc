// Records of segments and batches of the log: what is accepted is written again as the same bytes,
// and everything that is handed out lies within the input.
//
//   input = [ how: 1; bit 0: leave the checksum as it is, bit 1: a batch, else a record ][ the
//   record or batch ]
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "db/format/batch_codec.h"
#include "db/format/log_format.h"
#include "db/format/namespace_change.h"
#include "db/format/record_format.h"
#include "tools/dump.h"
#include "unit-tests/fuzz/fuzz_target.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"

namespace varve::fuzz {
namespace {

constexpr uint64_t kSeed = 7;

bool Within(std::string_view part, std::string_view whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void RunRecord(std::string bytes, bool leave_checksum) {
  const size_t size = RecordSize(bytes);
  if (!leave_checksum && size > kRecordChecksumSize && size <= bytes.size()) {
    const std::string_view body =
        std::string_view(bytes).substr(0, size).substr(kRecordChecksumSize);
    EncodeFixed32(bytes.data(), Checksum(body, kSeed));
  }
  const ExactCopy copy(bytes);
  const std::string_view head = copy.view().substr(0, kMaxRecordHeaderSize);
  VARVE_FUZZ_REQUIRE(RecordSize(ExactCopy(head).view()) == size);
  RecordView record;
  uint32_t shared = 0, again_shared = 0;
  const size_t decoded = DecodeRecord(copy.view(), kSeed, ChecksumMode::kVerify, &record, &shared);
  RecordView trusted;
  VARVE_FUZZ_REQUIRE(decoded == 0 || DecodeRecord(copy.view(), kSeed, ChecksumMode::kTrusted,
                                                  &trusted, &again_shared) == decoded);
  if (decoded == 0) return;
  VARVE_FUZZ_REQUIRE(decoded == size);
  VARVE_FUZZ_REQUIRE(Within(record.key, copy.view()) && Within(record.value, copy.view()) &&
                     Within(record.metadata, copy.view()));
  (void)DescribeRecord(record);
  std::string again;
  const std::string key = std::string(shared, 'k').append(record.key);
  record.key = key;
  VARVE_FUZZ_REQUIRE(AppendRecord(record, kSeed, &again, shared) == decoded);
  VARVE_FUZZ_REQUIRE(again == copy.view().substr(0, decoded));
}

// The one encoding of an operation, from db/format/log_format.h.
void AppendOperation(const RecordView& operation, std::string* out) {
  const RecordKind kind = KindOf(operation.kind, operation.cause);
  out->push_back(static_cast<char>(static_cast<uint8_t>(kind) | operation.flags));
  PutVarint32(out, static_cast<uint32_t>(operation.key.size()));
  PutVarint32(out, static_cast<uint32_t>(operation.value.size()));
  if ((operation.flags & kHasExpiry) != 0) PutFixed64(out, operation.expiry_ms);
  if ((operation.flags & kHasMetadata) != 0) PutLengthPrefixed(out, operation.metadata);
  out->append(operation.key).append(operation.value);
}

// Completes a batch as a commit does, large operations too.
void SealWhole(std::string* batch) {
  const std::string_view view = *batch;
  const SequenceNumber first = DecodeFixed64(view.data() + 8);
  const uint32_t count = DecodeFixed32(view.data() + 16);
  uint64_t hash = HashOperations(view.substr(kBatchHeaderSize));
  if ((count & kHasLargeOperations) != 0) {
    OperationsHash hasher;
    size_t hashed = kBatchHeaderSize;
    BatchReader reader(view.substr(kBatchHeaderSize));
    RecordView operation;
    for (SequenceNumber sequence = first; reader.Next(&operation); ++sequence) {
      if (reader.seal_offset() == 0) continue;
      const auto offset = static_cast<size_t>(reader.bytes().data() - view.data());
      const uint64_t body_hash = LargeBodyHash(reader.bytes(), reader.seal_offset());
      SealLargeOperation(batch->data() + offset, reader.seal_offset(), sequence, body_hash);
      hasher.Add(view.substr(hashed, offset - hashed), body_hash);
      hashed = offset + reader.bytes().size();
    }
    hash = hasher.Finish(view.substr(hashed));
  }
  SealBatch(first, count, hash, batch);
}

void RunBatch(std::string bytes, bool leave_checksum) {
  if (!leave_checksum && bytes.size() >= kBatchHeaderSize) {
    SealWhole(&bytes);
  }
  const ExactCopy copy(bytes);
  BatchHeader header;
  std::string_view operations;
  const size_t size = DecodeBatch(copy.view(), &header, &operations);
  if (size == 0) return;
  if (header.instant_ms != 0) {
    VARVE_FUZZ_REQUIRE(size == kTimeMarkSize && operations.empty() && header.count == 0);
    return;
  }
  VARVE_FUZZ_REQUIRE(size == kBatchHeaderSize + header.size && size <= copy.size());
  VARVE_FUZZ_REQUIRE(Within(operations, copy.view()) && operations.size() == header.size);
  BatchReader reader(operations);
  RecordView operation;
  std::string again;
  while (reader.Next(&operation)) {
    VARVE_FUZZ_REQUIRE(Within(operation.key, operations) && Within(operation.value, operations) &&
                       Within(operation.metadata, operations));
    (void)DescribeRecord(operation);
    if (reader.seal_offset() == 0) {
      AppendOperation(operation, &again);
      continue;
    }
    again.append(reader.bytes());
    RecordView alone;
    VARVE_FUZZ_REQUIRE(ParseLargeOperation(reader.bytes(), &alone) == reader.bytes().size() &&
                       alone.value == operation.value);
    VARVE_FUZZ_REQUIRE(LargeOperationSize(reader.bytes()) == reader.bytes().size());
  }
  if (reader.ok()) VARVE_FUZZ_REQUIRE(again == operations);
}

void Run(std::string_view bytes) {
  Input input(bytes);
  const uint8_t how = input.Byte();
  const std::string rest(input.Rest());
  (how & 2) != 0 ? RunBatch(rest, (how & 1) != 0) : RunRecord(rest, (how & 1) != 0);
}

std::vector<std::string> Seeds() {
  const std::string key = std::string("\0\0\0\1", 4) + "key";
  const std::string end = std::string("\0\0\0\1", 4) + "kez";
  const std::string change =
      EncodeNamespaceChange({.space = {.id = 1,
                                       .name = "users",
                                       .options = {.max_bytes = 300, .sync = Durability::kNone}},
                             .generation = 3});
  const std::vector<RecordView> records = {
      {.key = key, .value = "value", .sequence = 9},
      {.key = key, .sequence = 1ull << 40, .kind = RecordKind::kTombstone},
      {.key = key, .value = end, .sequence = 300, .kind = RecordKind::kRangeTombstone},
      {.key = std::string_view(key).substr(0, 4),
       .value = "\0\0\0\2",
       .kind = RecordKind::kSwitchGeneration},
      {.key = std::string_view(key).substr(0, 4),
       .value = change,
       .kind = RecordKind::kChangeNamespace},
      {.key = key,
       .value = std::string_view(key),
       .metadata = "meta",
       .sequence = kMaxSequence,
       .expiry_ms = 1700000000000,
       .flags = kHasExpiry | kHasMetadata},
      {.key = key, .value = "12345678", .sequence = 5, .flags = kCompressed | kSeparatedValue},
      {.key = key, .value = "value", .sequence = 9, .cause = WriteCause::kExpiryChange},
      {.key = key, .sequence = 10, .kind = RecordKind::kTombstone, .cause = WriteCause::kExpired},
  };
  std::vector<std::string> seeds;
  std::string batch(1 + kBatchHeaderSize, '\0');
  batch[0] = '\2';
  for (const RecordView& record : records) {
    std::string bytes(1, '\0');
    AppendRecord(record, kSeed, &bytes);
    seeds.push_back(bytes);
    bytes[0] = '\1';
    seeds.push_back(bytes);
    if (record.cause == WriteCause::kWrite) {
      bytes.resize(1);
      AppendRecord(record, kSeed, &bytes, 4);
      seeds.push_back(bytes);
    }
    AppendOperation(record, &batch);
    seeds.push_back(batch);
  }
  std::string large(1 + kBatchHeaderSize, '\0');
  large[0] = '\2';
  EncodeFixed32(large.data() + 1 + 16, kHasLargeOperations | 2);
  AppendLargeOperation(records.front(), &large);
  AppendOperation(records.front(), &large);
  seeds.push_back(large);
  return seeds;
}

const Announced kTarget({"record", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
