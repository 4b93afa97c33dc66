// A value place says where a value lies that a segment only points to (the field's blob handle). It
// is the value of a record with kSeparatedValue.
//
//   v  number of the file: of the log, or a value file (db/values/value_file_format.h)
//   v  offset in it of the large operation (db/format/large_operation.h) that holds the value
//   v  size of that operation
//   v  size of the value, so that asking for it reads nothing
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "type/record.h"
#include "util/base/coding.h"

namespace varve {

struct ValuePlace {
  uint64_t file_number = 0;
  uint64_t offset = 0;
  uint32_t operation_size = 0;
  uint32_t value_size = 0;

  friend bool operator==(const ValuePlace&, const ValuePlace&) = default;
};

inline void AppendValuePlace(const ValuePlace& place, std::string* destination) {
  PutVarint64(destination, place.file_number);
  PutVarint64(destination, place.offset);
  PutVarint32(destination, place.operation_size);
  PutVarint32(destination, place.value_size);
}

// Returns false if `bytes` is no place.
inline bool DecodeValuePlace(std::string_view bytes, ValuePlace* place) {
  ByteReader reader(bytes);
  return reader.ReadVarint64(&place->file_number) && reader.ReadVarint64(&place->offset) &&
         reader.ReadVarint32(&place->operation_size) && reader.ReadVarint32(&place->value_size) &&
         reader.empty() && place->file_number != 0 && place->value_size <= place->operation_size;
}

inline bool IsSeparated(const RecordView& record) { return (record.flags & kSeparatedValue) != 0; }

// Returns the size of the user's value, wherever it lies.
inline uint64_t ValueSizeOf(const RecordView& record) {
  if (!IsSeparated(record)) [[likely]]
    return record.value.size();
  ValuePlace place;
  return DecodeValuePlace(record.value, &place) ? place.value_size : 0;
}

}  // namespace varve
