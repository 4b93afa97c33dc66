// The reads of a store over HBase. The asynchronous forms answer on a thread of the client; the
// others wait for them.
//
// Each row is read as it is at some moment of the call, and a slice of a range region by region:
// there is no snapshot over several keys. What has expired by this server's clock is not shown.
//
// A read of many keys fails key by key: those of a region that does not answer within the deadline
// are StoreUnavailable, and the others have their values.
//
// ReadResult::read_sequence of a key that is missing is the version of what is left of it (a
// tombstone, or a value whose time is over), and kNoSequence if nothing is left: a condition
// compares it (db/hbase/batch_plan.h).
//
// Thread-safety: All functions are thread-safe.
// Requires: The context outlives every call's answer; OperationGate sees to that.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "db/hbase/gathered_reads.h"
#include "db/hbase/hbase_context.h"
#include "varve/store.h"

namespace varve {

class HbaseReader {
 public:
  // Requires: both outlive the reader.
  HbaseReader(HbaseContext* context, GatheredReads* gathered)
      : context_(context), gathered_(gathered) {}

  // Waits for the next push of the gathered reads.
  void GetAsync(const ReadOptions& options, std::string key, StoreReads::GetDone done) const;
  void MultiGetAsync(const ReadOptions& options, std::vector<std::string> keys,
                     StoreReads::MultiGetDone done) const;
  void ReadRangeAsync(const ReadOptions& options, StoreReads::RangeRequest range,
                      StoreReads::RangeDone done) const;
  // Reads the rows of the range, however long that takes.
  void CountAsync(const ReadOptions& options, std::string_view lower, std::string_view upper,
                  StoreReads::CountDone done) const;

  absl::StatusOr<ReadResult> Get(const ReadOptions& options, std::string_view key,
                                 std::string* value) const;
  absl::Status MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys,
                        absl::Span<MultiGetResult> results) const;
  absl::StatusOr<RangeSlice> ReadRange(const ReadOptions& options,
                                       const StoreReads::RangeRequest& range) const;
  absl::StatusOr<CountResult> Count(const ReadOptions& options, std::string_view lower,
                                    std::string_view upper) const;

 private:
  // Returns where the namespace's rows are, and keeps the store open meanwhile.
  struct Begun {
    OperationGate::Pass pass;
    PlacedSpace place;
  };
  absl::StatusOr<Begun> Begin(const ReadOptions& options) const;

  HbaseContext* const context_;
  GatheredReads* const gathered_;
};

}  // namespace varve
