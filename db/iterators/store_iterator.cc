#include "db/iterators/store_iterator.h"

#include <algorithm>
#include <utility>

#include "db/compression/value_decoder.h"
#include "db/format/large_operation.h"
#include "db/format/value_handle.h"
#include "db/segment/segment_caches.h"
#include "type/tree_key.h"
#include "util/base/assert.h"
#include "util/base/coding.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

// The iterator steps over so many versions of one key one by one; for more it seeks instead.
constexpr int kStepsBeforeSeek = 8;

class StoreIterator final : public Iterator {
 public:
  StoreIterator(std::shared_ptr<const SuperVersion> state,
                std::unique_ptr<InternalIterator> records, VersionRange versions, std::string lower,
                std::string upper, ValueReading values, IteratorClock clock)
      : state_(std::move(state)),
        records_(std::move(records)),
        versions_(versions),
        lower_(std::move(lower)),
        upper_(std::move(upper)),
        upper_word_(LeadingWord(upper_)),
        values_(values),
        clock_(std::move(clock)),
        durable_after_(clock_.durable_after) {}

  bool Valid() const override { return valid_; }

  void SeekToFirst() override {
    Move([this] {
      records_->Seek(lower_, kMaxSequence);
      FindForward(/*after=*/{});
    });
  }

  void SeekToLast() override {
    Move([this] {
      if (upper_.empty()) {
        records_->SeekToLast();
      } else {
        SeekBefore(upper_);
      }
      FindBackward();
    });
  }

  void Seek(std::string_view key) override {
    Move([&] {
      const std::string target = Target(key);
      records_->Seek(std::max(target, lower_), kMaxSequence);
      FindForward(/*after=*/{});
    });
  }

  void SeekForPrev(std::string_view key) override {
    Move([&] {
      std::string behind = Target(key);
      behind.push_back('\0');  // the first tree key after `key`
      if (!upper_.empty() && behind > upper_) behind = upper_;
      SeekBefore(behind);
      FindBackward();
    });
  }

  void Next() override {
    VARVE_ASSERT(valid_);
    Move([this] {
      if (backward_) {
        // The records stand in front of the key; its saved copy says where to go on.
        records_->Seek(key_, kNoSequence);
      } else {
        key_.assign(current_->key);
        records_->Next();
      }
      FindForward(/*after=*/key_);
    });
  }

  void Prev() override {
    VARVE_ASSERT(valid_);
    Move([this] {
      if (!backward_) {
        key_.assign(current_->key);
        SeekBefore(key_);
      }
      FindBackward();
    });
  }

  std::string_view key() const override {
    return UserKeyOf(backward_ ? std::string_view(key_) : current_->key);
  }
  std::string_view value() const override {
    if (is_fetched_) [[unlikely]]
      return fetched_.value;
    if (IsEncoded()) [[unlikely]]
      return {};  // not wanted
    return backward_ ? std::string_view(value_) : current_->value;
  }
  uint64_t value_size() const override {
    if (!backward_) return ValueSizeOf(*current_);
    RecordView record = kept_;
    record.value = value_;
    return ValueSizeOf(record);
  }
  std::string_view metadata() const override {
    return backward_ ? std::string_view(metadata_) : current_->metadata;
  }
  SequenceNumber version() const override {
    return backward_ ? kept_.sequence : current_->sequence;
  }
  uint64_t expiry_ms() const override { return backward_ ? kept_.expiry_ms : current_->expiry_ms; }
  SequenceNumber durable_after() const override { return durable_after_; }
  absl::Status status() const override { return trouble_.ok() ? records_->status() : trouble_; }

 private:
  // Runs a step. After a lack of memory the caller may seek again, but not move on.
  template <typename Step>
  void Move(Step step) {
    trouble_ = GuardMemory("moving an iterator", [&] {
      is_fetched_ = false;
      step();
      if (hidden_until_ > recorded_until_) VARVE_RETURN_IF_ERROR(RecordExpirySeen());
      return values_.wanted && valid_ && IsEncoded() ? Fetch() : absl::OkStatus();
    });
    if (!trouble_.ok()) [[unlikely]]
      valid_ = false;
  }

  // Returns whether the current entry has something else in the place of its value: a handle, or
  // the compressed value.
  bool IsEncoded() const {
    return ((backward_ ? kept_.flags : current_->flags) & (kSeparatedValue | kCompressed)) != 0;
  }
  // Puts the value of the current entry into fetched_.
  absl::Status Fetch() {
    if (((backward_ ? kept_.flags : current_->flags) & kSeparatedValue) != 0)
      return FetchSeparated();
    fetched_ = backward_ ? kept_ : *current_;
    if (backward_) {
      fetched_.key = key_;
      fetched_.value = value_;
    }
    VARVE_ASSIGN_OR_RETURN(fetched_.value, PlainValueOf(fetched_, &fetched_bytes_));
    is_fetched_ = true;
    return absl::OkStatus();
  }

  // Reads the value that the current entry points to.
  absl::Status FetchSeparated() {
    const std::string_view encoded = backward_ ? std::string_view(value_) : current_->value;
    ValueHandle handle;
    ValueFile* file = nullptr;
    if (DecodeValueHandle(encoded, &handle)) {
      file = state_->version->FindValueFile(handle.file_number);
      if (file == nullptr) file = state_->for_parents().version->FindValueFile(handle.file_number);
    }
    if (file == nullptr)
      return absl::DataLossError("segment record: the place of its value makes no sense");
    VARVE_RETURN_IF_ERROR(values_.cache == nullptr ? file->ReadOperation(handle, key(), version(),
                                                                         &fetched_bytes_, &fetched_)
                                                   : FetchThroughCache(file, handle));
    is_fetched_ = true;
    return absl::OkStatus();
  }

  absl::Status FetchThroughCache(ValueFile* file, const ValueHandle& handle) {
    const uint64_t cache_key = RecordKey(handle.offset);
    fetched_pin_ = values_.cache->Lookup(file->number(), cache_key, 0);
    if (!fetched_pin_) {
      ClockCache::Handle bytes = values_.cache->New(handle.operation_size);
      VARVE_ASSIGN_OR_RETURN(const size_t read, file->Read(handle.offset, handle.operation_size,
                                                           bytes.mutable_data()));
      const std::string_view damage =
          DamageOfValue(bytes.data().substr(0, read), handle, key(), version(), &fetched_);
      if (!damage.empty()) return file->Damaged(handle.offset, damage);
      fetched_pin_ = values_.cache->Insert(file->number(), cache_key, std::move(bytes));
    }
    // The reader of the value has verified it; if another thread was faster, it lies in that
    // thread's entry.
    if (ParseLargeOperation(fetched_pin_.data(), &fetched_) == 0)
      return file->Damaged(handle.offset, "value: wrong size");
    const std::string_view damage = DecompressOperation(&fetched_, &fetched_bytes_);
    return damage.empty() ? absl::OkStatus() : file->Damaged(handle.offset, damage);
  }

  absl::Status RecordExpirySeen() {
    VARVE_ASSIGN_OR_RETURN(const SequenceNumber durable_after, clock_.record_expiry(hidden_until_));
    durable_after_ = std::max(durable_after_, durable_after);
    recorded_until_ = hidden_until_;
    return absl::OkStatus();
  }

  bool IsAtOrBehindUpper(std::string_view tree_key) const {
    if (upper_.empty()) return false;
    const uint64_t word = LeadingWord(tree_key);
    return word != upper_word_ ? word > upper_word_ : tree_key >= upper_;
  }
  // Compares the last bytes first, because neighbours mostly differ there.
  static bool SameKey(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    if (a.size() >= 8 &&
        DecodeFixed64(a.data() + a.size() - 8) != DecodeFixed64(b.data() + b.size() - 8))
      return false;
    return a == b;
  }

  bool Shows(const RecordView& record) {
    if (record.kind != RecordKind::kValue || record.sequence <= versions_.newer_than) return false;
    if (record.expiry_ms == 0 || record.expiry_ms > clock_.instant_ms) [[likely]]
      return true;
    hidden_until_ = std::max(hidden_until_, record.expiry_ms);
    return false;
  }

  // Returns the tree key of a user key, in this iterator's generation.
  std::string Target(std::string_view key) const {
    return lower_.substr(0, kGenerationSize).append(key);
  }

  // Moves the records to the last one in front of `tree_key`.
  void SeekBefore(std::string_view tree_key) {
    records_->Seek(tree_key, kMaxSequence);
    if (records_->Valid()) {
      records_->Prev();
    } else if (records_->status().ok()) {
      records_->SeekToLast();
    }
  }

  void Keep(const RecordView& record) {
    value_.assign(record.value);
    metadata_.assign(record.metadata);
    kept_ = record;  // views of which only the copies above hold
  }

  // Moves from where the records stand to the first key that has a visible value and is not
  // `after`, of which older versions may follow.
  void FindForward(std::string_view after);
  // Moves back from where the records stand to the last key that has a visible value.
  void FindBackward();

  const std::shared_ptr<const SuperVersion> state_;
  const std::unique_ptr<InternalIterator> records_;  // reads from state_, so it goes first
  const VersionRange versions_;
  const std::string lower_;
  const std::string upper_;
  const uint64_t upper_word_;
  const ValueReading values_;
  const IteratorClock clock_;

  SequenceNumber durable_after_;
  uint64_t hidden_until_ = 0;    // the latest expiry of what was left out
  uint64_t recorded_until_ = 0;  // expiries up to here are recorded

  absl::Status trouble_;
  const RecordView* current_ = nullptr;  // forward: where the records stand, while valid_
  bool valid_ = false;
  // While this is set, key_ and what follows it hold the current entry, and records_ stands in
  // front of it.
  bool backward_ = false;
  std::string key_;  // forward: the last key that was dealt with
  std::string value_;
  std::string metadata_;
  RecordView kept_;  // what else the entry has

  bool is_fetched_ = false;  // the current entry's value, from elsewhere
  std::string fetched_bytes_;
  ClockCache::Handle fetched_pin_;
  RecordView fetched_;  // in those bytes, or what is pinned
};

void StoreIterator::FindForward(std::string_view after) {
  backward_ = false;
  valid_ = false;
  bool have_last = !after.empty();  // then key_ is the key whose remaining versions are skipped
  int steps = 0;
  while (records_->Valid()) {
    const RecordView& record = records_->record();
    if (IsAtOrBehindUpper(record.key)) return;
    if (have_last && SameKey(record.key, key_)) {  // an older version
      if (++steps < kStepsBeforeSeek) {
        records_->Next();
      } else {
        records_->Seek(key_, kNoSequence);
        if (records_->Valid() && records_->record().key == key_) records_->Next();
      }
      continue;
    }
    if (record.sequence > versions_.at) {  // too new; an older version may follow
      if (++steps < kStepsBeforeSeek) {
        records_->Next();
      } else {
        const std::string key(record.key);
        records_->Seek(key, versions_.at);
        steps = 0;
      }
      continue;
    }
    if (Shows(record)) {
      VARVE_ASSERT(record.sequence <= versions_.at && record.key >= lower_);
      current_ = &record;
      valid_ = true;
      return;
    }
    key_.assign(record.key);  // deleted or expired: so are its older versions
    have_last = true;
    steps = 0;
    records_->Next();
  }
}

void StoreIterator::FindBackward() {
  backward_ = true;
  valid_ = false;
  // Going back, the versions of a key come oldest first: the last one seen that is not too new
  // counts.
  bool have_key = false, is_value = false;
  int steps = 0;
  while (records_->Valid()) {
    const RecordView& record = records_->record();
    if (have_key && record.key != key_) {
      if (is_value) break;
      have_key = false;
    }
    if (record.key < lower_) break;
    if (!have_key) {
      key_.assign(record.key);
      have_key = true;
      is_value = false;
      steps = 0;
    }
    // There are many versions: the iterator seeks the one that counts, then moves in front of all.
    if (++steps > kStepsBeforeSeek) {
      records_->Seek(key_, versions_.at);
      if (records_->Valid() && records_->record().key == key_) {
        is_value = Shows(records_->record());
        if (is_value) Keep(records_->record());
      }
      SeekBefore(key_);
      continue;
    }
    if (record.sequence <= versions_.at) {
      is_value = Shows(record);
      if (is_value) Keep(record);
    }
    records_->Prev();
  }
  valid_ = have_key && is_value && records_->status().ok();
  VARVE_ASSERT(!valid_ || (kept_.sequence <= versions_.at && key_ >= lower_));
}

class ErrorIterator final : public Iterator {
 public:
  explicit ErrorIterator(absl::Status status) : status_(std::move(status)) {}
  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(std::string_view) override {}
  void SeekForPrev(std::string_view) override {}
  void Next() override {}
  void Prev() override {}
  std::string_view key() const override { return {}; }
  std::string_view value() const override { return {}; }
  std::string_view metadata() const override { return {}; }
  SequenceNumber version() const override { return kNoSequence; }
  uint64_t expiry_ms() const override { return 0; }
  SequenceNumber durable_after() const override { return kNoSequence; }
  absl::Status status() const override { return status_; }

 private:
  const absl::Status status_;
};

}  // namespace

std::unique_ptr<Iterator> NewStoreIterator(std::shared_ptr<const SuperVersion> state,
                                           std::unique_ptr<InternalIterator> records,
                                           VersionRange versions, std::string lower,
                                           std::string upper, ValueReading values,
                                           IteratorClock clock) {
  return std::make_unique<StoreIterator>(std::move(state), std::move(records), versions,
                                         std::move(lower), std::move(upper), values,
                                         std::move(clock));
}

std::unique_ptr<Iterator> NewErrorIterator(absl::Status status) {
  return std::make_unique<ErrorIterator>(std::move(status));
}

}  // namespace varve
