// The keys in which two states of a store differ. A state is what a namespace holds at a snapshot.
// The states differ in a key if one of them lacks it, or if its values, its expiries or its
// metadata are not the same. Each state is judged at the instant of its snapshot, so a key that had
// expired in one of them, and not in the other, counts.
//
// States of one family, as a namespace at two versions or a clone and its source, are told apart by
// what was written since the point that they have in common. Others are walked side by side.
//
// Thread-safety: one thread at a time uses an iterator.
// Requires: an iterator is destroyed before its store.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "varve/namespace.h"
#include "varve/snapshot.h"
#include "varve/types.h"

namespace varve {

struct ComparedState {
  std::shared_ptr<const Snapshot> snapshot;
  NamespaceId space = kDefaultNamespace;
};

// Shows the keys that differ, ascending.
class DifferenceIterator {
 public:
  virtual ~DifferenceIterator() = default;

  // Moves to the next key that differs and returns true. Returns false at the end, after an error,
  // and once it has taken about `most_steps` steps, each of them cheap; then it goes on from there.
  [[nodiscard]] virtual bool Next(size_t most_steps = SIZE_MAX) = 0;
  // Requires: Next() returned true last.
  virtual std::string_view key() const = 0;
  // Returns whether there is nothing more: Next() has come to the end, or failed.
  virtual bool AtEnd() const = 0;
  // Returns the lower bound with which a new iterator goes on in the place of this one: all keys
  // below it that differ were shown.
  virtual std::string_view position() const = 0;
  // Returns the required durable sequence of all that was shown so far (as in ReadResult).
  virtual SequenceNumber durable_after() const = 0;
  [[nodiscard]] virtual absl::Status status() const = 0;
};

}  // namespace varve
