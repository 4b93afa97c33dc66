#include "db/transaction_store.h"

#include "db/commit.h"
#include "util/memory_guard.h"
#include "util/status.h"

namespace varve {

absl::StatusOr<ExplainedRead> TransactionStore::ExplainGet(const ReadOptions& options, std::string_view key) {
  ReadOptions at = options;
  at.snapshot = transaction_->snapshot().get();
  transaction_->Depend(key, options.space);
  return below_->ExplainGet(at, key);
}

absl::StatusOr<CommitResult> TransactionStore::Submit(const WriteOptions&, WriteBatch* batch) {
  VARVE_RETURN_IF_ERROR(batch->status());
  const absl::Status noted = GuardMemory("adding to a transaction", [&] {
    Commit commit(batch);
    for (const Commit::Operation& operation : commit.operations()) {
      const RecordView& record = operation.record;
      const std::string_view key = UserKeyOf(record.key);
      switch (record.kind) {
        case RecordKind::kValue:
          transaction_->Put(key, record.value, operation.space);
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
      }
    }
    commit.Committed();
    return absl::OkStatus();
  });
  VARVE_RETURN_IF_ERROR(noted);
  VARVE_RETURN_IF_ERROR(transaction_->status());
  return CommitResult{transaction_->sequence(), kNoSequence};
}

absl::StatusOr<CommitResult> TransactionStore::Update(const WriteOptions& options, absl::Span<const std::string_view>,
                                                      absl::FunctionRef<absl::Status(WriteBatch*)> decide) {
  WriteBatch batch;
  VARVE_RETURN_IF_ERROR(decide(&batch));
  return Submit(options, &batch);
}

}  // namespace varve
