// The inside of a transaction (include/varve/transaction.h): a store's contents at the
// transaction's snapshot, with its own writes on top. Code that works with StoreContents works
// inside the transaction without knowing it. Writes go into the transaction and are neither
// numbered nor logged before Commit().
//
// Thread-safety: one thread at a time, unlike other stores.
// Requires: the store below outlives it unless the transaction has ended.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "db/transaction/own_writes.h"
#include "db/transaction/read_set.h"
#include "varve/store.h"
#include "varve/transaction.h"

namespace varve {

class TransactionStore final : public StoreContents {
 public:
  TransactionStore(Store* below, const TransactionOptions& options);

  // --- Reads: own writes first, then the store at the snapshot ----------------------------------
  absl::StatusOr<ReadResult> Get(const ReadOptions& options, std::string_view key,
                                 std::string* value) override;
  absl::Status MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys,
                        absl::Span<MultiGetResult> results) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower,
                                        std::string_view upper,
                                        SequenceNumber* durable_after) override;
  std::shared_ptr<const Snapshot> GetSnapshot() override { return snapshot_; }
  absl::StatusOr<CountResult> Count(const ReadOptions& options, std::string_view lower,
                                    std::string_view upper) override;
  // Explains the read of the store's record, which an own write may hide.
  absl::StatusOr<ExplainedRead> ExplainGet(const ReadOptions& options,
                                           std::string_view key) override;
  // Returns the clock of the snapshot, or of the begin where the store has none.
  uint64_t NowMillis() const override { return instant_ms_; }

  // --- Writes: into the transaction --------------------------------------------------------------
  absl::StatusOr<CommitResult> Write(const WriteOptions& options, WriteBatch* batch) override {
    return Submit(options, batch);
  }
  // Conditions of the batch hold: what they are on was read at the transaction's snapshot.
  absl::StatusOr<CommitResult> Submit(const WriteOptions& options, WriteBatch* batch) override;
  void WriteAsync(const WriteOptions& options, WriteBatch* batch, WriteDone done) override {
    done(Submit(options, batch));
  }
  absl::StatusOr<CommitResult> Update(const WriteOptions& options,
                                      absl::Span<const std::string_view> keys,
                                      absl::FunctionRef<absl::Status(WriteBatch*)> decide) override;
  // Nobody else writes to a transaction, so there is nobody to wait for.
  std::unique_ptr<ExclusiveWrite> BeginExclusiveWrite() override;

  // --- Namespaces: those of the store, and what the transaction has created ----------------------
  absl::StatusOr<NamespaceList> Namespaces() const override;
  bool HasNamespace(NamespaceId space) const override;
  uint64_t UsualExpiry(NamespaceId space) const override;

  // A transaction can't clone namespaces, and reads nothing older than its snapshot.
  StoreCapabilities capabilities() const override;
  // A namespace that the transaction has created has no groups.
  std::optional<KeyGrouping> GroupsOf(NamespaceId space) const override {
    return store_->GroupsOf(space);
  }

  // --- The transaction's own ---------------------------------------------------------------------
  void Depend(std::string_view key, NamespaceId space);
  void DependOnRange(std::string_view lower, std::string_view upper, NamespaceId space);
  void Put(std::string_view key, std::string_view value, NamespaceId space,
           const PutExtras& extras);
  void Delete(std::string_view key, NamespaceId space, WriteCause cause = WriteCause::kWrite);
  void DeleteRange(std::string_view begin, std::string_view end, NamespaceId space);
  void ClearNamespace(NamespaceId space);
  absl::Status CreateNamespace(const NamespaceDescription& space);
  void SwapNamespaces(NamespaceId one, NamespaceId other);

  SequenceNumber sequence() const { return sequence_; }
  size_t bytes() const { return writes_.bytes() + reads_.bytes(); }
  CountResult CountPuts(std::optional<NamespaceId> space) const { return writes_.CountPuts(space); }
  const absl::Status& status() const { return status_; }

  // Submits everything to the store below and ends the transaction.
  absl::StatusOr<CommitResult> Commit();

 private:
  friend class TransactionIterator;

  absl::StatusOr<CommitResult> CommitInside();
  // Commits so where the store has no snapshots: what was read has its versions.
  absl::StatusOr<CommitResult> CommitByVersion();
  absl::StatusOr<CountResult> CountAll(const ReadOptions& options);
  absl::StatusOr<CountResult> CountByScan(const ReadOptions& options, std::string_view lower,
                                          std::string_view upper);
  // Returns what to ask the store: at the snapshot, in the namespace as it is called there.
  ReadOptions AtSnapshot(const ReadOptions& options) const;
  void DependAt(std::string_view key, NamespaceId origin);
  // Answers from own writes; false: the store has to be asked.
  // Requires: `options` come from AtSnapshot().
  bool ReadOwn(const ReadOptions& options, std::string_view key, ReadResult* result,
               std::string* value) const;
  // Notes what was read of the store, at the snapshot or with its version.
  void NoteRead(std::string_view key, NamespaceId origin, const ReadResult& read);
  // Takes in that the store did not answer a read: the transaction fails, as what it would write
  // may rest on the answer. Returns what the reader is told. What is damaged in a store with
  // snapshots fails the one read alone.
  absl::Status FailedRead(const absl::Status& failure);
  // `change` may run out of memory: then the transaction fails, as it does beyond max_bytes.
  void Note(absl::FunctionRef<void()> change);

  Store* const store_;
  const TransactionOptions options_;
  std::shared_ptr<const Snapshot> snapshot_;  // null once it has ended
  const SequenceNumber sequence_;             // of the snapshot
  const bool has_snapshot_;                   // else each read shows what is there at its time
  const uint64_t instant_ms_;
  OwnWrites writes_;
  ReadSet reads_;
  // Something was read that is not of the snapshot unless nothing has changed since.
  bool counted_ = false;
  int iterators_ = 0;
  absl::Status status_;
};

}  // namespace varve
