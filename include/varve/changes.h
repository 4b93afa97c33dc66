// The change feed of a store: every commit whole, once and in the order of versions, as far back as
// the store retains changes (EngineOptions::changes). A reader passes the position that it has
// reached to the next call, so it goes on where it stopped, also after a restart of the store.
//
// A version is delivered when it is as durable as its writer asked. A crash never takes back what
// was delivered.
//
// Thread-safety: one thread at a time uses an iterator; all other functions may be called on any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "varve/types.h"

namespace varve {

// One operation of a commit, as a reader of the feed sees it.
struct ChangeOperation {
  enum class Kind : uint8_t {
    kSet,
    kDelete,
    kExpire,       // the expiry changed and nothing else; `value` is the value as it is
    kExpired,      // the key was removed because its time was over
    kEvicted,      // the key was removed to make room
    kDeleteRange,  // [key, value); an empty value: no end
    kFlush,        // the namespace was emptied
    kIngest,       // sorted keys were added in one step: from `key` to `value`, both included
    kCreate,       // of a namespace; `value`: GroupingText() (varve/key_group.h) of its keys
    kDrop,
    kSwap,   // `key` is the other namespace's name
    kClone,  // `key` is the source's name; `value`: the version of its past, as text, or empty
    kMeta,   // the metadata changed and nothing else; `value` is the value as it is
  };

  Kind kind = Kind::kSet;
  NamespaceId space = kDefaultNamespace;
  std::string name;  // of the namespace when the change was committed; a database's number
  std::string key;
  std::string value;
  std::string metadata;
  uint64_t expiry_ms = kNoExpiry;
  SequenceNumber version = kNoSequence;  // of this operation
};

// One commit: a write batch, with all of its operations that the filter lets through.
struct Change {
  SequenceNumber version = kNoSequence;  // of the commit's last operation
  uint64_t instant_ms = 0;               // never later than the commit (StoreHistory::InstantOf)
  std::vector<ChangeOperation> operations;
};

// The filter says what a reader of the feed asks for. Operations on whole namespaces concern each
// key of them.
struct ChangeFilter {
  std::optional<NamespaceId> space = kDefaultNamespace;  // nothing: all namespaces
  std::string lower;                                     // keys in [lower, upper)
  std::string upper;                                     // empty: no end
  bool keys_only = false;                                // values stay empty
};

class ChangeIterator {
 public:
  virtual ~ChangeIterator() = default;

  // Moves to the next commit with operations that the filter lets through and returns true. Returns
  // false if there is none yet that is as durable as its writer asked, or if `most_bytes` of
  // changes were looked at; position() has moved behind what was looked at either way. Returns
  // Trimmed (varve/history_status.h) if what comes next is no longer retained, and DataLoss, with
  // file and offset, if it is damaged. It may read from disk.
  [[nodiscard]] virtual absl::StatusOr<bool> Next(size_t most_bytes = SIZE_MAX) = 0;
  // Requires: Next() returned true last.
  virtual const Change& change() const = 0;
  // Returns the version of the last commit that was looked at: where a later reader goes on.
  virtual SequenceNumber position() const = 0;
};

// The positions say where the feed stands. The history id changes when versions were taken back (a
// restore); then a position of the old history says nothing about the new one.
struct ChangePositions {
  uint64_t history_id = 0;
  SequenceNumber first = kNoSequence;  // the oldest position from which a reader can start
  SequenceNumber last = kNoSequence;   // the newest version that can be delivered now

  // Returns how many versions can be delivered. There are none while the store retains only what is
  // not as durable yet as its writers asked; then `last` lies before `first`.
  uint64_t count() const { return last > first ? last - first : 0; }
};

// A place of a reader that the store remembers by name. It keeps changes behind `position` from
// being given up, within its bounds. When a bound is exceeded the place is lost: the store gives
// the changes up, says so in its log, and keeps the place with `lost` set until it is dropped.
struct FeedPlace {
  std::string name;
  SequenceNumber position = kNoSequence;  // everything up to here was acknowledged
  std::optional<NamespaceId> space = kDefaultNamespace;
  std::string prefix;
  // The bounds; the second counts from the oldest change behind the position. CreateFeed() takes 0
  // as 1 GiB and as a day, and Feeds() tells what holds.
  uint64_t most_bytes = 0;
  uint64_t most_age_ms = 0;
  uint64_t created_ms = 0;       // since the epoch
  uint64_t acknowledged_ms = 0;  // when the position moved last
  bool lost = false;
  uint64_t retained_bytes = 0;  // of changes behind the position, about
};

}  // namespace varve
