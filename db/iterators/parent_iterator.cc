#include "db/iterators/parent_iterator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "type/tree_key.h"
#include "util/base/assert.h"

namespace varve {
namespace {

class ParentIterator final : public InternalIterator {
 public:
  ParentIterator(std::unique_ptr<InternalIterator> records, const NamespaceFork& fork)
      : records_(std::move(records)), fork_(fork) {}

  bool Valid() const override { return valid_; }

  void SeekToFirst() override {
    records_->Seek(FirstTreeKey(fork_.parent), kMaxSequence);
    FindForward();
  }

  void SeekToLast() override {
    records_->Seek(EndTreeKey(fork_.parent), kMaxSequence);
    if (records_->Valid()) {
      records_->Prev();
    } else if (records_->status().ok()) {
      records_->SeekToLast();
    }
    FindBackward();
  }

  void Seek(std::string_view tree_key, SequenceNumber sequence) override {
    const NamespaceGeneration generation = GenerationOf(tree_key);
    if (generation < fork_.generation) return SeekToFirst();
    if (generation > fork_.generation) {
      valid_ = false;
      return;
    }
    records_->Seek(FirstTreeKey(fork_.parent).append(UserKeyOf(tree_key)),
                   std::min(sequence, fork_.fork_point));
    FindForward();
  }

  void Next() override {
    VARVE_ASSERT(valid_);
    records_->Next();
    FindForward();
  }

  void Prev() override {
    VARVE_ASSERT(valid_);
    records_->Prev();
    FindBackward();
  }

  const RecordView& record() const override { return record_; }
  absl::Status status() const override { return records_->status(); }

 private:
  bool IsInParent() const {
    return records_->Valid() && GenerationOf(records_->record().key) == fork_.parent;
  }

  void FindForward() {
    while (IsInParent() && records_->record().sequence > fork_.fork_point) records_->Next();
    Take();
  }

  // A write buffer may have grown behind the fork's end after that was looked for.
  bool IsBehindParent() const {
    return records_->Valid() && GenerationOf(records_->record().key) > fork_.parent;
  }

  void FindBackward() {
    while (IsBehindParent() || (IsInParent() && records_->record().sequence > fork_.fork_point))
      records_->Prev();
    Take();
  }

  void Take() {
    valid_ = IsInParent();
    if (!valid_) return;
    record_ = records_->record();
    VARVE_ASSERT(record_.sequence <= fork_.fork_point);
    key_.resize(kGenerationSize);
    EncodeGeneration(key_.data(), fork_.generation);
    key_.append(UserKeyOf(record_.key));
    record_.key = key_;
    if (fork_.Hides(record_)) [[unlikely]] {
      // A deletion in its place hides the older versions, too.
      record_.kind = RecordKind::kTombstone;
      record_.value = record_.metadata = {};
      record_.flags = kNoFlags;
      record_.expiry_ms = 0;
    }
  }

  const std::unique_ptr<InternalIterator> records_;
  const NamespaceFork fork_;
  bool valid_ = false;
  std::string key_;
  RecordView record_;
};

}  // namespace

std::unique_ptr<InternalIterator> NewParentIterator(std::unique_ptr<InternalIterator> records,
                                                    const NamespaceFork& fork) {
  return std::make_unique<ParentIterator>(std::move(records), fork);
}

}  // namespace varve
