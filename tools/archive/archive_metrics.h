// The figures of an archive, in the text format of Prometheus, for the textfile collector of
// node_exporter: the program that writes an archive has no port. Counters go on from those that
// the file had, also after a restart.
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/archive/archive_position.h"

namespace varve {

inline constexpr std::string_view kArchiveMetricsName = "metrics.prom";

struct ArchiveMetrics {
  bool gap = false;  // changes can't be had, and the base that heals it is not there yet
  uint64_t gaps = 0;
  uint64_t bases = 0;
  uint64_t files = 0;  // of changes
  uint64_t bytes = 0;  // of change files, and of those files of bases that had to be copied
};

// `now_ms`: since the epoch. Without a position, nothing is said of versions and times.
std::string EncodeArchiveMetrics(const ArchiveMetrics& metrics,
                                 const std::optional<ArchivePosition>& position, uint64_t now_ms);
// Returns the counters in the text; 0 for each that is not there.
ArchiveMetrics DecodeArchiveCounters(std::string_view text);

}  // namespace varve
