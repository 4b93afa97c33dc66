// The internal iterator is a cursor over records in the order of the tree (type/record.h: keys
// ascending, versions newest first), tombstones included. Write buffers, segments, runs and merges
// offer it to each other.
//
// Thread-safety: an iterator belongs to one thread. Views stay valid until the next move.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "type/record.h"

namespace varve {

class InternalIterator {
 public:
  virtual ~InternalIterator() = default;

  virtual bool Valid() const = 0;
  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  // Moves to the first record at or after (key, sequence) in the order of the tree: the newest
  // version of `key` that is not newer than `sequence`, or what follows.
  virtual void Seek(std::string_view tree_key, SequenceNumber sequence) = 0;
  // Requires: Valid().
  virtual void Next() = 0;
  virtual void Prev() = 0;
  virtual const RecordView& record() const = 0;  // stays where it is until the next move

  [[nodiscard]] virtual absl::Status status() const = 0;
};

}  // namespace varve
