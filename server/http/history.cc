#include "server/http/history.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fmt/format.h"
#include "server/commands/command_table.h"
#include "server/statistics/process_memory.h"
#include "server/status/status_document.h"
#include "util/base/assert.h"

namespace varve {
namespace {

void Add(const CommandFigures& figures, CommandFigures* sum) {
  sum->calls += figures.calls;
  for (size_t i = 0; i < figures.histogram.size(); ++i) sum->histogram[i] += figures.histogram[i];
}

// What came since. A count that was set back begins anew.
uint64_t Since(uint64_t before, uint64_t now) { return now < before ? now : now - before; }

CommandFigures Since(const CommandFigures& before, const CommandFigures& now) {
  if (now.calls < before.calls) return now;
  CommandFigures since;
  since.calls = now.calls - before.calls;
  for (size_t i = 0; i < now.histogram.size(); ++i)
    since.histogram[i] = Since(before.histogram[i], now.histogram[i]);
  return since;
}

uint64_t Thousandths(double share) { return static_cast<uint64_t>(std::max(0.0, share) * 1000); }

// How long the syncs of a second took: on average, and the longest at most.
struct SyncsOfASecond {
  uint64_t count = 0;
  uint64_t mean = 0;
  uint64_t longest = 0;
};

SyncsOfASecond SyncsSince(const DurationCounts& before, const DurationCounts& now) {
  SyncsOfASecond syncs;
  for (size_t i = 0; i < DurationCounts::kBuckets; ++i) {
    const uint64_t count = Since(before.buckets[i], now.buckets[i]);
    syncs.count += count;
    if (count > 0)
      syncs.longest = DurationCounts::kBounds[std::min(i, DurationCounts::kBounds.size() - 1)];
  }
  const uint64_t nanos = Since(before.nanos, now.nanos);
  if (syncs.count > 0) syncs.mean = nanos / syncs.count;
  syncs.longest = std::min(syncs.longest, nanos);
  return syncs;
}

}  // namespace

History::Totals History::TotalsOf(const ServerState& server, const StoreObservation& seen) {
  Totals totals;
  totals.at = std::chrono::steady_clock::now();
  const std::vector<CommandFigures> figures = server.statistics.commands.Read();
  for (const Command& command : AllCommands()) {
    varve::Add(figures[command.index], (command.flags & kWriteCommand) != 0  ? &totals.writes
                                       : (command.flags & kReadCommand) != 0 ? &totals.reads
                                                                             : &totals.others);
  }
  totals.syncs = seen.syncs;
  totals.errors = server.statistics.errors.total();
  totals.stall_nanos = PositionsOf(server).stall_nanos;
  totals.refused = server.statistics.connections_rejected;
  totals.bytes_in = server.statistics.bytes_in;
  totals.bytes_out = server.statistics.bytes_out;
  totals.flushed = FigureOf(seen, "flushed_bytes");
  totals.merged = FigureOf(seen, "compacted_bytes");
  return totals;
}

void History::Add(const ServerState& server, const StoreObservation& seen, const Load& load) {
  Totals now = TotalsOf(server, seen);
  if (!last_.has_value()) {
    last_ = std::move(now);
    return;
  }
  const std::chrono::duration<double> span = now.at - last_->at;
  const auto rate = [&](uint64_t before, uint64_t after) {
    const double events = static_cast<double>(Since(before, after));
    return static_cast<uint64_t>(events / std::max(span.count(), 1e-3) + 0.5);
  };
  const CommandFigures reads = Since(last_->reads, now.reads);
  const CommandFigures writes = Since(last_->writes, now.writes);
  const SyncsOfASecond syncs = SyncsSince(last_->syncs, now.syncs);
  const StorePositions positions = PositionsOf(server);
  Sample sample;
  sample.at_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count();
  sample.values = {rate(0, reads.calls),
                   rate(0, writes.calls),
                   rate(last_->others.calls, now.others.calls),
                   rate(last_->errors, now.errors),
                   reads.Percentile(0.5),
                   reads.Percentile(0.99),
                   reads.Percentile(0.999),
                   writes.Percentile(0.5),
                   writes.Percentile(0.99),
                   writes.Percentile(0.999),
                   rate(0, syncs.count),
                   syncs.mean,
                   std::max(syncs.longest, seen.sync_wait_nanos),
                   Thousandths(load.sync_busy),
                   Thousandths(load.loop_busy),
                   Thousandths(seen.flush_pressure),
                   Thousandths(seen.merge_pressure),
                   rate(last_->stall_nanos, now.stall_nanos) / 1'000'000,
                   server.clients.connected,
                   rate(last_->refused, now.refused),
                   ReadProcessMemory().resident,
                   FigureOf(seen, "write_buffer_bytes"),
                   FigureOf(seen, "block_cache_bytes"),
                   FigureOf(seen, "offset_table_cache_bytes"),
                   server.clients.memory.bytes(),
                   FigureOf(seen, "segment_bytes"),
                   FigureOf(seen, "value_bytes"),
                   FigureOf(seen, "log_live_bytes"),
                   rate(last_->bytes_in, now.bytes_in),
                   rate(last_->bytes_out, now.bytes_out),
                   rate(last_->flushed, now.flushed),
                   rate(last_->merged, now.merged),
                   FigureOf(seen, "runs"),
                   positions.visible - std::min(positions.visible, positions.durable)};
  last_ = std::move(now);
  samples_.push_back(sample);
  if (samples_.size() > kMostSamples) {
    samples_.pop_front();
    ++first_;
  }
}

void History::WriteJson(uint64_t since, std::string* json) const {
  VARVE_ASSERT(json != nullptr);
  const uint64_t next = first_ + samples_.size();
  const uint64_t begin = since > next ? first_ : std::max(since, first_);
  const auto out = std::back_inserter(*json);
  const auto list = [&](const auto& value_of) {
    *json += '[';
    for (uint64_t i = begin; i < next; ++i) {
      if (i > begin) *json += ',';
      const fmt::format_int text(value_of(samples_[i - first_]));
      json->append(text.data(), text.size());
    }
    *json += ']';
  };
  fmt::format_to(out, "{{\"first\":{},\"next\":{},\"at\":", begin, next);
  list([](const Sample& sample) { return sample.at_ms; });
  *json += ",\"series\":{";
  for (size_t series = 0; series < kSeries; ++series) {
    fmt::format_to(out, "{}\"{}\":", series == 0 ? "" : ",", kNames[series]);
    list([&](const Sample& sample) { return sample.values[series]; });
  }
  *json += "}}";
}

}  // namespace varve
