#include "benchmark/server/server_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

#include "absl/strings/str_split.h"
#include "benchmark/process.h"
#include "benchmark/server/contenders.h"

namespace varve::bench {
namespace {

constexpr int kBaseConnections = 50;
constexpr int kManyConnections = 5000;
constexpr size_t kLargeValue = 4096;
constexpr int kStalledReaders = 1000;
constexpr int kMostLoops = 16;
constexpr uint64_t kKeysACounter = 10;  // so that counters don't make a data set of their own

struct WorkName {
  const char* name;
  const char* title;
  Operation operation;
  uint64_t get_percent;
  bool zipfian = false;  // unless the row says otherwise
};

constexpr WorkName kWorks[] = {
    {"SET", "SET", Operation::kSet, 0},
    {"GET", "GET", Operation::kGet, 0},
    {"MSET10", "MSET of 10", Operation::kMultiSet, 0},
    {"MGET10", "MGET of 10", Operation::kMultiGet, 0},
    {"INCR", "INCR", Operation::kIncrement, 0},
    {"RANGE50", "RANGE of 50", Operation::kRange, 0},
    {"MIX50", "50 % GET, 50 % SET", Operation::kMixed, 50, true},
    {"MIX95", "95 % GET, 5 % SET", Operation::kMixed, 95, true},
    {"YCSBA", "YCSB A (50 % reads, 50 % updates)", Operation::kMixed, 50, true},
    {"YCSBB", "YCSB B (95 % reads, 5 % updates)", Operation::kMixed, 95, true},
    {"YCSBC", "YCSB C (reads)", Operation::kGet, 0, true},
    {"YCSBD", "YCSB D (95 % reads of late keys, 5 % inserts)", Operation::kLateReads, 95, true},
    {"YCSBE", "YCSB E (95 % scans of 1 to 100, 5 % inserts)", Operation::kScans, 95, true},
    {"YCSBF", "YCSB F (50 % reads, 50 % read-modify-writes)", Operation::kModify, 50, true},
};

const WorkName* FindWork(const std::string& name) {
  const auto* const found = std::find_if(std::begin(kWorks), std::end(kWorks),
                                         [&](const WorkName& work) { return work.name == name; });
  return found == std::end(kWorks) ? nullptr : found;
}

// `text` is a number above 0 behind `before` and in front of `after`.
bool ReadNumber(std::string_view text, std::string_view before, std::string_view after,
                int* number) {
  if (!text.starts_with(before) || !text.ends_with(after)) return false;
  const char* const end = text.data() + text.size() - after.size();
  const auto [read, error] = std::from_chars(text.data() + before.size(), end, *number);
  return error == std::errc() && read == end && *number > 0;
}

bool ReadMemoryRow(const std::string& what, ServerRow* row) {
  if (what == "stalled_reader") {
    row->kind = RowKind::kStalledReaders;
    row->connections = kStalledReaders;
    row->value_size = 1000;
    return true;
  }
  row->kind = what == "keys" ? RowKind::kKeysMemory : RowKind::kConnectionMemory;
  if (row->kind == RowKind::kConnectionMemory) row->connections = kManyConnections;
  if (what == "used_connection") row->pipeline = 16;
  return what == "keys" || what == "idle_connection" || what == "used_connection";
}

bool ReadListingRow(const std::string& command, ServerRow* row) {
  row->kind = RowKind::kListing;
  row->work = command;
  row->sync = "no";
  return command == "CHILDREN" || command == "SCAN";
}

bool ReadFeedRow(RowKind kind, const std::string& command, ServerRow* row) {
  row->kind = kind;
  row->work = command;
  return command == "CHANGES" || command == "XREAD";
}

bool ReadBulkLoadRow(const std::string& command, const std::string& sync, ServerRow* row) {
  row->kind = RowKind::kBulkLoad;
  row->work = command;
  row->sync = sync;
  return (command == "INGEST" || command == "SET") && (sync == "always" || sync == "no");
}

bool ReadLoadRow(const std::vector<std::string>& parts, ServerRow* row) {
  if (parts.size() < 4 || FindWork(parts[0]) == nullptr) return false;
  row->work = parts[0];
  int size = 0;
  row->sync = parts[3];
  if (!ReadNumber(parts[1], "", "B", &size) || !ReadNumber(parts[2], "P", "", &row->pipeline))
    return false;
  row->value_size = static_cast<size_t>(size);
  for (size_t i = 4; i < parts.size(); ++i) {
    if (parts[i] == "behind" && row->load_percent > 0) {
      row->behind = true;
    } else if (parts[i] == "tls") {
      row->tls = true;
    } else if (parts[i] == "uniform" && FindWork(row->work)->zipfian) {
      row->uniform = true;
    } else if (!ReadNumber(parts[i], "c", "", &row->connections) &&
               !ReadNumber(parts[i], "loops", "", &row->loops) &&
               !ReadNumber(parts[i], "at", "", &row->load_percent)) {
      return false;
    }
  }
  return (row->sync == "always" || row->sync == "everysec" || row->sync == "no") &&
         (row->load_percent > 0) == (row->kind == RowKind::kOpen) &&
         (row->loops > 0) == (row->kind == RowKind::kScaling);
}

bool Read(const std::string& id, ServerRow* row) {
  std::vector<std::string> parts = absl::StrSplit(id, '/');
  if (parts.size() == 2 && parts[0] == "memory") return ReadMemoryRow(parts[1], row);
  if (parts.size() == 2 && parts[0] == "list") return ReadListingRow(parts[1], row);
  if (parts.size() == 2 && parts[0] == "feed") return ReadFeedRow(RowKind::kFeed, parts[1], row);
  if (parts.size() == 2 && parts[0] == "lag") return ReadFeedRow(RowKind::kFeedLag, parts[1], row);
  if (parts.size() == 3 && parts[0] == "load") return ReadBulkLoadRow(parts[1], parts[2], row);
  if (parts[0] == "open" || parts[0] == "cold" || parts[0] == "scaling") {
    row->kind = parts[0] == "open"   ? RowKind::kOpen
                : parts[0] == "cold" ? RowKind::kCold
                                     : RowKind::kScaling;
    parts.erase(parts.begin());
  }
  return ReadLoadRow(parts, row);
}

// What no pipeline, 16 and 64 have to reach.
double Of(int pipeline, double at_1, double at_16, double at_64) {
  return pipeline == 1 ? at_1 : pipeline == 16 ? at_16 : pipeline == 64 ? at_64 : 0;
}

void SetGoals(ServerRow* row) {
  const int pipeline = row->pipeline;
  if (row->kind == RowKind::kKeysMemory) row->goal_redis = 1;
  if (row->kind == RowKind::kListing && row->work == "CHILDREN") row->goal_redis = 100;
  if (row->kind == RowKind::kBulkLoad && row->work == "INGEST") row->goal_redis = 2;
  if (row->kind != RowKind::kClosed) return;
  const bool is_set = row->work == "SET";
  const bool is_get = row->work == "GET";
  if (row->connections == 1 && pipeline == 1) {
    row->goal_redis = is_get ? 2 : is_set && row->sync == "always" ? 1.3 : 0;
  }
  if (row->connections != kBaseConnections) return;
  // TLS is to cost no more than it costs Redis, so that the goals are those of plain text.
  if (is_get) {
    row->goal_redis = Of(pipeline, 1.1, 2.3, 4);
    if (pipeline == 1 && !row->tls) row->goal_null = 0.9;
  }
  if (is_set && row->sync == "always" && row->value_size <= 1000) {
    row->goal_redis = Of(pipeline, 1.6, 3.5, 6);
    if (row->value_size == 100 && !row->tls) row->goal_redis_without_log = Of(pipeline, 0, 2, 4);
  }
  if (is_set && !row->tls) row->goal_retaining = 0.85;
  if (is_set && row->sync == "everysec") row->goal_redis = Of(pipeline, 1.25, 3.5, 6);
}

// The rows that share a store: reads come first, so that none runs beside what writes leave to be
// done.
std::vector<std::string> NamesForStore(size_t size, const std::string& sync,
                                       const std::vector<int>& pipelines) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& work, int pipeline, const std::string& more = "") {
    names.push_back(fmt::format("{}/{}B/P{}/{}{}", work, size, pipeline, sync, more));
  };
  const bool base = size == 100 && sync == "always";
  const auto with_other_loads = [&](const std::string& work) {
    for (const int pipeline : pipelines) add(work, pipeline);
    if (!base) return;
    for (const int connections : {1, 500, 5000}) add(work, 1, fmt::format("/c{}", connections));
    for (const int pipeline : pipelines) add(work, pipeline, "/tls");
    for (const int percent : {25, 50, 75, 90})
      add("open/" + work, 1, fmt::format("/at{}", percent));
    for (const int percent : {25, 50}) add("open/" + work, 1, fmt::format("/at{}/behind", percent));
  };
  if (sync == "always") with_other_loads("GET");
  const auto add_both = [&](const std::vector<std::string>& works) {
    for (const std::string& work : works) {
      for (const int pipeline : {1, 16}) add(work, pipeline);
    }
  };
  if (base) add_both({"MGET10", "RANGE50", "MIX95", "MIX50", "MSET10"});
  with_other_loads("SET");
  if (base) add_both({"INCR"});
  // What YCSB inserts comes last.
  if (size == 1000 && sync == "always") {
    for (const char* workload : {"YCSBC", "YCSBB", "YCSBA", "YCSBF", "YCSBD", "YCSBE"}) {
      for (const char* keys : {"", "/uniform"}) add(workload, 1, keys);
    }
  }
  return names;
}

}  // namespace

std::string ServerRow::title() const {
  if (kind == RowKind::kKeysMemory) {
    return fmt::format("resident memory, {} values of {} B loaded, then read at random", keys,
                       value_size);
  }
  if (kind == RowKind::kConnectionMemory) {
    const std::string after =
        pipeline == 1 ? "one GET" : fmt::format("{} GETs in one pipeline", pipeline);
    return fmt::format("resident memory a silent connection, {} of them, after {}", connections,
                       after);
  }
  if (kind == RowKind::kStalledReaders) {
    return fmt::format("resident memory a reader of all changes that takes nothing, {} of them",
                       connections);
  }
  if (kind == RowKind::kFeed || kind == RowKind::kFeedLag) {
    return fmt::format("{} by {}, Redis by XREAD of a stream",
                       kind == RowKind::kFeed
                           ? fmt::format("{} changes of {} B read", keys, value_size)
                           : "how long after its acknowledgement a change is read (µs)",
                       work);
  }
  if (kind == RowKind::kBulkLoad) {
    return fmt::format("{} keys loaded in order, {} B, sync {}, by {}", keys, value_size, sync,
                       work == "SET" ? "SET" : "INGEST, Redis by SET");
  }
  if (kind == RowKind::kListing) {
    return fmt::format("the 3 names below a prefix, {} keys below one of them, by {} (µs)", keys,
                       work == "SCAN" ? "SCAN" : "CHILDREN, Redis by SCAN");
  }
  std::string title = fmt::format("{}, {} B, sync {}", FindWork(work)->title, value_size, sync);
  title += pipeline == 1 ? ", no pipeline" : fmt::format(", pipeline {}", pipeline);
  if (connections != kBaseConnections) {
    title += fmt::format(", {} connection{}", connections, connections == 1 ? "" : "s");
  }
  if (tls) title += ", TLS";
  if (FindWork(work)->zipfian) title += uniform ? ", uniform" : ", zipfian";
  if (loops > 0) title += fmt::format(", {} I/O loop{}", loops, loops == 1 ? "" : "s");
  if (kind == RowKind::kCold) title += fmt::format(", data {} times the memory", kServerColdRatio);
  if (kind == RowKind::kOpen) {
    title += fmt::format(", open loop, {} % load{} (p99 µs)", load_percent,
                         behind ? ", merging behind" : "");
  }
  return title;
}

const char* ServerRow::figure() const {
  switch (kind) {
    case RowKind::kOpen:
      return kOpenP99;
    case RowKind::kKeysMemory:
      return kServerMemory;
    case RowKind::kConnectionMemory:
    case RowKind::kStalledReaders:
      return kConnectionMemory;
    case RowKind::kFeed:
      return kChangeRate;
    case RowKind::kFeedLag:
      return kFeedLag;
    case RowKind::kBulkLoad:
      return kKeyRate;
    case RowKind::kListing:
      return kListingTime;
    default:
      return kRequestRate;
  }
}

bool ServerRow::less_is_better() const {
  const std::string name = figure();
  return name != kRequestRate && name != kChangeRate && name != kKeyRate;
}

std::string ServerRow::WhyNot(const std::string& contender) const {
  if (contender == kVarveRetaining)
    return kind == RowKind::kClosed && !tls && (work == "SET" || work == "GET") ? "" : "-";
  if (kind == RowKind::kStalledReaders && contender == kRedis) return "has no change feed";
  if (contender == kRedisWithoutLog && goal_redis_without_log == 0) return "-";
  if (contender == kRedis && (work == "RANGE50" || work == "YCSBE")) return "has no ranges of keys";
  if (contender == kNull && work == "YCSBE") return "has ranges of 50 alone";
  if (contender == kNull && kind == RowKind::kScaling) return "has one loop";
  if (contender == kNull && tls) return "has no TLS";
  if (contender == kNull && has_own_server() && kind != RowKind::kConnectionMemory)
    return "holds nothing";
  return "";
}

std::string ServerRow::closed_id() const {
  const size_t begin = id.find('/') + 1;
  return id.substr(begin, id.rfind("/at") - begin);
}

Load ServerRow::load() const {
  const WorkName& name = *FindWork(work);
  Load load;
  load.operation = name.operation;
  load.get_percent = name.get_percent;
  load.connections = connections;
  load.pipeline = pipeline;
  load.value_size = value_size;
  load.client_threads = std::max(1, loops);
  load.keys =
      name.operation == Operation::kIncrement ? std::max<uint64_t>(1, keys / kKeysACounter) : keys;
  if (name.zipfian && !uniform) load.choice = KeyChoice::kZipfian;
  return load;
}

ServerRow ServerRowNamed(const std::string& id, uint64_t keys) {
  ServerRow row{.id = id};
  if (!Read(id, &row)) Fail("there can be no row of that name: " + id);
  row.keys = row.value_size >= kLargeValue ? std::max<uint64_t>(keys / 4, kMostScanned) : keys;
  SetGoals(&row);
  return row;
}

std::vector<ServerRow> AllServerRows(uint64_t keys) {
  std::vector<std::string> names;
  const auto add = [&](const std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  add(NamesForStore(100, "always", {1, 16, 64}));
  add(NamesForStore(16, "always", {1, 16, 64}));
  add(NamesForStore(1000, "always", {1, 16, 64}));
  add(NamesForStore(kLargeValue, "always", {1, 16}));
  add(NamesForStore(100, "everysec", {1, 16, 64}));
  add(NamesForStore(100, "no", {1, 16, 64}));
  for (const char* work : {"GET", "SET"}) {
    for (int loops = 1; loops <= kMostLoops; loops *= 2)
      add({fmt::format("scaling/{}/100B/P16/no/c128/loops{}", work, loops)});
  }
  add({"cold/GET/1000B/P1/no", "cold/GET/1000B/P16/no"});
  add({"list/CHILDREN", "list/SCAN"});
  add({"feed/CHANGES", "feed/XREAD", "lag/CHANGES", "lag/XREAD"});
  add({"load/INGEST/always", "load/SET/always", "load/INGEST/no", "load/SET/no"});
  add({"memory/keys", "memory/idle_connection", "memory/used_connection", "memory/stalled_reader"});
  std::vector<ServerRow> rows;
  for (const std::string& name : names) rows.push_back(ServerRowNamed(name, keys));
  return rows;
}

}  // namespace varve::bench
