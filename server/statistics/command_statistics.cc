#include "server/statistics/command_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "util/base/assert.h"

namespace varve {
namespace {

std::atomic<uint64_t> next_identity{1};

void Add(std::atomic<uint64_t>* counter, uint64_t n) {
  counter->store(counter->load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

}  // namespace

struct CommandStatistics::Counters {
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> nanos{0};
  std::atomic<uint64_t> rejected{0};
  std::atomic<uint64_t> failed{0};
  std::array<std::atomic<uint64_t>, LatencyBuckets::kCount> histogram{};
};

size_t LatencyBuckets::IndexOf(uint64_t nanos) {
  const int bits = std::bit_width(nanos) - 1;
  if (bits < kFirstBits) return 0;
  if (bits >= kLastBits) return kCount - 1;
  return 1 + static_cast<size_t>(bits - kFirstBits) * kPerOctave +
         ((nanos >> (bits - 3)) & (kPerOctave - 1));
}

uint64_t LatencyBuckets::EndOf(size_t bucket) {
  VARVE_ASSERT(bucket < kCount);
  const size_t octave = bucket / kPerOctave;
  return (kPerOctave + bucket % kPerOctave) << (octave + kFirstBits - 3);
}

uint64_t CommandFigures::Percentile(double quantile) const {
  VARVE_ASSERT(quantile >= 0 && quantile <= 1);
  uint64_t total = 0;
  for (const uint64_t count : histogram) total += count;
  if (total == 0) return 0;
  const auto wanted = std::max<uint64_t>(
      1, static_cast<uint64_t>(std::ceil(quantile * static_cast<double>(total))));
  uint64_t seen = 0;
  size_t bucket = 0;
  while ((seen += histogram[bucket]) < wanted) ++bucket;
  return LatencyBuckets::EndOf(bucket);
}

DurationCounts DurationsOf(const CommandFigures& figures) {
  DurationCounts counts;
  counts.nanos = figures.nanos;
  for (size_t i = 0; i + 1 < LatencyBuckets::kCount; ++i)
    counts.buckets[DurationCounts::BucketOf(LatencyBuckets::EndOf(i))] += figures.histogram[i];
  counts.buckets.back() += figures.histogram.back();  // which has no end
  return counts;
}

CommandStatistics::CommandStatistics(size_t commands)
    : commands_(commands), identity_(next_identity.fetch_add(1)), left_out_(commands) {}

CommandStatistics::~CommandStatistics() {
  for (const std::unique_ptr<Shard>& shard : shards_) {
    for (const std::atomic<Counters*>& counters : *shard) delete counters.load();
  }
}

CommandStatistics::Shard* CommandStatistics::MyShard() {
  struct Mine {
    uint64_t identity = 0;
    Shard* shard = nullptr;
  };
  thread_local Mine mine;
  if (mine.identity != identity_) [[unlikely]] {
    absl::MutexLock lock(&mutex_);
    mine = {identity_, shards_.emplace_back(std::make_unique<Shard>(commands_)).get()};
  }
  return mine.shard;
}

CommandStatistics::Counters& CommandStatistics::Mine(size_t command) {
  VARVE_ASSERT(command < commands_);
  std::atomic<Counters*>& place = (*MyShard())[command];
  Counters* counters = place.load(std::memory_order_relaxed);
  if (counters == nullptr) [[unlikely]] {
    counters = new Counters;
    place.store(counters, std::memory_order_release);
  }
  return *counters;
}

void CommandStatistics::Executed(size_t command, uint64_t calls, uint64_t nanos_each) {
  VARVE_ASSERT(calls > 0);
  Counters& mine = Mine(command);
  Add(&mine.calls, calls);
  Add(&mine.nanos, calls * nanos_each);
  Add(&mine.histogram[LatencyBuckets::IndexOf(nanos_each)], calls);
}

void CommandStatistics::Failed(size_t command, uint64_t calls) {
  Add(&Mine(command).failed, calls);
}

void CommandStatistics::Rejected(size_t command) { Add(&Mine(command).rejected, 1); }

std::vector<CommandFigures> CommandStatistics::Sum() const {
  std::vector<CommandFigures> sum(commands_);
  absl::MutexLock lock(&mutex_);
  for (const std::unique_ptr<Shard>& shard : shards_) {
    for (size_t i = 0; i < commands_; ++i) {
      const Counters* counters = (*shard)[i].load(std::memory_order_acquire);
      if (counters == nullptr) continue;
      sum[i].calls += counters->calls.load(std::memory_order_relaxed);
      sum[i].nanos += counters->nanos.load(std::memory_order_relaxed);
      sum[i].rejected += counters->rejected.load(std::memory_order_relaxed);
      sum[i].failed += counters->failed.load(std::memory_order_relaxed);
      for (size_t bucket = 0; bucket < LatencyBuckets::kCount; ++bucket) {
        sum[i].histogram[bucket] += counters->histogram[bucket].load(std::memory_order_relaxed);
      }
    }
  }
  return sum;
}

std::vector<CommandFigures> CommandStatistics::Read() const {
  std::vector<CommandFigures> figures = Sum();
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < commands_; ++i) {
    // A reset may have come in between.
    const auto leave_out = [](uint64_t* figure, uint64_t before) {
      *figure -= std::min(*figure, before);
    };
    leave_out(&figures[i].calls, left_out_[i].calls);
    leave_out(&figures[i].nanos, left_out_[i].nanos);
    leave_out(&figures[i].rejected, left_out_[i].rejected);
    leave_out(&figures[i].failed, left_out_[i].failed);
    for (size_t bucket = 0; bucket < LatencyBuckets::kCount; ++bucket) {
      leave_out(&figures[i].histogram[bucket], left_out_[i].histogram[bucket]);
    }
  }
  return figures;
}

void CommandStatistics::Reset() {
  std::vector<CommandFigures> figures = Sum();
  absl::MutexLock lock(&mutex_);
  left_out_ = std::move(figures);
}

}  // namespace varve
