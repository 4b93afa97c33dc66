// A cursor over the keys of one namespace, in key order, at one consistent snapshot and one instant
// of the clock.
//
// Not thread-safe: one thread at a time; any number of iterators side by side. Holds what it reads
// in place until it is destroyed, and must be destroyed before its store. Values returned stay
// valid until the next move.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "varve/types.h"

namespace varve {

class Iterator {
 public:
  virtual ~Iterator() = default;

  // False before the first positioning, past either end, and after an error: then status() says
  // which.
  virtual bool Valid() const = 0;

  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  // To the first key >= `key`; to the last key <= `key`. Clamped to the bounds.
  virtual void Seek(std::string_view key) = 0;
  virtual void SeekForPrev(std::string_view key) = 0;
  // Requires Valid().
  virtual void Next() = 0;
  virtual void Prev() = 0;

  // Require Valid().
  virtual std::string_view key() const = 0;
  // Empty for a value that is kept apart, where the iterator was made without values
  // (ReadOptions::without_value).
  virtual std::string_view value() const = 0;
  // Of the value, also then.
  virtual uint64_t value_size() const { return value().size(); }
  virtual SequenceNumber version() const = 0;
  // The instant at which the entry expires, in milliseconds since the epoch; 0: never.
  virtual uint64_t expiry_ms() const = 0;

  // What it has shown so far, and left out as expired, may be let out once durable_sequence() has
  // reached this (as in ReadResult).
  virtual SequenceNumber durable_after() const = 0;

  // OK at a clean end; otherwise what could not be read, and where.
  [[nodiscard]] virtual absl::Status status() const = 0;
};

}  // namespace varve
