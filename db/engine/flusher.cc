#include "db/engine/flusher.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "db/compaction/compaction.h"
#include "db/engine/trouble.h"
#include "db/version/version_edit.h"
#include "structure/job_threads.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/thread_setup.h"

namespace varve {
namespace {

constexpr absl::Duration kFlushRetry = absl::Milliseconds(200);
constexpr absl::Duration kRestBeforeMemoryGoes = absl::Seconds(2);
// Values stay in the log where at least this part of it is values: else what lies around them is
// garbage from the start.
constexpr uint64_t kDenseNumerator = 2, kDenseDenominator = 3;

// Has the files of a flush removed that no manifest names. Value files of its own are among them.
void Drop(const std::vector<std::shared_ptr<Segment>>& segments, FileRemover* remover) {
  for (const std::shared_ptr<Segment>& segment : segments) {
    for (const std::shared_ptr<ValueFile>& file : segment->value_files()) {
      if (!file->is_of_log()) file->MarkObsolete(remover);
    }
    segment->MarkObsolete(remover);
  }
}

}  // namespace

void Flusher::Start() {
  VARVE_ASSERT(!thread_.joinable());
  VARVE_ASSERT(!parts_.versions->stopped());
  thread_ = std::thread([this] { Loop(); });
}

void Flusher::Stop() {
  parts_.versions->Stop();
  if (thread_.joinable()) thread_.join();
}

void Flusher::Loop() {
  NameThread("varve-flush");
  YieldToForeground();
  SuperVersions& versions = *parts_.versions;
  ChunkPool& memory = versions.buffer_memory();
  SteadyTime memory_goes_at = SteadyNow();
  SteadyTime looks_at = SteadyNow();
  for (bool in_trouble = false;
       versions.WaitForFlushWork(memory.keeps() ? std::min(memory_goes_at, looks_at) : looks_at);) {
    if (SteadyNow() >= looks_at) looks_at = tidier_.Look();
    if (versions.full_buffers() != 0) memory_goes_at = SteadyNow() + kRestBeforeMemoryGoes;
    if (SteadyNow() >= memory_goes_at) memory.KeepUpTo(0);
    versions.Reclaim();
    const absl::Status status =
        GuardMemory("flushing a write buffer", [this] { return FlushOldest(); });
    versions.Reclaim();
    if (status.ok() == in_trouble && !versions.stopped()) LogTrouble("flush", status);
    in_trouble = !status.ok();
    pipeline_.NoteFlush(status);
    if (!status.ok()) versions.RestFromFlushing(kFlushRetry);
  }
}

std::vector<FullBuffer> Flusher::BuffersToFlush() const {
  const size_t threads = 1 + (parts_.jobs != nullptr ? parts_.jobs->most() : 0);
  absl::MutexLock lock(&parts_.versions->mutex());
  const std::deque<FullBuffer>& queue = parts_.versions->FlushQueueLocked();
  const size_t count = std::min(queue.size(), threads);
  return {queue.begin(), queue.begin() + static_cast<ptrdiff_t>(count)};
}

absl::Status Flusher::FlushOldest() {
  std::vector<FullBuffer> buffers = BuffersToFlush();
  if (buffers.empty()) return absl::OkStatus();
  // Segments hold nothing that the log could still lose.
  Log& log = *parts_.log->get();
  const SequenceNumber last = buffers.back().buffer->last_sequence();
  if (log.durable_sequence() < last) VARVE_RETURN_IF_ERROR(log.Sync());
  VARVE_ASSERT(log.durable_sequence() >= last);

  std::vector<Flush> flushes;
  std::vector<std::function<void()>> jobs;
  flushes.reserve(buffers.size());
  for (FullBuffer& full : buffers) {
    Flush* const flush = &flushes.emplace_back(Prepare(std::move(full)));
    flush->is_first &= flushes.size() == 1;
    jobs.emplace_back([flush] { Write(flush); });
  }
  size_t installed = 0;
  const absl::Cleanup drop_others = [&] {
    for (; installed < flushes.size(); ++installed) {
      if (const auto& result = flushes[installed].result; result.ok())
        Drop(result->segments, parts_.remover);
    }
  };
  JobGroup group(parts_.jobs, std::move(jobs), /*is_urgent=*/true);
  for (size_t i = 0; i < flushes.size(); ++i) {
    watches_.LookThrough(*flushes[i].full.buffer);
    group.Finish(i);
    VARVE_RETURN_IF_ERROR(flushes[i].result.status());
    ++installed;  // or removed, where the install fails
    VARVE_RETURN_IF_ERROR(Install(flushes[i]));
    flushes[i].full = {};
    parts_.versions->Reclaim();
  }
  return absl::OkStatus();
}

Flusher::Flush Flusher::Prepare(FullBuffer full) {
  VARVE_ASSERT(full.buffer->last_sequence() >= full.buffer->first_sequence());
  Flush flush{.full = std::move(full),
              .context = version_set_.NewJob(/*cancel=*/nullptr, /*is_urgent=*/nullptr),
              .is_first = parts_.versions->PresentVersion()->segment_count() == 0};
  flush.separation = NewValueSeparation(flush.full, flush.context);
  return flush;
}

void Flusher::Write(Flush* flush) {
  flush->began = SteadyNow();
  const WriteBuffer& buffer = *flush->full.buffer;
  const CompactionContext& context = flush->context;
  flush->result = GuardMemory("flushing a write buffer", [&] {
    const std::vector<SequenceNumber> held = SnapshotsAndForkPoints(context);
    const std::unique_ptr<InternalIterator> records = buffer.NewSortedIterator(
        /*newest_only=*/(held.empty() || held.front() >= buffer.last_sequence()) &&
        context.kept.oldest() >= buffer.last_sequence());
    return RunFlush(records.get(), buffer.range_tombstones(),
                    {buffer.entries(), buffer.bytes_used(), buffer.logged_large_bytes()},
                    /*drops_tombstones=*/flush->is_first, flush->separation.get(), context);
  });
}

absl::Status Flusher::Install(const Flush& flush) {
  const FullBuffer& full = flush.full;
  const CompactionResult& result = *flush.result;
  VARVE_ASSERT(result.segments.empty() || result.bytes_written > 0);
  const std::optional<GenerationKeyCounts> change =
      result.filtered ? std::nullopt : parts_.counter->ChangeOfBuffer(*full.buffer);
  VARVE_RETURN_IF_ERROR(version_set_.LogAndApply(
      {.segments = result.segments,
       .flushed = &full,
       .sees_less = result.filtered,
       .written = result.written},
      [&](const Version& present) { return ApplyFlush(present, result.segments); },
      [&](const Version& next, SegmentKeyCounts* segment_counts) {
        if (change && !result.segments.empty())
          segment_counts->Record(next, {NumbersOf(result.segments), *change});
      }));
  times_.Record(
      static_cast<uint64_t>(absl::ToInt64Nanoseconds(absl::FromChrono(SteadyNow() - flush.began))));
  flushed_bytes_ += result.bytes_written;
  ++flushes_;  // whoever sees the flush counted sees its bytes, too
  return absl::OkStatus();
}

std::unique_ptr<ValueSeparation> Flusher::NewValueSeparation(const FullBuffer& full,
                                                             const CompactionContext& context) {
  FlushSeparationOptions options{.compression = context.compression};
  // By generation, for namespaces that ask for a size of their own.
  std::unordered_map<NamespaceGeneration, uint64_t> own_sizes;
  for (const ManifestNamespace& entry : full.namespaces.entries()) {
    const NamespaceDescription* const space = full.namespaces.Description(entry.id);
    if (space != nullptr && space->options.value_separation_size != 0) {
      own_sizes[entry.generation] = space->options.value_separation_size;
    }
  }
  options.separation_size =
      [own_sizes = std::move(own_sizes),
       usual = parts_.options->value_separation_size](NamespaceGeneration generation) -> uint64_t {
    const auto own = own_sizes.find(generation);
    return own == own_sizes.end() ? usual : own->second;
  };
  const WriteBuffer& buffer = *full.buffer;
  if (buffer.logged_large_bytes() * kDenseDenominator >= full.log_bytes * kDenseNumerator) {
    options.log_blocks =
        parts_.log->get()->LargeBlocks(buffer.first_sequence(), buffer.last_sequence());
  }
  return NewFlushSeparation(std::move(options),
                            {.file_system = parts_.file_system,
                             .directory = parts_.directory,
                             .next_file_number = [this] { return version_set_.NewFileNumber(); },
                             .registry = &parts_.caches->values});
}

}  // namespace varve
