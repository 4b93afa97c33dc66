// Operations that are committed together: all of them or none, also across a crash, seen together
// by every reader.
//
// A batch is kept encoded as the record that the log will hold (drawn in db/format/log_format.h),
// so committing it copies bytes once. Later operations on a key win over earlier ones. Not
// thread-safe. Reusable after Clear(), which keeps the memory up to a few MiB.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "type/record.h"
#include "varve/namespace.h"
#include "varve/options.h"

namespace varve {

class WriteBatch {
 public:
  WriteBatch();

  // Where the operations and conditions from here on belong that don't name a namespace, and what
  // their kUsualExpiry is (Store::UsualExpiry); Clear() makes it the default one again, and
  // kNoExpiry.
  void UseNamespace(NamespaceId space, uint64_t usual_expiry_ms = kNoExpiry) {
    space_ = space;
    usual_expiry_ms_ = usual_expiry_ms;
  }

  // `expiry_ms`: the instant, in milliseconds since the epoch, from which on nobody sees the key
  // any more.
  void Put(std::string_view key, std::string_view value, NamespaceId space = kSelectedNamespace,
           uint64_t expiry_ms = kUsualExpiry);
  void Delete(std::string_view key, NamespaceId space = kSelectedNamespace);
  // Deletes every key in [begin, end); an empty `end` means to the end of the namespace. Costs the
  // same for any number of keys.
  void DeleteRange(std::string_view begin, std::string_view end,
                   NamespaceId space = kSelectedNamespace);
  // Empties the namespace in constant time.
  void ClearNamespace(NamespaceId space = kSelectedNamespace);

  // A new, empty namespace; `space.id` is a database's number or NamespaceList::next_id. The commit
  // fails with AlreadyExists where there is one of this id or name. Later operations of the batch
  // may use it.
  void CreateNamespace(const NamespaceDescription& space);
  // A new namespace that holds what `source` holds, in constant time, and shares it until either is
  // written (db/format/namespace_bases.h). The only operation of its batch. Fails like
  // CreateNamespace; NoSuchNamespace: there is no source. ResourceExhausted also: too many clones
  // of clones.
  void CloneNamespace(NamespaceId source, const NamespaceDescription& space);
  // Its name and options from now on, for the writes that follow.
  void AlterNamespace(const NamespaceDescription& space);
  // With all that it holds, in constant time.
  void DropNamespace(NamespaceId space);
  // What the one held, the other one holds now. Names and options stay.
  void SwapNamespaces(NamespaceId one, NamespaceId other);

  // Condition: nobody has written `key` after `sequence`; else the whole batch fails with Aborted
  // and changes nothing. `sequence` is the point at which the key was read
  // (ReadResult::read_sequence, or a snapshot's).
  void RequireUnchanged(std::string_view key, SequenceNumber sequence,
                        NamespaceId space = kSelectedNamespace);

  // Condition: nobody has put `key` after `sequence`, also if it went again since. For a key that
  // was not there: what deletes doesn't count.
  void RequireNotPut(std::string_view key, SequenceNumber sequence,
                     NamespaceId space = kSelectedNamespace);
  // As RequireUnchanged for each key in [begin, end), also for those that were not there; an empty
  // `end` means to the end of the namespace. Of several ranges the lowest `sequence` counts for
  // all. Costs a look at each write that was committed since then, by anybody.
  void RequireRangeUnchanged(std::string_view begin, std::string_view end, SequenceNumber sequence,
                             NamespaceId space = kSelectedNamespace);

  // The engine's own: a clock mark (db/expiry/store_clock.h).
  void MarkClock(uint64_t instant_ms);

  void Clear();

  // Operations so far; encoded bytes so far.
  size_t size() const { return operations_; }
  bool empty() const { return operations_ == 0; }
  size_t bytes() const { return encoded_.size(); }
  bool clones_namespace() const { return clones_namespace_; }

  // What was wrong with an operation (a key or value over its limit, no memory for it): reported
  // when the batch is committed.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  // Db/engine/commit.h: turns namespace ids into generations and seals the record.
  friend class Commit;

  struct Condition {
    size_t
        // Into condition_keys_, where tree keys stand with their namespace id in place of the
        // generation.
        key_offset;
    size_t key_size;
    SequenceNumber sequence;
    bool puts_alone;  // what deletes doesn't count
  };
  struct RangeCondition {
    size_t begin_offset;  // as above; the end stands behind it
    size_t begin_size;
    size_t end_size;
    SequenceNumber sequence;
  };

  NamespaceId InUse(NamespaceId space) const {
    return space == kSelectedNamespace ? space_ : space;
  }
  void Require(std::string_view key, SequenceNumber sequence, NamespaceId space, bool puts_alone);
  template <typename Change>
  void NoteLackOfMemory(Change change);
  void Append(RecordKind kind, NamespaceId space, std::string_view key, std::string_view value,
              uint64_t expiry_ms = 0);

  // Header placeholder, then operations with namespace ids where generations will stand.
  std::string encoded_;
  size_t operations_ = 0;
  NamespaceId space_ = kDefaultNamespace;
  uint64_t usual_expiry_ms_ = kNoExpiry;
  bool clears_namespace_ = false;
  bool clones_namespace_ = false;
  bool adds_data_ = false;
  std::vector<Condition> conditions_;
  std::vector<RangeCondition> range_conditions_;
  std::string condition_keys_;
  absl::Status status_;
};

}  // namespace varve
