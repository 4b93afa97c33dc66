#include "db/transaction/transaction_store.h"

#include <algorithm>
#include <optional>

#include "db/engine/commit.h"
#include "db/format/namespace_change.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {

absl::StatusOr<ExplainedRead> TransactionStore::ExplainGet(const ReadOptions& options,
                                                           std::string_view key) {
  ReadOptions at = options;
  at.snapshot = transaction_->snapshot().get();
  transaction_->Depend(key, options.space);
  return below_->ExplainGet(at, key);
}

absl::StatusOr<NamespaceList> TransactionStore::Namespaces() const {
  VARVE_ASSIGN_OR_RETURN(NamespaceList list, below_->Namespaces());
  for (const NamespaceDescription& space : transaction_->created_namespaces()) {
    if (list.Find(space.id) == nullptr) list.namespaces.push_back(space);
    list.next_id = std::max(list.next_id, space.id + 1);
  }
  std::sort(
      list.namespaces.begin(), list.namespaces.end(),
      [](const NamespaceDescription& a, const NamespaceDescription& b) { return a.id < b.id; });
  return list;
}

absl::StatusOr<CommitResult> TransactionStore::Submit(const WriteOptions&, WriteBatch* batch) {
  VARVE_RETURN_IF_ERROR(batch->status());
  const absl::Status noted = GuardMemory("adding to a transaction", [&]() -> absl::Status {
    Commit commit(batch);
    for (const Commit::Operation& operation : commit.operations()) {
      const RecordView& record = operation.record;
      const std::string_view key = UserKeyOf(record.key);
      switch (record.kind) {
        case RecordKind::kValue:
          transaction_->Put(key, record.value, operation.space, record.expiry_ms);
          break;
        case RecordKind::kTombstone:
          transaction_->Delete(key, operation.space);
          break;
        case RecordKind::kRangeTombstone:
          transaction_->DeleteRange(key, UserKeyOf(record.value), operation.space);
          break;
        case RecordKind::kSwitchGeneration:
          transaction_->ClearNamespace(operation.space);
          break;
        case RecordKind::kChangeNamespace:
          VARVE_RETURN_IF_ERROR(Change(record));
          break;
        case RecordKind::kClockMark:  // of the store
          break;
      }
    }
    commit.Committed();
    return absl::OkStatus();
  });
  VARVE_RETURN_IF_ERROR(noted);
  VARVE_RETURN_IF_ERROR(transaction_->status());
  return CommitResult{transaction_->sequence(), kNoSequence};
}

absl::Status TransactionStore::Change(const RecordView& record) {
  const std::optional<NamespaceChange> change = DecodeNamespaceChange(record);
  if (change && change->verb == NamespaceChange::Verb::kCreate)
    return transaction_->CreateNamespace(change->space);
  if (!change || change->verb != NamespaceChange::Verb::kSwap) {
    return absl::FailedPreconditionError("a transaction can't alter, drop or clone namespaces");
  }
  transaction_->SwapNamespaces(change->space.id, change->other);
  return absl::OkStatus();
}

absl::StatusOr<CommitResult> TransactionStore::Update(
    const WriteOptions& options, absl::Span<const std::string_view>,
    absl::FunctionRef<absl::Status(WriteBatch*)> decide) {
  WriteBatch batch;
  VARVE_RETURN_IF_ERROR(decide(&batch));
  return Submit(options, &batch);
}

}  // namespace varve
