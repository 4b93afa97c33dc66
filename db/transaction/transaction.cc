#include "varve/transaction.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "db/iterators/store_iterator.h"
#include "db/transaction/transaction_iterator.h"
#include "fmt/format.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr int kTriesTogether = 8;  // of RunTransaction, before others have to wait
constexpr int kTriesAlone = 8;     // and then: what has expired is removed all the same
constexpr int kCatchUps = 8;       // of one commit with what was flushed meanwhile

}  // namespace

Transaction::Transaction(Store* store, const TransactionOptions& options)
    : store_(store),
      options_(options),
      snapshot_(store->GetSnapshot()),
      sequence_(snapshot_->sequence()) {}

Transaction::~Transaction() = default;

ReadOptions Transaction::AtSnapshot(const ReadOptions& options) const {
  ReadOptions at = options;
  at.snapshot = snapshot_.get();
  at.space = writes_.Origin(options.space);
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
      fmt::format("a transaction that reads and writes more than {} bytes: do it in several",
                  options_.max_bytes));
}

bool Transaction::ReadOwn(const ReadOptions& options, std::string_view key, ReadResult* result,
                          std::string* value) const {
  const OwnWrites::Space* const own = writes_.Find(options.space);
  if (own == nullptr) return false;
  const auto written = own->keys.find(key);
  if (written == own->keys.end() && !own->Hides(key)) return false;
  *result = ReadResult{.read_sequence = sequence_};
  if (written == own->keys.end() || written->second.deleted) return true;
  result->expiry_ms = written->second.expiry_ms;
  result->expired = written->second.Expired(snapshot_->instant_ms());
  if (result->expired) return true;
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

absl::StatusOr<ReadResult> Transaction::Get(const ReadOptions& options, std::string_view key,
                                            std::string* value) {
  return GuardMemory("reading a key", [&]() -> absl::StatusOr<ReadResult> {
    VARVE_RETURN_IF_ERROR(status_);
    const ReadOptions at = AtSnapshot(options);
    ReadResult own;
    if (ReadOwn(at, key, &own, value)) return own;
    DependAt(key, at.space);
    VARVE_RETURN_IF_ERROR(status_);
    return store_->Get(at, key, value);
  });
}

absl::Status Transaction::MultiGet(const ReadOptions& options,
                                   absl::Span<const std::string_view> keys,
                                   absl::Span<MultiGetResult> results) {
  return GuardMemory("reading keys", [&]() -> absl::Status {
    VARVE_RETURN_IF_ERROR(status_);
    const ReadOptions at = AtSnapshot(options);
    std::vector<std::string_view> others;
    std::vector<size_t> places;
    for (size_t i = 0; i < keys.size(); ++i) {
      MultiGetResult& result = results[i];
      result.status = absl::OkStatus();
      result.read = true;
      if (ReadOwn(at, keys[i], &result.result, &result.value)) continue;
      DependAt(keys[i], at.space);
      others.push_back(keys[i]);
      places.push_back(i);
    }
    VARVE_RETURN_IF_ERROR(status_);
    if (others.size() == keys.size()) return store_->MultiGet(at, keys, results);
    std::vector<MultiGetResult> read(others.size());
    VARVE_RETURN_IF_ERROR(store_->MultiGet(at, others, absl::MakeSpan(read)));
    for (size_t i = 0; i < places.size(); ++i) results[places[i]] = std::move(read[i]);
    return absl::OkStatus();
  });
}

std::unique_ptr<Iterator> Transaction::NewIterator(const ReadOptions& options,
                                                   std::string_view lower, std::string_view upper,
                                                   SequenceNumber* durable_after) {
  std::unique_ptr<Iterator> iterator;
  absl::Status made = GuardMemory("making an iterator", [&]() -> absl::Status {
    VARVE_RETURN_IF_ERROR(status_);
    const ReadOptions at = AtSnapshot(options);
    const OwnWrites::Space* const own = writes_.Find(at.space);
    std::unique_ptr<Iterator> below;
    if (own != nullptr && own->cleared) {
      // No key of the store is seen, and it may not know the namespace.
      below = NewErrorIterator(absl::OkStatus());
      if (durable_after != nullptr) *durable_after = kNoSequence;
    } else {
      below = store_->NewIterator(at, lower, upper, durable_after);
    }
    iterator =
        std::make_unique<TransactionIterator>(this, at.space, lower, upper, std::move(below));
    return absl::OkStatus();
  });
  return iterator != nullptr ? std::move(iterator) : NewErrorIterator(std::move(made));
}

absl::StatusOr<CountResult> Transaction::Count(const ReadOptions& options, std::string_view lower,
                                               std::string_view upper) {
  return GuardMemory("counting keys", [&]() -> absl::StatusOr<CountResult> {
    VARVE_RETURN_IF_ERROR(status_);
    const OwnWrites::Space* const own = writes_.Find(writes_.Origin(options.space));
    const bool hides = own != nullptr && (own->cleared || !own->hidden.empty());
    // The store's count removes what has expired, which others would take the turn for.
    const bool has_turn = options_.write.exclusive_write != nullptr;
    if (lower.empty() && upper.empty() && !hides && !has_turn) return CountAll(options);
    return CountByScan(options, lower, upper);
  });
}

// The store knows how many keys it has now, and the commit will see to it that it had as many at
// the snapshot.
absl::StatusOr<CountResult> Transaction::CountAll(const ReadOptions& options) {
  ReadOptions below = AtSnapshot(options);
  Note([&] { reads_.AddRange({}, {}, below.space); });
  VARVE_RETURN_IF_ERROR(status_);
  counted_ = true;
  ReadOptions now = below;
  now.snapshot = nullptr;
  VARVE_ASSIGN_OR_RETURN(CountResult count, store_->Count(now, {}, {}));
  const OwnWrites::Space* const own = writes_.Find(below.space);
  if (own == nullptr) return count;
  below.without_value = true;
  std::string none;
  for (const auto& [key, write] : own->keys) {
    VARVE_ASSIGN_OR_RETURN(const ReadResult read, store_->Get(below, key, &none));
    if (read.found) {
      count.keys -= 1;
      count.bytes -= key.size() + read.value_size;
    }
    if (!write.Hidden(snapshot_->instant_ms())) {
      count.keys += 1;
      count.bytes += key.size() + write.value.size();
    }
  }
  return count;
}

absl::StatusOr<CountResult> Transaction::CountByScan(const ReadOptions& options,
                                                     std::string_view lower,
                                                     std::string_view upper) {
  ReadOptions scan = options;
  scan.fill_cache = false;
  CountResult count;
  const std::unique_ptr<Iterator> iterator = NewIterator(scan, lower, upper, &count.durable_after);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    count.keys += 1;
    count.bytes += iterator->key().size() + iterator->value().size();
  }
  VARVE_RETURN_IF_ERROR(iterator->status());
  count.durable_after = std::max(count.durable_after, iterator->durable_after());
  return count;
}

void Transaction::Depend(std::string_view key, NamespaceId space) {
  DependAt(key, writes_.Origin(space));
}

void Transaction::DependAt(std::string_view key, NamespaceId origin) {
  const OwnWrites::Space* const own = writes_.Find(origin);
  if (own != nullptr && own->created) return;  // the store knows nothing of it
  Note([&] { reads_.AddKey(key, origin); });
}

void Transaction::Put(std::string_view key, std::string_view value, NamespaceId space,
                      uint64_t expiry_ms) {
  if (key.size() > kMaxKeySize || value.size() > kMaxValueSize) {
    WriteBatch refused;
    refused.Put(key, value, space);
    if (status_.ok()) status_ = refused.status();
    return;
  }
  Note([&] { writes_.Put(key, value, writes_.Origin(space), expiry_ms); });
}

void Transaction::Delete(std::string_view key, NamespaceId space) {
  Note([&] { writes_.Delete(key, writes_.Origin(space)); });
}

void Transaction::DeleteRange(std::string_view begin, std::string_view end, NamespaceId space) {
  Note([&] { writes_.DeleteRange(begin, end, writes_.Origin(space)); });
}

void Transaction::ClearNamespace(NamespaceId space) {
  Note([&] { writes_.ClearNamespace(writes_.Origin(space)); });
}

absl::Status Transaction::CreateNamespace(const NamespaceDescription& space) {
  VARVE_RETURN_IF_ERROR(status_);
  if (HasNamespace(space.id)) {
    return absl::AlreadyExistsError(fmt::format("namespace {} exists already", space.id));
  }
  Note([&] { writes_.CreateNamespace(space); });
  return status_;
}

void Transaction::SwapNamespaces(NamespaceId one, NamespaceId other) {
  Note([&] { writes_.SwapNamespaces(one, other); });
}

bool Transaction::HasNamespace(NamespaceId space) const {
  const OwnWrites::Space* const own = writes_.Find(space);
  return (own != nullptr && own->created) ||
         (snapshot_ != nullptr && snapshot_->Generation(space).has_value());
}

absl::StatusOr<CommitResult> Transaction::Commit() {
  VARVE_ASSIGN_OR_RETURN(const CommitResult result, Submit());
  VARVE_RETURN_IF_ERROR(result.durable_after == kNoSequence
                            ? store_->Push()
                            : store_->WaitUntilDurable(result.durable_after));
  return result;
}

absl::StatusOr<CommitResult> Transaction::Submit() {
  if (iterators_ > 0)
    return absl::FailedPreconditionError("an iterator of this transaction is left: end it first");
  VARVE_RETURN_IF_ERROR(status_);
  absl::StatusOr<CommitResult> result =
      GuardMemory("committing a transaction", [this] { return SubmitInside(); });
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
    if (!writes_.created().empty() && absl::IsAlreadyExists(result.status())) {
      return absl::AbortedError(
          fmt::format("{} since the transaction began: retry", WordsOf(result.status())));
    }
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
    const std::unique_ptr<ExclusiveWrite> turn = store->BeginExclusiveWrite();
    with_turn.write.exclusive_write = turn.get();
    for (int i = 0; i < kTriesAlone && conflicted; ++i) result = attempt();
  }
  VARVE_RETURN_IF_ERROR(result.status());
  VARVE_RETURN_IF_ERROR(result->durable_after == kNoSequence
                            ? store->Push()
                            : store->WaitUntilDurable(result->durable_after));
  return result;
}

}  // namespace varve
