#include "db/iterators/tombstone_filter.h"

#include <utility>

namespace varve {
namespace {

class TombstoneFilter final : public InternalIterator {
 public:
  TombstoneFilter(std::unique_ptr<InternalIterator> records, const SuperVersion* state,
                  SequenceNumber at, SequenceNumber newest)
      : records_(std::move(records)), state_(state), at_(at), newest_(newest) {}

  bool Valid() const override { return records_->Valid(); }
  void SeekToFirst() override {
    records_->SeekToFirst();
    SkipForward();
  }
  void SeekToLast() override {
    records_->SeekToLast();
    SkipBackward();
  }
  void Seek(std::string_view tree_key, SequenceNumber sequence) override {
    records_->Seek(tree_key, sequence);
    SkipForward();
  }
  void PrepareSeek(std::string_view tree_key, SeekStep step) override {
    records_->PrepareSeek(tree_key, step);
  }
  void ExpectWayBack() override { records_->ExpectWayBack(); }
  void Next() override {
    records_->Next();
    SkipForward();
  }
  const RecordView* NextKey() override {
    if (records_->NextKey() == nullptr) return nullptr;
    SkipForward();
    return Valid() ? &record() : nullptr;
  }
  void Prev() override {
    records_->Prev();
    SkipBackward();
  }
  const RecordView& record() const override { return records_->record(); }
  absl::Status status() const override { return records_->status(); }

 private:
  struct Hiding {
    // null: nothing hides the current record from the reader.
    const RangeTombstoneList::Fragment* fragment = nullptr;
    SequenceNumber sequence = kNoSequence;
  };

  Hiding FindHiding() const {
    const RecordView& record = records_->record();
    for (const RangeTombstoneList* list :
         {state_->buffered_tombstones.get(), &state_->version->range_tombstones()}) {
      if (list->empty()) continue;
      const SequenceNumber sequence = list->CoveringSequence(record.key, at_);
      if (sequence > record.sequence) return {list->Covering(record.key, at_), sequence};
    }
    return {};
  }

  void SkipForward() {
    while (records_->Valid()) {
      const Hiding hiding = FindHiding();
      if (hiding.fragment == nullptr) return;
      if (hiding.sequence >= newest_) {
        records_->Seek(hiding.fragment->end, kMaxSequence);
      } else {
        records_->Next();
      }
    }
  }

  void SkipBackward() {
    while (records_->Valid()) {
      const Hiding hiding = FindHiding();
      if (hiding.fragment == nullptr) return;
      if (hiding.sequence >= newest_) {
        records_->Seek(hiding.fragment->begin, kMaxSequence);
        if (!records_->Valid()) return;  // an error: the covered record itself is at or after begin
      }
      records_->Prev();
    }
  }

  const std::unique_ptr<InternalIterator> records_;
  const SuperVersion* const state_;
  const SequenceNumber at_;
  const SequenceNumber newest_;
};

}  // namespace

std::unique_ptr<InternalIterator> NewTombstoneFilter(std::unique_ptr<InternalIterator> records,
                                                     const SuperVersion* state, SequenceNumber at,
                                                     SequenceNumber newest) {
  return std::make_unique<TombstoneFilter>(std::move(records), state, at, newest);
}

}  // namespace varve
