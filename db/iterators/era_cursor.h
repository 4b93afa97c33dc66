// The era cursor walks over the keys of one namespace in one era, which is the time during which
// the namespace lived in one generation, and tells of each key what changed for its readers.
//
// Thread-safety: a cursor belongs to one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "db/format/internal_iterator.h"
#include "db/version/super_version.h"
#include "varve/changes.h"
#include "varve/types.h"

namespace varve {

struct NamespaceEra {
  NamespaceGeneration generation = kNoGeneration;  // kNoGeneration: the namespace did not exist
  // The write with which the era began, and what that did; kNoSequence: with the store, or it is
  // not kept any more.
  SequenceNumber begin = kNoSequence;
  ChangeOperation::Kind begun_by = ChangeOperation::Kind::kCreate;
  SequenceNumber end = kMaxSequence;  // the write that ended it
};

// One write that concerns a key.
struct KeyChange {
  SequenceNumber sequence = kNoSequence;
  ChangeOperation::Kind kind = ChangeOperation::Kind::kSet;
  // The key has this from then on; null: nothing. Valid during the call that shows it.
  const RecordView* record = nullptr;
  // It is what the key had at the oldest version that can be read.
  bool is_oldest = false;
};

class EraCursor {
 public:
  struct Bounds {
    SequenceNumber first = kNoSequence;  // the oldest version that can be read
    SequenceNumber at = kNoSequence;     // nothing newer is shown
    std::string_view lower;              // user keys: [lower, upper)
    std::string_view upper;              // empty: no end
    bool fill_cache = false;
  };

  // Moves to the first key.
  // Requires: the super version outlives the cursor; bounds.first <= bounds.at.
  EraCursor(const SuperVersion* state, const NamespaceEra& era, const Bounds& bounds);

  bool Valid() const { return Own() || Inherited(); }
  // Requires: Valid(). The view is valid until the next move.
  std::string_view key() const;
  // Moves to the first key that is not `key` and not before it.
  void MoveBehind(std::string_view key);
  absl::Status status() const;

  // Shows what concerns `key` in the era, newest first, the beginning of the era included, until
  // `show` returns false. Returns false after that. The cursor may then stand at any version of the
  // key.
  // Requires: the cursor stands at the key, or behind it and no version of it is in the era.
  bool ShowChanges(std::string_view key, absl::FunctionRef<bool(const KeyChange&)> show);

 private:
  bool Own() const { return IsWithin(records_.get()); }
  bool Inherited() const { return IsWithin(inherited_.get()); }
  bool IsWithin(const InternalIterator* records) const {
    return records != nullptr && records->Valid() && (end_.empty() || records->record().key < end_);
  }
  // Returns the own version of the key at which the cursor stands; null: there is none.
  const RecordView* OwnVersionOf(std::string_view tree_key) const;
  // Shows the changes behind `floor`.
  bool ShowAbove(std::string_view tree_key, SequenceNumber floor,
                 absl::FunctionRef<bool(const KeyChange&)> show);

  const SuperVersion& state_;
  const NamespaceEra era_;
  const SequenceNumber first_;
  const SequenceNumber newest_;                  // of the era that is shown
  std::string end_;                              // tree key
  std::unique_ptr<InternalIterator> records_;    // null: there are none
  std::unique_ptr<InternalIterator> inherited_;  // of a clone; else null
};

// Returns what a write of this kind and cause did.
ChangeOperation::Kind ChangeKindOf(const RecordView& record);

}  // namespace varve
