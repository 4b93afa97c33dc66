// An iterator of a store over HBase reads its range in slices, and the next slice in advance while
// the present one is looked at. Each slice is as consistent as a scan of HBase is: within a region.
// Unlike the iterator of the embedded engine, it may show what was written after it was made.
//
// Thread-safety: One thread at a time uses an iterator. It waits for the cluster.
// Requires: It is destroyed before its store is closed.
#pragma once

#include <cstddef>
#include <future>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "db/hbase/hbase_reader.h"
#include "varve/iterator.h"
#include "varve/store.h"

namespace varve {

class HbaseIterator final : public Iterator {
 public:
  // Requires: the reader outlives the iterator.
  HbaseIterator(const HbaseReader* reader, const ReadOptions& options, std::string_view lower,
                std::string_view upper);

  bool Valid() const override { return status_.ok() && at_ < slice_.entries.size(); }
  void SeekToFirst() override { Read(lower_, upper_, Direction::kUp); }
  void SeekToLast() override { Read(lower_, upper_, Direction::kDown); }
  void Seek(std::string_view key) override;
  void SeekForPrev(std::string_view key) override;
  void Next() override;
  void Prev() override;
  std::string_view key() const override { return entry().key; }
  std::string_view value() const override { return entry().value; }
  uint64_t value_size() const override { return entry().value_size; }
  std::string_view metadata() const override { return entry().metadata; }
  SequenceNumber version() const override { return entry().version; }
  uint64_t expiry_ms() const override { return entry().expiry_ms; }
  SequenceNumber durable_after() const override { return kNoSequence; }
  absl::Status status() const override { return status_; }

 private:
  enum class Direction : uint8_t { kUp, kDown };

  const RangeEntry& entry() const { return slice_.entries[at_]; }
  // Moves to the first entry of [lower, upper) in this direction.
  void Read(const std::string& lower, const std::string& upper, Direction direction);
  // Moves on behind the last entry of the slice.
  void GoOn();
  StoreReads::RangeRequest RequestBehindSlice() const;
  void ReadAhead();
  void Take(absl::StatusOr<RangeSlice> slice);

  const HbaseReader* const reader_;
  ReadOptions options_;
  const std::string lower_;
  const std::string upper_;
  Direction direction_ = Direction::kUp;  // of the slice
  RangeSlice slice_;
  size_t at_ = 0;               // in the slice; its size: behind its end
  const size_t first_entries_;  // of the first slice
  size_t slice_entries_;
  std::optional<std::future<absl::StatusOr<RangeSlice>>> ahead_;  // the slice behind this one
  absl::Status status_;
};

}  // namespace varve
