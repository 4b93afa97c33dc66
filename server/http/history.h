// The history keeps what the server did in each of the last 900 seconds or so, so that people who
// come after an incident still see it. A sample is taken each time the HTTP thread ticks; it ends
// with the process.
//
// Thread-safety: an object belongs to the thread of the HTTP listener.
// Invariants: there are at most kMostSamples samples; sample i is that of number first_ + i.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "server/execution/server_state.h"
#include "server/statistics/command_statistics.h"
#include "server/statistics/load_sampler.h"
#include "varve/store_observation.h"

namespace varve {

class History {
 public:
  static constexpr size_t kMostSamples = 900;
  // docs/metrics.md says what each series is. Those that end in _rate are per second, a share is
  // in thousandths.
  static constexpr std::string_view kNames[] = {
      "reads_rate",         "writes_rate",        "others_rate",
      "errors_rate",        "read_p50_nanos",     "read_p99_nanos",
      "read_p999_nanos",    "write_p50_nanos",    "write_p99_nanos",
      "write_p999_nanos",   "syncs_rate",         "sync_mean_nanos",
      "sync_longest_nanos", "sync_busy_share",    "loop_busy_share",
      "flush_pressure",     "merge_pressure",     "write_stall_share",
      "connections",        "refused_rate",       "resident_bytes",
      "write_buffer_bytes", "block_cache_bytes",  "table_cache_bytes",
      "clients_bytes",      "segment_bytes",      "value_bytes",
      "log_bytes",          "net_input_rate",     "net_output_rate",
      "flush_written_rate", "merge_written_rate", "runs",
      "undurable_writes"};
  static constexpr size_t kSeries = std::size(kNames);

  // Takes a sample.
  void Add(const ServerState& server, const StoreObservation& seen, const Load& load);
  // Appends the samples from number `since` on as JSON: names, times in milliseconds since the
  // epoch, and one list for each series. A number that was not reached yet counts as 0.
  void WriteJson(uint64_t since, std::string* json) const;

  size_t size() const { return samples_.size(); }

 private:
  struct Sample {
    int64_t at_ms = 0;  // since the epoch
    std::array<uint64_t, kSeries> values{};
  };
  // The counts, which only grow, at the last sample.
  struct Totals {
    std::chrono::steady_clock::time_point at;
    CommandFigures reads, writes, others;
    DurationCounts syncs;
    uint64_t errors = 0;
    uint64_t stall_nanos = 0;
    uint64_t refused = 0;
    uint64_t bytes_in = 0;
    uint64_t bytes_out = 0;
    uint64_t flushed = 0;
    uint64_t merged = 0;
  };

  static Totals TotalsOf(const ServerState& server, const StoreObservation& seen);

  std::deque<Sample> samples_;
  uint64_t first_ = 0;
  std::optional<Totals> last_;
};

}  // namespace varve
