// The rows of the server's table: the work of each row, its connections, the size of its data and
// its goal. server_measurements.h provides the servers. A row is named by its parts:
//
//   [open/|cold/|scaling/]WORK/SIZE/PIPELINE/SYNC[/CONNECTIONS][/tls][/uniform][/LOAD[/behind]]
//       [/LOOPS]
//       SET/100B/P16/always, GET/100B/P1/always/c500, SET/100B/P16/always/tls,
//       open/GET/100B/P1/always/at75/behind, YCSBA/1000B/P1/always/uniform,
//       scaling/GET/100B/P16/no/c128/loops4
//   memory/WHAT
//       memory/keys, memory/idle_connection, memory/used_connection, memory/stalled_reader
//   list/COMMAND, feed/COMMAND, lag/COMMAND
//       list/CHILDREN, list/SCAN, feed/CHANGES, feed/XREAD, lag/CHANGES, lag/XREAD
//   load/COMMAND/SYNC
//       load/INGEST/always, load/SET/no
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/server/load.h"

namespace varve::bench {

enum class RowKind {
  kClosed,  // each connection asks when it was answered
  // Requests are due at a rate that is a share of what the faster of the servers can do.
  kOpen,
  kScaling,  // kClosed with a server that reads and answers by so many threads, and as many clients
  kCold,     // kClosed with kServerColdRatio times more data than memory
  kKeysMemory,        // resident memory once all keys were loaded and many of them read
  kConnectionMemory,  // and what each of many silent connections adds to it
  kListing,           // the time in which the names below a prefix are found (listing.h)
  kFeed,              // how many changes a second one reader of all changes gets (feed_reading.h)
  kFeedLag,           // how long after its writer's reply a change reaches a reader that waits
  kBulkLoad,          // how many keys a second are loaded in order (bulk_load.h)
  kStalledReaders,    // what a reader of changes that takes nothing adds to resident memory
};

inline constexpr uint64_t kServerColdRatio = 4;

// Figures of a row by name (server_measurements.h).
inline constexpr const char* kRequestRate = "requests_per_second";
inline constexpr const char* kOpenP99 = "p99_us";
inline constexpr const char* kServerMemory = "resident_bytes";
inline constexpr const char* kConnectionMemory = "bytes_per_connection";
inline constexpr const char* kListingTime = "listing_us";
inline constexpr const char* kFeedLag = "lag_us";
inline constexpr const char* kChangeRate = "changes_per_second";
inline constexpr const char* kKeyRate = "keys_per_second";

struct ServerRow {
  std::string id;  // in benchmark names and --rows
  RowKind kind = RowKind::kClosed;
  // SET, GET, MSET10, MGET10, INCR, RANGE50, MIX50, MIX95, YCSBA .. YCSBF, or the command that the
  // name ends in
  std::string work = "GET";
  size_t value_size = 100;
  int pipeline = 1;
  std::string sync = "always";
  int connections = 50;
  bool tls = false;
  bool uniform = false;  // keys of YCSB are drawn evenly
  int loops = 0;         // of the server of a scaling row
  int load_percent = 0;  // of an open row
  bool behind = false;   // the server merges, or rewrites its log, meanwhile (background_work.h)
  uint64_t keys = 0;     // in the store
  // The goals: Varve's figure divided by that of another server, or the inverse if less is better.
  // 0: no goal.
  double goal_redis = 0;
  double goal_redis_without_log = 0;
  double goal_retaining = 0;  // of Varve that retains changes, divided by Varve that does not
  double goal_null = 0;

  std::string title() const;
  // Returns the name of the figure in the table.
  const char* figure() const;
  bool less_is_better() const;
  // Returns whether the row's servers serve no other row.
  bool has_own_server() const { return kind != RowKind::kClosed && kind != RowKind::kOpen; }
  // Returns why the contender does not take part in the row; empty if it does.
  std::string WhyNot(const std::string& contender) const;
  // Returns the id of the closed row from whose rates the rate of this open row is taken.
  std::string closed_id() const;
  // Returns a load of this row, without the server's name, port and the times.
  Load load() const;
  // Returns the memory that the server may use in a cold row.
  uint64_t memory_limit() const { return keys * (16 + value_size) / kServerColdRatio; }
};

// Returns the rows in the order of the table, with so many keys, or fewer if values are large.
std::vector<ServerRow> AllServerRows(uint64_t keys);

// Returns the row of that name, which need not be in the table. Ends the program if the name makes
// no sense.
ServerRow ServerRowNamed(const std::string& id, uint64_t keys);

}  // namespace varve::bench
