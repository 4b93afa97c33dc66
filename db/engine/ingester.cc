#include "db/engine/ingester.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "db/format/batch_codec.h"
#include "db/ingest/ingest_builder.h"
#include "db/version/version_edit.h"
#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

std::string NameOfSpace(const SuperVersion& state, NamespaceId space) {
  const NamespaceDescription* const description = state.namespaces.Description(space);
  return description == nullptr || description->name.empty()
             ? fmt::format("database {}", space)
             : fmt::format("namespace '{}'", description->name);
}

absl::Status CheckExpiry(const SuperVersion& state, NamespaceId space) {
  const NamespaceDescription* const description = state.namespaces.Description(space);
  if (description == nullptr || description->options.default_expiry_ms == 0)
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("{} gives its keys an expiry, which ingested keys cannot have: write them, or "
                  "alter the namespace",
                  NameOfSpace(state, space)));
}

class EngineIngest final : public Ingest {
 public:
  EngineIngest(Ingester::Parts parts, NamespaceId space, IngestBuilder::Options options)
      : parts_(std::move(parts)), space_(space), builder_(std::move(options)) {}

  absl::Status Add(absl::Span<const IngestPair> pairs) override {
    if (parts_.pipeline->IsClosed()) return absl::UnavailableError("the store is closed");
    return GuardMemory("adding to an ingest", [&] { return builder_.Add(pairs); });
  }

  absl::StatusOr<CommitResult> Commit() override {
    if (ended_)
      return absl::FailedPreconditionError("the ingest has ended: it was committed, or it failed");
    VARVE_ASSIGN_OR_RETURN(const CommitResult result, GuardMemory("committing an ingest", [&] {
                             return builder_.progress().keys == 0 ? CommitNothing() : CommitKeys();
                           }));
    VARVE_RETURN_IF_ERROR(log().WaitUntilDurable(result.sequence));
    return result;
  }

  IngestProgress progress() const override { return builder_.progress(); }

 private:
  Log& log() const { return *parts_.tree.log->get(); }
  SuperVersions& versions() const { return *parts_.tree.versions; }

  absl::StatusOr<CommitResult> Submit(WriteBatch* batch, const ExclusiveWrite* exclusive) {
    WriteOptions options;
    options.override_sync = true;
    options.exclusive_write = exclusive;
    bool must_check = false;
    absl::StatusOr<CommitResult> result =
        parts_.pipeline->TrySubmit(options, batch, /*checked=*/nullptr, &must_check);
    VARVE_ASSERT(!must_check);  // nothing here adds data
    return result;
  }

  absl::StatusOr<CommitResult> CommitNothing() {
    const auto state = versions().Share();
    VARVE_RETURN_IF_ERROR(CheckGeneration(*state));
    WriteBatch batch;
    if (const std::optional<IngestRange>& replace = builder_.options().replace)
      batch.DeleteRange(replace->begin, replace->end, space_);
    VARVE_ASSIGN_OR_RETURN(const CommitResult result, Submit(&batch, nullptr));
    ended_ = true;
    return result;
  }

  absl::StatusOr<CommitResult> CommitKeys() {
    VARVE_RETURN_IF_ERROR(builder_.Finish());
    VARVE_RETURN_IF_ERROR(parts_.pipeline->FlushAll());
    // Takes its memory now: nothing may fail behind the commit.
    const auto [first_changed, behind_changed] = ChangedRange();
    const std::unique_ptr<ExclusiveWrite> exclusive = parts_.pipeline->exclusive_writes().Begin();
    const absl::StatusOr<SequenceNumber> version = TryCommit(exclusive.get());
    if (!version.ok()) return TakeBack(version.status(), exclusive.get());
    builder_.Keep();
    ended_ = true;
    parts_.data_bound->Forget();
    parts_.watches->NoteIngest(first_changed, behind_changed, *version);
    return CommitResult{*version, *version};
  }

  // Returns the first tree key that the ingest changes, and the first one behind those.
  std::pair<std::string, std::string> ChangedRange() const {
    const NamespaceGeneration generation = builder_.options().generation;
    const std::optional<IngestRange>& replace = builder_.options().replace;
    if (replace) return {std::string(TreeKey(generation, replace->begin).view()), EndOfReplaced()};
    std::string behind(TreeKey(generation, builder_.last_key()).view());
    behind.push_back('\0');
    return {std::string(TreeKey(generation, builder_.first_key()).view()), std::move(behind)};
  }

  // Makes sure that no manifest on disk names the ingest. Where that fails, too, clock marks use
  // its sequences up: what a restart would not look for in the log is never acknowledged.
  absl::Status TakeBack(const absl::Status& why, const ExclusiveWrite* exclusive) {
    if (numbered_ == kNoSequence || parts_.version_set->InstallAgain().ok()) return why;
    builder_.Keep();
    ended_ = true;
    while (versions().visible() < numbered_ && MarkClock(exclusive).ok()) {
    }
    return absl::UnavailableError(
        fmt::format("committing the ingest failed, and only a restart can tell whether it is "
                    "there: {}",
                    WordsOf(why)));
  }

  absl::StatusOr<SequenceNumber> TryCommit(const ExclusiveWrite* exclusive) {
    std::shared_ptr<const SuperVersion> state = versions().Share();
    VARVE_RETURN_IF_ERROR(CheckGeneration(*state));
    VARVE_RETURN_IF_ERROR(CheckExpiry(*state, space_));
    VARVE_RETURN_IF_ERROR(CheckRoom(*state));
    VARVE_RETURN_IF_ERROR(NoteTime(exclusive));
    VARVE_RETURN_IF_ERROR(parts_.pipeline->FlushAll());
    parts_.pipeline->exclusive_writes().HoldMarks();
    VARVE_RETURN_IF_ERROR(parts_.pipeline->FlushAll());  // a mark that came in between
    IngestedRun run;
    run.first = versions().visible() + 1;
    const std::string record = NewRecord(&run);
    run.operations = std::string_view(record).substr(kBatchHeaderSize);
    VARVE_RETURN_IF_ERROR(log().Prepare(record.size(), /*for_deletes=*/false));
    run.append = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return parts_.pipeline->AppendIngestLocked(record, run.first, run.last);
    };
    const bool of_clone = state->namespaces.forks().Of(builder_.options().generation) != nullptr;
    state.reset();
    VARVE_ASSIGN_OR_RETURN(const auto segments, OpenSegments(run, of_clone));
    return Install(run, segments);
  }

  // Returns the record for the log, and sets the last operation of `run`: the range that is
  // replaced, if there is one, and the ingest.
  std::string NewRecord(IngestedRun* run) const {
    const IngestBuilder::Options& options = builder_.options();
    const NamespaceGeneration generation = options.generation;
    std::string record(kBatchHeaderSize, '\0');
    run->last = run->first;
    if (options.replace) {
      AppendOperation(RecordKind::kRangeTombstone,
                      TreeKey(generation, options.replace->begin).view(), EndOfReplaced(), &record);
      ++run->last;
    }
    AppendOperation(RecordKind::kIngest, TreeKey(generation, builder_.first_key()).view(),
                    TreeKey(generation, builder_.last_key()).view(), &record);
    SealBatch(run->first, static_cast<uint32_t>(run->last - run->first + 1),
              HashOperations(std::string_view(record).substr(kBatchHeaderSize)), &record);
    return record;
  }

  std::string EndOfReplaced() const {
    const IngestBuilder::Options& options = builder_.options();
    return options.replace->end.empty()
               ? EndTreeKey(options.generation)
               : std::string(TreeKey(options.generation, options.replace->end).view());
  }

  absl::StatusOr<SequenceNumber> Install(const IngestedRun& run,
                                         const std::vector<std::shared_ptr<Segment>>& segments) {
    numbered_ = std::max(numbered_, run.last);
    VARVE_RETURN_IF_ERROR(parts_.version_set->LogAndApply(
        {.segments = segments,
         .written = {{builder_.options().generation, builder_.progress().bytes}},
         .ingested = &run},
        [&](const Version& present) { return ApplyFlush(present, segments); },
        [](const Version&, SegmentKeyCounts*) {}));
    return run.last;
  }

  absl::StatusOr<std::vector<std::shared_ptr<Segment>>> OpenSegments(const IngestedRun& run,
                                                                     bool of_clone) const {
    std::vector<std::shared_ptr<Segment>> segments;
    for (SegmentInfo info : builder_.segments()) {
      info.ingested_at = info.largest_sequence = run.last;
      info.smallest_sequence = info.range_tombstones > 0 ? run.last - 1 : run.last;
      info.of_clones = of_clone;
      VARVE_ASSIGN_OR_RETURN(
          std::shared_ptr<Segment> segment,
          Segment::Open(parts_.tree.file_system, parts_.tree.directory, info, parts_.tree.caches));
      segments.push_back(std::move(segment));
    }
    return segments;
  }

  absl::Status CheckGeneration(const SuperVersion& state) const {
    const std::optional<NamespaceGeneration> now = state.namespaces.Generation(space_);
    if (now == builder_.options().generation) return absl::OkStatus();
    if (!now) return NoSuchNamespace(space_);
    return absl::FailedPreconditionError(
        fmt::format("{} was emptied or swapped since the ingest began: begin it again",
                    NameOfSpace(state, space_)));
  }

  // Keys that the ingest overwrites count twice here, except those of a range that it replaces.
  absl::Status CheckRoom(const SuperVersion& state) const {
    KeyCounter& counter = *parts_.tree.counter;
    const IngestProgress added = builder_.progress();
    const NamespaceDescription* const space = state.namespaces.Description(space_);
    const bool has_quota = space != nullptr && space->options.has_quota();
    if (!has_quota && parts_.data_bound->Fits(added.bytes)) return absl::OkStatus();
    KeyCounts replaced;
    if (builder_.options().replace) {
      VARVE_ASSIGN_OR_RETURN(replaced, CountReplaced());
    }
    if (has_quota) {
      VARVE_ASSIGN_OR_RETURN(KeyCounts has, counter.CountGeneration(builder_.options().generation));
      has += -replaced;
      const NamespaceOptions& options = space->options;
      const auto exceeds = [](int64_t kept, uint64_t more, uint64_t most) {
        return most != 0 && static_cast<uint64_t>(std::max<int64_t>(kept, 0)) + more > most;
      };
      const bool has_too_many = exceeds(has.keys, added.keys, options.max_keys);
      if (has_too_many || exceeds(has.bytes, added.bytes, options.max_bytes)) {
        return NamespaceIsFull(
            {.space = space_,
             .of = has_too_many ? NamespaceQuota::Of::kKeys : NamespaceQuota::Of::kBytes},
            fmt::format("{} would be over its quota: beside the ingest's {} keys of {} bytes it "
                        "holds {} keys of {} bytes; delete some or raise the quota, and commit "
                        "again",
                        NameOfSpace(state, space_), added.keys, added.bytes, has.keys, has.bytes));
      }
    }
    if (parts_.data_bound->Fits(added.bytes)) return absl::OkStatus();
    VARVE_ASSIGN_OR_RETURN(const uint64_t all, parts_.data_bound->CountNow());
    const uint64_t gone = static_cast<uint64_t>(std::max<int64_t>(replaced.bytes, 0));
    if (all - std::min(all, gone) + added.bytes <= parts_.data_bound->limit())
      return absl::OkStatus();
    return StoreIsFull(fmt::format(
        "the store would be full: its keys and values have {} of {} bytes that its limit allows, "
        "and the ingest adds {}; delete some or raise the limit, and commit again",
        all - std::min(all, gone), parts_.data_bound->limit(), added.bytes));
  }

  absl::StatusOr<KeyCounts> CountReplaced() const {
    const IngestRange& range = *builder_.options().replace;
    const NamespaceGeneration generation = builder_.options().generation;
    SequenceNumber required = kNoSequence;
    return KeyCounter::CountByScan(versions().Share(), versions().visible(),
                                   std::string(TreeKey(generation, range.begin).view()),
                                   range.end.empty()
                                       ? EndTreeKey(generation)
                                       : std::string(TreeKey(generation, range.end).view()),
                                   /*clock=*/{}, &required);
  }

  // A clock mark brings its time into the time map, from which the ingest has it.
  absl::Status NoteTime(const ExclusiveWrite* exclusive) {
    const TimeMap& times = parts_.version_set->times();
    if (!times.started() || !times.NeedsMark(parts_.tree.clock->NowMillis()))
      return absl::OkStatus();
    return MarkClock(exclusive);
  }

  absl::Status MarkClock(const ExclusiveWrite* exclusive) {
    WriteBatch mark;
    mark.MarkClock(parts_.tree.clock->NowMillis());
    return Submit(&mark, exclusive).status();
  }

  const Ingester::Parts parts_;
  const NamespaceId space_;
  IngestBuilder builder_;
  SequenceNumber numbered_ = kNoSequence;  // the last one that a manifest may have named it with
  bool ended_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Ingest>> Ingester::Begin(const IngestOptions& options) const {
  if (parts_.pipeline->IsClosed()) return absl::UnavailableError("the store is closed");
  if (!parts_.version_set->CurrentManifest().has_history) {
    return absl::FailedPreconditionError(
        "the store's format has no place for ingests: finalize its upgrade first");
  }
  const std::shared_ptr<const SuperVersion> state = parts_.tree.versions->Share();
  const std::optional<NamespaceGeneration> generation = state->namespaces.Generation(options.space);
  if (!generation) return NoSuchNamespace(options.space);
  VARVE_RETURN_IF_ERROR(CheckExpiry(*state, options.space));
  const std::optional<IngestRange>& range = options.replace;
  if (range && (range->begin.size() > kMaxKeySize || range->end.size() > kMaxKeySize + 1))
    return absl::InvalidArgumentError("the range to replace has a bound that is longer than a key");
  if (range && !range->end.empty() && range->end <= range->begin)
    return absl::InvalidArgumentError("the range to replace is empty");
  VersionSet* const version_set = parts_.version_set;
  return std::make_unique<EngineIngest>(
      parts_, options.space,
      IngestBuilder::Options{
          .file_system = parts_.tree.file_system,
          .directory = parts_.tree.directory,
          .next_file_number = [version_set] { return version_set->NewFileNumber(); },
          .segment_size = parts_.tree.options->segment_size,
          .generation = *generation,
          .replace = range,
          .shares_keys = version_set->shares_keys(),
          .files = parts_.files});
}

}  // namespace varve
