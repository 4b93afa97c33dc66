// One batch on its way into the store: its operations decoded, namespace ids replaced by
// generations, keys hashed, the record sealed. Everything that needs no lock is done in Resolve(),
// before the commit lock is taken.
//
// One thread, one batch. Unless Committed() was called, the destructor puts the namespace ids back,
// so that a batch which was refused can be submitted again.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "db/namespaces/namespace_table.h"
#include "type/record.h"
#include "varve/write_batch.h"

namespace varve {

class Commit {
 public:
  struct Operation {
    RecordView record;  // views into the batch
    uint64_t hash = 0;  // of the tree key; kValue and kTombstone only
    NamespaceId space = kDefaultNamespace;
  };
  struct Condition {
    std::string_view tree_key;
    uint64_t hash = 0;
    SequenceNumber sequence = kNoSequence;
    NamespaceId space = kDefaultNamespace;
    bool puts_alone = false;
  };

  struct RangeCondition {
    std::string_view lower;  // tree keys: [lower, upper)
    std::string_view upper;
    SequenceNumber sequence = kNoSequence;
    NamespaceId space = kDefaultNamespace;
  };

  explicit Commit(WriteBatch* batch);
  ~Commit();
  Commit(const Commit&) = delete;
  Commit& operator=(const Commit&) = delete;

  // Puts generations in the place of namespace ids; `new_generation` names the one that a cleared
  // namespace continues in (kNoGeneration: none is left). May be called again when the table has
  // changed since. NoSuchNamespace: one doesn't exist. AlreadyExists: one that is to be created
  // does. ResourceExhausted: there is no generation for it.
  [[nodiscard]] absl::Status Resolve(
      const NamespaceTable& namespaces,
      absl::FunctionRef<NamespaceGeneration(NamespaceId)> new_generation);
  // Numbers the operations from `first` on and completes the record for the log.
  std::string_view Seal(SequenceNumber first);
  // Returns whether some operation has a large value; then the log says where in its block the
  // record lies.
  bool has_large() const { return !large_.empty(); }
  void NoteLogOffset(uint32_t record_offset);
  // The batch is in: it is emptied, its memory kept.
  void Committed();

  const std::vector<Operation>& operations() const { return operations_; }
  const std::vector<Condition>& conditions() const { return conditions_; }
  const std::vector<RangeCondition>& range_conditions() const { return range_conditions_; }
  bool adds_data() const { return batch_->adds_data(); }
  // A clock mark and nothing else, which is in nobody's way.
  bool MarksClock() const {
    return operations_.size() == 1 && operations_.front().record.kind == RecordKind::kClockMark;
  }
  size_t record_size() const { return batch_->bytes(); }

 private:
  // An element of operations_ with a large value (db/format/large_operation.h).
  struct LargeOperation {
    size_t index;
    size_t offset;  // in the record
    size_t size;
    size_t seal_offset;
    uint64_t body_hash;
  };

  void PutGeneration(std::string_view place, NamespaceGeneration generation);
  uint64_t HashAll();
  static std::vector<LargeOperation>& ReusedLarge();  // by the commits of one thread
  absl::Status ResolveChange(const Operation& operation, NamespaceTable* table,
                             absl::FunctionRef<NamespaceGeneration(NamespaceId)> new_generation);

  WriteBatch* batch_;
  bool committed_ = false;
  uint64_t operations_hash_ = 0;
  // Kept between commits of one thread: no allocation in steady state.
  std::vector<Operation>& operations_;
  std::vector<Condition>& conditions_;
  std::vector<LargeOperation>& large_;
  std::vector<RangeCondition> range_conditions_;
};

}  // namespace varve
