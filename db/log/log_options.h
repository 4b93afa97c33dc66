// The options of a log and the figures it counts.
//
// Thread-safety: plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "varve/options.h"

namespace varve {

class FileThread;

struct LogOptions {
  std::string directory;
  uint64_t store_id = 0;
  size_t file_size = 64u << 20;  // bytes of a file; a larger record gets a file of its own size
  size_t group_max_bytes = 4u << 20;
  std::chrono::microseconds group_max_delay{0};
  SyncBackend sync_backend = SyncBackend::kPwrite;  // kPwrite or kDirect
  // Gives the numbers of further files, ascending, from any thread. Unset: the log counts on from
  // its first file.
  std::function<uint64_t()> next_file_number;
  // The thread on which further files are prepared; it outlives the log. Null: a thread that the
  // log starts.
  FileThread* file_thread = nullptr;
};

struct LogStatistics {
  uint64_t groups = 0;  // synced groups
  uint64_t syncs = 0;   // fdatasync calls, and direct writes
  // Bytes written to log files, with headers and padding. Some take the place of earlier padding.
  uint64_t bytes_written = 0;
  uint64_t bytes_taken = 0;     // in log files
  uint64_t bytes_appended = 0;  // records only
  uint64_t files_recycled = 0;
};

}  // namespace varve
