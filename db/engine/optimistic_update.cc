#include "db/engine/optimistic_update.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "util/base/assert.h"
#include "util/base/hash.h"
#include "util/base/status.h"
#include "varve/write_batch.h"

namespace varve {
namespace {

constexpr int kOptimisticTries = 8;  // before an update takes its keys' stripes
constexpr int kTriesAlone = 1000;    // and with them

}  // namespace

absl::StatusOr<CommitResult> OptimisticUpdate::Run(
    absl::Span<const std::string_view> keys, absl::FunctionRef<absl::Status(WriteBatch*)> decide,
    Submit submit) {
  WriteBatch batch;
  const auto attempt = [&]() -> absl::StatusOr<CommitResult> {
    batch.Clear();
    VARVE_RETURN_IF_ERROR(decide(&batch));
    return submit(&batch);
  };
  for (int i = 0; i < kOptimisticTries; ++i) {
    absl::StatusOr<CommitResult> result = attempt();
    if (!absl::IsAborted(result.status())) return result;
  }
  std::vector<size_t> stripes;
  for (const std::string_view key : keys) stripes.push_back(HashKey(key) % kStripes);
  std::sort(stripes.begin(), stripes.end());
  stripes.erase(std::unique(stripes.begin(), stripes.end()), stripes.end());
  VARVE_ASSERT(stripes.size() <= kStripes && stripes.size() <= keys.size());
  VARVE_ASSERT(stripes.empty() == keys.empty());
  std::vector<std::unique_ptr<absl::MutexLock>> locks;
  for (const size_t stripe : stripes)
    locks.push_back(std::make_unique<absl::MutexLock>(&stripes_[stripe]));
  absl::StatusOr<CommitResult> result = absl::AbortedError("not tried");
  for (int i = 0; i < kTriesAlone && absl::IsAborted(result.status()); ++i) result = attempt();
  return result;
}

}  // namespace varve
