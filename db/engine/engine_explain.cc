// Engine: a read that tells where it went. The same steps as Get, each timed; slower, for people.
#include <chrono>

#include "db/engine/engine.h"
#include "db/engine/lookup.h"
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

}  // namespace

absl::StatusOr<ExplainedRead> Engine::ExplainGetInside(const ReadOptions& options,
                                                       std::string_view key) {
  ExplainedRead read;
  VARVE_ASSIGN_OR_RETURN(const ReadPoint point, BeginRead(options));
  const SuperVersion& state = *point.state;
  Lookup lookup(point.generation, key);

  const SteadyClock::time_point begin = SteadyClock::now();
  SteadyClock::time_point step_begin = begin;
  Cost cost_before = CostSoFar(caches_.statistics);
  const auto step = [&](std::string what) {
    const SteadyClock::time_point now = SteadyClock::now();
    const Cost cost = CostSoFar(caches_.statistics);
    const auto nanos = static_cast<uint64_t>(std::chrono::nanoseconds(now - step_begin).count());
    read.steps.push_back({std::move(what), nanos, cost.disk_reads - cost_before.disk_reads});
    read.disk_reads += cost.disk_reads - cost_before.disk_reads;
    read.cache_hits += cost.cache_hits - cost_before.cache_hits;
    cost_before = cost;
    step_begin = SteadyClock::now();
  };

  LookUpBuffers(state, point.sequence, &lookup);
  step(fmt::format("{} write buffers: {}", 1 + state.full.size(),
                   lookup.found ? "found" : "not there"));
  const std::vector<Level>& levels = state.version->levels();
  for (size_t level = 0; level < levels.size() && !lookup.found; ++level) {
    for (size_t run = 0; run < levels[level].runs.size() && !lookup.found; ++run) {
      Segment* const segment = levels[level].runs[run].Find(lookup.key.view());
      const std::string where = fmt::format("level {} run {}", level, run);
      if (segment == nullptr) {
        step(fmt::format("{}: outside of its segments", where));
        continue;
      }
      ++read.tables_probed;
      const bool may_contain = segment->MayContain(lookup.hash);
      VARVE_ASSIGN_OR_RETURN(lookup.found,
                             segment->Get(lookup.key.view(), lookup.hash, point.sequence,
                                          options.fill_cache, &lookup.from_segment));
      if (lookup.found) lookup.record = lookup.from_segment.record;
      const char* const outcome = lookup.found ? "found"
                                  : may_contain
                                      ? "not there, though its table could not rule it out"
                                      : "ruled out by its table";
      step(fmt::format("{} segment {:06}: {}", where, segment->info().number, outcome));
    }
  }
  if (!lookup.found && state.namespaces.bases().Of(point.generation) != nullptr) {
    VARVE_RETURN_IF_ERROR(LookUpBases(state, point.sequence, options.fill_cache, &lookup));
    step(fmt::format("what it was cloned from: {}", lookup.found ? "found" : "not there"));
  }
  std::string value;
  bool unwritten = false;  // whoever lets the reply out pushes first
  const uint64_t instant_ms =
      options.snapshot != nullptr ? options.snapshot->instant_ms() : clock_.NowMillis();
  Conclude(state, point.sequence, instant_ms, lookup, &read.result, &value, &unwritten);
  read.value_bytes = value.size();
  if (lookup.found && !read.result.found) {
    step(read.result.expired                        ? "what was found has expired"
         : lookup.record.kind == RecordKind::kValue ? "deleted by a range"
                                                    : "what was found marks a deletion");
  } else {
    step("copying the value");
  }
  if (read.result.expired)
    read.result.durable_after =
        std::max(read.result.durable_after, WitnessExpiry(read.result.expiry_ms));
  read.nanos = static_cast<uint64_t>(std::chrono::nanoseconds(SteadyClock::now() - begin).count());
  return read;
}

}  // namespace varve
