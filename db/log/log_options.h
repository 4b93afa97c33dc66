// The options of a log, and the figures that it counts.
//
// Thread-safety: plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "db/format/log_format.h"
#include "varve/options.h"

namespace varve {

class FileThread;

struct LogOptions {
  std::string directory;
  uint64_t store_id = 0;
  uint32_t format_version = kLogFormatVersion;  // of new files
  size_t file_size = 64u << 20;  // bytes of a file; a larger record gets a file of its own size
  size_t group_max_bytes = 4u << 20;
  std::chrono::microseconds group_max_delay{0};
  SyncBackend sync_backend = SyncBackend::kPwrite;  // kPwrite or kDirect
  // Returns the numbers of further files, ascending; called on any thread. Unset: the log numbers
  // its files from the first one on.
  std::function<uint64_t()> next_file_number;
  // The thread that prepares further files; it outlives the log. Null: the log starts a thread.
  FileThread* file_thread = nullptr;
};

struct LogStatistics {
  uint64_t groups = 0;  // synced groups
  uint64_t syncs = 0;   // fdatasync calls, and direct writes
  // Bytes written to log files, with headers and padding. Some overwrite earlier padding.
  uint64_t bytes_written = 0;
  uint64_t bytes_taken = 0;     // in log files
  uint64_t bytes_appended = 0;  // records only
  uint64_t files_recycled = 0;
};

}  // namespace varve
