// A cursor over the keys of one namespace, in key order, at one consistent snapshot and one instant
// of the clock.
//
// Thread-safety: one thread at a time uses an iterator; any number of iterators work side by side.
// Requires: an iterator is destroyed before its store. It holds what it reads in place until then.
// Values that it returns stay valid until its next move.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "varve/types.h"

namespace varve {

class Iterator {
 public:
  virtual ~Iterator() = default;

  // Returns false before the first positioning, past either end, and after an error: then status()
  // says which.
  virtual bool Valid() const = 0;

  // Move to the first or the last key within the bounds.
  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  // Move to the first key >= `key`, or to the last key <= `key`, clamped to the bounds.
  virtual void Seek(std::string_view key) = 0;
  virtual void SeekForPrev(std::string_view key) = 0;
  // Requires: Valid().
  virtual void Next() = 0;
  // Requires: Valid().
  virtual void Prev() = 0;

  // Requires: Valid().
  virtual std::string_view key() const = 0;
  // Returns the value; an empty one for a value that is kept apart, if the iterator was made
  // without values (ReadOptions::without_value).
  // Requires: Valid().
  virtual std::string_view value() const = 0;
  // Returns the size of the value, also where value() leaves it out.
  // Requires: Valid().
  virtual uint64_t value_size() const { return value().size(); }
  // Returns the metadata of the entry; empty: there is none.
  // Requires: Valid().
  virtual std::string_view metadata() const = 0;
  // Requires: Valid().
  virtual SequenceNumber version() const = 0;
  // Returns the instant at which the entry expires, in milliseconds since the epoch; 0: never.
  // Requires: Valid().
  virtual uint64_t expiry_ms() const = 0;

  // Returns the required durable sequence of all that the iterator has shown so far, and has left
  // out as expired (as in ReadResult).
  virtual SequenceNumber durable_after() const = 0;

  // Returns OK at a clean end; otherwise what could not be read, and where.
  [[nodiscard]] virtual absl::Status status() const = 0;
};

}  // namespace varve
