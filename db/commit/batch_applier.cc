#include "db/commit/batch_applier.h"

#include <algorithm>
#include <string>
#include <utility>

#include "util/base/assert.h"
#include "util/base/coding.h"

namespace varve {
namespace {

// How many records ahead the memory is asked for that a record meets in the write buffer.
constexpr size_t kEntriesAhead = 8;

bool IsRecord(const Commit::Operation& operation) {
  return operation.record.kind == RecordKind::kValue ||
         operation.record.kind == RecordKind::kTombstone;
}

bool AscendFrom(SequenceNumber last, const std::vector<Commit::Operation>& operations) {
  const SequenceNumber first = operations.front().record.sequence;
  return first > last && operations.back().record.sequence == first + operations.size() - 1;
}

}  // namespace

// What PrepareLocked() gathers on its way through the operations.
class BatchApplier::Preparation {
 public:
  Preparation(BatchApplier* applier, const SuperVersion& present, bool counts_clones)
      : applier_(*applier), present_(present), counts_clones_(counts_clones) {}

  void Add(const Commit::Operation& operation) {
    const RecordView& record = operation.record;
    switch (record.kind) {
      case RecordKind::kValue:
        if (record.expiry_ms != 0) [[unlikely]] {
          changed().expiring.push_back(applier_.sweeper_->NewEntry(record));
          added_bytes_ += WriteBuffer::SizeOf(ExpirySweeper::RecordOf(change_->expiring.back()));
        }
        record_bytes_ += WriteBuffer::SizeOf(record);
        break;
      case RecordKind::kTombstone:
        record_bytes_ += WriteBuffer::SizeOf(record);
        break;
      case RecordKind::kClockMark:
        if (record.value.size() == sizeof(uint64_t)) {
          changed().clock_mark = std::max(changed().clock_mark, DecodeFixed64(record.value.data()));
          change_->clock_mark_sequence = record.sequence;
        }
        break;
      case RecordKind::kRangeTombstone:
        changed().tombstones.push_back(
            {std::string(record.key), std::string(record.value), record.sequence});
        break;
      case RecordKind::kSwitchGeneration:
      case RecordKind::kChangeNamespace:
        AddChangeOfNamespace(record);
        break;
      case RecordKind::kChangeFeed:
        changed().feeds = applier_.feeds_->After(changed().feeds, record);
        break;
      default:
        VARVE_ASSERT(record.kind == RecordKind::kIngest);
    }
  }

  std::optional<NamespaceTable>& namespaces() { return namespaces_; }
  // Return what the operations' own records take in the buffer, and what `change` adds to them.
  size_t record_bytes() const { return record_bytes_; }
  size_t added_bytes() const { return added_bytes_; }
  std::unique_ptr<Change>& change() { return change_; }

 private:
  Change& changed() {
    if (change_ == nullptr) change_ = std::make_unique<Change>();
    return *change_;
  }

  void AddChangeOfNamespace(const RecordView& record) {
    if (!namespaces_) namespaces_ = present_.namespaces;
    const size_t first_retired = changed().retired.size();
    for (const NamespaceId space : NamespaceTable::MovedBy(record)) {
      const NamespaceDescription* const was = namespaces_->Description(space);
      changed().retired.push_back(
          {.space = space,
           .generation = namespaces_->Generation(space).value_or(kNoGeneration),
           .retired_at = record.sequence,
           .dropped = was == nullptr ? nullptr : std::make_shared<NamespaceDescription>(*was)});
    }
    // A batch that it would refuse was refused before.
    namespaces_->Replay(record).IgnoreError();
    std::vector<NamespaceId> made;
    for (size_t i = first_retired; i < change_->retired.size(); ++i) {
      RetiredGeneration& retired = change_->retired[i];
      if (!namespaces_->Generation(retired.space).has_value()) continue;
      retired.dropped = nullptr;
      if (retired.generation == kNoGeneration) made.push_back(retired.space);
    }
    // What the log may yet lose does no harm: a horizon that nobody asks for goes again.
    applier_.horizons_->NoteNamespaces(*namespaces_, record.sequence, made);
    for (const NamespaceFork& fork : namespaces_->forks().all()) {
      if (fork.fork_point != record.sequence || !counts_clones_) continue;
      changed().clone = std::make_unique<KeyCounter::Clone>(
          KeyCounter::Clone{fork, applier_.counter_->NewPointLocked()});
    }
  }

  BatchApplier& applier_;
  const SuperVersion& present_;
  const bool counts_clones_;
  size_t record_bytes_ = 0, added_bytes_ = 0;
  std::optional<NamespaceTable> namespaces_;  // a copy, only once the batch changes them
  std::unique_ptr<Change> change_;            // most batches need none
};

std::unique_ptr<BatchApplier::Change> BatchApplier::PrepareLocked(
    const std::vector<Commit::Operation>& operations, bool counts_clones, size_t* bytes) {
  versions_->mutex().AssertHeld();
  VARVE_ASSERT(AscendFrom(versions_->LastSequenceLocked(), operations));
  const std::shared_ptr<const SuperVersion>& present = versions_->PresentLocked();
  Preparation preparation(this, *present, counts_clones);
  for (const Commit::Operation& operation : operations) preparation.Add(operation);
  std::unique_ptr<Change>& change = preparation.change();
  *bytes = preparation.record_bytes();
  present->active->Reserve(*bytes + preparation.added_bytes(),
                           change != nullptr ? change->tombstones.size() : 0);
  std::optional<NamespaceTable>& namespaces = preparation.namespaces();
  if (!namespaces && (change == nullptr || change->tombstones.empty())) return std::move(change);
  if (change == nullptr) change = std::make_unique<Change>();
  change->next = versions_->CopyLocked();
  versions_->ReserveLocked(change->tombstones.size(), change->retired.size());
  if (!change->tombstones.empty()) {
    change->buffered_tombstones = change->tombstones;
    std::vector<RangeTombstone> all = versions_->BufferedTombstonesLocked();
    all.insert(all.end(), change->tombstones.begin(), change->tombstones.end());
    change->next->buffered_tombstones = std::make_shared<RangeTombstoneList>(std::move(all));
  }
  if (namespaces) {
    change->next->namespaces = *std::move(namespaces);
    change->next->namespaces_changed = operations.back().record.sequence;
  }
  return std::move(change);
}

void BatchApplier::ApplyLocked(const std::vector<Commit::Operation>& operations, size_t bytes,
                               bool readers_wait, std::unique_ptr<Change> change) noexcept {
  versions_->mutex().AssertHeld();
  VARVE_ASSERT(operations.back().record.sequence == versions_->LastSequenceLocked());
  WriteBuffer* const active = versions_->PresentLocked()->active.get();
  VARVE_ASSERT(operations.front().record.sequence >= active->first_sequence());
  WriteBuffer::Batch batch;
  Insert(operations, readers_wait, active, active->Take(bytes), &batch);
  active->Append(batch);
  if (change == nullptr) [[likely]]
    return;
  for (const ExpirySweeper::IndexEntry& entry : change->expiring)
    sweeper_->AddLocked(entry, active);
  if (change->clock_mark_sequence != kNoSequence)
    watermark_->NoteMarkLocked(change->clock_mark_sequence, change->clock_mark);
  if (change->clone != nullptr) counter_->NoteCloneLocked(std::move(change->clone));
  VARVE_ASSERT(change->buffered_tombstones.size() == change->tombstones.size());
  for (RangeTombstone& tombstone : change->tombstones)
    active->AddRangeTombstone(std::move(tombstone));
  versions_->AddLocked(std::move(change->buffered_tombstones), change->retired);
  if (!change->retired.empty()) last_clear_.store(change->retired.back().retired_at);
  if (change->feeds != nullptr) feeds_->Publish(std::move(change->feeds));
  if (change->next != nullptr) versions_->PublishLocked(std::move(change->next));
}

void BatchApplier::Insert(const std::vector<Commit::Operation>& operations, bool readers_wait,
                          WriteBuffer* buffer, char* memory, WriteBuffer::Batch* batch) noexcept {
  const size_t ahead = std::min(kEntriesAhead, operations.size() - 1);
  for (size_t i = 0; i < operations.size() + ahead; ++i) {
    if (i < operations.size()) buffer->PrefetchEntry(operations[i].hash);
    if (i < ahead) continue;
    const Commit::Operation& operation = operations[i - ahead];
    if (IsRecord(operation))
      buffer->Insert(operation.record, operation.hash, readers_wait, &memory, batch);
  }
}

bool BatchApplier::TakeCleared(SequenceNumber durable) {
  SequenceNumber cleared = last_clear_.load();
  return cleared != kNoSequence && cleared <= durable &&
         last_clear_.compare_exchange_strong(cleared, kNoSequence);
}

}  // namespace varve
