// An iterator over a slice of a range that was read before. It ends where the slice does.
//
// Thread-safety: one thread at a time uses an iterator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "varve/iterator.h"
#include "varve/read_result.h"

namespace varve {

class SliceIterator final : public Iterator {
 public:
  // `is_descending`: the entries of the slice are so.
  SliceIterator(RangeSlice slice, bool is_descending);

  bool Valid() const override { return at_ < slice_.entries.size(); }
  void SeekToFirst() override { at_ = 0; }
  void SeekToLast() override { at_ = slice_.entries.size() - 1; }
  void Seek(std::string_view key) override { at_ = FirstFrom(key); }
  void SeekForPrev(std::string_view key) override;
  void Next() override { ++at_; }
  void Prev() override { --at_; }
  std::string_view key() const override { return entry().key; }
  std::string_view value() const override { return entry().value; }
  uint64_t value_size() const override { return entry().value_size; }
  std::string_view metadata() const override { return entry().metadata; }
  SequenceNumber version() const override { return entry().version; }
  uint64_t expiry_ms() const override { return entry().expiry_ms; }
  SequenceNumber durable_after() const override { return slice_.durable_after; }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  const RangeEntry& entry() const { return slice_.entries[at_]; }
  // Returns the place of the first entry whose key is `key` or behind it.
  size_t FirstFrom(std::string_view key) const;

  RangeSlice slice_;      // its entries ascend
  size_t at_ = SIZE_MAX;  // SIZE_MAX: before the first entry
};

}  // namespace varve
