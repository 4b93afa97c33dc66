#include "db/version/super_versions.h"

#include <algorithm>
#include <unordered_set>

#include "absl/time/clock.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"

namespace varve {
namespace {

constexpr size_t kFewestBytesOfBufferPerOperation = 8;
// Each replaced super version holds its own list of range tombstones.
constexpr size_t kMaxRetired = 64;
// Range tombstones at which a write buffer counts as full.
constexpr size_t kMaxBufferedTombstones = 1024;
// Retired generations at which a write buffer counts as full. They take no memory in it.
constexpr size_t kMaxBufferedSwitches = 1024;

}  // namespace

SuperVersions::SuperVersions(size_t write_buffer_size, FileThread* file_thread)
    : write_buffer_size_(write_buffer_size),
      buffer_memory_(std::make_shared<ChunkPool>(file_thread)) {}

std::shared_ptr<const Snapshot> SuperVersions::TakeSnapshot(NamespaceTable namespaces,
                                                            uint64_t instant_ms) {
  return snapshots_.Take(visible_, std::move(namespaces), instant_ms);
}

std::shared_ptr<const Snapshot> SuperVersions::TakeSnapshotAt(SequenceNumber sequence,
                                                              NamespaceTable namespaces,
                                                              uint64_t instant_ms) {
  const std::atomic<SequenceNumber> fixed = sequence;
  return snapshots_.Take(fixed, std::move(namespaces), instant_ms);
}

std::shared_ptr<const Version> SuperVersions::PresentVersion() const {
  absl::MutexLock lock(&mutex_);
  return present_->version;
}

bool SuperVersions::WaitForFlushWork(SteadyTime deadline) {
  absl::MutexLock lock(&mutex_);
  bool is_late = false;
  while (!stopped_ && flush_queue_.empty() && !reclaim_due_ && !is_late)
    is_late = flush_work_.WaitWithDeadline(&mutex_, deadline);
  reclaim_due_ = false;
  return !stopped_;
}

std::optional<FullBuffer> SuperVersions::OldestFullBuffer() const {
  absl::MutexLock lock(&mutex_);
  if (flush_queue_.empty()) return std::nullopt;
  VARVE_ASSERT(flush_queue_.front().buffer->last_sequence() > flushed_);
  return flush_queue_.front();
}

void SuperVersions::RestFromFlushing(absl::Duration rest) {
  absl::MutexLock lock(&mutex_);
  if (!stopped_) flush_work_.WaitWithTimeout(&mutex_, rest);
}

bool SuperVersions::stopped() const {
  absl::MutexLock lock(&mutex_);
  return stopped_;
}

void SuperVersions::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  flush_work_.SignalAll();
}

void SuperVersions::Reclaim(bool waits_for_others) {
  for (int tries = 0; published_.Reclaim() != 0 && tries < 100; ++tries)
    absl::SleepFor(absl::Milliseconds(1));
  if (waits_for_others) published_.AwaitReleases();
}

std::function<bool(NamespaceGeneration)> SuperVersions::LiveGenerations(
    const SnapshotList::Held& held, SequenceNumber durable, const std::vector<Horizon>& horizons,
    NamespaceForks* forks, KeptVersions* kept) const {
  // A snapshot that is taken later sees nothing older than what was visible then.
  const SequenceNumber oldest_reader =
      held.sequences.empty() ? held.visible : held.sequences.front();
  absl::MutexLock lock(&mutex_);
  const NamespaceTable& namespaces = present_->namespaces;
  const std::vector<NamespaceGeneration> still_visible =
      GenerationsRetiredAfterLocked(std::min(oldest_reader, durable), horizons);
  *kept = KeptVersions(horizons, namespaces, retired_generations_);
  *forks = namespaces.ForksOf(still_visible);
  std::unordered_set<NamespaceGeneration> live(still_visible.begin(), still_visible.end());
  live.insert(kExpiryGeneration);
  for (const ManifestNamespace& space : namespaces.entries()) live.insert(space.generation);
  for (const NamespaceFork& fork : forks->all()) live.insert(fork.parent);
  return [live = std::move(live)](NamespaceGeneration generation) {
    return live.contains(generation);
  };
}

NamespaceTable SuperVersions::NamespacesAtLocked(SequenceNumber at) const {
  NamespaceTable namespaces = present_->namespaces;
  for (auto retired = retired_generations_.rbegin();
       retired != retired_generations_.rend() && retired->retired_at > at; ++retired) {
    retired->generation == kNoGeneration ? namespaces.Remove(retired->space)
                                         : namespaces.Set(retired->space, retired->generation);
  }
  return namespaces;
}

std::vector<NamespaceGeneration> SuperVersions::GenerationsRetiredAfterLocked(
    SequenceNumber sequence, const std::vector<Horizon>& horizons) const {
  std::vector<NamespaceGeneration> generations;
  for (const RetiredGeneration& retired : retired_generations_) {
    if (retired.retired_at > sequence || IsKept(retired, horizons))
      generations.push_back(retired.generation);
  }
  return generations;
}

void SuperVersions::StartLocked(std::shared_ptr<const Version> version, NamespaceTable namespaces,
                                SequenceNumber flushed, std::vector<RetiredGeneration> retired) {
  VARVE_ASSERT(present_ == nullptr && flush_queue_.empty());
  VARVE_ASSERT(version != nullptr);
  last_sequence_ = flushed_ = flushed;
  retired_generations_ = std::move(retired);
  auto first = std::make_shared<SuperVersion>();
  first->active = std::make_shared<WriteBuffer>(write_buffer_size_, flushed + 1, 0, buffer_memory_);
  first->version = std::move(version);
  first->namespaces = std::move(namespaces);
  present_ = first;
  expires_by_default_.store(present_->namespaces.expires_by_default());
  published_.Replace(std::move(first));
}

std::shared_ptr<SuperVersion> SuperVersions::CopyLocked() {
  VARVE_ASSERT(present_ != nullptr);
  published_.PrepareReplace();
  return std::make_shared<SuperVersion>(*present_);
}

void SuperVersions::PublishLocked(std::shared_ptr<const SuperVersion> next) noexcept {
  VARVE_ASSERT(next != nullptr && next != present_);
  VARVE_ASSERT(next->active != nullptr && next->version != nullptr);
  VARVE_ASSERT(next->namespaces_changed >= present_->namespaces_changed);
  present_ = next;
  expires_by_default_.store(next->namespaces.expires_by_default(), std::memory_order_relaxed);
  // Reclaiming is normally the flusher's work, but it may be busy for long.
  if (published_.Replace(std::move(next)) > kMaxRetired) published_.Reclaim();
  reclaim_due_ = true;
  flush_work_.Signal();
}

void SuperVersions::AdvanceLocked(SequenceNumber last) {
  VARVE_ASSERT(last > last_sequence_);
  VARVE_ASSERT(last_sequence_ + 1 >= present_->active->first_sequence());
  last_sequence_ = last;
}

void SuperVersions::ReserveLocked(size_t tombstones, size_t retired) {
  ReserveMore(&buffered_tombstones_, tombstones);
  ReserveMore(&retired_generations_, retired);
}

void SuperVersions::AddLocked(std::vector<RangeTombstone> tombstones,
                              const std::vector<RetiredGeneration>& retired) {
  VARVE_ASSERT(buffered_tombstones_.capacity() - buffered_tombstones_.size() >= tombstones.size());
  VARVE_ASSERT(retired_generations_.capacity() - retired_generations_.size() >= retired.size());
  for (RangeTombstone& tombstone : tombstones) buffered_tombstones_.push_back(std::move(tombstone));
  for (const RetiredGeneration& each : retired) {
    VARVE_ASSERT(retired_generations_.empty() ||
                 retired_generations_.back().retired_at <= each.retired_at);
    retired_generations_.push_back(each);
  }
}

bool SuperVersions::ActiveBufferIsFullLocked() const {
  const WriteBuffer& active = *present_->active;
  if (active.full() || active.range_tombstones().size() >= kMaxBufferedTombstones) return true;
  const size_t count = retired_generations_.size();
  return count >= kMaxBufferedSwitches &&
         retired_generations_[count - kMaxBufferedSwitches].retired_at >= active.first_sequence();
}

bool SuperVersions::NeedsOwnBuffer(size_t operations) const {
  return operations * kFewestBytesOfBufferPerOperation > write_buffer_size_;
}

void SuperVersions::MakeActiveBufferLocked(size_t operations) {
  VARVE_ASSERT(ActiveBufferIsEmptyLocked());
  const std::shared_ptr<SuperVersion> next = CopyLocked();
  next->active = std::make_shared<WriteBuffer>(write_buffer_size_, last_sequence_ + 1, operations,
                                               buffer_memory_);
  PublishLocked(next);
}

void SuperVersions::RotateLocked(uint64_t log_bytes) {
  show_queue_.DrainLocked();
  VARVE_ASSERT(!ActiveBufferIsEmptyLocked());
  VARVE_ASSERT(flush_queue_.size() == present_->full.size());
  VARVE_ASSERT(log_bytes >= log_bytes_at_rotation_);
  const std::shared_ptr<WriteBuffer> full = present_->active;
  const std::shared_ptr<SuperVersion> next = CopyLocked();
  next->full.insert(next->full.begin(), full);
  next->active =
      std::make_shared<WriteBuffer>(write_buffer_size_, last_sequence_ + 1, 0, buffer_memory_);
  flush_queue_.push_back({full, present_->namespaces, log_bytes - log_bytes_at_rotation_});
  // From here on nothing may fail.
  log_bytes_at_rotation_ = log_bytes;
  full->Seal(last_sequence_);
  buffer_memory_->KeepUpTo(write_buffer_size_);
  full_buffers_.store(static_cast<int>(flush_queue_.size()), std::memory_order_relaxed);
  PublishLocked(next);
}

void SuperVersions::PopFlushedLocked(SequenceNumber flushed, std::vector<RangeTombstone> tombstones,
                                     SequenceNumber forgotten,
                                     const std::vector<Horizon>& horizons) noexcept {
  VARVE_ASSERT(!flush_queue_.empty() && flush_queue_.front().buffer->last_sequence() == flushed);
  VARVE_ASSERT(flushed > flushed_ && forgotten <= flushed);
  const bool held_tombstones = !flush_queue_.front().buffer->range_tombstones().empty();
  flushed_ = flushed;
  flush_queue_.pop_front();
  full_buffers_.store(static_cast<int>(flush_queue_.size()), std::memory_order_relaxed);
  if (held_tombstones) buffered_tombstones_ = std::move(tombstones);
  std::erase_if(retired_generations_, [&](const RetiredGeneration& retired) {
    return retired.retired_at <= forgotten && !IsKept(retired, horizons);
  });
}

bool IngestStep::MayTake(const SuperVersions& versions, SequenceNumber first) {
  return versions.flush_queue_.empty() && versions.flushed_ == versions.last_sequence_ &&
         first == versions.last_sequence_ + 1;
}

void IngestStep::Prepare(const SuperVersions& versions, SequenceNumber last, SuperVersion* next) {
  next->active = std::make_shared<WriteBuffer>(versions.write_buffer_size_, last + 1, 0,
                                               versions.buffer_memory_);
}

void IngestStep::Publish(SuperVersions* versions, SequenceNumber last,
                         std::shared_ptr<const SuperVersion> next) noexcept {
  VARVE_ASSERT(versions->flush_queue_.empty() && last > versions->last_sequence_);
  VARVE_ASSERT(next->active->first_sequence() == last + 1);
  versions->PublishLocked(std::move(next));
  versions->last_sequence_ = versions->flushed_ = last;
  versions->show_queue_.ShowLocked(last);
}

}  // namespace varve
