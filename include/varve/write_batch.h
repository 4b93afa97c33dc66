// Operations that are committed together: all of them or none, also across a crash, seen together
// by every reader.
//
// A batch is kept encoded as the record that the log of the embedded engine will hold
// (docs/formats.md), so committing it copies bytes once. Later operations on a key win over earlier
// ones. Another store walks over the contents with ForEachOperation and ForEachCondition.
//
// Thread-safety: one thread at a time uses a batch.
// A batch is reusable after Clear(), which keeps its memory up to a few MiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "varve/namespace.h"
#include "varve/options.h"
#include "varve/read_result.h"
#include "varve/types.h"

namespace varve {

enum class RecordKind : uint8_t;
struct NamespaceChange;

// The extras are what a put has beside its key and value.
struct PutExtras {
  // The instant, in milliseconds since the epoch, from which on nobody sees the key any more.
  uint64_t expiry_ms = kUsualExpiry;
  std::string_view metadata = {};  // at most kMaxMetadataSize bytes
  WriteCause cause = WriteCause::kWrite;
};

class WriteBatch {
 public:
  WriteBatch();

  // Names the namespace of the operations and conditions from here on that don't name one
  // themselves, and their kUsualExpiry (StoreNamespaces::UsualExpiry). Clear() makes them
  // kDefaultNamespace and kNoExpiry again.
  void UseNamespace(NamespaceId space, uint64_t usual_expiry_ms = kNoExpiry) {
    space_ = space;
    usual_expiry_ms_ = usual_expiry_ms;
  }

  // --- Operations on keys ------------------------------------------------------------------------
  // `expiry_ms` is the instant, in milliseconds since the epoch, from which on nobody sees the key
  // any more.
  // Requires: a key of at most kMaxKeySize bytes and a value of at most kMaxValueSize bytes; else
  // status() and the commit tell of it. All operations together keep to kMaxBatchBytes and
  // kMaxBatchOperations.
  void Put(std::string_view key, std::string_view value, NamespaceId space = kSelectedNamespace,
           uint64_t expiry_ms = kUsualExpiry);
  void Put(std::string_view key, std::string_view value, const PutExtras& extras,
           NamespaceId space = kSelectedNamespace);
  void Delete(std::string_view key, NamespaceId space = kSelectedNamespace,
              WriteCause cause = WriteCause::kWrite);
  // Deletes every key in [begin, end); an empty `end` means to the end of the namespace. The cost
  // does not depend on the number of keys (StoreCapabilities::constant_time_range_delete).
  void DeleteRange(std::string_view begin, std::string_view end,
                   NamespaceId space = kSelectedNamespace);
  // Empties the namespace in constant time.
  void ClearNamespace(NamespaceId space = kSelectedNamespace);

  // --- Operations on namespaces ------------------------------------------------------------------
  // Creates an empty namespace. The commit fails with AlreadyExists if there is one of this id or
  // name. Later operations of the batch may use it.
  // Requires: `space.id` is a database's number or NamespaceList::next_id.
  void CreateNamespace(const NamespaceDescription& space);
  // Creates a namespace that holds what `source` holds, in constant time
  // (StoreCapabilities::constant_time_clone); the two share it until either is written. The commit
  // fails as for CreateNamespace; with NoSuchNamespace if there is no source; with
  // ResourceExhausted if there are too many clones of clones.
  // Requires: no other operation is in the batch.
  void CloneNamespace(NamespaceId source, const NamespaceDescription& space);
  // Clones what `source` held once `version` had been written (StoreHistory::SnapshotAt), less
  // the keys whose time is over now. `source` may be a namespace that was dropped since, and comes
  // back if `space` has its id. The commit fails with Trimmed, OutOfRange and NoSuchNamespace as
  // SnapshotAt() does, too.
  // Requires: no other operation is in the batch.
  void CloneNamespaceAt(NamespaceId source, SequenceNumber version,
                        const NamespaceDescription& space);
  // Gives the namespace this name and these options, which hold for the writes that follow.
  void AlterNamespace(const NamespaceDescription& space);
  // Removes the namespace with all that it holds, in constant time.
  void DropNamespace(NamespaceId space);
  // Exchanges what the two namespaces hold. Names and options stay.
  void SwapNamespaces(NamespaceId one, NamespaceId other);

  // --- Conditions --------------------------------------------------------------------------------
  // The point at which a key was read, as a condition carries it. A store whose writes have one
  // order compares `sequence`; a store without such an order compares `version`.
  struct ReadPoint {
    SequenceNumber sequence = kNoSequence;
    // The version that was read, kNoSequence for a missing key; nothing if the reader did not keep
    // it.
    std::optional<SequenceNumber> version;

    ReadPoint() = default;
    // A point in the store's order of writes, such as a snapshot's.
    explicit ReadPoint(SequenceNumber at) : sequence(at) {}
    ReadPoint(SequenceNumber at, SequenceNumber of) : sequence(at), version(of) {}
    explicit ReadPoint(const ReadResult& read)
        : sequence(read.read_sequence), version(read.found ? read.version : kNoSequence) {}
  };

  // Adds the condition that nobody has written `key` since it was read; else the whole batch fails
  // with Aborted and changes nothing. `read` is the ReadResult, which carries the version, or the
  // sequence at which the key was read.
  // Requires: the store that the batch is committed to gave `read`.
  void RequireUnchanged(std::string_view key, const ReadPoint& read,
                        NamespaceId space = kSelectedNamespace);
  void RequireUnchanged(std::string_view key, const ReadResult& read,
                        NamespaceId space = kSelectedNamespace) {
    RequireUnchanged(key, ReadPoint(read), space);
  }
  void RequireUnchanged(std::string_view key, SequenceNumber sequence,
                        NamespaceId space = kSelectedNamespace) {
    RequireUnchanged(key, ReadPoint(sequence), space);
  }
  // Adds the condition that nobody has put `key` since it was read, also if it went again; deleting
  // it does not count.
  // Requires: the key was missing when it was read.
  void RequireNotPut(std::string_view key, const ReadPoint& read,
                     NamespaceId space = kSelectedNamespace);
  void RequireNotPut(std::string_view key, SequenceNumber sequence,
                     NamespaceId space = kSelectedNamespace) {
    RequireNotPut(key, ReadPoint(sequence), space);
  }
  // Adds the condition that nobody has written any key in [begin, end) after `sequence`, keys that
  // were not there included; an empty `end` means to the end of the namespace. The lowest
  // `sequence` of several ranges counts for all of them. The commit looks at each write that
  // anybody committed since then.
  // Requires: a store with StoreCapabilities::snapshots.
  void RequireRangeUnchanged(std::string_view begin, std::string_view end, SequenceNumber sequence,
                             NamespaceId space = kSelectedNamespace);

  // --- Contents ----------------------------------------------------------------------------------
  // Visits the operations of a batch. Views are valid during the call. A status that is not OK ends
  // the walk.
  class OperationVisitor {
   public:
    virtual ~OperationVisitor() = default;
    // The extras name an instant of expiry or kNoExpiry.
    virtual absl::Status Put(NamespaceId space, std::string_view key, std::string_view value,
                             const PutExtras& extras) = 0;
    virtual absl::Status Delete(NamespaceId space, std::string_view key, WriteCause cause) = 0;
    virtual absl::Status DeleteRange(NamespaceId space, std::string_view begin,
                                     std::string_view end) = 0;
    virtual absl::Status ClearNamespace(NamespaceId space) = 0;
    virtual absl::Status CreateNamespace(const NamespaceDescription& space) = 0;
    virtual absl::Status CloneNamespace(NamespaceId source, const NamespaceDescription& space) = 0;
    // A store without a history need not know it.
    virtual absl::Status CloneNamespaceAt(NamespaceId source, SequenceNumber version,
                                          const NamespaceDescription& space);
    virtual absl::Status AlterNamespace(const NamespaceDescription& space) = 0;
    virtual absl::Status DropNamespace(NamespaceId space) = 0;
    virtual absl::Status SwapNamespaces(NamespaceId one, NamespaceId other) = 0;
  };
  // Visits the conditions of a batch, as OperationVisitor does its operations.
  class ConditionVisitor {
   public:
    virtual ~ConditionVisitor() = default;
    virtual absl::Status Unchanged(NamespaceId space, std::string_view key,
                                   const ReadPoint& read) = 0;
    virtual absl::Status NotPut(NamespaceId space, std::string_view key, const ReadPoint& read) = 0;
    virtual absl::Status RangeUnchanged(NamespaceId space, std::string_view begin,
                                        std::string_view end, SequenceNumber sequence) = 0;
  };
  // Walk in the order in which the batch was filled. They return what the visitor returned, or
  // status() if an operation could not be added.
  // Requires: no thread commits the batch meanwhile.
  [[nodiscard]] absl::Status ForEachOperation(OperationVisitor* visitor) const;
  [[nodiscard]] absl::Status ForEachCondition(ConditionVisitor* visitor) const;

  void Clear();

  // Operations so far, and encoded bytes so far.
  size_t size() const { return operations_; }
  bool empty() const { return operations_ == 0; }
  size_t bytes() const { return encoding_.record.size(); }
  bool clones_namespace() const { return clones_namespace_; }
  // Returns whether some operation adds data, rather than removing it.
  bool adds_data() const { return adds_data_; }

  // Says what was wrong with an operation (a key or value over its limit, no memory for it). The
  // commit reports it, too.
  [[nodiscard]] const absl::Status& status() const { return status_; }

  // --- The embedded engine's own -----------------------------------------------------------------
  // Adds a clock mark, by which the engine remembers that somebody has seen this instant.
  void MarkClock(uint64_t instant_ms);
  // Adds a change of a place of the change feed (StoreChanges).
  void ChangeFeed(std::string_view name, std::string_view change);
  // Adds a change that the engine has completed, or one that creates or clones a namespace.
  void ChangeNamespace(const NamespaceChange& change);

  // The encoded contents. Keys begin with four bytes that hold the namespace's id; the engine puts
  // the namespace's place in its tree there while it commits.
  struct Encoding {
    struct Condition {
      size_t key_offset;  // in condition_keys
      size_t key_size;
      ReadPoint read;
      bool puts_alone;  // deleting the key does not count
    };
    struct RangeCondition {
      size_t begin_offset;  // in condition_keys; the end stands behind it
      size_t begin_size;
      size_t end_size;
      SequenceNumber sequence;
    };
    std::string record;  // a header to be filled in, then the operations
    std::string condition_keys;
    std::vector<Condition> conditions;
    std::vector<RangeCondition> range_conditions;
  };
  Encoding& encoding() { return encoding_; }

 private:
  NamespaceId InUse(NamespaceId space) const {
    return space == kSelectedNamespace ? space_ : space;
  }
  void Require(std::string_view key, const ReadPoint& read, NamespaceId space, bool puts_alone);
  template <typename Change>
  void NoteLackOfMemory(Change change);
  void Append(RecordKind kind, NamespaceId space, std::string_view key, std::string_view value,
              uint64_t expiry_ms = 0, std::string_view metadata = {});

  Encoding encoding_;
  size_t operations_ = 0;
  NamespaceId space_ = kDefaultNamespace;
  uint64_t usual_expiry_ms_ = kNoExpiry;
  bool clones_namespace_ = false;
  bool adds_data_ = false;
  absl::Status status_;
};

}  // namespace varve
