// Several reads and writes as one step: a snapshot transaction over a store.
//
//   auto committed = varve::RunTransaction(
//       store, {}, [](varve::Transaction* transaction) -> absl::Status {
//         std::string value;
//         auto read = transaction->Get({}, "balance:1", &value);
//         if (!read.ok()) return read.status();
//         transaction->Put("balance:1", ...);
//         return absl::OkStatus();
//       });
//
// Isolation: serializable. Everything is read at one snapshot, with the transaction's own writes on
// top; nobody sees a write before the commit, which is one record of the log: all of it or none,
// also across a crash. A commit succeeds only if what was read of the store still is so at that
// moment: each key read (also one that was missing) and each range that an iterator went over or a
// count counted (also keys that were not there). Else it fails with Aborted, has changed nothing,
// and is to be run anew. So transactions that commit could have run one after the other, in the
// order of their commits; there is no write skew and there are no phantoms. A transaction without
// writes commits without a look: it has seen one snapshot. Blind writes conflict with nothing.
// Where keys have groups (varve/key_group.h), what a transaction reads and writes has to be of one
// group; else the commit fails with CrossGroup. On a store without StoreCapabilities::snapshots
// each read shows what is there at its time, and the commit compares versions: a transaction that
// commits is serializable all the same, but one that will fail may have seen states that do not go
// together, and reads of ranges are refused. There, a transaction that only reads is one moment if
// it reads one group.
// Where the store can't tell any more whether a key was written (it was flushed since), what was
// read is read again: version for version.
//
// Memory: a transaction holds what was written and the names of what was read, up to
// TransactionOptions::max_bytes; its snapshot keeps old versions of records on disk as long as the
// transaction lives.
//
// Thread-safety: one thread at a time uses a transaction; any number work side by side.
// Requires: a transaction that has not ended is destroyed before its store, and after its
// iterators.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "varve/store.h"

namespace varve {

class TransactionStore;

struct TransactionOptions {
  WriteOptions write;
  // Bounds the memory for own writes and for the names of what was read. Beyond it reads fail with
  // ResourceExhausted, and so does the commit.
  size_t max_bytes = 256u << 20;
};

class Transaction {
 public:
  // Takes a snapshot of the store as it is now.
  explicit Transaction(Store* store, const TransactionOptions& options = {});
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // --- Reads, as those of StoreReads -------------------------------------------------------------
  // ReadOptions::snapshot is not looked at. The version of an own write is kNoSequence.
  [[nodiscard]] absl::StatusOr<ReadResult> Get(const ReadOptions& options, std::string_view key,
                                               std::string* value);
  // Requires: `results` has as many elements as `keys`.
  [[nodiscard]] absl::Status MultiGet(const ReadOptions& options,
                                      absl::Span<const std::string_view> keys,
                                      absl::Span<MultiGetResult> results);
  // The iterator sees the transaction's writes as they are at each move; views of it live until the
  // next move or write.
  // Requires: it is destroyed before the transaction ends.
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower,
                                        std::string_view upper, SequenceNumber* durable_after);
  // The count of all keys is taken from the store's count and so conflicts with every write to the
  // namespace that comes between.
  [[nodiscard]] absl::StatusOr<CountResult> Count(const ReadOptions& options,
                                                  std::string_view lower, std::string_view upper);
  // Null once the transaction has ended.
  std::shared_ptr<const Snapshot> snapshot() const;
  SequenceNumber sequence() const;  // of the snapshot
  // Returns the memory that TransactionOptions::max_bytes bounds.
  size_t bytes() const;
  // Returns the keys that the transaction puts so far, with the bytes of these keys, their values
  // and metadata: in one namespace, or in all. So much does it add where all of them are new.
  CountResult CountPuts(std::optional<NamespaceId> space = std::nullopt) const;

  // Makes the key a condition of the commit as if it had been read.
  void Depend(std::string_view key, NamespaceId space = kDefaultNamespace);
  // Makes all keys of [lower, upper) such a condition (an empty `upper`: no end).
  void DependOnRange(std::string_view lower, std::string_view upper,
                     NamespaceId space = kDefaultNamespace);

  // --- Writes, as those of WriteBatch ------------------------------------------------------------
  // Own writes expire for the transaction, too, by the clock of its snapshot.
  void Put(std::string_view key, std::string_view value, NamespaceId space = kDefaultNamespace,
           uint64_t expiry_ms = kNoExpiry);
  // kUsualExpiry is kNoExpiry here.
  void Put(std::string_view key, std::string_view value, const PutExtras& extras,
           NamespaceId space = kDefaultNamespace);
  void Delete(std::string_view key, NamespaceId space = kDefaultNamespace);
  void DeleteRange(std::string_view begin, std::string_view end,
                   NamespaceId space = kDefaultNamespace);
  void ClearNamespace(NamespaceId space = kDefaultNamespace);
  // AlreadyExists: there is one at the snapshot, or the transaction has created it. Where somebody
  // else creates it, the commit fails with Aborted.
  [[nodiscard]] absl::Status CreateNamespace(const NamespaceDescription& space);
  void SwapNamespaces(NamespaceId one, NamespaceId other);
  bool HasNamespace(NamespaceId space) const;
  // Says what was wrong with a write, or with what was noted of a read. The commit reports it, too.
  [[nodiscard]] absl::Status status() const;

  // Returns the transaction in the place of a store: code that works with StoreContents works
  // inside the transaction without knowing it. It belongs to the transaction, and is for one thread
  // at a time, unlike other stores. Null if there was no memory for the transaction; status() says
  // so.
  StoreContents* contents();

  // --- The end -----------------------------------------------------------------------------------
  // Aborted: somebody has written what was read. FailedPrecondition: the transaction has ended
  // already, or an iterator is left. Else as Store::Write (Commit waits until the writes are
  // durable) and Store::Submit. Afterwards the transaction can't be used any more, and may outlive
  // its store. After ResourceExhausted of a quota or of the limit of the store's data, both may be
  // called again.
  [[nodiscard]] absl::StatusOr<CommitResult> Commit();
  [[nodiscard]] absl::StatusOr<CommitResult> Submit();

 private:
  Store* const store_;
  const std::unique_ptr<TransactionStore> inside_;  // null: there was no memory for it
};

// Runs `body` in transactions until one commits: some tries side by side with others, then, so that
// it doesn't starve, one while other writers wait (StoreWrites::BeginExclusiveWrite). An error of
// `body` ends it, and nothing was written. Waits until the writes are durable.
// Requires: `body` may run several times, and writes to the store through its transaction only.
[[nodiscard]] absl::StatusOr<CommitResult> RunTransaction(
    Store* store, const TransactionOptions& options,
    absl::FunctionRef<absl::Status(Transaction*)> body);

}  // namespace varve
