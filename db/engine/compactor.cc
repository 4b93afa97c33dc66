#include "db/engine/compactor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "db/compaction/compaction.h"
#include "db/compaction/compaction_planner.h"
#include "db/compaction/merge_compression.h"
#include "db/compaction/merge_parts.h"
#include "db/compaction/value_collection.h"
#include "db/engine/trouble.h"
#include "db/version/version_edit.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "structure/job_threads.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/thread_setup.h"

namespace varve {
namespace {

constexpr absl::Duration kFirstRetry = absl::Seconds(1);
// What fails for another reason than damage may have been mended meanwhile, as a full disk.
constexpr absl::Duration kLastRetry = absl::Seconds(8);
constexpr absl::Duration kLastRetryOfDamage = absl::Seconds(64);
constexpr absl::Duration kBurst = absl::Seconds(1);  // behind a flush; then it is over
// Under load something is installed more often.
constexpr absl::Duration kRestBeforeCounting = absl::Seconds(5);
// Between two looks at the limits of histories: without writes nothing else raises horizons.
constexpr std::chrono::seconds kHorizonRest{30};
constexpr absl::Duration kRestBeforeLoading = absl::Milliseconds(200);  // of indexes

// Returns where the merge is cut into parts for the threads that may work on it. With parts of half
// a segment, its outputs are not yet so small that the picker would merge them for their size.
std::vector<std::string> CutsOf(const CompactionPlan& plan, const CompactionContext& context) {
  const size_t threads = 1 + (context.jobs != nullptr ? context.jobs->most() : 0);
  return MergeCuts(plan, threads, context.options->segment_size / 2);
}

MergeUnderWay DescriptionOf(const CompactionPlan& plan, size_t parts, SteadyTime began) {
  MergeUnderWay merge{
      .reason = plan.reason, .output_level = plan.output_level, .parts = parts, .began = began};
  for (const CompactionPlan::Input& input : plan.inputs) {
    for (const std::shared_ptr<Segment>& segment : input.segments) {
      merge.segments.push_back(segment->number());
      merge.bytes += segment->info().file_size;
    }
  }
  std::sort(merge.segments.begin(), merge.segments.end());
  return merge;
}

// Brings the segment's offset table and fences into memory if they fit beside those that are there.
// Returns whether it read them.
bool LoadIndexIfRoom(Segment* segment) {
  if (segment->has_index()) return false;
  const absl::StatusOr<const SegmentFooter*> footer = segment->Footer();
  if (!footer.ok()) return false;
  const size_t charge = (*footer)->index_size() +
                        (*footer)->overflow.size() * sizeof(OffsetTableOverflow) +
                        sizeof(SegmentIndex);
  const OffsetTableCache& tables = segment->caches().tables;
  return tables.Fits(tables.usage() + charge) && segment->Fences().ok();
}

// What moves into the last run as it is would stay plain there.
void WriteInsteadOfMove(const CompressionPolicy& compression, CompactionPlan* plan) {
  if (!plan->move_only || !plan->joins_last_run || !compression.any()) return;
  for (const CompactionPlan::Input& input : plan->inputs) {
    for (const std::shared_ptr<Segment>& segment : input.segments)
      plan->move_only &= !WantsCompression(segment->info(), compression);
  }
}

void LogPlan(const CompactionPlan& plan, size_t parts) {
  size_t segments = 0;
  uint64_t bytes = 0;
  for (const CompactionPlan::Input& input : plan.inputs) {
    segments += input.segments.size();
    for (const std::shared_ptr<Segment>& segment : input.segments)
      bytes += segment->info().file_size;
  }
  spdlog::debug(
      "merge: reason {}, {} runs, {} segments, {} bytes, from level {} to {}, in {} parts",
      NameOf(plan.reason), plan.inputs.size(), segments, bytes, plan.inputs.front().level,
      plan.remove_only ? "nowhere" : fmt::to_string(plan.output_level), parts);
}

}  // namespace

// --- Work ----------------------------------------------------------------------------------------

void Compactor::Start() {
  VARVE_ASSERT(!thread_.joinable());
  VARVE_ASSERT(!is_stopping());
  thread_ = std::thread([this] { Loop(); });
}

void Compactor::Stop() {
  cancel_ = true;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    work_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Compactor::Wake() {
  absl::MutexLock lock(&mutex_);
  due_ = true;
  work_.Signal();
}

void Compactor::NoteInstalled(bool flushed) noexcept {
  absl::MutexLock lock(&mutex_);
  if (flushed) last_flush_ = SteadyNow();
  due_ = count_due_ = true;
  work_.Signal();
}

absl::Status Compactor::CompactRange(std::string lower, std::string upper) {
  return Ask([&] { return RunRange(lower, upper); });
}

absl::StatusOr<uint64_t> Compactor::Purge(const PurgedKey& purged,
                                          absl::FunctionRef<absl::Status()> rewritten) {
  uint64_t records = 0;
  VARVE_RETURN_IF_ERROR(Ask([&]() -> absl::Status {
    VARVE_ASSIGN_OR_RETURN(records, RunPurge(purged));
    return rewritten();
  }));
  return records;
}

absl::StatusOr<bool> Compactor::EmptyValueFiles(const std::vector<uint64_t>& numbers) {
  bool is_done = false;
  VARVE_RETURN_IF_ERROR(Ask([&]() -> absl::Status {
    const std::shared_ptr<const Version> version = parts_.versions->PresentVersion();
    const CompactionContext context = NewJob();
    const std::optional<CompactionPlan> plan = PlanEmptying(*version, numbers);
    is_done = !plan.has_value();
    return is_done ? absl::OkStatus() : Run(*version, *plan, context).status();
  }));
  return !is_done;
}

absl::Status Compactor::Ask(std::function<absl::Status()> work) {
  Request request{std::move(work), /*done=*/false, absl::OkStatus()};
  absl::MutexLock lock(&mutex_);
  if (stopping_) return absl::AbortedError("the store is being closed");
  requests_.push_back(&request);
  work_.Signal();
  while (!request.done) request_done_.Wait(&mutex_);
  return request.status;
}

bool Compactor::is_stopping() const {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

bool Compactor::HasWorkLocked() const {
  return stopping_ || due_ || !requests_.empty() || parts_.versions->full_buffers() != 0;
}

Compactor::Next Compactor::WaitForWork(const Retry& retry) {
  absl::MutexLock lock(&mutex_);
  while (!stopping_ && !due_ && requests_.empty()) {
    if ((count_due_ || indexes_wanted_) && retry.look_again_at == kEndOfTime) {
      const absl::Duration rest = indexes_wanted_ ? kRestBeforeLoading : kRestBeforeCounting;
      if (work_.WaitWithTimeout(&mutex_, rest) && !HasWorkLocked())
        return {indexes_wanted_ ? Work::kLoadIndexes : Work::kCountKeys};
    } else {
      const SteadyTime rises_at = version_set_.horizons().any() || version_set_.changes().on()
                                      ? SteadyNow() + kHorizonRest
                                      : kEndOfTime;
      if (!work_.WaitWithDeadline(&mutex_, std::min(rises_at, retry.look_again_at))) continue;
      if (rises_at < retry.look_again_at) return {Work::kTrimHistory};
      due_ = true;
    }
  }
  due_ = false;
  if (!requests_.empty()) {
    Request* const request = requests_.front();
    requests_.pop_front();
    VARVE_ASSERT(request != nullptr && !request->done);
    return {Work::kRequest, request};
  }
  return {stopping_ ? Work::kStop : Work::kMerge};
}

void Compactor::Loop() {
  NameThread("varve-merge");
  YieldToForeground();
  Retry retry{.pause = kFirstRetry};
  for (;;) {
    const Next next = WaitForWork(retry);
    if (next.work == Work::kStop) return;
    if (next.work == Work::kCountKeys) {
      TryWithMemory([this] { CountKeys(); });
    } else if (next.work == Work::kLoadIndexes) {
      TryWithMemory([this] { LoadIndexes(); });
    } else if (next.work == Work::kTrimHistory) {
      TrimHistory();
    } else if (next.work == Work::kRequest) {
      TrimHistory();
      Serve(next.request);
    } else {
      Merge(&retry);
    }
    parts_.versions->Reclaim();
    pipeline_.UpdatePressure();
  }
}

void Compactor::TrimHistory() {
  const absl::Status status =
      GuardMemory("trimming histories", [this] { return version_set_.TrimHistory(); });
  if (!status.ok()) TryWithMemory([&] { spdlog::warn("history: {}", WordsOf(status)); });
}

void Compactor::Serve(Request* request) {
  const absl::Status status = GuardMemory("merging on request", request->work);
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(!request->done);
  request->status = UnsharedCopy(status);
  request->done = true;
  due_ = true;  // the tree may be out of shape
  request_done_.SignalAll();
}

bool Compactor::IsInBurst(const Retry& retry) const {
  // What failed is not put off: its trouble would seem to be over.
  if (!retry.trouble.ok()) return false;
  if (pipeline_.IsFlushing()) return true;
  absl::MutexLock lock(&mutex_);
  return SteadyNow() < last_flush_ + kBurst;
}

void Compactor::Merge(Retry* retry) {
  const bool may_merge = SteadyNow() >= retry->next_try;
  const bool in_burst = IsInBurst(*retry);
  const absl::StatusOr<bool> more =
      GuardMemory("merging", [&] { return Step(may_merge, in_burst); });
  if (more.ok()) {
    NoteSuccess(*more, may_merge, in_burst, retry);
  } else if (!is_stopping()) {
    NoteFailure(more.status(), retry);
  }
}

void Compactor::NoteSuccess(bool more, bool merged, bool in_burst, Retry* retry) {
  if (more) Wake();
  if (!merged) return;  // says nothing of what failed
  lacks_space_.store(false, std::memory_order_relaxed);
  if (!retry->trouble.ok()) LogTrouble("compaction", absl::OkStatus());
  *retry = {.pause = kFirstRetry, .look_again_at = in_burst ? SteadyNow() + kBurst : kEndOfTime};
}

void Compactor::NoteFailure(const absl::Status& failure, Retry* retry) {
  VARVE_ASSERT(!failure.ok());
  VARVE_ASSERT(retry->pause >= kFirstRetry && retry->pause <= kLastRetryOfDamage);
  ++failed_compactions_;
  lacks_space_.store(absl::IsResourceExhausted(failure), std::memory_order_relaxed);
  // Other errors than of damage name the output, which is another file each time.
  const bool is_known = absl::IsDataLoss(retry->trouble) ? failure == retry->trouble
                                                         : failure.code() == retry->trouble.code();
  if (!is_known) LogTrouble("compaction", failure);
  retry->trouble = failure;
  retry->look_again_at = retry->next_try = SteadyNow() + retry->pause;
  retry->pause =
      std::min(2 * retry->pause, absl::IsDataLoss(failure) ? kLastRetryOfDamage : kLastRetry);
}

// --- Rest ----------------------------------------------------------------------------------------

void Compactor::CountKeys() {
  SteadyTime since = SteadyNow();
  if (!parts_.counter->CountAtRest([&] { return StaysAtRest(&since); })) return;
  absl::MutexLock lock(&mutex_);
  if (!due_) count_due_ = false;  // else the tree has changed
}

void Compactor::WantIndexes() {
  absl::MutexLock lock(&mutex_);
  if (indexes_wanted_) return;
  indexes_wanted_ = true;
  work_.Signal();
}

void Compactor::LoadIndexes() {
  {
    absl::MutexLock lock(&mutex_);
    indexes_wanted_ = false;  // where work comes between, it is asked for again
  }
  const std::shared_ptr<const Version> version = parts_.versions->PresentVersion();
  SteadyTime since = SteadyNow();
  for (const auto* const run : version->runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments) {
      if (LoadIndexIfRoom(segment.get()) && !StaysAtRest(&since)) return;
    }
  }
}

bool Compactor::StaysAtRest(SteadyTime* since) {
  const absl::Duration worked = absl::FromChrono(SteadyNow() - *since);
  absl::MutexLock lock(&mutex_);
  if (!HasWorkLocked()) work_.WaitWithTimeout(&mutex_, worked);
  *since = SteadyNow();
  return !HasWorkLocked();
}

// --- Merging -------------------------------------------------------------------------------------

CompactionContext Compactor::NewJob() {
  return version_set_.NewJob(&cancel_, [this] { return pipeline_.pressure() > 0; });
}

absl::StatusOr<bool> Compactor::Step(bool may_merge, bool in_burst) {
  // The version first, then the snapshots: one that is taken later sees all of the inputs, newest
  // versions only.
  const std::shared_ptr<const Version> version = parts_.versions->PresentVersion();
  CompactionContext context = NewJob();
  std::optional<CompactionPlan> plan =
      PlanDeadSegments(*version, SnapshotsAndForkPoints(context), context.kept, context.is_live);
  if (!plan && may_merge && IsUrgent(ValueSpaceOf(*version))) {
    plan = PlanCollection(*version);
    if (plan) context.is_urgent = [] { return true; };
  }
  if (!plan && may_merge) {
    if (const auto pick = picker_->Pick(version->shape(), *parts_.options, in_burst)) {
      VARVE_ASSIGN_OR_RETURN(plan, PlanOf(*version, *pick));
    }
    if (plan) WriteInsteadOfMove(context.compression, &*plan);
    if (plan && ReadsDamage(*plan)) plan = PlanAroundDamage(*version, *parts_.options);
  }
  if (!plan && may_merge) plan = PlanCollection(*version);
  if (!plan) return false;
  VARVE_RETURN_IF_ERROR(Run(*version, *plan, context).status());
  return true;
}

std::optional<MergeUnderWay> Compactor::under_way() const {
  absl::MutexLock lock(&mutex_);
  return under_way_;
}

absl::StatusOr<uint64_t> Compactor::Run(const Version& version, const CompactionPlan& plan,
                                        const CompactionContext& context) {
  VARVE_ASSERT(!plan.inputs.empty());
  const SteadyTime begin = SteadyNow();
  const std::vector<std::string> cuts = CutsOf(plan, context);
  if (spdlog::should_log(spdlog::level::debug)) LogPlan(plan, cuts.size() + 1);
  MergeUnderWay merge = DescriptionOf(plan, cuts.size() + 1, begin);
  {
    absl::MutexLock lock(&mutex_);
    VARVE_ASSERT(!under_way_.has_value());
    under_way_ = std::move(merge);
  }
  const absl::Cleanup ends = [this] {
    absl::MutexLock lock(&mutex_);
    under_way_.reset();
  };
  VARVE_ASSIGN_OR_RETURN(const CompactionResult result,
                         RunCompaction(version, plan, context, cuts));
  VARVE_ASSERT(!plan.remove_only || result.segments.empty());
  VARVE_RETURN_IF_ERROR(version_set_.LogAndApply(
      {.segments = result.segments, .sees_less = result.filtered || plan.remove_only},
      [&](const Version& present) { return ApplyCompaction(present, plan, result.segments); },
      [&](const Version&, SegmentKeyCounts* segment_counts) {
        segment_counts->Follow(version, plan, result.segments, result.filtered);
      }));
  times_.Record(
      static_cast<uint64_t>(absl::ToInt64Nanoseconds(absl::FromChrono(SteadyNow() - begin))));
  lacks_space_.store(false, std::memory_order_relaxed);
  ++compactions_[static_cast<size_t>(plan.reason)];
  merged_parts_ += cuts.size() + 1;
  compacted_bytes_ += result.bytes_written;
  input_bytes_ += result.bytes_read;
  return result.records_purged;
}

absl::Status Compactor::RunRange(std::string_view lower, std::string_view upper) {
  const std::shared_ptr<const Version> version = parts_.versions->PresentVersion();
  const CompactionContext context = NewJob();
  const std::optional<CompactionPlan> plan = PlanRange(*version, lower, upper);
  return plan ? Run(*version, *plan, context).status() : absl::OkStatus();
}

absl::StatusOr<uint64_t> Compactor::RunPurge(const PurgedKey& purged) {
  VARVE_ASSIGN_OR_RETURN(
      std::vector<CompactionPlan::Input> inputs,
      SegmentsToPurge(*parts_.versions->PresentVersion(), purged, NewJob().is_live));
  uint64_t records = 0;
  // Only this thread merges, so the segments stay; a flush adds newer ones, which hold nothing of
  // what is purged.
  for (CompactionPlan::Input& input : inputs) {
    const std::shared_ptr<const Version> version = parts_.versions->PresentVersion();
    CompactionContext context = NewJob();
    context.purged = &purged;
    VARVE_ASSIGN_OR_RETURN(const uint64_t gone,
                           Run(*version, PlanRewrite(std::move(input)), context));
    records += gone;
  }
  return records;
}

}  // namespace varve
