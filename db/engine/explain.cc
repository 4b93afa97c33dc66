// Reader: a read that tells where it went. The same steps as Get, each timed; slower, for people.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "db/engine/reader.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct Cost {
  uint64_t disk_reads;
  uint64_t cache_hits;
};

// Of this thread so far. (With more than 31 threads, those beyond share their figures.)
Cost CostSoFar(const SegmentStatistics& statistics) {
  return {statistics.record_reads.OfThisThread() + statistics.table_page_reads.OfThisThread() +
              statistics.table_loads.OfThisThread(),
          statistics.block_cache_hits.OfThisThread()};
}

// Adds the steps of a read to its explanation, each with its time and cost.
class Steps {
 public:
  Steps(const SegmentStatistics& statistics, ExplainedRead* read)
      : statistics_(statistics), read_(*read), cost_before_(CostSoFar(statistics)) {}

  // The step that began with the construction, or the step before, was `what`.
  void Add(std::string what) {
    const SteadyClock::time_point now = SteadyClock::now();
    const Cost cost = CostSoFar(statistics_);
    const uint64_t disk_reads = cost.disk_reads - cost_before_.disk_reads;
    read_.steps.push_back({std::move(what), NanosSince(step_begin_, now), disk_reads});
    read_.disk_reads += disk_reads;
    read_.cache_hits += cost.cache_hits - cost_before_.cache_hits;
    cost_before_ = cost;
    step_begin_ = SteadyClock::now();
  }
  uint64_t nanos() const { return NanosSince(begin_, SteadyClock::now()); }

 private:
  static uint64_t NanosSince(SteadyClock::time_point begin, SteadyClock::time_point now) {
    return static_cast<uint64_t>(std::chrono::nanoseconds(now - begin).count());
  }

  const SegmentStatistics& statistics_;
  ExplainedRead& read_;
  Cost cost_before_;
  const SteadyClock::time_point begin_ = SteadyClock::now();
  SteadyClock::time_point step_begin_ = begin_;
};

// Looks into the segments, run by run.
absl::Status ExplainSegments(const ReadPoint& point, bool fill_cache, Lookup* lookup, Steps* steps,
                             ExplainedRead* read) {
  const std::vector<Level>& levels = point.state->version->levels();
  for (size_t level = 0; level < levels.size() && !lookup->found; ++level) {
    for (size_t run = 0; run < levels[level].runs.size() && !lookup->found; ++run) {
      Segment* const segment = levels[level].runs[run].Find(lookup->key.view());
      const std::string where = fmt::format("level {} run {}", level, run);
      if (segment == nullptr) {
        steps->Add(fmt::format("{}: outside of its segments", where));
        continue;
      }
      ++read->tables_probed;
      const bool may_contain = segment->MayContain(lookup->hash);
      VARVE_ASSIGN_OR_RETURN(
          lookup->found, segment->Get(lookup->key.view(), lookup->hash, point.sequence, fill_cache,
                                      &lookup->from_segment));
      if (lookup->found) lookup->record = lookup->from_segment.record;
      const char* const outcome = lookup->found ? "found"
                                  : may_contain
                                      ? "not there, though its table could not rule it out"
                                      : "ruled out by its table";
      steps->Add(fmt::format("{} segment {:06}: {}", where, segment->info().number, outcome));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExplainedRead> Reader::ExplainGet(const ReadOptions& options, std::string_view key) {
  ExplainedRead read;
  VARVE_ASSIGN_OR_RETURN(const ReadPoint point, BeginRead(versions_, log_, options));
  const SuperVersion& state = *point.state;
  Lookup lookup(point.generation, key);

  Steps steps(parts_.caches->statistics, &read);
  LookUpBuffers(state, point.sequence, &lookup);
  steps.Add(fmt::format("{} write buffers: {}", 1 + state.full.size(),
                        lookup.found ? "found" : "not there"));
  VARVE_RETURN_IF_ERROR(ExplainSegments(point, options.fill_cache, &lookup, &steps, &read));
  if (!lookup.found && state.namespaces.forks().Of(point.generation) != nullptr) {
    VARVE_RETURN_IF_ERROR(LookUpParents(state, point.sequence, options.fill_cache, &lookup));
    steps.Add(fmt::format("what it was cloned from: {}", lookup.found ? "found" : "not there"));
  }
  std::string value;
  bool unwritten = false;  // the caller pushes before it shows the reply
  const uint64_t instant_ms =
      options.snapshot != nullptr ? options.snapshot->instant_ms() : clock_.NowMillis();
  BuildResult(state, point.sequence, instant_ms, lookup, &read.result, &value, &unwritten);
  read.value_bytes = value.size();
  if (lookup.found && !read.result.found) {
    steps.Add(read.result.expired                        ? "what was found has expired"
              : lookup.record.kind == RecordKind::kValue ? "deleted by a range"
                                                         : "what was found marks a deletion");
  } else {
    steps.Add("copying the value");
  }
  if (read.result.expired)
    read.result.durable_after = std::max(read.result.durable_after,
                                         parts_.watermark->RecordExpirySeen(read.result.expiry_ms));
  read.nanos = steps.nanos();
  return read;
}

}  // namespace varve
