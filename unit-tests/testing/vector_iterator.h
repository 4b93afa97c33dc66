// Records in a vector, read through the same cursor as those of write buffers and segments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "db/format/internal_iterator.h"
#include "type/record.h"

namespace varve::testing {

struct TestRecord {
  std::string key;
  SequenceNumber sequence = kNoSequence;
  std::string value;
  RecordKind kind = RecordKind::kValue;

  RecordView view() const {
    RecordView record;
    record.key = key;
    record.value = value;
    record.sequence = sequence;
    record.kind = kind;
    return record;
  }
  friend bool operator==(const TestRecord&, const TestRecord&) = default;
};

inline TestRecord CopyOf(const RecordView& record) {
  return {std::string(record.key), record.sequence, std::string(record.value), record.kind};
}

inline bool TreeOrder(const TestRecord& a, const TestRecord& b) {
  return CompareInternal(a.key, a.sequence, b.key, b.sequence) < 0;
}

class VectorIterator final : public InternalIterator {
 public:
  static constexpr size_t kNever = std::numeric_limits<size_t>::max();

  // Sorts the records. Reading the record at `fails_at` is a DataLoss.
  explicit VectorIterator(std::vector<TestRecord> records, size_t fails_at = kNever)
      : records_(std::move(records)), fails_at_(fails_at) {
    std::stable_sort(records_.begin(), records_.end(), TreeOrder);
    position_ = records_.size();
  }

  bool Valid() const override { return position_ < records_.size() && status_.ok(); }
  void SeekToFirst() override { MoveTo(0); }
  void SeekToLast() override { MoveTo(records_.size() - 1); }
  void Seek(std::string_view tree_key, SequenceNumber sequence) override {
    const TestRecord wanted{std::string(tree_key), sequence, {}, RecordKind::kValue};
    MoveTo(static_cast<size_t>(
        std::lower_bound(records_.begin(), records_.end(), wanted, TreeOrder) - records_.begin()));
  }
  void Next() override { MoveTo(position_ + 1); }
  // Before the first: wraps around to an invalid position.
  void Prev() override { MoveTo(position_ - 1); }
  const RecordView& record() const override { return record_; }
  absl::Status status() const override { return status_; }

 private:
  void MoveTo(size_t position) {
    position_ = position;
    status_ = position < records_.size() && position == fails_at_
                  ? absl::DataLossError("damaged on purpose")
                  : absl::OkStatus();
    if (Valid()) record_ = records_[position_].view();
  }

  std::vector<TestRecord> records_;
  const size_t fails_at_;
  size_t position_;
  RecordView record_;
  absl::Status status_;
};

}  // namespace varve::testing
