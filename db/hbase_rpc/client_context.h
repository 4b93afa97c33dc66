// ClientContext is what the parts of one core of an HbaseClient share: the loop that runs them and
// its timers; and, with all other cores of the client, ClientCommons: the settings, the counters
// and the regions that are away.
//
// Thread-safety: The thread that runs `io` alone uses it and the timers. The commons are
// thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "asio/io_context.hpp"
#include "db/hbase_rpc/away_regions.h"
#include "db/hbase_rpc/hbase_client.h"
#include "db/hbase_rpc/timer_queue.h"

namespace varve {

struct HbaseCounters {
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> retries{0};
  std::atomic<uint64_t> region_lookups{0};
  std::atomic<uint64_t> connections_opened{0};
  std::atomic<uint64_t> bytes_sent{0};
  std::atomic<uint64_t> bytes_received{0};
  std::atomic<uint64_t> missed_deadlines{0};
  std::atomic<uint64_t> in_flight{0};
  std::atomic<uint64_t> in_flight_bytes{0};
  std::atomic<uint64_t> wait_nanos{0};
};

struct ClientCommons {
  explicit ClientCommons(HbaseOptions settings) : options(std::move(settings)) {}

  const HbaseOptions options;
  HbaseCounters counters;
  AwayRegions away;
};

struct ClientContext {
  using Time = std::chrono::steady_clock::time_point;

  explicit ClientContext(std::shared_ptr<ClientCommons> shared)
      : commons(std::move(shared)),
        options(commons->options),
        counters(commons->counters),
        away(commons->away),
        timers(io) {}

  // When an attempt that begins now ends at the latest.
  Time AttemptEnd(Time deadline) const {
    return std::min(deadline, std::chrono::steady_clock::now() + options.attempt_timeout);
  }
  // Returns when the first of `hosts` hosts, which the client asks in turn from now on, has had its
  // time. Each host gets connect_timeout, or its share of what is left until the deadline if that
  // is less. Requires: hosts > 0.
  Time HostEnd(Time deadline, size_t hosts) const {
    const Time now = std::chrono::steady_clock::now();
    const Time::duration share = (deadline - now) / static_cast<Time::rep>(hosts);
    return now + std::min<Time::duration>(options.connect_timeout, share);
  }

  const std::shared_ptr<ClientCommons> commons;
  const HbaseOptions& options;
  HbaseCounters& counters;
  AwayRegions& away;
  asio::io_context io;
  TimerQueue timers;
};

}  // namespace varve
