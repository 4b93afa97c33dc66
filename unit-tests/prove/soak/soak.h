// Everything at once, for as long as one likes: a primary with history, namespaces of several
// compressions and evictions, keys that expire, readers of the change feed, a follower, backups, an
// archive, branches, and merges under a mixed load of many clients. While it goes on, processes and
// directories stay within their limits and no reply is wrong; at its end all that there is to be
// known of the data is held against what the clients were told.
//
// Thread-safety: one thread calls the function.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "unit-tests/prove/soak/feed_mirror.h"
#include "unit-tests/prove/soak/resource_watch.h"
#include "unit-tests/prove/soak/saved_copies.h"

namespace varve::prove {

// What is found when a load gives up as SoakOptions ask for.
inline constexpr std::string_view kGivenUp = "the load has given up";

struct SoakOptions {
  std::string server;  // the programs
  std::string client;
  std::string directory;              // exists, and is empty
  std::chrono::seconds load{60};      // for how long clients call
  std::chrono::seconds gives_up{0};   // after which the load ends as for a finding; 0: never
  uint64_t data_bytes = 48ull << 20;  // of keys and values, at most; at least 24 MiB
  uint64_t memory_limit = 128ull << 20;
  uint64_t disk_limit = 1ull << 30;
  uint64_t seed = 1;
  bool memory_is_told = true;  // false: with sanitizers, what is resident says nothing
};

struct SoakFigures {
  double load_seconds = 0;
  double check_seconds = 0;
  uint64_t requests = 0;
  uint64_t oracle_checks = 0;
  uint64_t vanished = 0;    // evicted keys that their owners asked for
  uint64_t past_reads = 0;  // of a whole namespace, each compared
  uint64_t past_trimmed = 0;
  uint64_t follower_reads = 0;
  uint64_t told_changes = 0;  // by CLIENT TRACKING
  uint64_t merges = 0;        // that were asked for
  uint64_t branches = 0;
  FeedFigures feed;
  CopyFigures copies;
  uint64_t looks = 0;
  std::vector<Usage> peaks;                  // of the primary, and of the follower
  std::vector<Usage> lasts;                  // at rest
  std::map<std::string, uint64_t> refusals;  // that the load may expect, by their first word
  std::vector<std::string> silent_clients;  // lines of CLIENT LIST, of clients that waited for long
  std::vector<std::string> findings;

  bool good() const { return findings.empty(); }
};

SoakFigures RunSoak(const SoakOptions& options);

// Returns the figures as a text of some lines.
std::string ReportOf(const SoakOptions& options, const SoakFigures& figures);

}  // namespace varve::prove
