#include "db/hbase/range_reads.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"

namespace varve {
namespace {

constexpr size_t kReadSliceBytes = 1u << 20;
constexpr size_t kMostRowsOfSlice = 4'096;
constexpr size_t kRowsOfCount = 4'096;
// The scans after which a read with a deadline answers with what it has.
constexpr int kMostScansBeforeDeadline = 32;

class RangeRead final : public std::enable_shared_from_this<RangeRead> {
 public:
  RangeRead(const HbaseContext& context, PlacedSpace place, const ReadOptions& options,
            const StoreReads::RangeRequest& range, StoreReads::RangeDone done)
      : context_(context),
        place_(std::move(place)),
        options_(options),
        descending_(range.descending),
        max_entries_(range.max_entries),
        // One more than wanted tells whether there are more.
        step_(std::min(max_entries_, kMostRowsOfSlice - 1) + 1),
        lower_(place_.RowOf(range.lower)),
        upper_(place_.EndOf(range.upper)),
        done_(std::move(done)) {}

  void ReadNext() {
    if (lower_ >= upper_) return done_(std::move(slice_));
    HbaseScanRequest request;
    request.lower = lower_;
    request.upper = upper_;
    request.is_descending = descending_;
    request.max_rows = step_;
    // Values come along where metadata does, and only entries count against the caller's bound.
    request.max_bytes =
        options_.without_value ? kReadSliceBytes : std::min(options_.max_bytes, kReadSliceBytes);
    request.keys_only = options_.without_value && !options_.with_metadata;
    context_.client->ScanRows(place_.table, std::move(request),
                              context_.NewDeadline(options_.deadline),
                              [self = shared_from_this()](absl::StatusOr<HbaseScanSlice> read) {
                                self->Take(std::move(read));
                              });
  }

 private:
  void Take(absl::StatusOr<HbaseScanSlice> read) {
    if (!read.ok()) return done_(read.status());
    const absl::Status taken = GuardMemory("reading a range", [&] { return TakeRows(read->rows); });
    if (!taken.ok()) return done_(taken);
    if (!read->is_complete && !slice_.entries.empty() && bytes_ >= options_.max_bytes)
      slice_.more = true;
    if (slice_.more || read->is_complete) return done_(std::move(slice_));
    VARVE_ASSERT(!read->rows.empty());
    std::string& last = read->rows.back().first;
    descending_ ? upper_ = std::move(last) : lower_ = std::move(last) + '\0';
    if (context_.operations.IsClosed()) return done_(IsBeingClosed());
    if (++scans_ >= kMostScansBeforeDeadline && IsInHaste()) {
      slice_.more = true;
      return done_(std::move(slice_));
    }
    // Rows that are gone stood in the place of entries, and there may be very many of them.
    if (read->rows.size() == step_) step_ = std::min(step_ * 2, kMostRowsOfSlice);
    ReadNext();
  }

  // Returns whether the caller has a deadline for the whole range, and not for each scan of it.
  bool IsInHaste() const { return options_.deadline != HbaseClient::Deadline::max(); }

  absl::Status TakeRows(const std::vector<std::pair<std::string, std::string>>& rows) {
    const uint64_t now_ms = context_.clock.NowMillis();
    for (const auto& [row, bytes] : rows) {
      const bool cut = options_.without_value && !options_.with_metadata;
      const std::optional<HbaseCell> cell = cut ? DecodeCellHeader(bytes) : DecodeCell(bytes);
      if (!cell) return NotACell(place_.table, bytes.size());
      if (cell->IsGone(now_ms) || cell->version <= options_.newer_than) continue;
      slice_.more = slice_.entries.size() >= max_entries_ ||
                    (!slice_.entries.empty() && bytes_ >= options_.max_bytes);
      if (slice_.more) break;
      RangeEntry& entry = slice_.entries.emplace_back();
      entry.key = place_.KeyOf(row);
      if (!options_.without_value) entry.value = cell->value;
      if (options_.with_metadata) entry.metadata = cell->metadata;
      entry.value_size = cell->value_size;
      entry.version = cell->version;
      entry.expiry_ms = cell->expiry_ms;
      bytes_ += entry.key.size() + entry.value.size() + entry.metadata.size();
    }
    return absl::OkStatus();
  }

  const HbaseContext& context_;
  const PlacedSpace place_;
  const ReadOptions options_;
  const bool descending_;
  const size_t max_entries_;
  size_t step_;  // rows that the next scan reads
  int scans_ = 0;
  std::string lower_;
  std::string upper_;
  const StoreReads::RangeDone done_;
  RangeSlice slice_;
  size_t bytes_ = 0;
};

class RangeCount final : public std::enable_shared_from_this<RangeCount> {
 public:
  RangeCount(const HbaseContext& context, const PlacedSpace& place, std::string_view lower,
             std::string_view upper, StoreReads::CountDone done)
      : context_(context),
        table_(place.table),
        lower_(place.RowOf(lower)),
        upper_(place.EndOf(upper)),
        done_(std::move(done)) {}

  void ReadNext() {
    if (lower_ >= upper_) return Finish();
    HbaseScanRequest request{.lower = lower_, .upper = upper_};
    request.max_rows = kRowsOfCount;
    request.keys_only = true;
    context_.client->ScanRows(table_, std::move(request), context_.NewDeadline(),
                              [self = shared_from_this()](absl::StatusOr<HbaseScanSlice> read) {
                                self->Take(std::move(read));
                              });
  }

 private:
  void Take(absl::StatusOr<HbaseScanSlice> read) {
    if (!read.ok()) return done_(read.status());
    const uint64_t now_ms = context_.clock.NowMillis();
    for (const auto& [row, bytes] : read->rows) {
      const std::optional<HbaseCell> cell = DecodeCellHeader(bytes);
      if (!cell) return done_(NotACell(table_, bytes.size()));
      if (cell->IsGone(now_ms)) continue;
      count_.keys += 1;
      count_.bytes += row.size() - kRowPrefixSize + cell->value_size + cell->metadata_size;
      if (cell->expiry_ms == kNoExpiry) continue;
      count_.expiring += 1;
      expiry_sum_ += static_cast<double>(cell->expiry_ms);
    }
    if (read->is_complete) return Finish();
    VARVE_ASSERT(!read->rows.empty());
    lower_ = std::move(read->rows.back().first) + '\0';
    if (context_.operations.IsClosed()) return done_(IsBeingClosed());
    ReadNext();
  }

  void Finish() {
    if (count_.expiring > 0)
      count_.mean_expiry_ms =
          static_cast<uint64_t>(expiry_sum_ / static_cast<double>(count_.expiring));
    done_(count_);
  }

  const HbaseContext& context_;
  const std::string table_;
  std::string lower_;
  const std::string upper_;
  const StoreReads::CountDone done_;
  CountResult count_;
  double expiry_sum_ = 0;
};

}  // namespace

absl::Status NotACell(std::string_view table, size_t bytes) {
  return absl::DataLossError(fmt::format(
      "a row of table {} holds {} bytes that this version of varve did not write", table, bytes));
}

void ReadPlacedRange(const HbaseContext& context, PlacedSpace place, const ReadOptions& options,
                     StoreReads::RangeRequest range, StoreReads::RangeDone done) {
  VARVE_ASSERT(range.max_entries > 0);
  std::make_shared<RangeRead>(context, std::move(place), options, range, std::move(done))
      ->ReadNext();
}

void CountPlacedRange(const HbaseContext& context, const PlacedSpace& place, std::string_view lower,
                      std::string_view upper, StoreReads::CountDone done) {
  std::make_shared<RangeCount>(context, place, lower, upper, std::move(done))->ReadNext();
}

}  // namespace varve
