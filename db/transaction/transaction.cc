#include "varve/transaction.h"

#include <utility>

#include "db/iterators/store_iterator.h"
#include "db/transaction/transaction_store.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr int kTriesTogether = 8;  // of RunTransaction, before others have to wait
constexpr int kTriesAlone = 8;     // and then: what has expired is removed all the same

std::unique_ptr<TransactionStore> NewInside(Store* store, const TransactionOptions& options) {
  std::unique_ptr<TransactionStore> inside;
  TryWithMemory([&] { inside = std::make_unique<TransactionStore>(store, options); });
  return inside;
}

absl::Status NoTransaction() { return OutOfMemory("beginning a transaction"); }

}  // namespace

Transaction::Transaction(Store* store, const TransactionOptions& options)
    : store_(store), inside_(NewInside(store, options)) {}

Transaction::~Transaction() = default;

StoreContents* Transaction::contents() { return inside_.get(); }

absl::Status Transaction::status() const {
  return inside_ != nullptr ? inside_->status() : NoTransaction();
}

std::shared_ptr<const Snapshot> Transaction::snapshot() const {
  return inside_ != nullptr ? inside_->GetSnapshot() : nullptr;
}

SequenceNumber Transaction::sequence() const {
  return inside_ != nullptr ? inside_->sequence() : kNoSequence;
}

CountResult Transaction::CountPuts(std::optional<NamespaceId> space) const {
  return inside_ != nullptr ? inside_->CountPuts(space) : CountResult();
}

size_t Transaction::bytes() const { return inside_ != nullptr ? inside_->bytes() : 0; }

bool Transaction::HasNamespace(NamespaceId space) const {
  return inside_ != nullptr && inside_->HasNamespace(space);
}

absl::StatusOr<ReadResult> Transaction::Get(const ReadOptions& options, std::string_view key,
                                            std::string* value) {
  if (inside_ == nullptr) return NoTransaction();
  return inside_->Get(options, key, value);
}

absl::Status Transaction::MultiGet(const ReadOptions& options,
                                   absl::Span<const std::string_view> keys,
                                   absl::Span<MultiGetResult> results) {
  if (inside_ == nullptr) return NoTransaction();
  return inside_->MultiGet(options, keys, results);
}

std::unique_ptr<Iterator> Transaction::NewIterator(const ReadOptions& options,
                                                   std::string_view lower, std::string_view upper,
                                                   SequenceNumber* durable_after) {
  if (inside_ == nullptr) return NewErrorIterator(NoTransaction());
  return inside_->NewIterator(options, lower, upper, durable_after);
}

absl::StatusOr<CountResult> Transaction::Count(const ReadOptions& options, std::string_view lower,
                                               std::string_view upper) {
  if (inside_ == nullptr) return NoTransaction();
  return inside_->Count(options, lower, upper);
}

void Transaction::Depend(std::string_view key, NamespaceId space) {
  if (inside_ != nullptr) inside_->Depend(key, space);
}

void Transaction::DependOnRange(std::string_view lower, std::string_view upper, NamespaceId space) {
  if (inside_ != nullptr) inside_->DependOnRange(lower, upper, space);
}

void Transaction::Put(std::string_view key, std::string_view value, NamespaceId space,
                      uint64_t expiry_ms) {
  Put(key, value, PutExtras{.expiry_ms = expiry_ms}, space);
}

void Transaction::Put(std::string_view key, std::string_view value, const PutExtras& extras,
                      NamespaceId space) {
  if (inside_ == nullptr) return;
  PutExtras given = extras;
  if (given.expiry_ms == kUsualExpiry) given.expiry_ms = kNoExpiry;
  inside_->Put(key, value, space, given);
}

void Transaction::Delete(std::string_view key, NamespaceId space) {
  if (inside_ != nullptr) inside_->Delete(key, space);
}

void Transaction::DeleteRange(std::string_view begin, std::string_view end, NamespaceId space) {
  if (inside_ != nullptr) inside_->DeleteRange(begin, end, space);
}

void Transaction::ClearNamespace(NamespaceId space) {
  if (inside_ != nullptr) inside_->ClearNamespace(space);
}

absl::Status Transaction::CreateNamespace(const NamespaceDescription& space) {
  if (inside_ == nullptr) return NoTransaction();
  return inside_->CreateNamespace(space);
}

void Transaction::SwapNamespaces(NamespaceId one, NamespaceId other) {
  if (inside_ != nullptr) inside_->SwapNamespaces(one, other);
}

absl::StatusOr<CommitResult> Transaction::Submit() {
  if (inside_ == nullptr) return NoTransaction();
  return inside_->Commit();
}

absl::StatusOr<CommitResult> Transaction::Commit() {
  VARVE_ASSIGN_OR_RETURN(const CommitResult result, Submit());
  VARVE_RETURN_IF_ERROR(result.durable_after == kNoSequence
                            ? store_->Push()
                            : store_->WaitUntilDurable(result.durable_after));
  return result;
}

absl::StatusOr<CommitResult> RunTransaction(Store* store, const TransactionOptions& options,
                                            absl::FunctionRef<absl::Status(Transaction*)> body) {
  TransactionOptions attempt_options = options;
  bool conflicted = true;
  const auto attempt = [&]() -> absl::StatusOr<CommitResult> {
    conflicted = false;
    Transaction transaction(store, attempt_options);
    VARVE_RETURN_IF_ERROR(body(&transaction));
    absl::StatusOr<CommitResult> result = transaction.Submit();
    conflicted = absl::IsAborted(result.status());
    return result;
  };
  absl::StatusOr<CommitResult> result = absl::AbortedError("not tried");
  for (int i = 0; i < kTriesTogether && conflicted; ++i) result = attempt();
  if (conflicted) {
    const std::unique_ptr<ExclusiveWrite> exclusive = store->BeginExclusiveWrite();
    attempt_options.write.exclusive_write = exclusive.get();
    for (int i = 0; i < kTriesAlone && conflicted; ++i) result = attempt();
  }
  VARVE_RETURN_IF_ERROR(result.status());
  VARVE_RETURN_IF_ERROR(result->durable_after == kNoSequence
                            ? store->Push()
                            : store->WaitUntilDurable(result->durable_after));
  return result;
}

}  // namespace varve
