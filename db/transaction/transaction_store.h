// A transaction in the place of a store: whoever works with the Store interface works inside the
// transaction without knowing it. Reads see its snapshot and its writes; writes go into it and are
// neither numbered nor logged before Transaction::Submit(). Functions that have to do with neither
// (durability, upkeep, figures) are those of the store below. One thread at a time, unlike other
// stores.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "varve/store.h"
#include "varve/transaction.h"

namespace varve {

class TransactionStore final : public Store {
 public:
  // Both outlive this.
  TransactionStore(Store* below, Transaction* transaction)
      : below_(below), transaction_(transaction) {}

  absl::StatusOr<ReadResult> Get(const ReadOptions& options, std::string_view key,
                                 std::string* value) override {
    return transaction_->Get(options, key, value);
  }
  // Of the store's record, which an own write may hide.
  absl::StatusOr<ExplainedRead> ExplainGet(const ReadOptions& options,
                                           std::string_view key) override;
  absl::Status MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys,
                        absl::Span<MultiGetResult> results) override {
    return transaction_->MultiGet(options, keys, results);
  }
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower,
                                        std::string_view upper,
                                        SequenceNumber* durable_after) override {
    return transaction_->NewIterator(options, lower, upper, durable_after);
  }
  std::shared_ptr<const Snapshot> GetSnapshot() override { return transaction_->snapshot(); }
  absl::StatusOr<CountResult> Count(const ReadOptions& options, std::string_view lower,
                                    std::string_view upper) override {
    return transaction_->Count(options, lower, upper);
  }

  absl::StatusOr<CommitResult> Write(const WriteOptions& options, WriteBatch* batch) override {
    return Submit(options, batch);
  }
  // Conditions hold: what they are on was read at the transaction's snapshot.
  absl::StatusOr<CommitResult> Submit(const WriteOptions& options, WriteBatch* batch) override;
  absl::StatusOr<CommitResult> Update(const WriteOptions& options,
                                      absl::Span<const std::string_view> keys,
                                      absl::FunctionRef<absl::Status(WriteBatch*)> decide) override;
  void WriteAsync(const WriteOptions& options, WriteBatch* batch,
                  std::function<void(absl::StatusOr<CommitResult>)> done) override {
    done(Submit(options, batch));
  }
  void SetSync(Durability sync) override { below_->SetSync(sync); }
  absl::Status Push() override { return below_->Push(); }
  absl::Status PushUnsynced() override { return below_->PushUnsynced(); }
  // The clock of its snapshot.
  uint64_t NowMillis() const override { return transaction_->snapshot()->instant_ms(); }
  uint64_t ChangeCount() const override { return below_->ChangeCount(); }
  // Those of the store at present, and what the transaction has created.
  absl::StatusOr<NamespaceList> Namespaces() const override;
  bool HasNamespace(NamespaceId space) const override { return transaction_->HasNamespace(space); }
  uint64_t UsualExpiry(NamespaceId space) const override { return below_->UsualExpiry(space); }
  std::unique_ptr<ExclusiveWrite> BeginExclusiveWrite() override {
    return below_->BeginExclusiveWrite();
  }

  SequenceNumber durable_sequence() const override { return below_->durable_sequence(); }
  absl::Status log_status() const override { return below_->log_status(); }
  uint64_t AddDurabilityListener(std::function<void()> listener) override {
    return below_->AddDurabilityListener(std::move(listener));
  }
  void SetExpiryListener(ExpiryListener listener) override {
    below_->SetExpiryListener(std::move(listener));
  }
  void RemoveDurabilityListener(uint64_t token) override {
    below_->RemoveDurabilityListener(token);
  }
  absl::Status WaitUntilDurable(SequenceNumber sequence) override {
    return below_->WaitUntilDurable(sequence);
  }
  bool TrySync() override { return below_->TrySync(); }
  absl::Status Sync() override { return below_->Sync(); }

  absl::Status Flush() override { return below_->Flush(); }
  absl::Status Compact(std::string_view lower, std::string_view upper, NamespaceId space) override {
    return below_->Compact(lower, upper, space);
  }
  Pressure pressure() const override { return below_->pressure(); }
  std::vector<std::pair<std::string, uint64_t>> Statistics() const override {
    return below_->Statistics();
  }
  // The store stays open.
  absl::Status Close() override {
    return absl::FailedPreconditionError("a transaction can't close its store");
  }

 private:
  absl::Status Change(const RecordView& record);

  Store* const below_;
  Transaction* const transaction_;
};

}  // namespace varve
