#include "benchmark/engine/timed_threads.h"

#include <algorithm>
#include <latch>
#include <thread>
#include <vector>

#include "benchmark/process_use.h"

namespace varve::bench {

Timing TimeThreads(int threads, uint64_t operations, uint64_t latency_every,
                   const ThreadPart& part) {
  const auto count = static_cast<uint64_t>(threads);
  std::vector<Clock::time_point> starts(count);
  std::vector<Clock::time_point> ends(count);
  std::vector<Latencies> latencies(count, Latencies(std::max<uint64_t>(1, latency_every)));
  std::latch ready(threads);
  const auto run = [&](int thread) {
    const auto at = static_cast<uint64_t>(thread);
    ready.arrive_and_wait();
    starts[at] = Clock::now();
    latencies[at].Start();
    part(thread, operations * at / count, operations * (at + 1) / count, &latencies[at]);
    ends[at] = Clock::now();
  };
  const double cpu = ProcessUse::Now().cpu_seconds;
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others) other.join();
  Timing timing;
  const auto first = *std::min_element(starts.begin(), starts.end());
  const auto last = *std::max_element(ends.begin(), ends.end());
  timing.seconds = std::chrono::duration<double>(last - first).count();
  timing.cpu_seconds = ProcessUse::Now().cpu_seconds - cpu;
  for (const Latencies& one : latencies) timing.latencies.Add(one.histogram());
  return timing;
}

}  // namespace varve::bench
