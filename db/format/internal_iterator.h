// The internal iterator is a cursor over records in the order of the tree (type/record.h: keys
// ascending, versions newest first), tombstones included. Write buffers, segments, runs and merges
// offer it to each other.
//
// Thread-safety: an iterator belongs to one thread. Views stay valid until the next move.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "type/record.h"

namespace varve {

class InternalIterator {
 public:
  // A cursor steps over so many versions of one key one by one; for more it seeks instead.
  static constexpr int kStepsBeforeSeek = 8;

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
  // Moves on to the first record of another key. Returns it; null at the end, and on an error.
  // Requires: Valid().
  virtual const RecordView* NextKey();

  [[nodiscard]] virtual absl::Status status() const = 0;

  // Says that Seek(tree_key, ...) is about to follow. A caller that seeks several cursors first
  // asks all of them for each of the steps, in this order, so that they wait for memory at the same
  // time and not one after the other: the block is found, then what tells where in it to begin is
  // asked for, then the record there. A hint: what fails here, Seek meets again.
  enum class SeekStep : uint8_t { kFindPlace, kFetchPlace, kFetchRecord };
  virtual void PrepareSeek(std::string_view tree_key, SeekStep step) {
    (void)tree_key;
    (void)step;
  }
  // Says that the caller will move back from where the next Seek leads, so that the cursor need not
  // read ahead of that place. A hint.
  virtual void ExpectWayBack() {}
};

// The function is not inlined, so that it takes no room in the loops of callers that know their
// cursor's type.
[[gnu::noinline]] inline const RecordView* InternalIterator::NextKey() {
  const std::string key(record().key);
  int steps = 0;
  do {
    if (++steps == kStepsBeforeSeek) {
      Seek(key, kNoSequence);  // behind every version that has a sequence
    } else {
      Next();
    }
    if (!Valid()) return nullptr;
  } while (record().key == key);
  return &record();
}

}  // namespace varve
