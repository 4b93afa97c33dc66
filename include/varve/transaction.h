// Several reads and writes as one step: a snapshot transaction over a store.
//
//   auto committed = varve::RunTransaction(store, {}, [](varve::Transaction* transaction) ->
//   absl::Status {
//     std::string value;
//     auto read = transaction->Get({}, "balance:1", &value);
//     if (!read.ok()) return read.status();
//     transaction->Put("balance:1", ...);
//     return absl::OkStatus();
//   });
//
// Isolation: serializable. Everything is read at one snapshot, with the transaction's own writes on
// top; nobody sees a write before the commit, which is one record of the log: all of it or none,
// also across a crash. A commit succeeds only if what was read of the store still is so at that
// moment: each key read (also one that was missing) and each range that an iterator went over or a
// count counted (also keys that were not there). Else it fails with Aborted, has changed nothing,
// and is to be run anew. So transactions that commit could have run one after the other, in the
// order of their commits; there is no write skew and there are no phantoms. A transaction without
// writes commits without a look: it has seen one snapshot. Blind writes conflict with nothing.
// Where the store can't tell any more whether a key was written (it was flushed since), what was
// read is read again: version for version.
//
// Memory: what was written and the names of what was read, up to TransactionOptions::max_bytes; the
// snapshot keeps old versions of records on disk as long as the transaction lives. One thread at a
// time; any number of transactions side by side. Goes before its store, and after its iterators.
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

namespace varve {

struct TransactionOptions {
  WriteOptions write;
  // Of its own writes, and the names of what it has read, in memory. Beyond it reads fail with
  // ResourceExhausted, and so does the commit.
  size_t max_bytes = 256u << 20;
};

class Transaction {
 public:
  // The snapshot is the store as it is now.
  explicit Transaction(Store* store, const TransactionOptions& options = {});
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // --- Reads, as those of Store; ReadOptions::snapshot is not looked at. The version of an own
  // write is kNoSequence. ------------
  [[nodiscard]] absl::StatusOr<ReadResult> Get(const ReadOptions& options, std::string_view key,
                                               std::string* value);
  [[nodiscard]] absl::Status MultiGet(const ReadOptions& options,
                                      absl::Span<const std::string_view> keys,
                                      absl::Span<MultiGetResult> results);
  // Sees the transaction's writes as they are at each move; views of it live until the next move or
  // write.
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower,
                                        std::string_view upper, SequenceNumber* durable_after);
  // That of all keys is taken from the store's count and so conflicts with every write to the
  // namespace that comes between.
  [[nodiscard]] absl::StatusOr<CountResult> Count(const ReadOptions& options,
                                                  std::string_view lower, std::string_view upper);
  const std::shared_ptr<const Snapshot>& snapshot() const { return snapshot_; }
  // What it holds in memory: see TransactionOptions::max_bytes.
  size_t bytes() const { return writes_.bytes() + reads_.bytes(); }
  SequenceNumber sequence() const { return sequence_; }

  // The key is a condition of the commit as if it had been read.
  void Depend(std::string_view key, NamespaceId space = kDefaultNamespace);

  // --- Writes, as those of WriteBatch ------------------------------------------------------------
  // Its own writes expire for the transaction, too, by the clock of its snapshot.
  void Put(std::string_view key, std::string_view value, NamespaceId space = kDefaultNamespace,
           uint64_t expiry_ms = kNoExpiry);
  void Delete(std::string_view key, NamespaceId space = kDefaultNamespace);
  void DeleteRange(std::string_view begin, std::string_view end,
                   NamespaceId space = kDefaultNamespace);
  void ClearNamespace(NamespaceId space = kDefaultNamespace);
  // AlreadyExists: there is one at the snapshot, or by its own hand. Where somebody else creates
  // it, the commit fails with Aborted.
  [[nodiscard]] absl::Status CreateNamespace(const NamespaceDescription& space);
  void SwapNamespaces(NamespaceId one, NamespaceId other);
  bool HasNamespace(NamespaceId space) const;
  const std::vector<NamespaceDescription>& created_namespaces() const { return writes_.created(); }
  // What was wrong with a write, or with what was noted of a read: reported by the commit, too.
  [[nodiscard]] const absl::Status& status() const { return status_; }

  // --- The end -----------------------------------------------------------------------------------
  // Aborted: somebody has written what was read. FailedPrecondition: it has ended already, or an
  // iterator is left. Else as Store::Write (Commit waits until the writes are durable) and
  // Store::Submit. Afterwards the transaction can't be used any more, and may outlive its store.
  [[nodiscard]] absl::StatusOr<CommitResult> Commit();
  [[nodiscard]] absl::StatusOr<CommitResult> Submit();

 private:
  friend class TransactionIterator;

  absl::StatusOr<CommitResult> SubmitInside();
  absl::StatusOr<CountResult> CountAll(const ReadOptions& options);
  absl::StatusOr<CountResult> CountByScan(const ReadOptions& options, std::string_view lower,
                                          std::string_view upper);
  // What to ask the store: at the snapshot, in the namespace as it is called there.
  ReadOptions AtSnapshot(const ReadOptions& options) const;
  void DependAt(std::string_view key, NamespaceId origin);
  // Answers from own writes; false: the store has to be asked. `options` of AtSnapshot().
  bool ReadOwn(const ReadOptions& options, std::string_view key, ReadResult* result,
               std::string* value) const;
  // `change` may run out of memory: then the transaction fails, as it does beyond max_bytes.
  void Note(absl::FunctionRef<void()> change);

  Store* const store_;
  const TransactionOptions options_;
  std::shared_ptr<const Snapshot> snapshot_;  // null once it has ended
  const SequenceNumber sequence_;             // of the snapshot
  OwnWrites writes_;
  ReadSet reads_;
  // Something was read that is not of the snapshot unless nothing has changed since.
  bool counted_ = false;
  int iterators_ = 0;
  absl::Status status_;
};

// Runs `body` in transactions until one commits: some tries side by side with others, then, so that
// it doesn't starve, one while other writers wait (Store::BeginExclusiveWrite). `body` may run
// several times, and writes to the store through its transaction only. Its error ends it, and
// nothing was written. Waits until the writes are durable.
[[nodiscard]] absl::StatusOr<CommitResult> RunTransaction(
    Store* store, const TransactionOptions& options,
    absl::FunctionRef<absl::Status(Transaction*)> body);

}  // namespace varve
