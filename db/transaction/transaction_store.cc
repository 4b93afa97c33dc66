#include "db/transaction/transaction_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "db/format/key_counts.h"
#include "db/iterators/store_iterator.h"
#include "db/transaction/transaction_iterator.h"
#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "varve/key_group.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

constexpr int kCatchUps = 8;  // of one commit with what was flushed meanwhile

// Adds the operations of a batch to a transaction.
class Adder final : public WriteBatch::OperationVisitor {
 public:
  explicit Adder(TransactionStore* to) : to_(*to) {}

  absl::Status Put(NamespaceId space, std::string_view key, std::string_view value,
                   const PutExtras& extras) override {
    to_.Put(key, value, space, extras);
    return absl::OkStatus();
  }
  absl::Status Delete(NamespaceId space, std::string_view key, WriteCause cause) override {
    to_.Delete(key, space, cause);
    return absl::OkStatus();
  }
  absl::Status DeleteRange(NamespaceId space, std::string_view begin,
                           std::string_view end) override {
    to_.DeleteRange(begin, end, space);
    return absl::OkStatus();
  }
  absl::Status ClearNamespace(NamespaceId space) override {
    to_.ClearNamespace(space);
    return absl::OkStatus();
  }
  absl::Status CreateNamespace(const NamespaceDescription& space) override {
    return to_.CreateNamespace(space);
  }
  absl::Status SwapNamespaces(NamespaceId one, NamespaceId other) override {
    to_.SwapNamespaces(one, other);
    return absl::OkStatus();
  }
  absl::Status CloneNamespace(NamespaceId, const NamespaceDescription&) override {
    return Impossible();
  }
  absl::Status CloneNamespaceAt(NamespaceId, SequenceNumber, const NamespaceDescription&) override {
    return Impossible();
  }
  absl::Status AlterNamespace(const NamespaceDescription&) override { return Impossible(); }
  absl::Status DropNamespace(NamespaceId) override { return Impossible(); }

 private:
  static absl::Status Impossible() {
    return absl::FailedPreconditionError("a transaction can't alter, drop or clone namespaces");
  }

  TransactionStore& to_;
};

absl::Status NoRanges() {
  return absl::FailedPreconditionError(
      "the store has no snapshots: a transaction reads and counts no ranges of keys there");
}

}  // namespace

TransactionStore::TransactionStore(Store* below, const TransactionOptions& options)
    : store_(below),
      options_(options),
      snapshot_(below->GetSnapshot()),
      sequence_(snapshot_->sequence()),
      has_snapshot_(below->capabilities().snapshots),
      instant_ms_(has_snapshot_ ? snapshot_->instant_ms() : below->NowMillis()) {}

ReadOptions TransactionStore::AtSnapshot(const ReadOptions& options) const {
  VARVE_ASSERT(snapshot_ != nullptr);
  ReadOptions at = options;
  at.snapshot = has_snapshot_ ? snapshot_.get() : nullptr;
  at.space = writes_.Origin(options.space);
  at.deadline = std::min(options.deadline, options_.write.deadline);
  return at;
}

void TransactionStore::Note(absl::FunctionRef<void()> change) {
  if (!status_.ok()) return;
  VARVE_ASSERT(snapshot_ != nullptr);
  status_ = GuardMemory("noting a transaction's reads and writes", [&] {
    change();
    return absl::OkStatus();
  });
  if (!status_.ok() || writes_.bytes() + reads_.bytes() <= options_.max_bytes) return;
  status_ = absl::ResourceExhaustedError(
      fmt::format("a transaction that reads and writes more than {} bytes: do it in several",
                  options_.max_bytes));
}

bool TransactionStore::ReadOwn(const ReadOptions& options, std::string_view key, ReadResult* result,
                               std::string* value) const {
  const OwnWrites::Space* const own = writes_.Find(options.space);
  if (own == nullptr) return false;
  const auto written = own->keys.find(key);
  if (written == own->keys.end() && !own->Hides(key)) return false;
  *result = ReadResult{.read_sequence = sequence_};
  if (written == own->keys.end() || written->second.deleted) return true;
  result->expiry_ms = written->second.expiry_ms;
  result->expired = !options.expired_too && written->second.Expired(instant_ms_);
  if (result->expired) return true;
  const std::string& bytes = written->second.value;
  if (!options.without_value && bytes.size() > options.max_value_bytes) {
    result->too_large = true;
    return true;
  }
  result->found = true;
  result->value_size = bytes.size();
  if (!options.without_value) value->assign(bytes);
  if (options.with_metadata && !written->second.metadata.empty())
    result->metadata = std::make_shared<const std::string>(written->second.metadata);
  return true;
}

absl::StatusOr<ReadResult> TransactionStore::Get(const ReadOptions& options, std::string_view key,
                                                 std::string* value) {
  return GuardMemory("reading a key", [&]() -> absl::StatusOr<ReadResult> {
    VARVE_RETURN_IF_ERROR(status_);
    const ReadOptions at = AtSnapshot(options);
    ReadResult own;
    if (ReadOwn(at, key, &own, value)) return own;
    if (has_snapshot_) {
      DependAt(key, at.space);
      VARVE_RETURN_IF_ERROR(status_);
    }
    absl::StatusOr<ReadResult> read = store_->Get(at, key, value);
    if (!read.ok()) return FailedRead(read.status());
    if (!has_snapshot_) NoteRead(key, at.space, *read);
    VARVE_RETURN_IF_ERROR(status_);
    return read;
  });
}

absl::Status TransactionStore::MultiGet(const ReadOptions& options,
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
      if (has_snapshot_) DependAt(keys[i], at.space);
      others.push_back(keys[i]);
      places.push_back(i);
    }
    VARVE_RETURN_IF_ERROR(status_);
    VARVE_ASSERT(places.size() == others.size());
    const bool in_place = has_snapshot_ && others.size() == keys.size();
    std::vector<MultiGetResult> apart(in_place ? 0 : others.size());
    const absl::Span<MultiGetResult> read = in_place ? results : absl::MakeSpan(apart);
    const absl::Status asked = store_->MultiGet(at, others, read);
    if (!asked.ok()) return FailedRead(asked);
    for (size_t i = 0; i < read.size(); ++i) {
      if (!read[i].read) continue;
      if (!read[i].status.ok()) {
        read[i].status = FailedRead(read[i].status);
      } else if (!has_snapshot_) {
        NoteRead(others[i], at.space, read[i].result);
      }
    }
    VARVE_RETURN_IF_ERROR(status_);
    for (size_t i = 0; i < apart.size(); ++i) results[places[i]] = std::move(apart[i]);
    return absl::OkStatus();
  });
}

std::unique_ptr<Iterator> TransactionStore::NewIterator(const ReadOptions& options,
                                                        std::string_view lower,
                                                        std::string_view upper,
                                                        SequenceNumber* durable_after) {
  std::unique_ptr<Iterator> iterator;
  absl::Status made = GuardMemory("making an iterator", [&]() -> absl::Status {
    VARVE_RETURN_IF_ERROR(status_);
    if (!has_snapshot_) return NoRanges();
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

absl::StatusOr<CountResult> TransactionStore::Count(const ReadOptions& options,
                                                    std::string_view lower,
                                                    std::string_view upper) {
  return GuardMemory("counting keys", [&]() -> absl::StatusOr<CountResult> {
    VARVE_RETURN_IF_ERROR(status_);
    if (!has_snapshot_) return NoRanges();
    const OwnWrites::Space* const own = writes_.Find(writes_.Origin(options.space));
    const bool hides = own != nullptr && (own->cleared || !own->hidden.empty());
    // The store's count removes what has expired, which would wait for the end of the exclusive
    // write.
    const bool writes_alone = options_.write.exclusive_write != nullptr;
    if (lower.empty() && upper.empty() && !hides && !writes_alone) return CountAll(options);
    return CountByScan(options, lower, upper);
  });
}

// The store knows how many keys it has now, and the commit will see to it that it had as many at
// the snapshot.
absl::StatusOr<CountResult> TransactionStore::CountAll(const ReadOptions& options) {
  ReadOptions below = AtSnapshot(options);
  Note([&] { reads_.AddRange({}, {}, below.space); });
  VARVE_RETURN_IF_ERROR(status_);
  counted_ = true;
  ReadOptions now = below;
  now.snapshot = nullptr;
  VARVE_ASSIGN_OR_RETURN(const CountResult count, store_->Count(now, {}, {}));
  const OwnWrites::Space* const own = writes_.Find(below.space);
  if (own == nullptr) return count;
  KeyCounts counts{static_cast<int64_t>(count.keys), static_cast<int64_t>(count.bytes),
                   static_cast<int64_t>(count.expiring),
                   absl::int128(count.mean_expiry_ms) * count.expiring};
  below.without_value = true;
  below.with_metadata = true;
  std::string none;
  for (const auto& [key, write] : own->keys) {
    VARVE_ASSIGN_OR_RETURN(const ReadResult read, store_->Get(below, key, &none));
    if (read.found) {
      counts += -CountsOf(key.size(), read.value_size, read.MetadataView().size(), read.expiry_ms);
    }
    if (!write.Hidden(instant_ms_))
      counts += CountsOf(key.size(), write.value.size(), write.metadata.size(), write.expiry_ms);
  }
  return ResultOf(counts, count.durable_after);
}

absl::StatusOr<CountResult> TransactionStore::CountByScan(const ReadOptions& options,
                                                          std::string_view lower,
                                                          std::string_view upper) {
  ReadOptions scan = options;
  scan.fill_cache = false;
  KeyCounts counts;
  SequenceNumber durable_after = kNoSequence;
  const std::unique_ptr<Iterator> iterator = NewIterator(scan, lower, upper, &durable_after);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    counts += CountsOf(*iterator);
  }
  VARVE_RETURN_IF_ERROR(iterator->status());
  return ResultOf(counts, std::max(durable_after, iterator->durable_after()));
}

void TransactionStore::Depend(std::string_view key, NamespaceId space) {
  DependAt(key, writes_.Origin(space));
}

void TransactionStore::DependAt(std::string_view key, NamespaceId origin) {
  const OwnWrites::Space* const own = writes_.Find(origin);
  if (own != nullptr && own->created) return;  // the store knows nothing of it
  if (has_snapshot_) {
    Note([&] { (void)reads_.AddKey(key, origin); });  // at one snapshot there is one version
    return;
  }
  ReadOptions options;
  options.space = origin;
  options.wait_until_durable = false;
  options.without_value = true;
  options.deadline = options_.write.deadline;
  std::string none;
  const absl::StatusOr<ReadResult> read = store_->Get(options, key, &none);
  if (read.ok()) return NoteRead(key, origin, *read);
  FailedRead(read.status()).IgnoreError();
}

absl::Status TransactionStore::FailedRead(const absl::Status& failure) {
  if (has_snapshot_ && !absl::IsUnavailable(failure)) return failure;
  if (!status_.ok()) return status_;
  status_ = absl::Status(
      failure.code(), fmt::format("{}; nothing of the transaction was written", WordsOf(failure)));
  failure.ForEachPayload([this](absl::string_view name, const absl::Cord& payload) {
    status_.SetPayload(name, payload);
  });
  return status_;
}

void TransactionStore::NoteRead(std::string_view key, NamespaceId origin, const ReadResult& read) {
  VARVE_ASSERT(!has_snapshot_);
  bool is_same = true;
  Note([&] { is_same = reads_.AddKey(key, origin, WriteBatch::ReadPoint(read)); });
  if (!is_same && status_.ok())
    status_ = absl::AbortedError("a key was written between two reads of a transaction: retry");
}

void TransactionStore::DependOnRange(std::string_view lower, std::string_view upper,
                                     NamespaceId space) {
  const NamespaceId origin = writes_.Origin(space);
  const OwnWrites::Space* const own = writes_.Find(origin);
  if (own != nullptr && own->created) return;  // the store knows nothing of it
  if (!has_snapshot_ && status_.ok()) status_ = NoRanges();
  Note([&] { reads_.AddRange(lower, upper, origin); });
}

void TransactionStore::Put(std::string_view key, std::string_view value, NamespaceId space,
                           const PutExtras& extras) {
  if (key.size() > kMaxKeySize || value.size() > kMaxValueSize ||
      extras.metadata.size() > kMaxMetadataSize) {
    WriteBatch refused;
    refused.Put(key, value, extras, space);
    if (status_.ok()) status_ = refused.status();
    return;
  }
  Note([&] { writes_.Put(key, value, writes_.Origin(space), extras); });
}

void TransactionStore::Delete(std::string_view key, NamespaceId space, WriteCause cause) {
  Note([&] { writes_.Delete(key, writes_.Origin(space), cause); });
}

void TransactionStore::DeleteRange(std::string_view begin, std::string_view end,
                                   NamespaceId space) {
  Note([&] { writes_.DeleteRange(begin, end, writes_.Origin(space)); });
}

void TransactionStore::ClearNamespace(NamespaceId space) {
  Note([&] { writes_.ClearNamespace(writes_.Origin(space)); });
}

absl::Status TransactionStore::CreateNamespace(const NamespaceDescription& space) {
  VARVE_RETURN_IF_ERROR(status_);
  if (HasNamespace(space.id)) {
    return absl::AlreadyExistsError(fmt::format("namespace {} exists already", space.id));
  }
  Note([&] { writes_.CreateNamespace(space); });
  return status_;
}

void TransactionStore::SwapNamespaces(NamespaceId one, NamespaceId other) {
  Note([&] { writes_.SwapNamespaces(one, other); });
}

bool TransactionStore::HasNamespace(NamespaceId space) const {
  const OwnWrites::Space* const own = writes_.Find(space);
  if (own != nullptr && own->created) return true;
  return snapshot_ != nullptr &&
         (has_snapshot_ ? snapshot_->HasNamespace(space) : store_->HasNamespace(space));
}

absl::StatusOr<ExplainedRead> TransactionStore::ExplainGet(const ReadOptions& options,
                                                           std::string_view key) {
  ReadOptions at = options;
  at.snapshot = has_snapshot_ ? snapshot_.get() : nullptr;
  Depend(key, options.space);
  return store_->ExplainGet(at, key);
}

absl::StatusOr<NamespaceList> TransactionStore::Namespaces() const {
  VARVE_ASSIGN_OR_RETURN(NamespaceList list, store_->Namespaces());
  for (const NamespaceDescription& space : writes_.created()) {
    if (list.Find(space.id) == nullptr) list.namespaces.push_back(space);
    list.next_id = std::max(list.next_id, space.id + 1);
  }
  std::sort(
      list.namespaces.begin(), list.namespaces.end(),
      [](const NamespaceDescription& a, const NamespaceDescription& b) { return a.id < b.id; });
  return list;
}

absl::StatusOr<CommitResult> TransactionStore::Submit(const WriteOptions&, WriteBatch* batch) {
  VARVE_RETURN_IF_ERROR(GuardMemory("adding to a transaction", [&]() -> absl::Status {
    Adder adder(this);
    return batch->ForEachOperation(&adder);
  }));
  VARVE_RETURN_IF_ERROR(status_);
  batch->Clear();
  return CommitResult{sequence_, kNoSequence};
}

absl::StatusOr<CommitResult> TransactionStore::Update(
    const WriteOptions& options, absl::Span<const std::string_view>,
    absl::FunctionRef<absl::Status(WriteBatch*)> decide) {
  WriteBatch batch;
  VARVE_RETURN_IF_ERROR(decide(&batch));
  return Submit(options, &batch);
}

std::unique_ptr<ExclusiveWrite> TransactionStore::BeginExclusiveWrite() {
  return std::make_unique<ExclusiveWrite>();
}

uint64_t TransactionStore::UsualExpiry(NamespaceId space) const {
  for (const NamespaceDescription& created : writes_.created()) {
    if (created.id != space) continue;
    const uint64_t expiry_ms = created.options.default_expiry_ms;
    return expiry_ms == 0 ? kNoExpiry : NowMillis() + expiry_ms;
  }
  return store_->UsualExpiry(space);
}

StoreCapabilities TransactionStore::capabilities() const {
  StoreCapabilities capabilities = store_->capabilities();
  capabilities.constant_time_clone = false;
  capabilities.history = false;
  return capabilities;
}

absl::StatusOr<CommitResult> TransactionStore::Commit() {
  if (iterators_ > 0)
    return absl::FailedPreconditionError("an iterator of this transaction is left: end it first");
  VARVE_RETURN_IF_ERROR(status_);
  absl::StatusOr<CommitResult> result =
      GuardMemory("committing a transaction", [this] { return CommitInside(); });
  if (IsStoreFull(result.status()) || IsNamespaceFull(result.status())) return result;
  status_ = absl::FailedPreconditionError("this transaction has ended already");
  snapshot_.reset();
  return result;
}

absl::StatusOr<CommitResult> TransactionStore::CommitInside() {
  VARVE_ASSERT(iterators_ == 0);
  VARVE_ASSERT(snapshot_ != nullptr);
  if (!has_snapshot_) return CommitByVersion();
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

absl::StatusOr<CommitResult> TransactionStore::CommitByVersion() {
  WriteBatch batch;
  writes_.AddTo(&batch);
  reads_.AddTo(&batch, sequence_);
  if (writes_.empty()) {
    // Reads of several groups have no moment in common, and nobody promises one.
    const auto groups_of = [this](NamespaceId space) { return store_->GroupsOf(space); };
    if (reads_.empty() || !CheckGroups(batch, groups_of).ok())
      return CommitResult{sequence_, kNoSequence};
  }
  return store_->Submit(options_.write, &batch);
}

}  // namespace varve
