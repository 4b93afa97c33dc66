// A commit is one batch on its way into the store. It decodes the operations, replaces namespace
// ids by generations, hashes the keys and completes the record for the log. The commit pipeline
// calls Resolve(), which does all the work that needs no lock, before it takes the commit lock.
//
// Unless Committed() was called, the destructor puts the namespace ids back, so that a writer can
// submit a refused batch again.
//
// Thread-safety: the thread that made it uses a commit, or another one while that thread waits; a
// thread has one at a time.
#pragma once

#include <cstddef>
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

  // Replaces namespace ids by generations. `new_generation` returns the generation in which a
  // created or emptied namespace lives; kNoGeneration if none is left. The pipeline calls this
  // again if the table has changed since. Returns NoSuchNamespace if a namespace doesn't exist,
  // AlreadyExists if one that the batch creates does, and ResourceExhausted if no generation is
  // left.
  [[nodiscard]] absl::Status Resolve(
      const NamespaceTable& namespaces,
      absl::FunctionRef<NamespaceGeneration(NamespaceId)> new_generation);
  // Completes the record for the log with the sequence of its first operation, and returns it.
  std::string_view Seal(SequenceNumber first);
  // Gives the operations in memory their sequences, from `first` on.
  void Number(SequenceNumber first);
  // Returns whether some operation has a large value. Then the pipeline calls NoteLogOffset() with
  // the offset of the record in its log block.
  bool has_large() const { return has_large_; }
  void NoteLogOffset(uint32_t record_offset);
  // Notes that the batch is committed: empties it and keeps its memory.
  void Committed();

  const std::vector<Operation>& operations() const { return operations_; }
  const std::vector<Condition>& conditions() const { return conditions_; }
  const std::vector<RangeCondition>& range_conditions() const { return range_conditions_; }

  // The functions below read the commit itself and nothing that it refers to: a leader calls them,
  // and each cache line comes to it from the processor of the writer.
  size_t size() const { return size_; }  // operations
  std::string_view record() const { return record_; }
  size_t record_size() const { return record_.size(); }
  bool adds_data() const { return adds_data_; }
  // Returns whether the batch is a clock mark and nothing else; such a batch never waits.
  bool MarksClock() const { return marks_clock_; }
  bool has_conditions() const { return has_conditions_; }
  // Returns whether each operation adds its record to the write buffer and changes nothing else.
  // Requires: Resolve() returned OK.
  bool is_plain() const { return is_plain_; }
  // Returns the bytes that the records of a plain batch take in a write buffer.
  // Requires: is_plain().
  size_t buffer_bytes() const { return buffer_bytes_; }
  // The instant at which the batch was first committed, in another store; 0: it was not.
  uint64_t instant_ms() const { return instant_ms_; }
  void set_instant_ms(uint64_t instant_ms) { instant_ms_ = instant_ms; }

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
  // Takes the causes out of the operations, for a store whose log has no place for them.
  void ForgetCauses();
  uint64_t HashAll();
  void SumUp();                                       // sets is_plain_ and buffer_bytes_
  static std::vector<LargeOperation>& ReusedLarge();  // by the commits of one thread
  absl::Status ResolveChange(const Operation& operation, NamespaceTable* table,
                             absl::FunctionRef<NamespaceGeneration(NamespaceId)> new_generation);

  WriteBatch* const batch_;
  std::string_view record_;  // the batch's
  size_t size_ = 0;
  uint64_t operations_hash_ = 0;
  size_t buffer_bytes_ = 0;
  uint64_t instant_ms_ = 0;
  bool adds_data_ = false;
  bool marks_clock_ = false;
  bool has_conditions_ = false;
  bool has_large_ = false;
  bool is_plain_ = false;
  bool committed_ = false;
  // Kept between commits of one thread: no allocation in steady state.
  std::vector<Operation>& operations_;
  std::vector<Condition>& conditions_;
  std::vector<LargeOperation>& large_;
  std::vector<RangeCondition> range_conditions_;
};

}  // namespace varve
