#include "db/iterators/base_iterator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "type/tree_key.h"

namespace varve {
namespace {

class BaseIterator final : public InternalIterator {
 public:
  BaseIterator(std::unique_ptr<InternalIterator> records, const NamespaceBase& base)
      : records_(std::move(records)), base_(base) {}

  bool Valid() const override { return valid_; }

  void SeekToFirst() override {
    records_->Seek(FirstTreeKey(base_.base), kMaxSequence);
    FindForward();
  }

  void SeekToLast() override {
    records_->Seek(EndTreeKey(base_.base), kMaxSequence);
    if (records_->Valid()) {
      records_->Prev();
    } else if (records_->status().ok()) {
      records_->SeekToLast();
    }
    FindBackward();
  }

  void Seek(std::string_view tree_key, SequenceNumber sequence) override {
    const NamespaceGeneration generation = GenerationOf(tree_key);
    if (generation < base_.generation) return SeekToFirst();
    if (generation > base_.generation) {
      valid_ = false;
      return;
    }
    records_->Seek(FirstTreeKey(base_.base).append(UserKeyOf(tree_key)),
                   std::min(sequence, base_.cut));
    FindForward();
  }

  void Next() override {
    records_->Next();
    FindForward();
  }

  void Prev() override {
    records_->Prev();
    FindBackward();
  }

  const RecordView& record() const override { return record_; }
  absl::Status status() const override { return records_->status(); }

 private:
  bool IsInBase() const {
    return records_->Valid() && GenerationOf(records_->record().key) == base_.base;
  }

  void FindForward() {
    while (IsInBase() && records_->record().sequence > base_.cut) records_->Next();
    Take();
  }

  // A write buffer may have grown behind the base's end after that was looked for.
  bool IsBehindBase() const {
    return records_->Valid() && GenerationOf(records_->record().key) > base_.base;
  }

  void FindBackward() {
    while (IsBehindBase() || (IsInBase() && records_->record().sequence > base_.cut))
      records_->Prev();
    Take();
  }

  void Take() {
    valid_ = IsInBase();
    if (!valid_) return;
    record_ = records_->record();
    key_.resize(kGenerationSize);
    EncodeGeneration(key_.data(), base_.generation);
    key_.append(UserKeyOf(record_.key));
    record_.key = key_;
  }

  const std::unique_ptr<InternalIterator> records_;
  const NamespaceBase base_;
  bool valid_ = false;
  std::string key_;
  RecordView record_;
};

}  // namespace

std::unique_ptr<InternalIterator> NewBaseIterator(std::unique_ptr<InternalIterator> records,
                                                  const NamespaceBase& base) {
  return std::make_unique<BaseIterator>(std::move(records), base);
}

}  // namespace varve
