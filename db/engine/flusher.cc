#include "db/engine/flusher.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "db/compaction/compaction.h"
#include "db/engine/trouble.h"
#include "db/version/version_edit.h"
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

absl::Status Flusher::FlushOldest() {
  std::optional<FullBuffer> full = parts_.versions->OldestFullBuffer();
  if (!full) return absl::OkStatus();
  // Segments hold nothing that the log could still lose.
  Log& log = *parts_.log->get();
  if (log.durable_sequence() < full->buffer->last_sequence()) VARVE_RETURN_IF_ERROR(log.Sync());
  VARVE_ASSERT(log.durable_sequence() >= full->buffer->last_sequence());
  return Flush(*full);
}

absl::Status Flusher::Flush(const FullBuffer& full) {
  VARVE_ASSERT(full.buffer->last_sequence() >= full.buffer->first_sequence());
  const SteadyTime begin = SteadyNow();
  watches_.LookThrough(*full.buffer);
  const CompactionContext context = version_set_.NewJob(/*cancel=*/nullptr, /*is_urgent=*/nullptr);
  const std::vector<SequenceNumber> held = SnapshotsAndForkPoints(context);
  const std::unique_ptr<InternalIterator> records = full.buffer->NewSortedIterator(
      /*newest_only=*/(held.empty() || held.front() >= full.buffer->last_sequence()) &&
      context.kept.oldest() >= full.buffer->last_sequence());
  const bool first = parts_.versions->PresentVersion()->segment_count() == 0;
  const std::unique_ptr<ValueSeparation> separation = NewValueSeparation(full, context);
  VARVE_ASSIGN_OR_RETURN(const CompactionResult result,
                         RunFlush(records.get(), full.buffer->range_tombstones(),
                                  {full.buffer->entries(), full.buffer->bytes_used(),
                                   full.buffer->logged_large_bytes()},
                                  /*drops_tombstones=*/first, separation.get(), context));
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
      static_cast<uint64_t>(absl::ToInt64Nanoseconds(absl::FromChrono(SteadyNow() - begin))));
  ++flushes_;
  flushed_bytes_ += result.bytes_written;
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
