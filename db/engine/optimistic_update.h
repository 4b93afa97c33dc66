// An optimistic update reads, decides and writes, and starts over if another writer wrote one of
// its keys meanwhile. An update that has lost too often takes the locks (stripes) of its keys, so
// that it no longer competes with other updates; plain writes to the keys may still come between.
//
// Thread-safety: Run() may be called on any thread. A stripe is held across a whole commit, so
// stripes are acquired before all other locks of the engine, and among themselves in ascending
// order.
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "varve/store.h"

namespace varve {

class OptimisticUpdate {
 public:
  using Submit = absl::FunctionRef<absl::StatusOr<CommitResult>(WriteBatch*)>;

  // Runs an update as Store::Update() describes it. `submit` commits the batch that `decide`
  // filled.
  [[nodiscard]] absl::StatusOr<CommitResult> Run(
      absl::Span<const std::string_view> keys, absl::FunctionRef<absl::Status(WriteBatch*)> decide,
      Submit submit);

 private:
  static constexpr size_t kStripes = 64;
  absl::Mutex stripes_[kStripes];
};

}  // namespace varve
