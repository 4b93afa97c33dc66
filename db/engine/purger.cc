#include "db/engine/purger.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_set>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "db/changes/change_purge.h"
#include "db/format/file_names.h"
#include "db/format/log_format.h"
#include "db/version/lookup.h"
#include "fmt/format.h"
#include "util/base/status.h"
#include "util/os/steady_condition.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(2);
// One is prepared already, and may be an old one; other writers may take the next.
constexpr int kMostLogFiles = 8;
constexpr int kMostFlushes = 8;

// Looks again and again, until its patience is over.
class Looks {
 public:
  explicit Looks(const Purger::Patience& patience)
      : end_(SteadyNow() + patience.time), left_(patience.looks) {}

  // Returns whether to look again, after a pause.
  bool Again() {
    if (--left_ < 0 && SteadyNow() >= end_) return false;
    absl::SleepFor(kLook);
    return true;
  }

 private:
  const SteadyTime end_;
  int left_;
};

// Returns what people call the owner of a generation.
std::string OwnerOf(NamespaceGeneration generation, const NamespaceTable& namespaces,
                    const std::vector<RetiredGeneration>& retired) {
  for (const ManifestNamespace& entry : namespaces.entries()) {
    if (entry.generation == generation)
      return fmt::format("namespace '{}'", namespaces.ShownNameOf(entry.id));
  }
  for (const RetiredGeneration& each : retired) {
    if (each.generation != generation) continue;
    return fmt::format("the history of namespace '{}'",
                       each.dropped != nullptr && !each.dropped->name.empty()
                           ? each.dropped->name
                           : namespaces.ShownNameOf(each.space));
  }
  std::string owners;
  for (const ManifestNamespace& entry : namespaces.NamespacesSeeing(generation))
    owners += fmt::format("{}namespace '{}'", owners.empty() ? "" : ", ",
                          namespaces.ShownNameOf(entry.id));
  return owners.empty() ? "a snapshot" : owners;
}

}  // namespace

absl::StatusOr<PurgeResult> Purger::Purge(NamespaceId space, std::string_view key,
                                          const std::function<void()>& deleted) {
  absl::MutexLock lock(&compactor_.purging());
  PurgeResult result;
  VARVE_ASSIGN_OR_RETURN(PurgedKey purged, Resolve(space, key));
  VARVE_ASSIGN_OR_RETURN(result.found, HasRecord(purged));
  VARVE_ASSIGN_OR_RETURN(result.existed, Hide(space, key));
  if (result.existed && deleted) deleted();
  // The namespace may have been emptied or cloned meanwhile.
  VARVE_ASSIGN_OR_RETURN(purged, Resolve(space, key));
  VARVE_RETURN_IF_ERROR(AwaitSnapshots(purged.up_to));
  VARVE_ASSIGN_OR_RETURN(const uint64_t fresh, BeginLogAnew());
  VARVE_ASSIGN_OR_RETURN(const uint64_t operations, PurgeChanges(space, purged));
  std::set<std::string> stale;
  // What is removed from here on is removed, and not written over at some time.
  const FileRemover::WithoutSpares without_spares(parts_.remover);
  // Merges that begin from here on find nothing of the key. None is under way, so that what they
  // read and write is not waited for.
  const auto rewritten = [&]() -> absl::Status {
    VARVE_ASSIGN_OR_RETURN(stale, StaleFiles(fresh, version_set_.NewFileNumber()));
    return absl::OkStatus();
  };
  VARVE_ASSIGN_OR_RETURN(const uint64_t records, compactor_.Purge(purged, rewritten));
  result.found |= operations != 0 || records != 0;
  VARVE_ASSIGN_OR_RETURN(const std::vector<uint64_t> emptied, EmptyValueFiles(key));
  for (const uint64_t number : emptied) stale.insert(ValueFilePath("", number).substr(1));
  VARVE_RETURN_IF_ERROR(AwaitRemoval(std::move(stale)));
  return result;
}

// --- Who holds the key ---------------------------------------------------------------------------

absl::StatusOr<PurgedKey> Purger::Resolve(NamespaceId space, std::string_view key) const {
  // A clone that was dropped, or emptied, holds nothing once that is durable.
  VARVE_RETURN_IF_ERROR((*parts_.log)->Sync());
  PurgedKey purged{.user_key = std::string(key)};
  std::vector<RetiredGeneration> retired;
  std::shared_ptr<const SuperVersion> state;
  {
    absl::MutexLock lock(&parts_.versions->mutex());
    parts_.versions->show_queue().DrainLocked();  // no later snapshot is older than `up_to`
    state = parts_.versions->PresentLocked();
    retired = parts_.versions->RetiredGenerationsLocked();
    purged.up_to = parts_.versions->LastSequenceLocked();
  }
  const std::optional<NamespaceGeneration> generation = state->namespaces.Generation(space);
  if (!generation || space == kExpirySpace) return NoSuchNamespace(space);
  purged.generations.push_back(*generation);
  for (const RetiredGeneration& each : retired) {
    // A generation that another namespace lives in by now, after a swap, is its own.
    if (each.space == space && each.generation != kNoGeneration &&
        !state->namespaces.Holds(each.generation))
      purged.generations.push_back(each.generation);
  }
  std::sort(purged.generations.begin(), purged.generations.end());
  VARVE_RETURN_IF_ERROR(CheckHolders(*state, purged, retired));
  return purged;
}

absl::Status Purger::CheckHolders(const SuperVersion& state, const PurgedKey& purged,
                                  const std::vector<RetiredGeneration>& retired) const {
  const auto is_purged = [&](NamespaceGeneration generation) {
    return std::binary_search(purged.generations.begin(), purged.generations.end(), generation);
  };
  const CompactionContext live = version_set_.NewJob(/*cancel=*/nullptr, /*is_urgent=*/nullptr);
  for (const NamespaceFork& fork : live.forks.all()) {
    if (is_purged(fork.generation) == is_purged(fork.parent)) continue;
    Lookup lookup(fork.parent, purged.user_key);
    VARVE_ASSIGN_OR_RETURN(const bool holds, FindLive(state, fork.fork_point, &lookup));
    if (!holds) continue;
    if (is_purged(fork.parent)) {
      const bool is_there = state.namespaces.Holds(fork.generation);
      return absl::FailedPreconditionError(fmt::format(
          "{} holds the key: it is a clone that was made while the key was there; {}, then purge "
          "the key again",
          OwnerOf(fork.generation, state.namespaces, retired),
          is_there ? "drop it"
                   : "wait until that past is no longer kept, or bring the namespace back, end its "
                     "history, drop it and flush"));
    }
    return absl::FailedPreconditionError(
        fmt::format("{} holds the key, and this namespace is its clone: the key cannot be purged "
                    "here while it shares the data",
                    OwnerOf(fork.parent, state.namespaces, retired)));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Purger::HasRecord(const PurgedKey& purged) const {
  const std::shared_ptr<const SuperVersion> state = parts_.versions->Share();
  for (const NamespaceGeneration generation : purged.generations) {
    Lookup lookup(generation, purged.user_key);
    lookup.from_segment.without_value = true;
    if (!LookUpBuffers(*state, kMaxSequence, &lookup)) {
      VARVE_RETURN_IF_ERROR(LookUpSegments(*state, kMaxSequence, /*fill_cache=*/false, &lookup));
    }
    if (lookup.found) return true;
  }
  return false;
}

// --- In the present and in the log ---------------------------------------------------------------

absl::StatusOr<bool> Purger::Hide(NamespaceId space, std::string_view key) {
  const std::shared_ptr<const SuperVersion> state = parts_.versions->Share();
  const std::optional<NamespaceGeneration> generation = state->namespaces.Generation(space);
  if (!generation) return NoSuchNamespace(space);
  Lookup lookup(*generation, key);
  VARVE_ASSIGN_OR_RETURN(const bool is_value, FindLive(*state, kMaxSequence, &lookup));
  if (!is_value) return false;
  const uint64_t expiry_ms = lookup.record.expiry_ms;
  WriteBatch batch;
  batch.Delete(key, space);
  VARVE_RETURN_IF_ERROR(
      write_({.sync = Durability::kAlways, .override_sync = true}, &batch).status());
  return expiry_ms == kNoExpiry || expiry_ms > parts_.clock->NowMillis();
}

absl::Status Purger::AwaitSnapshots(SequenceNumber before) const {
  std::vector<SequenceNumber> awaited = parts_.versions->HeldSnapshots().sequences;
  std::erase_if(awaited, [&](SequenceNumber held) { return held >= before; });
  for (Looks looks(patience_);;) {
    const std::vector<SequenceNumber> held = parts_.versions->HeldSnapshots().sequences;
    // A snapshot of the same version that was taken later does not count.
    std::erase_if(awaited, [&](SequenceNumber sequence) {
      return !std::binary_search(held.begin(), held.end(), sequence);
    });
    if (awaited.empty()) return absl::OkStatus();
    if (looks.Again()) continue;
    return absl::DeadlineExceededError(
        fmt::format("the key is deleted, but a transaction, a scan or another snapshot still reads "
                    "version {}: purge the key again when it has ended",
                    awaited.front()));
  }
}

absl::Status Purger::MarkLog() {
  WriteBatch batch;
  batch.MarkClock(parts_.clock->NowMillis());
  return write_({.sync = Durability::kAlways, .override_sync = true}, &batch).status();
}

absl::StatusOr<uint64_t> Purger::BeginLogAnew() {
  Log& log = *parts_.log->get();
  const absl::Cleanup recycle = [&log] { log.RecycleFiles(); };
  for (int i = 0; i < kMostLogFiles; ++i) {
    VARVE_RETURN_IF_ERROR(MarkLog());  // no file is left empty
    VARVE_RETURN_IF_ERROR(log.PrepareToLeaveFile());
    std::optional<uint64_t> number;
    {
      absl::MutexLock lock(&parts_.versions->mutex());
      VARVE_ASSIGN_OR_RETURN(number, log.LeaveFile());
    }
    if (!number || *number == 0) continue;
    VARVE_RETURN_IF_ERROR(FlushOldLog(*number));
    return *number;
  }
  return absl::UnavailableError(
      "the key is deleted, but the log could not begin a new file beside other writers: purge the "
      "key again");
}

absl::Status Purger::FlushOldLog(uint64_t fresh) {
  const Log& log = *parts_.log->get();
  for (int i = 0; i < kMostFlushes; ++i) {
    VARVE_RETURN_IF_ERROR(MarkLog());  // so that there is something to flush
    VARVE_RETURN_IF_ERROR(pipeline_.FlushAll());
    // Waits for the end of the install, which has the log forget its files.
    version_set_.CurrentManifest();
    if (log.Files().front().file_number >= fresh) break;
  }
  if (log.Files().front().file_number < fresh) {
    return absl::UnavailableError(
        "the key is deleted, but the log still needs an old file: purge the key again");
  }
  // A flush or merge that ends meanwhile lets go of this version.
  const std::shared_ptr<const Version> version = parts_.versions->PresentVersion();
  for (const Version::ValueFileUse& use : version->value_files()) {
    // The install could not rename it.
    if (use.file->is_of_log() && use.file->number() < fresh)
      VARVE_RETURN_IF_ERROR(use.file->LeaveLog(0));
  }
  return absl::OkStatus();
}

// --- Retained changes ----------------------------------------------------------------------------

absl::StatusOr<uint64_t> Purger::PurgeChanges(NamespaceId space, const PurgedKey& purged) const {
  ChangePurge purge(&version_set_.changes(),
                    {.space = space, .key = purged.user_key, .up_to = purged.up_to});
  VARVE_RETURN_IF_ERROR(purge.Begin());
  for (bool more = true; more;) {
    VARVE_ASSIGN_OR_RETURN(more, purge.RewriteSome());
    // Installs a manifest if files were replaced, or if that failed in an earlier purge.
    VARVE_RETURN_IF_ERROR(version_set_.TrimHistory());
  }
  return purge.operations();
}

// --- Files ---------------------------------------------------------------------------------------

absl::StatusOr<std::vector<uint64_t>> Purger::EmptyValueFiles(std::string_view key) {
  VARVE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> numbers,
      ValueFilesWithKey(parts_.file_system, parts_.directory, *parts_.versions->PresentVersion(),
                        key, version_set_.CurrentManifest().next_generation));
  for (bool more = !numbers.empty(); more;) {
    VARVE_ASSIGN_OR_RETURN(more, compactor_.EmptyValueFiles(numbers));
  }
  return numbers;
}

absl::StatusOr<std::set<std::string>> Purger::StaleFiles(uint64_t fresh, uint64_t clean) const {
  // The files first: what a flush makes meanwhile is in the version then, and so is what an ingest
  // commits.
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                         parts_.file_system->List(parts_.directory));
  const std::set<uint64_t> ingested = compactor_.ingest_files()->Numbers();
  const std::shared_ptr<const Version> version = parts_.versions->PresentVersion();
  std::unordered_set<uint64_t> live;
  for (const Run* run : version->runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments) live.insert(segment->number());
  }
  const std::set<uint64_t> live_changes = ChangePurge::LiveFiles(version_set_.changes());
  std::set<std::string> stale;
  for (const std::string& name : names) {
    const std::optional<uint64_t> segment = ParseSegmentName(name);
    const std::optional<uint64_t> values = ParseValueFileName(name);
    const std::optional<uint64_t> changes = ParseChangeFileName(name);
    const std::optional<uint64_t> log = ParseLogFileName(name);
    if ((segment && *segment < clean && !live.contains(*segment) && !ingested.contains(*segment)) ||
        (values && *values < clean && version->FindValueFile(*values) == nullptr) ||
        (changes && !live_changes.contains(*changes)) || (log && *log < fresh) || IsSpareName(name))
      stale.insert(name);
  }
  return stale;
}

void Purger::AwaitFlushes() const {
  SequenceNumber last = kNoSequence;
  {
    absl::MutexLock lock(&parts_.versions->mutex());
    const std::deque<FullBuffer>& queue = parts_.versions->FlushQueueLocked();
    if (!queue.empty()) last = queue.back().buffer->last_sequence();
  }
  const auto is_flushed = [&] {
    absl::MutexLock lock(&parts_.versions->mutex());
    return parts_.versions->FlushedLocked() >= last;
  };
  while (!is_flushed() && pipeline_.IsFlushing() && !pipeline_.IsClosed()) absl::SleepFor(kLook);
}

absl::Status Purger::AwaitRemoval(std::set<std::string> names) const {
  // What is being flushed is no part of the store yet, but its files may be among the names.
  AwaitFlushes();
  for (Looks looks(patience_);;) {
    // The flusher or the merge thread may be freeing the version that holds the files.
    parts_.versions->Reclaim(/*waits_for_others=*/true);
    parts_.remover->AwaitRemovals();
    // What is in use by now was being written.
    VARVE_ASSIGN_OR_RETURN(const std::set<std::string> stale, StaleFiles(UINT64_MAX, UINT64_MAX));
    std::erase_if(names, [&](const std::string& name) { return !stale.contains(name); });
    if (names.empty()) return parts_.file_system->SyncDirectory(parts_.directory);
    if (looks.Again()) continue;
    return absl::DeadlineExceededError(
        fmt::format("the key is deleted, but {} may still hold it and is being read or removed: "
                    "purge the key again when long scans and transactions have ended",
                    *names.begin()));
  }
}

}  // namespace varve
