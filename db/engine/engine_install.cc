// Engine: a new tree is installed the same way whoever made it: manifest on disk, then the readers'
// state, then what became unnecessary is let go.
#include <unordered_set>
#include <utility>

#include "db/engine/engine.h"
#include "db/version/version_edit.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

std::unordered_set<uint64_t> SegmentNumbers(const Manifest& manifest) {
  std::unordered_set<uint64_t> numbers;
  for (const auto& level : manifest.levels) {
    for (const auto& run : level) {
      for (const SegmentInfo& segment : run) numbers.insert(segment.number);
    }
  }
  return numbers;
}

// Those of generations that still stand on another one.
KeyTallies TalliesOfUse(const KeyTallies& tallies, const NamespaceBases& bases) {
  KeyTallies of_use;
  for (const KeyTallies::Entry& entry : tallies.entries()) {
    if (bases.Of(entry.generation) != nullptr) of_use.Add(entry.generation, entry.tally);
  }
  return of_use;
}

}  // namespace

absl::Status Engine::Install(std::vector<Level> levels, const FullBuffer* flushed, bool sees_less,
                             absl::FunctionRef<void(const Version&, KeyLedger*)> follow) {
  const std::shared_ptr<const Version> before = PresentVersion();
  const auto version = std::make_shared<const Version>(std::move(levels), before.get());
  Manifest next = manifest_;
  next.levels = ManifestLevels(version->levels());
  next.clean_end = false;
  const CountPoint point = NewCountPoint();
  KeyLedger ledger = point.ledger;
  follow(*version, &ledger);
  ledger.Tidy(*version);
  next.settled = ledger.groups();
  if (flushed != nullptr) {
    next.flushed_sequence = flushed->buffer->last_sequence();
    flushed->namespaces.WriteTo(&next);
    std::erase_if(next.log_ends, [&](const LogEnd& end) {
      // One that is kept for its values is found under the log's name for a while: what a recovery
      // cut from it must not come back.
      return end.last_sequence <= next.flushed_sequence &&
             !caches_.values.HoldsOfLog(end.file_number);
    });
  }
  next.next_file_number = next_file_number_.load();
  next.next_generation = next_generation_.load();
  next.clock_mark = clock_.mark();
  next.base_tallies = TalliesOfUse(point.bases, point.state->namespaces.bases());
  const std::unordered_set<uint64_t> live = SegmentNumbers(next);
  VARVE_RETURN_IF_ERROR(WriteManifest(file_system_, directory_, next));
  // Should this fail, the manifest on disk is as good as the one before it, with which the next try
  // begins: what it retired is still there.
  PublishInstalled(version, next, flushed, sees_less, follow);
  manifest_ = std::move(next);
  for (const Version::ValueFileUse& use : before->value_files()) {
    if (version->FindValueFile(use.file->number()) == nullptr) use.file->MarkObsolete(&remover_);
  }
  for (const Version::ValueFileUse& use : version->value_files()) use.file->MarkObsolete(nullptr);

  if (flushed != nullptr) {
    RetireLog(manifest_.flushed_sequence);
    log_bytes_at_flush_.store(log_->live_bytes());
  }
  for (const Run* run : before->runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments) {
      if (!live.contains(segment->info().number)) segment->MarkObsolete(&remover_);
    }
  }
  return absl::OkStatus();
}

void Engine::PublishInstalled(const std::shared_ptr<const Version>& version,
                              const Manifest& manifest, const FullBuffer* flushed, bool sees_less,
                              absl::FunctionRef<void(const Version&, KeyLedger*)> follow) {
  const SnapshotList::Held held = snapshots_.List(visible_);
  absl::MutexLock lock(&commit_mutex_);
  const std::shared_ptr<SuperVersion> next = CopyStateLocked();
  next->version = version;
  KeyLedger ledger = ledger_;
  follow(*version, &ledger);  // more may have been settled meanwhile
  ledger.Tidy(*version);
  std::vector<RangeTombstone> tombstones;  // still in buffers
  KeyTallies base_tallies;
  const SequenceNumber oldest_reader =
      held.sequences.empty() ? held.visible : held.sequences.front();
  const SequenceNumber forgotten = std::min(manifest.flushed_sequence, oldest_reader);
  if (flushed != nullptr) {
    if (!next->namespaces.bases().empty())
      next->namespaces.ForgetBases(GenerationsLeftAfterLocked(forgotten));
    base_tallies = TalliesOfUse(base_tallies_, next->namespaces.bases());
    std::erase(next->full, flushed->buffer);
    if (!flushed->buffer->range_tombstones().empty()) {
      for (const RangeTombstone& tombstone : buffered_tombstones_) {
        if (tombstone.sequence > manifest.flushed_sequence) tombstones.push_back(tombstone);
      }
      next->buffered_tombstones = std::make_shared<const RangeTombstoneList>(tombstones);
    }
  }

  // From here on nothing may fail.
  ledger_ = std::move(ledger);
  if (sees_less) {
    ++ledger_epoch_;
    settled_buffers_.clear();
  }
  if (flushed != nullptr) {
    flushed_ = manifest.flushed_sequence;
    base_tallies_ = std::move(base_tallies);
    last_flush_ = SteadyNow();
    flush_queue_.pop_front();
    background_status_ = absl::OkStatus();  // at once: who waited for this flush may write again
    settled_buffers_.erase(settled_buffers_.begin(), settled_buffers_.upper_bound(flushed_));
    full_buffers_.store(static_cast<int>(flush_queue_.size()), std::memory_order_relaxed);
    if (!flushed->buffer->range_tombstones().empty()) buffered_tombstones_ = std::move(tombstones);
    std::erase_if(left_generations_,
                  [&](const LeftGeneration& left) { return left.left_at <= forgotten; });
  }
  PublishLocked(next);
  UpdatePressureLocked();
  compaction_due_ = settling_due_ = true;
  compaction_work_.Signal();
  room_.SignalAll();
}

// The failure may have come after the rename. On a full disk, retries must not fill it with what
// they leave behind.
void Engine::DropUninstalled(const std::vector<std::shared_ptr<Segment>>& segments) const {
  const absl::StatusOr<Manifest> on_disk = GuardMemory(
      "reading the manifest", [this] { return ReadManifest(file_system_, directory_); });
  if (!on_disk.ok()) return;  // orphans, if that is what they are, go at the next open
  TryWithMemory([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const std::unordered_set<uint64_t> before = SegmentNumbers(manifest_),
                                       after = SegmentNumbers(*on_disk);
    const std::unordered_set<uint64_t> values_before = ValueFileNumbers(manifest_),
                                       values_after = ValueFileNumbers(*on_disk);
    for (const std::shared_ptr<Segment>& segment : segments) {
      const uint64_t number = segment->info().number;
      if (before.contains(number) || after.contains(number)) continue;
      segment->MarkObsolete(&remover_);
      for (const std::shared_ptr<ValueFile>& file : segment->value_files()) {
        if (!values_before.contains(file->number()) && !values_after.contains(file->number()))
          file->MarkObsolete(&remover_);
      }
    }
  });
}

}  // namespace varve
