#include "server/statistics/load_sampler.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "util/base/assert.h"

namespace varve {
namespace {

constexpr double kPressureThatSlows = 0.5;  // above it, writers pay (include/varve/store.h)
constexpr double kBusySync = 0.5;
constexpr double kBusyStore = 0.5;
constexpr double kBusyLoop = 0.9;
constexpr double kBusyPool = 0.9;
constexpr uint64_t kLongWait = 1'000'000'000;

double Milliseconds(uint64_t nanos) { return static_cast<double>(nanos) / 1e6; }

int Percent(double share) { return static_cast<int>(share * 100 + 0.5); }

Limit PressureLimit(const LoadSample& now) {
  if (now.flush_pressure >= now.merge_pressure) {
    return {"flush", fmt::format("Writes are slowed down: full write buffers wait to be written to "
                                 "segments (pressure {:.2f}).",
                                 now.flush_pressure)};
  }
  return {"merge", fmt::format("Writes are slowed down: merges are behind (pressure {:.2f}).",
                               now.merge_pressure)};
}

}  // namespace

Limit LimitOf(const Load& load) {
  const LoadSample& now = load.now;
  if (now.disk_is_full)
    return {"disk_full",
            "The disk is full: writes that add data are refused until there is space."};
  if (now.log_failed) return {"sync", "The log failed: writes are refused until a restart."};
  if (now.data_is_full || load.commands_refused > 0) {
    return {"maxmemory",
            "The data has reached maxmemory: commands that add data are refused until there is "
            "room."};
  }
  if (std::max(now.flush_pressure, now.merge_pressure) > kPressureThatSlows)
    return PressureLimit(now);
  if (now.connections >= now.max_connections || load.connections_refused > 0) {
    return {"clients", fmt::format("New clients are refused: {} of {} connections are open.",
                                   now.connections, now.max_connections)};
  }
  if (now.sync_wait_nanos >= kLongWait) {
    return {"sync", fmt::format("Writes wait for the disk: a sync has taken {:.0f} ms so far.",
                                Milliseconds(now.sync_wait_nanos))};
  }
  if (now.loop_wait_nanos >= kLongWait) {
    return {"sync", fmt::format("The disk does not answer: an I/O thread has waited for {:.0f} ms.",
                                Milliseconds(now.loop_wait_nanos))};
  }
  if (load.sync_busy >= kBusySync && load.sync_busy >= load.loop_busy) {
    return {"sync",
            fmt::format("Writes wait for the disk: a sync was under way for {} % of the time.",
                        Percent(load.sync_busy))};
  }
  if (now.store_is_crowded) {
    return {"store",
            "Requests wait until the store, which is on other machines, has answered others."};
  }
  if (load.store_busy >= kBusyStore && load.store_busy >= load.loop_busy) {
    return {"store", fmt::format("Requests wait for the store, which is on other machines: it had "
                                 "some for {} % of the time.",
                                 Percent(load.store_busy))};
  }
  if (load.loop_busy >= kBusyLoop) {
    return {"cpu",
            fmt::format("An I/O thread is busy for {} % of the time.", Percent(load.loop_busy))};
  }
  if (load.pool_busy >= kBusyPool) {
    return {"cpu", fmt::format("Requests wait for a thread: each of the {} threads of the pool is "
                               "busy for at least {} % of the time.",
                               now.pool_idle_nanos.size(), Percent(load.pool_busy))};
  }
  return {"nothing", "Nothing limits the server."};
}

Load LoadSampler::Look(LoadSample sample) {
  absl::MutexLock lock(&mutex_);
  if (sample.at - later_.at >= kWindow) earlier_ = std::exchange(later_, sample);
  VARVE_ASSERT(earlier_.at <= later_.at);
  Load load{.now = std::move(sample)};
  // Before there is an earlier sample, the time since the server's start is unknown here.
  if (earlier_.loop_idle_nanos.size() != load.now.loop_idle_nanos.size()) return load;
  const std::chrono::duration<double, std::nano> span = load.now.at - earlier_.at;
  if (span.count() <= 0) return load;
  const auto share = [&](double nanos) { return std::clamp(nanos / span.count(), 0.0, 1.0); };
  load.seconds = span.count() / 1e9;
  for (size_t i = 0; i < load.now.loop_idle_nanos.size(); ++i) {
    const int64_t idle = load.now.loop_idle_nanos[i] - earlier_.loop_idle_nanos[i];
    load.loop_busy = std::max(load.loop_busy, 1 - share(static_cast<double>(idle)));
  }
  const size_t pool_threads = load.now.pool_idle_nanos.size();
  if (pool_threads > 0 && earlier_.pool_idle_nanos.size() == pool_threads) {
    load.pool_busy = 1;
    for (size_t i = 0; i < pool_threads; ++i) {
      const int64_t idle = load.now.pool_idle_nanos[i] - earlier_.pool_idle_nanos[i];
      load.pool_busy = std::min(load.pool_busy, 1 - share(static_cast<double>(idle)));
    }
  }
  load.sync_busy =
      share(static_cast<double>(load.now.sync_busy_nanos) -
            static_cast<double>(std::min(earlier_.sync_busy_nanos, load.now.sync_busy_nanos)));
  // Also where the count has begun anew.
  const uint32_t store_millis = load.now.store_busy_millis - earlier_.store_busy_millis;
  load.store_busy = share(1e6 * store_millis);
  const auto since = [](uint64_t now, uint64_t before) { return now - std::min(before, now); };
  load.connections_refused = since(load.now.connections_refused, earlier_.connections_refused);
  load.commands_refused = since(load.now.commands_refused, earlier_.commands_refused);
  return load;
}

}  // namespace varve
