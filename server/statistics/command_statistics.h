// The statistics of commands: for each command the calls, the time, the failures and the
// distribution of times. INFO commandstats, INFO latencystats and LATENCY HISTOGRAM show them.
//
// Each thread that executes commands counts in memory of its own with plain loads and stores, so
// that counting costs a few nanoseconds and moves no cache line between cores; readers add the
// threads up. Reset() remembers what was there and leaves it out from then on. The memory of a
// thread that ended stays, with its figures, until the object goes.
//
// Thread-safety: All threads may use an object at once.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "varve/store_observation.h"

namespace varve {

// Durations in buckets whose width is at most an eighth of their lower bound, from 1 µs to a
// minute.
class LatencyBuckets {
 public:
  static constexpr int kFirstBits = 10;  // below 2^10 ns everything is one bucket
  static constexpr int kLastBits = 36;
  static constexpr size_t kPerOctave = 8;
  static constexpr size_t kCount = 1 + static_cast<size_t>(kLastBits - kFirstBits) * kPerOctave;

  static size_t IndexOf(uint64_t nanos);
  // The smallest duration that is too long for the bucket; the last one has no end.
  static uint64_t EndOf(size_t bucket);
};

struct CommandFigures {
  uint64_t calls = 0;
  uint64_t nanos = 0;
  uint64_t rejected = 0;  // refused before execution, such as for a wrong number of arguments
  uint64_t failed = 0;    // answered an error
  std::array<uint64_t, LatencyBuckets::kCount> histogram{};

  // Nanoseconds that the fraction `quantile` of the calls didn't exceed, to an eighth; 0 without
  // calls.
  uint64_t Percentile(double quantile) const;
};

// Returns the times of the calls in the buckets of the metrics. A time that lies within an eighth
// below a bound may count in the bucket behind it.
DurationCounts DurationsOf(const CommandFigures& figures);

class CommandStatistics {
 public:
  // Commands are numbers below `commands`.
  explicit CommandStatistics(size_t commands);
  ~CommandStatistics();
  CommandStatistics(const CommandStatistics&) = delete;
  CommandStatistics& operator=(const CommandStatistics&) = delete;

  // `calls` of them took `nanos` each.
  void Executed(size_t command, uint64_t calls, uint64_t nanos_each);
  void Failed(size_t command, uint64_t calls = 1);
  void Rejected(size_t command);

  // Since the last Reset().
  std::vector<CommandFigures> Read() const;
  void Reset();

 private:
  struct Counters;  // of one command in one thread
  using Shard = std::vector<std::atomic<Counters*>>;

  Counters& Mine(size_t command);
  Shard* MyShard();
  std::vector<CommandFigures> Sum() const;

  const size_t commands_;
  const uint64_t identity_;  // never used again by another object
  mutable absl::Mutex mutex_;
  std::vector<std::unique_ptr<Shard>> shards_ ABSL_GUARDED_BY(mutex_);
  std::vector<CommandFigures> left_out_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
