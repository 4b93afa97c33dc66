// The rows over a cluster of HBase: Varve's server over a running cluster, beside HBase's own Java
// client, which asks the same cluster without a server in between. Both have the same keys and
// values and the same durability (`hsync`), run on the same cores, and are measured in turns.
//
//   cluster/WORK/SIZE/PIPELINE/CONNECTIONS
//       cluster/GET/100B/P1/c64, cluster/SET/100B/P50/c1, cluster/RANGE50/100B/P1/c1,
//       cluster/MGET50/100B/P1/c1
//
// A connection is a thread of the Java client, with one call under way; a pipeline of SETs is one
// put of as many keys, and a pipeline of GETs or an MGET one get of as many. An atomic batch has no
// row, since the Java client's tables have no call that is atomic beyond one row.
//
// Thread-safety: one thread calls these functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/server/load.h"

namespace varve::bench {

struct ClusterRow {
  std::string id;
  std::string title;
  Load load;
};

std::vector<ClusterRow> AllClusterRows();

struct ClusterSettings {
  std::string quorum;  // empty: there is no cluster
  std::string jars;
  std::string directory;
  std::string cores;  // of what is compared, as taskset takes them; empty: the upper half of all
  std::vector<std::string> flags;  // further ones of server_main
  std::vector<int> processes;      // of the cluster, whose processor time is told; none: it is not
  uint64_t keys = 20'000;
  double seconds = 2;
  int repetitions = 3;
};

// Measures the rows and returns a table: medians, the least and the most of each, Varve's rate
// divided by the Java client's, and the processor time of a request. Says why not, in one line,
// where there is no cluster.
std::string MeasureClusterRows(const std::vector<ClusterRow>& rows,
                               const ClusterSettings& settings);

}  // namespace varve::bench
