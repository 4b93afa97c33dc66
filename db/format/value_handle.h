// A value handle says where a separated value lies (the field's blob handle). A segment stores it
// as the value of a record with kSeparatedValue.
//
//   v  number of the file: of the log, or a value file (db/values/value_file_format.h)
//   v  offset in it of the large operation (db/format/large_operation.h) that holds the value
//   v  size of that operation
//   v  size of the plain value, so that asking for it reads nothing
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "db/format/compressed_value.h"
#include "type/record.h"
#include "util/base/coding.h"
#include "varve/options.h"

namespace varve {

struct ValueHandle {
  uint64_t file_number = 0;
  uint64_t offset = 0;
  uint32_t operation_size = 0;
  uint32_t value_size = 0;

  friend bool operator==(const ValueHandle&, const ValueHandle&) = default;
};

inline void AppendValueHandle(const ValueHandle& handle, std::string* destination) {
  PutVarint64(destination, handle.file_number);
  PutVarint64(destination, handle.offset);
  PutVarint32(destination, handle.operation_size);
  PutVarint32(destination, handle.value_size);
}

// Returns false if `bytes` do not encode a handle.
inline bool DecodeValueHandle(std::string_view bytes, ValueHandle* handle) {
  ByteReader reader(bytes);
  return reader.ReadVarint64(&handle->file_number) && reader.ReadVarint64(&handle->offset) &&
         reader.ReadVarint32(&handle->operation_size) && reader.ReadVarint32(&handle->value_size) &&
         reader.empty() && handle->file_number != 0 && handle->value_size <= kMaxValueSize;
}

inline bool IsSeparated(const RecordView& record) { return (record.flags & kSeparatedValue) != 0; }

// Returns the size of the user's value, wherever it lies.
inline uint64_t ValueSizeOf(const RecordView& record) {
  if (!IsSeparated(record)) [[likely]]
    return IsCompressed(record) ? PlainSizeOf(record.value) : record.value.size();
  ValueHandle handle;
  return DecodeValueHandle(record.value, &handle) ? handle.value_size : 0;
}

}  // namespace varve
