#include "tools/repair/repair.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "db/changes/change_file.h"
#include "db/changes/feed_table.h"
#include "db/format/batch_codec.h"
#include "db/format/expiry_index.h"
#include "db/format/file_names.h"
#include "db/format/log_format.h"
#include "db/history/time_file.h"
#include "db/namespaces/namespace_table.h"
#include "db/write_buffer/write_buffer.h"
#include "tools/patchy_files.h"
#include "tools/repair/repair_job.h"
#include "tools/repair/repair_writer.h"
#include "util/base/assert.h"
#include "util/base/coding.h"
#include "util/base/hash.h"
#include "util/base/status.h"
#include "util/os/clock.h"

namespace varve {
namespace {

constexpr size_t kBufferSize = 64u << 20;  // of log operations that become one segment

// Takes the operations of a log and hands them on, a write buffer at a time, to be written into
// segments. Namespaces and the clock follow along.
class LogSalvage {
 public:
  using Write = absl::FunctionRef<absl::Status(const WriteBuffer& buffer)>;

  LogSalvage(const Manifest& manifest, Write write)
      : flushed_(manifest.flushed_sequence), namespaces_(manifest), write_(write) {
    feeds_.Load(manifest.feeds);
    Begin(flushed_ + 1);
  }

  absl::Status Take(std::string_view operations, SequenceNumber first) {
    BatchReader reader(operations);
    RecordView record;
    for (SequenceNumber sequence = first; reader.Next(&record); ++sequence) {
      record.sequence = sequence;
      if (sequence <= flushed_) continue;
      VARVE_ASSERT(sequence > last_);
      last_ = sequence;
      ++operations_;
      if (record.kind == RecordKind::kRangeTombstone) {
        buffer_->AddRangeTombstone({std::string(record.key), std::string(record.value), sequence});
      } else if (NamespaceTable::IsChangedBy(record)) {
        // Where it builds on an operation that is lost, there is nothing to do.
        namespaces_.Replay(record).IgnoreError();
      } else if (record.kind == RecordKind::kClockMark) {
        if (record.value.size() == sizeof(uint64_t)) {
          clock_mark_ = std::max(clock_mark_, DecodeFixed64(record.value.data()));
        }
      } else if (record.kind == RecordKind::kChangeFeed) {
        feeds_.Publish(feeds_.After(nullptr, record));
      } else {
        buffer_->Add(record, HashKey(record.key), /*readers_wait=*/false);
        if (record.expiry_ms != 0) {
          std::string bytes;
          const RecordView entry = ExpiryIndexRecord(record, RealClock().WallMillis(), &bytes);
          buffer_->Add(entry, HashKey(entry.key), /*readers_wait=*/false);
        }
      }
    }
    return buffer_->full() ? Flush() : absl::OkStatus();
  }
  absl::Status Flush() {
    buffer_->Seal(last_);
    VARVE_RETURN_IF_ERROR(write_(*buffer_));
    Begin(last_ + 1);
    return absl::OkStatus();
  }

  SequenceNumber last() const { return last_; }
  uint64_t operations() const { return operations_; }
  const NamespaceTable& namespaces() const { return namespaces_; }
  std::vector<FeedPlace> feeds() const { return *feeds_.All(); }
  uint64_t clock_mark() const { return clock_mark_; }

 private:
  void Begin(SequenceNumber first) { buffer_ = std::make_unique<WriteBuffer>(kBufferSize, first); }

  const SequenceNumber flushed_;
  NamespaceTable namespaces_;
  FeedTable feeds_;
  Write write_;
  std::unique_ptr<WriteBuffer> buffer_;
  SequenceNumber last_ = kNoSequence;
  uint64_t operations_ = 0;
  uint64_t clock_mark_ = 0;
};

}  // namespace

absl::StatusOr<RepairReport> RepairJob::Run() {
  // Before a lock file is made.
  VARVE_RETURN_IF_ERROR(ListStoreFiles(file_system_, directory_).status());
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock,
                         file_system_->Lock(directory_ + "/LOCK"));
  VARVE_ASSIGN_OR_RETURN(files_, ListStoreFiles(file_system_, directory_));
  absl::StatusOr<std::vector<std::string>> damaged = file_system_->List(directory_ + "/damaged");
  if (!damaged.ok() && !absl::IsNotFound(damaged.status())) return damaged.status();
  if (damaged.ok()) names_in_damaged_ = *std::move(damaged);
  if (HasFile("REPAIR")) {
    VARVE_ASSIGN_OR_RETURN(plan_, ReadRepairPlan(file_system_, directory_));
    report_.continued = true;
    return Finish();
  }
  VARVE_RETURN_IF_ERROR(Examine());
  if (report_.lost.empty()) return std::move(report_);
  if (records_are_lost_) {
    VARVE_RETURN_IF_ERROR(RebuildExpiryIndex());
    ForgetHistory();
  }
  plan_.manifest.counted_groups.clear();                 // they hold for records that may be gone,
  plan_.manifest.parent_counts = GenerationKeyCounts();  // as do these
  plan_.manifest.clean_end = false;
  PlaceFilesWithValues();
  VARVE_ASSERT(!report_.continued);
  VARVE_RETURN_IF_ERROR(WriteRepairPlan(file_system_, directory_, plan_));
  return Finish();
}

void RepairJob::ForgetHistory() {
  Manifest& manifest = plan_.manifest;
  if (!manifest.horizons.empty())
    Lost("MANIFEST", 0, "versions from before the repair can't be read any more");
  for (Horizon& horizon : manifest.horizons) {
    horizon.first = std::max({horizon.first, manifest.flushed_sequence, last_in_log_});
    horizon.points.clear();
    horizon.is_whole = false;
  }
  manifest.retired.clear();
  // Versions of lost operations are given to others.
  if (manifest.has_history) manifest.history_id = NewHistoryId();
}

absl::StatusOr<RepairReport> RepairJob::Finish() {
  VARVE_RETURN_IF_ERROR(CarryOut(file_system_, directory_, plan_));
  for (const auto& [name, target] : plan_.moves) {
    if (!StaysForItsValues(name, target)) report_.moved.push_back(target);
  }
  return std::move(report_);
}

// Everything but separated values has been taken out of the log files by now.
void RepairJob::PlaceFilesWithValues() {
  const std::unordered_set<uint64_t> referenced = ValueFileNumbers(plan_.manifest);
  for (auto& [name, target] : plan_.moves) {
    const std::optional<uint64_t> number = ParseLogFileName(name);
    if (number && referenced.contains(*number)) target = ValueFilePath("", *number).substr(1);
  }
  for (const StoreFile& file : files_) {
    const std::optional<uint64_t> number = ParseValueFileName(file.name);
    if (number && !referenced.contains(*number)) Move(file.name);
  }
}

absl::Status RepairJob::Examine() {
  for (const StoreFile& file : files_) total_ += file.size;
  VARVE_ASSIGN_OR_RETURN(const bool has_manifest, TakeManifest());
  plan_.manifest.next_file_number =
      std::max(plan_.manifest.next_file_number, NumberBehindAllFiles());
  VARVE_RETURN_IF_ERROR(RepairTimes());
  VARVE_RETURN_IF_ERROR(RepairChanges());
  if (has_manifest) {
    for (auto& level : plan_.manifest.levels) {
      for (SegmentInfos& run : level) VARVE_RETURN_IF_ERROR(RepairRun(&run));
      std::erase_if(level, [](const SegmentInfos& run) { return run.empty(); });
    }
  } else {
    return RebuildManifest();
  }
  return RepairLog();
}

// What the time file loses comes back with no repair, and nothing else depends on it.
absl::Status RepairJob::RepairTimes() {
  TimeFilePlace& place = plan_.manifest.times;
  if (place.number == 0) return absl::OkStatus();
  const absl::Status read = ReadTimeFile(file_system_, directory_, place).status();
  if (read.ok()) return absl::OkStatus();
  const std::string name = TimeFilePath("", place.number).substr(1);
  if (absl::IsNotFound(read)) {
    Lost(name, 0, "missing; the times of old versions are lost");
  } else if (absl::IsDataLoss(read)) {
    Lost(read, "the times of old versions are lost");
  } else {
    return read;
  }
  Move(name);
  place = {};
  return absl::OkStatus();
}

// Readers of the change feed begin anew behind the damage, and nothing else depends on it.
absl::Status RepairJob::RepairChanges() {
  RetainedChanges& changes = plan_.manifest.changes;
  size_t given_up = 0;
  for (size_t i = 0; i < changes.files.size(); ++i) {
    const ChangeFilePlace& place = changes.files[i];
    ChangeFile file(file_system_, directory_, place.number, /*remover=*/nullptr);
    const absl::Status read = file.Verify(place.size, place.after, place.last);
    if (read.ok()) continue;
    if (!absl::IsDataLoss(read)) return read;
    Lost(read, fmt::format("changes up to version {} are no longer retained", place.last));
    given_up = i + 1;
  }
  for (size_t i = 0; i < given_up; ++i) {
    const std::string name = ChangeFilePath("", changes.files[i].number).substr(1);
    if (HasFile(name)) Move(name);
    changes.first = changes.files[i].last;
  }
  changes.files.erase(changes.files.begin(),
                      changes.files.begin() + static_cast<ptrdiff_t>(given_up));
  return absl::OkStatus();
}

uint64_t RepairJob::NumberBehindAllFiles() const {
  uint64_t next = 1;
  const auto see = [&](const std::string& name) {
    // Without what NameInDamaged added.
    const std::string plain = name.substr(0, name.find('.', name.find('.') + 1));
    for (const auto& number :
         {ParseSegmentName(plain), ParseLogFileName(plain), ParseLogTemporaryName(name),
          ParseValueFileName(plain), ParseTimeFileName(plain), ParseChangeFileName(plain)}) {
      if (number) next = std::max(next, *number + 1);
    }
  };
  for (const StoreFile& file : files_) see(file.name);
  for (const std::string& name : names_in_damaged_) see(name);
  return next;
}

// --- Log -----------------------------------------------------------------------------------------

absl::Status RepairJob::RepairLog() {
  const Manifest& manifest = plan_.manifest;
  const auto pass = [](std::string_view, SequenceNumber, uint32_t) { return absl::OkStatus(); };
  VARVE_ASSIGN_OR_RETURN(const LogSurvey survey,
                         SurveyLog(file_system_, directory_, manifest.store_id,
                                   manifest.flushed_sequence, manifest.log_ends, pass));
  last_in_log_ = survey.recovery.last_sequence;
  if (survey.gaps.empty() && !is_rebuilt_) return absl::OkStatus();
  return ReplaceLog(survey.gaps);
}

SequenceNumber RepairJob::ListGaps(const std::vector<LogGap>& gaps) {
  SequenceNumber last = kNoSequence;
  for (const LogGap& gap : gaps) {
    if (gap.last + 1 == gap.first) {
      Lost(gap.damage, "no operation is lost");
    } else if (gap.last == kNoSequence) {
      Lost(gap.damage, fmt::format("operations from {} on are lost, if there were any; {}",
                                   gap.first, kOlderMayBeBack));
    } else {
      Lost(gap.damage,
           fmt::format("operations {} to {} are lost; {}", gap.first, gap.last, kOlderMayBeBack));
    }
    last = std::max(last, gap.last);
  }
  return last;
}

absl::Status RepairJob::WriteSalvaged(const WriteBuffer& buffer, std::vector<std::string>* made) {
  const uint64_t number = NewNumber();
  RepairWriter writer(file_system_, directory_, number,
                      buffer.entries() == 0 ? 0 : buffer.bytes_used() / buffer.entries(),
                      buffer.range_tombstones());
  const std::unique_ptr<InternalIterator> records = buffer.NewSortedIterator(/*newest_only=*/false);
  for (records->SeekToFirst(); records->Valid(); records->Next())
    VARVE_RETURN_IF_ERROR(writer.Add(records->record()));
  VARVE_ASSIGN_OR_RETURN(std::optional<SegmentInfo> info, writer.Finish());
  if (!info) return absl::OkStatus();
  info->of_clones = true;  // perhaps: it is counted like those that are
  made->push_back(NameOf(number));
  auto& levels = plan_.manifest.levels;
  if (levels.empty()) levels.emplace_back();
  levels.front().insert(levels.front().begin(), SegmentInfos{*std::move(info)});
  return absl::OkStatus();
}

absl::Status RepairJob::ReplaceLog(const std::vector<LogGap>& gaps) {
  records_are_lost_ = true;
  Manifest& manifest = plan_.manifest;
  const SequenceNumber last = std::max(manifest.flushed_sequence, ListGaps(gaps));
  std::vector<std::string> made;
  const auto write = [&](const WriteBuffer& buffer) { return WriteSalvaged(buffer, &made); };
  LogSalvage salvage(manifest, write);
  VARVE_RETURN_IF_ERROR(SurveyLog(file_system_, directory_, manifest.store_id,
                                  manifest.flushed_sequence, manifest.log_ends,
                                  [&](std::string_view operations, SequenceNumber first, uint32_t) {
                                    return salvage.Take(operations, first);
                                  })
                            .status());
  VARVE_RETURN_IF_ERROR(salvage.Flush());
  VARVE_ASSERT(last >= manifest.flushed_sequence);
  manifest.flushed_sequence = std::max({last, salvage.last(), last_in_segments_});
  salvage.namespaces().WriteTo(&manifest);
  if (!knows_namespaces_ && !manifest.forks.empty()) {
    manifest.forks.clear();
    Lost("MANIFEST", 0,
         "what clones were made of can't be told: they hold what was written to them alone");
  }
  manifest.next_generation =
      std::max(manifest.next_generation, salvage.namespaces().HighestGeneration() + 1);
  manifest.clock_mark = std::max(manifest.clock_mark, salvage.clock_mark());
  if (manifest.has_history) manifest.feeds = salvage.feeds();
  // What readers of the change feed were told may be lost: they begin anew.
  for (const ChangeFilePlace& place : manifest.changes.files)
    Move(ChangeFilePath("", place.number).substr(1));
  manifest.changes.files.clear();
  manifest.changes.first = manifest.flushed_sequence;
  manifest.log_ends.clear();
  for (const StoreFile& file : files_) {
    if (ParseLogFileName(file.name)) Move(file.name);
  }
  if (salvage.operations() == 0 && made.empty()) return absl::OkStatus();
  Saved("log", fmt::format("{} operations that no segment held go on as {}", salvage.operations(),
                           is_rebuilt_    ? "part of the tree"
                           : made.empty() ? "nothing but a change of namespaces"
                                          : fmt::format("{}", fmt::join(made, ", "))));
  return absl::OkStatus();
}

absl::StatusOr<RepairReport> RepairStore(FileSystem* file_system, const std::string& directory,
                                         const VerifyProgress& progress) {
  PatchyFileSystem patchy(file_system);
  return RepairJob(&patchy, directory, progress).Run();
}

}  // namespace varve
