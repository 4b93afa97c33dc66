#include "db/transaction.h"

#include <utility>
#include <vector>

#include "db/store_iterator.h"
#include "db/transaction_iterator.h"
#include "fmt/format.h"
#include "util/memory_guard.h"
#include "util/status.h"

namespace varve {
namespace {

constexpr int kTriesTogether = 8;  // of RunTransaction, before others have to wait
constexpr int kCatchUps = 8;       // of one commit with what was flushed meanwhile

}  // namespace

Transaction::Transaction(Store* store, const TransactionOptions& options)
    : store_(store), options_(options), snapshot_(store->GetSnapshot()), sequence_(snapshot_->sequence()) {}

Transaction::~Transaction() = default;

ReadOptions Transaction::AtSnapshot(const ReadOptions& options) const {
  ReadOptions at = options;
  at.snapshot = snapshot_.get();
  return at;
}

void Transaction::Note(absl::FunctionRef<void()> change) {
  if (!status_.ok()) return;
  status_ = GuardMemory("noting a transaction's reads and writes", [&] {
    change();
    return absl::OkStatus();
  });
  if (!status_.ok() || writes_.bytes() + reads_.bytes() <= options_.max_bytes) return;
  status_ = absl::ResourceExhaustedError(
      fmt::format("a transaction that reads and writes more than {} bytes: do it in several", options_.max_bytes));
}

bool Transaction::ReadOwn(const ReadOptions& options, std::string_view key, ReadResult* result,
                          std::string* value) const {
  const OwnWrites::Space* const own = writes_.Find(options.space);
  if (own == nullptr) return false;
  const auto written = own->keys.find(key);
  if (written == own->keys.end() && !own->Hides(key)) return false;
  *result = ReadResult{.read_sequence = sequence_};
  if (written == own->keys.end() || written->second.deleted) return true;
  const std::string& bytes = written->second.value;
  if (!options.without_value && bytes.size() > options.max_value_bytes) {
    result->too_large = true;
    return true;
  }
  result->found = true;
  result->value_size = bytes.size();
  if (!options.without_value) value->assign(bytes);
  return true;
}

absl::StatusOr<ReadResult> Transaction::Get(const ReadOptions& options, std::string_view key, std::string* value) {
  return GuardMemory("reading a key", [&]() -> absl::StatusOr<ReadResult> {
    VARVE_RETURN_IF_ERROR(status_);
    ReadResult own;
    if (ReadOwn(options, key, &own, value)) return own;
    Depend(key, options.space);
    VARVE_RETURN_IF_ERROR(status_);
    return store_->Get(AtSnapshot(options), key, value);
  });
}

absl::Status Transaction::MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys,
                                   absl::Span<MultiGetResult> results) {
  return GuardMemory("reading keys", [&]() -> absl::Status {
    VARVE_RETURN_IF_ERROR(status_);
    std::vector<std::string_view> others;
    std::vector<size_t> places;
    for (size_t i = 0; i < keys.size(); ++i) {
      MultiGetResult& result = results[i];
      result.status = absl::OkStatus();
      result.read = true;
      if (ReadOwn(options, keys[i], &result.result, &result.value)) continue;
      Depend(keys[i], options.space);
      others.push_back(keys[i]);
      places.push_back(i);
    }
    VARVE_RETURN_IF_ERROR(status_);
    if (others.size() == keys.size()) return store_->MultiGet(AtSnapshot(options), keys, results);
    std::vector<MultiGetResult> read(others.size());
    VARVE_RETURN_IF_ERROR(store_->MultiGet(AtSnapshot(options), others, absl::MakeSpan(read)));
    for (size_t i = 0; i < places.size(); ++i) results[places[i]] = std::move(read[i]);
    return absl::OkStatus();
  });
}

std::unique_ptr<Iterator> Transaction::NewIterator(const ReadOptions& options, std::string_view lower,
                                                   std::string_view upper, SequenceNumber* gate) {
  std::unique_ptr<Iterator> iterator;
  absl::Status made = GuardMemory("making an iterator", [&] {
    iterator = std::make_unique<TransactionIterator>(this, options.space, lower, upper,
                                                     store_->NewIterator(AtSnapshot(options), lower, upper, gate));
    return absl::OkStatus();
  });
  return iterator != nullptr ? std::move(iterator) : NewErrorIterator(std::move(made));
}

absl::StatusOr<CountResult> Transaction::Count(const ReadOptions& options, std::string_view lower,
                                               std::string_view upper) {
  return GuardMemory("counting keys", [&]() -> absl::StatusOr<CountResult> {
    VARVE_RETURN_IF_ERROR(status_);
    const OwnWrites::Space* const own = writes_.Find(options.space);
    const bool hides = own != nullptr && (own->cleared || !own->hidden.empty());
    if (lower.empty() && upper.empty() && !hides) return CountAll(options);
    return CountByScan(options, lower, upper);
  });
}

// The store knows how many keys it has now, and the commit will see to it that it had as many at the snapshot.
absl::StatusOr<CountResult> Transaction::CountAll(const ReadOptions& options) {
  Note([&] { reads_.AddRange({}, {}, options.space); });
  VARVE_RETURN_IF_ERROR(status_);
  counted_ = true;
  ReadOptions now = options;
  now.snapshot = nullptr;
  VARVE_ASSIGN_OR_RETURN(CountResult count, store_->Count(now, {}, {}));
  const OwnWrites::Space* const own = writes_.Find(options.space);
  if (own == nullptr) return count;
  ReadOptions below = AtSnapshot(options);
  below.without_value = true;
  std::string none;
  for (const auto& [key, write] : own->keys) {
    VARVE_ASSIGN_OR_RETURN(const ReadResult read, store_->Get(below, key, &none));
    if (read.found) {
      count.keys -= 1;
      count.bytes -= key.size() + read.value_size;
    }
    if (!write.deleted) {
      count.keys += 1;
      count.bytes += key.size() + write.value.size();
    }
  }
  return count;
}

absl::StatusOr<CountResult> Transaction::CountByScan(const ReadOptions& options, std::string_view lower,
                                                     std::string_view upper) {
  ReadOptions scan = options;
  scan.fill_cache = false;
  CountResult count;
  const std::unique_ptr<Iterator> iterator = NewIterator(scan, lower, upper, &count.gate);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    count.keys += 1;
    count.bytes += iterator->key().size() + iterator->value().size();
  }
  VARVE_RETURN_IF_ERROR(iterator->status());
  return count;
}

void Transaction::Depend(std::string_view key, NamespaceId space) {
  Note([&] { reads_.AddKey(key, space); });
}

void Transaction::Put(std::string_view key, std::string_view value, NamespaceId space) {
  if (key.size() > kMaxKeySize || value.size() > kMaxValueSize) {
    WriteBatch refused;
    refused.Put(key, value, space);
    if (status_.ok()) status_ = refused.status();
    return;
  }
  Note([&] { writes_.Put(key, value, space); });
}

void Transaction::Delete(std::string_view key, NamespaceId space) {
  Note([&] { writes_.Delete(key, space); });
}

void Transaction::DeleteRange(std::string_view begin, std::string_view end, NamespaceId space) {
  Note([&] { writes_.DeleteRange(begin, end, space); });
}

void Transaction::ClearNamespace(NamespaceId space) {
  Note([&] { writes_.ClearNamespace(space); });
}

absl::StatusOr<CommitResult> Transaction::Commit() {
  VARVE_ASSIGN_OR_RETURN(const CommitResult result, Submit());
  VARVE_RETURN_IF_ERROR(result.gate == kNoSequence ? store_->Push() : store_->WaitUntilDurable(result.gate));
  return result;
}

absl::StatusOr<CommitResult> Transaction::Submit() {
  if (iterators_ > 0) return absl::FailedPreconditionError("an iterator of this transaction is left: end it first");
  VARVE_RETURN_IF_ERROR(status_);
  absl::StatusOr<CommitResult> result = GuardMemory("committing a transaction", [this] { return SubmitInside(); });
  status_ = absl::FailedPreconditionError("this transaction has ended already");
  snapshot_.reset();
  return result;
}

absl::StatusOr<CommitResult> Transaction::SubmitInside() {
  if (writes_.empty() && !counted_) return CommitResult{sequence_, kNoSequence};
  std::shared_ptr<const Snapshot> holds_at = snapshot_;  // what was read still was so then
  absl::StatusOr<CommitResult> result = absl::AbortedError("not tried");
  for (int i = 0; i < kCatchUps; ++i) {
    WriteBatch batch;
    writes_.AddTo(&batch);
    reads_.AddTo(&batch, holds_at->sequence());
    result = store_->Submit(options_.write, &batch);
    // The exact count is not that of the snapshot, if anything was written meanwhile.
    if (!absl::IsAborted(result.status()) || counted_) return result;
    std::shared_ptr<const Snapshot> now = store_->GetSnapshot();
    VARVE_ASSIGN_OR_RETURN(const bool same, reads_.SameAt(store_, *holds_at, *now));
    if (!same) return result;
    holds_at = std::move(now);
  }
  return result;
}

absl::StatusOr<CommitResult> RunTransaction(Store* store, const TransactionOptions& options,
                                            absl::FunctionRef<absl::Status(Transaction*)> body) {
  TransactionOptions with_turn = options;
  bool conflicted = true;
  const auto attempt = [&]() -> absl::StatusOr<CommitResult> {
    conflicted = false;
    Transaction transaction(store, with_turn);
    VARVE_RETURN_IF_ERROR(body(&transaction));
    absl::StatusOr<CommitResult> result = transaction.Submit();
    conflicted = absl::IsAborted(result.status());
    return result;
  };
  absl::StatusOr<CommitResult> result = absl::AbortedError("not tried");
  for (int i = 0; i < kTriesTogether && conflicted; ++i) result = attempt();
  if (conflicted) {
    const std::unique_ptr<WriteTurn> turn = store->TakeTurn();
    with_turn.write.turn = turn.get();
    result = attempt();
  }
  VARVE_RETURN_IF_ERROR(result.status());
  VARVE_RETURN_IF_ERROR(result->gate == kNoSequence ? store->Push() : store->WaitUntilDurable(result->gate));
  return result;
}

}  // namespace varve
