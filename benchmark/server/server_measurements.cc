#include "benchmark/server/server_measurements.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "benchmark/process_use.h"
#include "benchmark/server/background_work.h"
#include "benchmark/server/bulk_load.h"
#include "benchmark/server/feed_reading.h"
#include "benchmark/server/listing.h"
#include "benchmark/server/load_generator.h"
#include "benchmark/server/redis_benchmark.h"
#include "benchmark/server/stalled_readers.h"

namespace varve::bench {
namespace {

constexpr double kMostWarmUpSeconds = 0.3;
constexpr double kMostColdWarmUpSeconds = 8;
// Below it a server itself is most of what is in memory.
constexpr uint64_t kLeastMemory = 48u << 20;
// Until a server has given back what it keeps for a connection that might go on; Redis takes two
// seconds for it.
constexpr double kRestsUntilSilent = 2;
// More are of no use to Redis (redis.conf), and with 16 it broke connections.
constexpr int kMostRedisThreads = 8;

Figures FiguresOf(const LoadResult& result, int client_threads = 1) {
  const auto requests = static_cast<double>(std::max<uint64_t>(1, result.requests));
  Figures figures = {{kRequestRate, static_cast<double>(result.requests) / result.seconds},
                     {"p50_us", result.p50 * 1e6},
                     {"p99_us", result.p99 * 1e6},
                     {"server_cpu_us", result.server_cpu_seconds * 1e6 / requests}};
  if (result.p999 > 0) figures["p999_us"] = result.p999 * 1e6;
  if (result.client_cpu_seconds > 0)
    figures["client_busy"] = result.client_cpu_seconds / result.seconds / client_threads;
  return figures;
}

LoadResult RunLoadOn(const Load& load, const Child& process) {
  return RunLoad(load, [&] { return process.CpuSeconds(); });
}

// What Varve needs for rows about changes: all of a measurement is retained.
std::vector<std::string> RetainingFlags(const Contender& contender) {
  if (contender.id != kVarve) return {};
  return {"--change-retention-bytes=4GiB"};
}

}  // namespace

std::optional<Figures> ServerMeasurements::Measure(const ServerRow& row, const Contender& contender,
                                                   std::string* why) {
  if (row.has_own_server()) servers_.clear();
  if (settings_.redis_benchmark && row.kind != RowKind::kClosed) {
    *why = "not run: no such load";
    return std::nullopt;
  }
  switch (row.kind) {
    case RowKind::kClosed:
      return MeasureClosed(row, contender, why);
    case RowKind::kOpen:
      return MeasureOpen(row, contender);
    case RowKind::kScaling:
      return MeasureScaling(row, contender, why);
    case RowKind::kCold:
      return MeasureCold(row, contender, why);
    case RowKind::kKeysMemory:
      return MeasureKeysMemory(row, contender);
    case RowKind::kConnectionMemory:
      return MeasureConnectionMemory(row, contender, why);
    case RowKind::kListing:
      return MeasureListing(row, contender);
    case RowKind::kFeed:
    case RowKind::kFeedLag:
      return MeasureFeed(row, contender);
    case RowKind::kBulkLoad:
      return MeasureBulkLoad(row, contender);
    case RowKind::kStalledReaders:
      return MeasureStalledReaders(row, contender, why);
  }
  return std::nullopt;
}

std::unique_ptr<Server> ServerMeasurements::NewServer(const ServerRow& row,
                                                      const Contender& contender,
                                                      const std::string& name,
                                                      std::vector<std::string> flags) {
  if (const auto wanted = settings_.flags.find(contender.id); wanted != settings_.flags.end()) {
    flags.insert(flags.end(), wanted->second.begin(), wanted->second.end());
  }
  return std::make_unique<Server>(
      contender,
      ServerSettings{.sync = row.sync,
                     .value_size = row.value_size,
                     .directory = fmt::format("{}/{}-{}", settings_.directory, contender.id, name),
                     .certificate = settings_.certificate,
                     .flags = std::move(flags)});
}

Load ServerMeasurements::LoadOf(const ServerRow& row, const Server& server) const {
  Load load = row.load();
  load.server = server.contender().title;
  load.port = row.tls ? server.tls_port() : server.port();
  if (row.tls) load.tls = &*settings_.tls;
  load.check_values = server.contender().id != kNull;
  load.seconds = settings_.seconds;
  load.warm_up_seconds = std::min(kMostWarmUpSeconds, settings_.seconds);
  return load;
}

void ServerMeasurements::EachKeyOnce(const ServerRow& row, Operation operation, Server* server) {
  Load load = LoadOf(row, *server);
  load.operation = operation;
  load.choice = KeyChoice::kShuffled;
  load.client_threads = 1;
  load.connections = 8;
  load.pipeline = 64;
  RunLoadOn(load, server->process());
  WaitUntilIdle(settings_.rest_seconds, server->process().pid());
}

ServerMeasurements::Loaded* ServerMeasurements::ServerFor(const ServerRow& row,
                                                          const Contender& contender) {
  if (row.sync != sync_ || row.value_size != value_size_) servers_.clear();
  sync_ = row.sync;
  value_size_ = row.value_size;
  Loaded& loaded = servers_[contender.id];
  if (loaded.server == nullptr) {
    loaded.server = NewServer(row, contender, "data");
    loaded.counters.assign(row.keys, 0);
    if (contender.id != kNull) {
      EachKeyOnce(row, Operation::kSet, loaded.server.get());
      EachKeyOnce(row, Operation::kGet, loaded.server.get());
    }
    loaded.server->process().Pause();
  }
  return &loaded;
}

std::optional<Figures> ServerMeasurements::MeasureClosed(const ServerRow& row,
                                                         const Contender& contender,
                                                         std::string* why) {
  if (row.connections > MostConnections()) {
    *why = "not run: needs more open files";
    return std::nullopt;
  }
  Loaded* const loaded = ServerFor(row, contender);
  Child& process = loaded->server->process();
  Load load = LoadOf(row, *loaded->server);
  if (load.operation == Operation::kIncrement && contender.id != kNull)
    load.counters = &loaded->counters;
  load.inserted = loaded->inserted;
  process.Resume();
  const std::optional<LoadResult> result =
      settings_.redis_benchmark ? DriveRedisBenchmark(load, process) : RunLoadOn(load, process);
  process.Pause();
  if (!result.has_value()) {
    *why = "not run: no such load";
    return std::nullopt;
  }
  loaded->inserted += result->inserts;
  return FiguresOf(*result);
}

std::optional<Figures> ServerMeasurements::MeasureScaling(const ServerRow& row,
                                                          const Contender& contender,
                                                          std::string* why) {
  const auto processors = static_cast<int>(std::thread::hardware_concurrency());
  if (row.loops > processors && !settings_.oversubscribe) {
    *why = fmt::format("not measured: needs {} processors", row.loops);
    return std::nullopt;
  }
  std::vector<std::string> flags = {fmt::format("--io-threads={}", row.loops)};
  if (contender.id != kVarve) {
    flags = {"--io-threads", std::to_string(std::min(row.loops, kMostRedisThreads))};
    if (row.loops > 1) flags.insert(flags.end(), {"--io-threads-do-reads", "yes"});
  }
  const std::unique_ptr<Server> server = NewServer(row, contender, "scaling", flags);
  EachKeyOnce(row, Operation::kSet, server.get());
  EachKeyOnce(row, Operation::kGet, server.get());
  const Load load = LoadOf(row, *server);
  return FiguresOf(RunLoadOn(load, server->process()), load.client_threads);
}

double ServerMeasurements::Capacity(const ServerRow& closed) {
  double& capacity = capacities_[closed.id];
  if (capacity > 0) return capacity;
  std::string why;
  for (const Contender& contender : settings_.contenders) {
    const bool counts =
        contender.id == kVarve || contender.id == kRedis || settings_.contenders.size() == 1;
    if (!counts) continue;
    if (const auto figures = MeasureClosed(closed, contender, &why)) {
      capacity = std::max(capacity, figures->at(kRequestRate));
    }
  }
  if (capacity == 0) Fail("an open row needs Varve or Redis among --servers");
  return capacity;
}

Figures ServerMeasurements::MeasureOpen(const ServerRow& row, const Contender& contender) {
  ServerRow closed = ServerRowNamed(row.closed_id(), row.keys);
  closed.keys = row.keys;
  const double capacity = Capacity(closed);
  Loaded* const loaded = ServerFor(row, contender);
  Child& process = loaded->server->process();
  Load load = LoadOf(row, *loaded->server);
  load.rate = capacity * row.load_percent / 100;
  process.Resume();
  Figures figures;
  {
    std::optional<BackgroundWork> behind;
    if (row.behind) behind.emplace(contender.id, loaded->server->port());
    figures = FiguresOf(RunLoadOn(load, process));
  }
  process.Pause();
  figures["offered_per_second"] = load.rate;
  return figures;
}

std::optional<Figures> ServerMeasurements::MeasureCold(const ServerRow& row,
                                                       const Contender& contender,
                                                       std::string* why) {
  const uint64_t memory = row.memory_limit();
  if (memory < kLeastMemory) {
    *why = "not run: needs more keys";
    return std::nullopt;
  }
  const MemoryLimit limit(memory);
  if (limit.group().empty()) {
    *why = "not run: needs a memory cgroup";
    return std::nullopt;
  }
  std::unique_ptr<Server>& server = cold_[contender.id];
  if (server == nullptr) {
    // Settings for little memory already now: what is in the log at the end must fit.
    std::vector<std::string> flags;
    if (contender.id == kVarve) {
      flags = {fmt::format("--block-cache-size={}", memory / 4),
               fmt::format("--write-buffer-size={}", memory / 16)};
    }
    server = NewServer(row, contender, "cold", flags);
    EachKeyOnce(row, Operation::kSet, server.get());
    server->Stop();
  }
  DropFromPageCache(server->directory());
  if (!server->Start(limit.group())) {
    *why = "killed: needs more memory";
    return std::nullopt;
  }
  Load load = LoadOf(row, *server);
  // The caches are filled by random reads, as they will be used, of other keys than those that are
  // counted.
  Load warm_up = load;
  warm_up.seed = 1;
  warm_up.seconds = std::min(kMostColdWarmUpSeconds, 4 * settings_.seconds);
  RunLoadOn(warm_up, server->process());
  const uint64_t reads = DiskReads(server->directory());
  const LoadResult result = RunLoadOn(load, server->process());
  Figures figures = FiguresOf(result);
  const double warm_up_share = load.warm_up_seconds / (load.warm_up_seconds + result.seconds);
  figures["disk_reads"] = static_cast<double>(DiskReads(server->directory()) - reads) *
                          (1 - warm_up_share) /
                          static_cast<double>(std::max<uint64_t>(1, result.requests));
  figures[kServerMemory] = static_cast<double>(server->process().ResidentBytes());
  server->Stop();
  return figures;
}

Figures ServerMeasurements::MeasureKeysMemory(const ServerRow& row, const Contender& contender) {
  const std::unique_ptr<Server> server = NewServer(row, contender, "memory");
  EachKeyOnce(row, Operation::kSet, server.get());
  const auto loaded = static_cast<double>(server->process().ResidentBytes());
  Figures figures = FiguresOf(RunLoadOn(LoadOf(row, *server), server->process()));
  WaitUntilIdle(settings_.rest_seconds, server->process().pid());
  figures["resident_loaded_bytes"] = loaded;
  figures[kServerMemory] = static_cast<double>(server->process().ResidentBytes());
  return figures;
}

std::optional<Figures> ServerMeasurements::MeasureConnectionMemory(const ServerRow& row,
                                                                   const Contender& contender,
                                                                   std::string* why) {
  if (row.connections > MostConnections()) {
    *why = "not run: needs more open files";
    return std::nullopt;
  }
  const std::unique_ptr<Server> server = NewServer(row, contender, "memory");
  ServerRow few_keys = row;
  few_keys.keys = 1000;
  EachKeyOnce(few_keys, Operation::kSet, server.get());
  const int64_t before = server->process().ResidentBytes();
  const IdleConnections connections(LoadOf(few_keys, *server));
  std::this_thread::sleep_for(
      std::chrono::duration<double>(kRestsUntilSilent * settings_.rest_seconds));
  const int64_t after = server->process().ResidentBytes();
  return Figures{{kServerMemory, static_cast<double>(after)},
                 {kConnectionMemory, static_cast<double>(after - before) / row.connections}};
}

Figures ServerMeasurements::MeasureListing(const ServerRow& row, const Contender& contender) {
  const std::unique_ptr<Server> server = NewServer(row, contender, "listing");
  Listing listing(server->contender().title, server->port());
  listing.Fill(row.keys, row.value_size);
  WaitUntilIdle(settings_.rest_seconds, server->process().pid());
  const bool by_children = row.work == "CHILDREN" && contender.id == kVarve;
  const ListingResult result = listing.Run(by_children, settings_.seconds);
  return {{kListingTime, result.p50 * 1e6},
          {"listing_requests", static_cast<double>(result.requests)}};
}

Figures ServerMeasurements::MeasureFeed(const ServerRow& row, const Contender& contender) {
  const std::unique_ptr<Server> server =
      NewServer(row, contender, "feed", RetainingFlags(contender));
  FeedReading feed({.server = contender.title,
                    .port = server->port(),
                    .is_redis = contender.id == kRedis,
                    .by_changes = row.work == "CHANGES",
                    .value_size = row.value_size});
  if (row.kind == RowKind::kFeedLag) {
    const FeedLagResult lag = feed.Lag(settings_.seconds);
    return {{kFeedLag, lag.p50 * 1e6}, {"lag_p99_us", lag.p99 * 1e6}};
  }
  feed.Fill(row.keys);
  WaitUntilIdle(settings_.rest_seconds, server->process().pid());
  const FeedReadResult read = feed.ReadAll();
  if (read.changes != row.keys) Fail(contender.title + " has another number of changes");
  return {{kChangeRate, static_cast<double>(read.changes) / read.seconds}};
}

Figures ServerMeasurements::MeasureBulkLoad(const ServerRow& row, const Contender& contender) {
  const std::unique_ptr<Server> server = NewServer(row, contender, "load");
  const double seconds = RunBulkLoad({.server = contender.title,
                                      .port = server->port(),
                                      .by_ingest = row.work == "INGEST" && contender.id == kVarve,
                                      .keys = row.keys,
                                      .value_size = row.value_size});
  return {{kKeyRate, static_cast<double>(row.keys) / seconds}};
}

std::optional<Figures> ServerMeasurements::MeasureStalledReaders(const ServerRow& row,
                                                                 const Contender& contender,
                                                                 std::string* why) {
  if (row.connections > MostConnections()) {
    *why = "not run: needs more open files";
    return std::nullopt;
  }
  const std::unique_ptr<Server> server =
      NewServer(row, contender, "stalled", RetainingFlags(contender));
  ServerRow some_keys = row;
  some_keys.keys = row.keys / 10;
  EachKeyOnce(some_keys, Operation::kSet, server.get());
  Load load = LoadOf(some_keys, *server);
  load.operation = Operation::kSet;
  load.connections = 50;
  load.pipeline = 16;
  const auto rate = [&] { return FiguresOf(RunLoadOn(load, server->process())).at(kRequestRate); };
  const double before = rate();
  WaitUntilIdle(settings_.rest_seconds, server->process().pid());
  const int64_t bytes_before = server->process().ResidentBytes();
  const StalledReaders readers(contender.title, server->port(), row.connections);
  WaitUntilIdle(settings_.rest_seconds, server->process().pid());
  const int64_t bytes = server->process().ResidentBytes();
  return Figures{{kServerMemory, static_cast<double>(bytes)},
                 {kConnectionMemory, static_cast<double>(bytes - bytes_before) / row.connections},
                 {"set_rate_before", before},
                 {"set_rate_beside", rate()}};
}

}  // namespace varve::bench
