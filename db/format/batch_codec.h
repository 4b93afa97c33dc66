// The batch codec seals and reads the batch record and the time mark of db/format/log_format.h.
//
// Thread-safety: stateless functions, but for BatchReader and OperationsHash, which belong to one
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "db/format/large_operation.h"
#include "db/format/log_format.h"
#include "type/record.h"
#include "varve/types.h"

namespace varve {

// This bit in the number of operations says that some of them are large ones.
inline constexpr uint32_t kHasLargeOperations = 1u << 31;
// This number of operations says that the record is a time mark.
inline constexpr uint32_t kTimeMarkCount = 1u << 30;

// SealBatch fills the header of a complete batch record, whose large operations are sealed already.
// `count` has kHasLargeOperations if there are some; then `operations_hash` is the result of an
// OperationsHash, else HashOperations of everything behind the header. The hash is the part of the
// checksum that needs no sequence, so callers compute it before they take the commit lock.
// Requires: `record` has at least kBatchHeaderSize bytes.
uint64_t HashOperations(std::string_view operations);
void SealBatch(SequenceNumber first, uint32_t count, uint64_t operations_hash, char* record,
               size_t size);
inline void SealBatch(SequenceNumber first, uint32_t count, uint64_t operations_hash,
                      std::string* record) {
  SealBatch(first, count, operations_hash, record->data(), record->size());
}

// Hashes the operations of a batch that has large ones, each byte once: those between the large
// ones as they are, the large ones by their body hash.
class OperationsHash {
 public:
  // Adds the operations `between` the large operation before and the next one, and that one by its
  // body hash.
  void Add(std::string_view between, uint64_t body_hash);
  // Adds the operations behind the last large one. Returns the hash of the batch.
  uint64_t Finish(std::string_view rest);

 private:
  uint64_t hash_ = 0;
};

// Appends an operation that has a key and a value, and is no put.
void AppendOperation(RecordKind kind, std::string_view tree_key, std::string_view value,
                     std::string* record);

// Encodes a time mark: everything from the sequence `first` on was committed at `instant_ms` or
// later. The log writes it right before the record of the batch that begins with `first`.
std::array<char, kTimeMarkSize> EncodeTimeMark(SequenceNumber first, uint64_t instant_ms);

struct BatchHeader {
  uint32_t size = 0;  // bytes of the operations
  SequenceNumber first = kNoSequence;
  uint32_t count = 0;
  uint64_t instant_ms = 0;  // of a time mark, which has no operations; 0: it is none
};
// Decodes the header at data[0] and verifies the whole record. Returns the record's size; 0 if it
// is cut short or damaged.
size_t DecodeBatch(std::string_view data, BatchHeader* header, std::string_view* operations);

// Returns the checksum that this batch record must have.
// Requires: it has at least kBatchHeaderSize bytes.
uint32_t BatchChecksum(std::string_view record);

// Walks the operations of a batch. Bytes that make no sense end the walk with ok() false.
class BatchReader {
 public:
  explicit BatchReader(std::string_view operations) : rest_(operations) {}

  // Reads the next operation. Returns false at the end, or if the bytes make no sense. Views point
  // into the batch; the sequence is left at 0.
  bool Next(RecordView* operation);
  bool ok() const { return ok_; }
  // Returns the bytes of the operation read last.
  std::string_view bytes() const { return {rest_.data() - size_, size_}; }
  // Returns where the seal lies in bytes(); 0 if the operation is no large one.
  size_t seal_offset() const { return seal_offset_; }

 private:
  std::string_view rest_;
  size_t size_ = 0;  // bytes of the operation read last
  size_t seal_offset_ = 0;
  bool ok_ = true;
};

}  // namespace varve
