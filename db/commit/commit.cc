#include "db/commit/commit.h"

#include <algorithm>

#include "db/format/batch_codec.h"
#include "db/format/log_format.h"
#include "db/write_buffer/write_buffer.h"
#include "util/base/assert.h"
#include "util/base/hash.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

thread_local std::vector<Commit::Operation> reused_operations;
thread_local std::vector<Commit::Condition> reused_conditions;
constexpr size_t kKeptCapacity = 4096;  // operations (conditions) whose memory a thread keeps

absl::Status NoGenerationLeft() {
  return absl::ResourceExhaustedError(
      "namespaces of this store were created or emptied four billion times, and no more is "
      "possible: export what it "
      "holds into a new one");
}

}  // namespace

std::vector<Commit::LargeOperation>& Commit::ReusedLarge() {
  thread_local std::vector<LargeOperation> reused;
  return reused;
}

Commit::Commit(WriteBatch* batch)
    : batch_(batch),
      operations_(reused_operations),
      conditions_(reused_conditions),
      large_(ReusedLarge()) {
  operations_.clear();
  conditions_.clear();
  large_.clear();
  BatchReader reader(std::string_view(batch->encoding().record).substr(kBatchHeaderSize));
  Operation operation;
  while (reader.Next(&operation.record)) {
    operation.space = GenerationOf(operation.record.key);
    if (reader.seal_offset() != 0) {
      large_.push_back(
          {.index = operations_.size(),
           .offset = static_cast<size_t>(reader.bytes().data() - batch->encoding().record.data()),
           .size = reader.bytes().size(),
           .seal_offset = reader.seal_offset()});
    }
    operations_.push_back(operation);
  }
  // A batch that an operation did not fit into may end within one.
  VARVE_ASSERT(!batch->status().ok() || (reader.ok() && operations_.size() == batch->size()));
  for (const WriteBatch::Encoding::Condition& condition : batch->encoding().conditions) {
    const std::string_view key = std::string_view(batch->encoding().condition_keys)
                                     .substr(condition.key_offset, condition.key_size);
    conditions_.push_back({.tree_key = key,
                           .sequence = condition.read.sequence,
                           .space = GenerationOf(key),
                           .puts_alone = condition.puts_alone});
  }
  for (const WriteBatch::Encoding::RangeCondition& condition : batch->encoding().range_conditions) {
    const std::string_view keys =
        std::string_view(batch->encoding().condition_keys).substr(condition.begin_offset);
    range_conditions_.push_back({.lower = keys.substr(0, condition.begin_size),
                                 .upper = keys.substr(condition.begin_size, condition.end_size),
                                 .sequence = condition.sequence,
                                 .space = GenerationOf(keys)});
  }
  record_ = batch->encoding().record;
  size_ = operations_.size();
  adds_data_ = batch->adds_data();
  marks_clock_ = size_ == 1 && operations_.front().record.kind == RecordKind::kClockMark;
  has_conditions_ = !conditions_.empty() || !range_conditions_.empty();
  has_large_ = !large_.empty();
}

Commit::~Commit() {
  if (!committed_) {
    for (const Operation& operation : operations_)
      PutGeneration(operation.record.key, operation.space);
    for (const Condition& condition : conditions_)
      PutGeneration(condition.tree_key, condition.space);
    for (const RangeCondition& condition : range_conditions_) {
      PutGeneration(condition.lower, condition.space);
      PutGeneration(condition.upper, condition.space);
    }
  }
  if (operations_.capacity() > kKeptCapacity) std::vector<Operation>().swap(operations_);
  if (conditions_.capacity() > kKeptCapacity) std::vector<Condition>().swap(conditions_);
  if (large_.capacity() > kKeptCapacity) std::vector<LargeOperation>().swap(large_);
}

// The views point into the batch's own strings, which are this commit's to change.
void Commit::PutGeneration(std::string_view place, NamespaceGeneration generation) {
  VARVE_ASSERT(place.size() >= kGenerationSize);
  EncodeGeneration(const_cast<char*>(place.data()), generation);
}

void Commit::ForgetCauses() {
  if (std::all_of(operations_.begin(), operations_.end(), [](const Operation& operation) {
        return operation.record.cause == WriteCause::kWrite;
      }))
    return;
  BatchReader reader(std::string_view(batch_->encoding().record).substr(kBatchHeaderSize));
  RecordView record;
  for (Operation& operation : operations_) {
    if (!reader.Next(&record)) break;
    char* const first = const_cast<char*>(reader.bytes().data());  // the batch's own string
    *first = static_cast<char>((static_cast<uint8_t>(*first) & 0xf0) |
                               static_cast<uint8_t>(operation.record.kind));
    operation.record.cause = WriteCause::kWrite;
  }
}

absl::Status Commit::Resolve(const NamespaceTable& namespaces,
                             absl::FunctionRef<NamespaceGeneration(NamespaceId)> new_generation) {
  if (!namespaces.keeps_history()) [[unlikely]]
    ForgetCauses();
  std::optional<NamespaceTable> changed;  // a copy, only once the batch changes a namespace
  const NamespaceTable* table = &namespaces;
  const auto generation_of = [&](NamespaceId space,
                                 NamespaceGeneration* generation) -> absl::Status {
    const std::optional<NamespaceGeneration> found = table->Generation(space);
    if (!found) return NoSuchNamespace(space);
    *generation = *found;
    return absl::OkStatus();
  };

  NamespaceGeneration generation = 0;
  for (Condition& condition : conditions_) {
    if (absl::Status status = generation_of(condition.space, &generation); !status.ok())
      return status;
    PutGeneration(condition.tree_key, generation);
    condition.hash = HashKey(condition.tree_key);
  }
  for (const RangeCondition& condition : range_conditions_) {
    if (absl::Status status = generation_of(condition.space, &generation); !status.ok())
      return status;
    PutGeneration(condition.lower, generation);
    const bool to_the_end = condition.upper.size() == kGenerationSize;
    PutGeneration(condition.upper, to_the_end ? generation + 1 : generation);
  }
  for (Operation& operation : operations_) {
    if (operation.record.kind == RecordKind::kChangeNamespace) {
      if (!changed) table = &changed.emplace(*table);
      if (absl::Status status = ResolveChange(operation, &*changed, new_generation); !status.ok())
        return status;
      continue;
    }
    if (absl::Status status = generation_of(operation.space, &generation); !status.ok())
      return status;
    if (operation.record.kind == RecordKind::kSwitchGeneration) {
      const NamespaceGeneration next = new_generation(operation.space);
      if (next == kNoGeneration) return NoGenerationLeft();
      PutGeneration(operation.record.value, next);
      if (!changed) table = &changed.emplace(*table);
      changed->Set(operation.space, next);
      continue;  // its key stays the namespace's id
    }
    if (operation.record.kind == RecordKind::kClockMark ||
        operation.record.kind == RecordKind::kChangeFeed)
      continue;
    PutGeneration(operation.record.key, generation);
    if (operation.record.kind == RecordKind::kRangeTombstone) {
      const bool to_the_end = operation.record.value.size() == kGenerationSize;
      PutGeneration(operation.record.value, to_the_end ? generation + 1 : generation);
    } else {
      operation.hash = HashKey(operation.record.key);
    }
  }
  operations_hash_ = HashAll();
  SumUp();
  return absl::OkStatus();
}

void Commit::SumUp() {
  is_plain_ = !has_large_;
  buffer_bytes_ = 0;
  for (const Operation& operation : operations_) {
    const RecordView& record = operation.record;
    is_plain_ = is_plain_ && (record.kind == RecordKind::kTombstone ||
                              (record.kind == RecordKind::kValue && record.expiry_ms == 0));
    buffer_bytes_ += WriteBuffer::SizeOf(record);
  }
}

uint64_t Commit::HashAll() {
  const std::string_view record = batch_->encoding().record;
  if (large_.empty()) return HashOperations(record.substr(kBatchHeaderSize));
  OperationsHash hash;
  size_t hashed = kBatchHeaderSize;
  for (LargeOperation& large : large_) {
    large.body_hash = LargeBodyHash(record.substr(large.offset, large.size), large.seal_offset);
    hash.Add(record.substr(hashed, large.offset - hashed), large.body_hash);
    hashed = large.offset + large.size;
  }
  return hash.Finish(record.substr(hashed));
}

absl::Status Commit::ResolveChange(
    const Operation& operation, NamespaceTable* table,
    absl::FunctionRef<NamespaceGeneration(NamespaceId)> new_generation) {
  std::optional<NamespaceChange> change = DecodeNamespaceChange(operation.record);
  if (!change) return absl::InvalidArgumentError("a change of a namespace makes no sense");
  const bool clones = change->verb == NamespaceChange::Verb::kClone;
  if (clones && operations_.size() != 1)
    return absl::InvalidArgumentError("cloning a namespace takes a batch of its own");
  if (change->verb == NamespaceChange::Verb::kCreate && operations_.size() != 1 &&
      change->space.options.grouping.declared()) {
    return CrossGroup("creating a namespace with groups of keys takes a batch of its own");
  }
  VARVE_ASSERT(!change->past || change->past->parent != kNoGeneration);
  if (clones || change->verb == NamespaceChange::Verb::kCreate) {
    change->generation = new_generation(operation.space);
    if (change->generation == kNoGeneration) return NoGenerationLeft();
    PutGeneration(operation.record.value.substr(kGenerationInChange), change->generation);
  }
  return table->Apply(*change);
}

std::string_view Commit::Seal(SequenceNumber first) {
  VARVE_ASSERT(first != kNoSequence && !committed_);
  VARVE_ASSERT(size_ != 0);
  char* const record = const_cast<char*>(record_.data());  // the batch's own string
  if (has_large_) [[unlikely]] {
    for (const LargeOperation& large : large_) {
      SealLargeOperation(record + large.offset, large.seal_offset, first + large.index,
                         large.body_hash);
    }
  }
  const uint32_t count = static_cast<uint32_t>(size_) | (has_large_ ? kHasLargeOperations : 0);
  SealBatch(first, count, operations_hash_, record, record_.size());
  return record_;
}

void Commit::Number(SequenceNumber first) {
  for (Operation& operation : operations_) operation.record.sequence = first++;
}

void Commit::NoteLogOffset(uint32_t record_offset) {
  for (const LargeOperation& large : large_) {
    operations_[large.index].record.log_offset =
        record_offset + static_cast<uint32_t>(large.offset);
  }
}

void Commit::Committed() {
  VARVE_ASSERT(!committed_);
  committed_ = true;
  batch_->Clear();
}

}  // namespace varve
