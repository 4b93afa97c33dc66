// A store that uses nothing but the public interface: maps in memory behind one lock. It is
// what a remote store may be at the least: no snapshots, no order of all writes, no clones, nothing
// that waits to become durable, and nothing that is atomic beyond a group of keys. It reads batches
// through their visitors and compares conditions by version.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "varve/durable_store.h"
#include "varve/key_group.h"
#include "varve/namespace_status.h"
#include "varve/store.h"

namespace varve::testing {

class MapStore : public DurableStore {
 public:
  StoreCapabilities capabilities() const override {
    return {.snapshots = false,
            .atomicity = StoreCapabilities::Atomicity::kWithinGroup,
            .constant_time_clone = false,
            .constant_time_range_delete = false,
            .exact_counts = false,
            .size_estimates = false,
            .quotas = false,
            .swaps = false,
            .remote = true};
  }
  std::optional<KeyGrouping> GroupsOf(NamespaceId space) const override {
    const std::lock_guard lock(mutex_);
    return GroupingLocked(space);
  }

  // --- Reads
  absl::StatusOr<ReadResult> Get(const ReadOptions& options, std::string_view key,
                                 std::string* value) override {
    const std::lock_guard lock(mutex_);
    if (absl::Status refused = Refusal(options); !refused.ok()) return refused;
    return GetLocked(options, key, value);
  }
  absl::Status MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys,
                        absl::Span<MultiGetResult> results) override {
    const std::lock_guard lock(mutex_);
    if (absl::Status refused = Refusal(options); !refused.ok()) return refused;
    size_t bytes = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      results[i].status = absl::OkStatus();
      results[i].read = i == 0 || bytes < options.max_bytes;
      if (!results[i].read) continue;
      results[i].result = GetLocked(options, keys[i], &results[i].value);
      bytes += results[i].result.value_size;
    }
    return absl::OkStatus();
  }
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower,
                                        std::string_view upper,
                                        SequenceNumber* durable_after) override;
  std::shared_ptr<const Snapshot> GetSnapshot() override {
    return std::make_shared<const NoSnapshot>();
  }
  absl::StatusOr<CountResult> Count(const ReadOptions& options, std::string_view lower,
                                    std::string_view upper) override {
    const std::unique_ptr<Iterator> iterator = NewIterator(options, lower, upper, nullptr);
    CountResult count;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      count.keys += 1;
      count.bytes += iterator->key().size() + iterator->value_size() + iterator->metadata().size();
    }
    if (absl::Status status = iterator->status(); !status.ok()) return status;
    return count;
  }
  absl::StatusOr<ExplainedRead> ExplainGet(const ReadOptions& options,
                                           std::string_view key) override {
    std::string value;
    const absl::StatusOr<ReadResult> read = Get(options, key, &value);
    if (!read.ok()) return read.status();
    return ExplainedRead{.result = *read, .value_bytes = value.size()};
  }
  uint64_t NowMillis() const override {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
  }

  // --- Writes
  absl::StatusOr<CommitResult> Write(const WriteOptions& options, WriteBatch* batch) override {
    return Submit(options, batch);
  }
  absl::StatusOr<CommitResult> Submit(const WriteOptions& options, WriteBatch* batch) override;
  void WriteAsync(const WriteOptions& options, WriteBatch* batch, WriteDone done) override {
    done(Submit(options, batch));
  }
  absl::StatusOr<CommitResult> Update(
      const WriteOptions& options, absl::Span<const std::string_view>,
      absl::FunctionRef<absl::Status(WriteBatch*)> decide) override {
    for (;;) {
      WriteBatch batch;
      if (absl::Status status = decide(&batch); !status.ok()) return status;
      absl::StatusOr<CommitResult> result = Submit(options, &batch);
      if (!absl::IsAborted(result.status())) return result;
    }
  }
  std::unique_ptr<ExclusiveWrite> BeginExclusiveWrite() override {
    return std::make_unique<ExclusiveWrite>();
  }

  // --- Namespaces
  absl::StatusOr<NamespaceList> Namespaces() const override {
    const std::lock_guard lock(mutex_);
    NamespaceList list;
    for (const auto& [id, space] : spaces_) {
      list.namespaces.push_back(space.description);
      list.next_id = std::max(list.next_id, id + 1);
    }
    return list;
  }
  bool HasNamespace(NamespaceId space) const override {
    const std::lock_guard lock(mutex_);
    return spaces_.contains(space);
  }
  uint64_t UsualExpiry(NamespaceId space) const override {
    const std::lock_guard lock(mutex_);
    const auto found = spaces_.find(space);
    const uint64_t expiry_ms =
        found == spaces_.end() ? 0 : found->second.description.options.default_expiry_ms;
    return expiry_ms == 0 ? kNoExpiry : NowMillis() + expiry_ms;
  }

  absl::Status Push() override { return absl::OkStatus(); }

  // --- Upkeep
  absl::Status Flush() override { return absl::OkStatus(); }
  absl::Status Compact(std::string_view, std::string_view, NamespaceId) override {
    return absl::OkStatus();
  }
  Pressure pressure() const override { return 0; }
  uint64_t ChangeCount() const override {
    const std::lock_guard lock(mutex_);
    return version_;
  }
  std::vector<std::pair<std::string, uint64_t>> Statistics() const override {
    return {{"changes", ChangeCount()}};
  }
  void SetExpiryListener(ExpiryListener) override {}
  absl::Status Close() override {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    return absl::OkStatus();
  }

 private:
  struct Value {
    std::string bytes;
    std::string metadata;
    uint64_t expiry_ms = kNoExpiry;
    SequenceNumber version = kNoSequence;
  };
  using Keys = std::map<std::string, Value, std::less<>>;
  struct Space {
    NamespaceDescription description;
    Keys keys;
  };
  using Spaces = std::map<NamespaceId, Space>;

  class NoSnapshot final : public Snapshot {
   public:
    SequenceNumber sequence() const override { return kNoSequence; }
    uint64_t instant_ms() const override { return 0; }
    bool HasNamespace(NamespaceId) const override { return false; }
  };
  class Checker;
  class Applier;
  class MapIterator;

  KeyGrouping GroupingLocked(NamespaceId space) const {
    const auto found = spaces_.find(space);
    return found == spaces_.end() ? KeyGrouping() : found->second.description.options.grouping;
  }
  absl::Status Refusal(const ReadOptions& options) const {
    if (closed_) return absl::FailedPreconditionError("the store is closed");
    if (options.snapshot != nullptr)
      return absl::FailedPreconditionError("this store has no snapshots");
    return spaces_.contains(options.space) ? absl::OkStatus() : NoSuchNamespace(options.space);
  }
  ReadResult GetLocked(const ReadOptions& options, std::string_view key, std::string* value) const {
    const Keys& keys = spaces_.at(options.space).keys;
    const auto found = keys.find(key);
    ReadResult result;
    if (found == keys.end()) return result;
    result.expiry_ms = found->second.expiry_ms;
    result.expired = result.expiry_ms != kNoExpiry && result.expiry_ms <= NowMillis();
    if (result.expired) return result;
    const std::string& bytes = found->second.bytes;
    result.too_large = !options.without_value && bytes.size() > options.max_value_bytes;
    if (result.too_large) return result;
    result.found = true;
    result.version = found->second.version;
    result.value_size = bytes.size();
    if (!options.without_value) value->assign(bytes);
    if (options.with_metadata && !found->second.metadata.empty())
      result.metadata = std::make_shared<const std::string>(found->second.metadata);
    return result;
  }

  mutable std::mutex mutex_;
  Spaces spaces_{{kDefaultNamespace, {}}};
  SequenceNumber version_ = kNoSequence;
  bool closed_ = false;
};

class MapStore::Checker final : public WriteBatch::ConditionVisitor {
 public:
  explicit Checker(const MapStore* store) : store_(*store) {}

  absl::Status Unchanged(NamespaceId space, std::string_view key,
                         const WriteBatch::ReadPoint& read) override {
    if (!read.version)
      return absl::FailedPreconditionError("this store compares conditions by version");
    const auto in = store_.spaces_.find(space);
    if (in == store_.spaces_.end()) return NoSuchNamespace(space);
    const auto found = in->second.keys.find(key);
    // One whose time is over is missing.
    const bool is_there =
        found != in->second.keys.end() &&
        (found->second.expiry_ms == kNoExpiry || found->second.expiry_ms > store_.NowMillis());
    const SequenceNumber now = is_there ? found->second.version : kNoSequence;
    return now == *read.version ? absl::OkStatus() : absl::AbortedError("the key was written");
  }
  absl::Status NotPut(NamespaceId space, std::string_view key,
                      const WriteBatch::ReadPoint&) override {
    return Unchanged(space, key, WriteBatch::ReadPoint(kNoSequence, kNoSequence));
  }
  absl::Status RangeUnchanged(NamespaceId, std::string_view, std::string_view,
                              SequenceNumber) override {
    return absl::FailedPreconditionError("this store has no conditions on ranges");
  }

 private:
  const MapStore& store_;
};

class MapStore::Applier final : public WriteBatch::OperationVisitor {
 public:
  Applier(MapStore* store, Spaces* spaces) : store_(*store), spaces_(*spaces) {}

  absl::Status Put(NamespaceId space, std::string_view key, std::string_view value,
                   const PutExtras& extras) override {
    return Change(space, [&](Space* in) {
      in->keys.insert_or_assign(
          std::string(key),
          Value{std::string(value), std::string(extras.metadata), extras.expiry_ms, version()});
    });
  }
  absl::Status Delete(NamespaceId space, std::string_view key, WriteCause) override {
    return Change(space, [&](Space* in) {
      if (const auto found = in->keys.find(key); found != in->keys.end()) in->keys.erase(found);
    });
  }
  absl::Status DeleteRange(NamespaceId, std::string_view, std::string_view) override {
    return absl::FailedPreconditionError("this store deletes no ranges");
  }
  absl::Status ClearNamespace(NamespaceId space) override {
    return Change(space, [](Space* in) { in->keys.clear(); });
  }
  absl::Status CreateNamespace(const NamespaceDescription& space) override {
    for (const auto& [id, in] : spaces_) {
      if (id == space.id || (!space.name.empty() && in.description.name == space.name))
        return absl::AlreadyExistsError("there is such a namespace");
    }
    spaces_[space.id].description = space;
    return absl::OkStatus();
  }
  absl::Status CloneNamespace(NamespaceId, const NamespaceDescription&) override {
    return absl::FailedPreconditionError("this store doesn't clone namespaces");
  }
  absl::Status AlterNamespace(const NamespaceDescription& space) override {
    if (store_.GroupingLocked(space.id) != space.options.grouping)
      return absl::FailedPreconditionError("the groups of a namespace never change");
    return Change(space.id, [&](Space* in) { in->description = space; });
  }
  absl::Status DropNamespace(NamespaceId space) override {
    return spaces_.erase(space) > 0 ? absl::OkStatus() : NoSuchNamespace(space);
  }
  absl::Status SwapNamespaces(NamespaceId, NamespaceId) override {
    return absl::FailedPreconditionError("this store doesn't swap namespaces");
  }

 private:
  SequenceNumber version() const { return store_.version_; }
  absl::Status Change(NamespaceId space, const std::function<void(Space*)>& change) {
    const auto found = spaces_.find(space);
    if (found == spaces_.end()) return NoSuchNamespace(space);
    ++store_.version_;
    change(&found->second);
    return absl::OkStatus();
  }

  MapStore& store_;
  Spaces& spaces_;
};

inline absl::StatusOr<CommitResult> MapStore::Submit(const WriteOptions& options,
                                                     WriteBatch* batch) {
  const std::lock_guard lock(mutex_);
  if (closed_) return absl::FailedPreconditionError("the store is closed");
  const auto groups_of = [this](NamespaceId space) -> std::optional<KeyGrouping> {
    return GroupingLocked(space);
  };
  if (!options.independent_keys) {
    if (absl::Status groups = CheckGroups(*batch, groups_of); !groups.ok()) return groups;
  }
  Spaces changed = spaces_;  // so that a refused batch changes nothing
  Checker checker(this);
  Applier applier(this, &changed);
  if (absl::Status status = batch->ForEachCondition(&checker); !status.ok()) return status;
  if (absl::Status status = batch->ForEachOperation(&applier); !status.ok()) return status;
  spaces_ = std::move(changed);
  batch->Clear();
  return CommitResult{.sequence = version_};
}

// Works on a copy of the namespace's keys.
class MapStore::MapIterator final : public Iterator {
 public:
  MapIterator(absl::Status status, Keys keys, bool with_values)
      : status_(std::move(status)),
        keys_(std::move(keys)),
        at_(keys_.end()),
        with_values_(with_values) {}

  bool Valid() const override { return at_ != keys_.end(); }
  void SeekToFirst() override { at_ = keys_.begin(); }
  void SeekToLast() override { at_ = keys_.empty() ? keys_.end() : std::prev(keys_.end()); }
  void Seek(std::string_view key) override { at_ = keys_.lower_bound(key); }
  void SeekForPrev(std::string_view key) override {
    const auto behind = keys_.upper_bound(key);
    at_ = behind == keys_.begin() ? keys_.end() : std::prev(behind);
  }
  void Next() override { ++at_; }
  void Prev() override { at_ = at_ == keys_.begin() ? keys_.end() : std::prev(at_); }
  std::string_view key() const override { return at_->first; }
  std::string_view value() const override {
    return with_values_ ? std::string_view(at_->second.bytes) : std::string_view();
  }
  uint64_t value_size() const override { return at_->second.bytes.size(); }
  std::string_view metadata() const override { return at_->second.metadata; }
  SequenceNumber version() const override { return at_->second.version; }
  uint64_t expiry_ms() const override { return at_->second.expiry_ms; }
  SequenceNumber durable_after() const override { return kNoSequence; }
  absl::Status status() const override { return status_; }

 private:
  const absl::Status status_;
  const Keys keys_;
  Keys::const_iterator at_;
  const bool with_values_;
};

inline std::unique_ptr<Iterator> MapStore::NewIterator(const ReadOptions& options,
                                                       std::string_view lower,
                                                       std::string_view upper,
                                                       SequenceNumber* durable_after) {
  if (durable_after != nullptr) *durable_after = kNoSequence;
  const std::lock_guard lock(mutex_);
  absl::Status refused = Refusal(options);
  Keys keys;
  if (refused.ok() && (upper.empty() || lower < upper)) {
    const Keys& all = spaces_.at(options.space).keys;
    const auto end = upper.empty() ? all.end() : all.lower_bound(upper);
    for (auto key = all.lower_bound(lower); key != end; ++key) {
      const uint64_t expiry_ms = key->second.expiry_ms;
      const bool shows = expiry_ms == kNoExpiry || expiry_ms > NowMillis();
      if (shows && key->second.version > options.newer_than) keys.insert(*key);
    }
  }
  return std::make_unique<MapIterator>(std::move(refused), std::move(keys), !options.without_value);
}

}  // namespace varve::testing
