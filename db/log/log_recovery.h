// Recovery of the log replays the operations that no segment holds yet. A survey reads a damaged
// log as far as it can, for repairs. db/format/log_format.h has the bytes, and the rules for what
// is a tear (cut away) and what is corruption (refused).
//
// Thread-safety: the functions keep no state of their own; nobody else may write to the directory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/format/log_end.h"
#include "util/os/file_system.h"
#include "varve/types.h"

namespace varve {

struct LogRecovery {
  // The last operation that was delivered, or `flushed` if none was.
  SequenceNumber last_sequence = 0;
  uint64_t last_file_number = 0;  // highest number seen, also of files without content
  // Files that hold operations behind `flushed`, oldest first, with their good ends.
  std::vector<LogEnd> files;
  uint64_t torn_bytes = 0;  // cut away behind the end
  std::string torn_path;    // the file that was cut, and where
  uint64_t torn_offset = 0;
  // Files with nothing to recover. They must be gone, and their directory synced, before the log
  // takes new operations, of which some could have the numbers of what was cut away with them.
  std::vector<std::string> obsolete_paths;
};

// Gets the operations of a batch (its record without the header), their first sequence and their
// number.
using DeliverBatch =
    std::function<absl::Status(std::string_view operations, SequenceNumber first, uint32_t count)>;

// Replays all batches with operations behind `flushed`, oldest first, from the log files of
// `directory`. `known_ends` come from the manifest: files that were closed cleanly or cut by an
// earlier recovery. What was replayed is on disk when this returns, also where only the kernel held
// it. DataLoss: an acknowledged part is damaged; names file and offset.
// Requires: no log is open in the directory.
[[nodiscard]] absl::StatusOr<LogRecovery> RecoverLog(FileSystem* file_system,
                                                     const std::string& directory,
                                                     uint64_t store_id, SequenceNumber flushed,
                                                     const std::vector<LogEnd>& known_ends,
                                                     const DeliverBatch& deliver);

// A gap is operations that recovery refuses to go on without, but a repair has to.
struct LogGap {
  absl::Status damage;  // DataLoss, which names file and offset
  SequenceNumber first = kNoSequence;
  // First - 1: none is lost; kNoSequence: not known, nothing behind it can be read.
  SequenceNumber last = kNoSequence;
};
struct LogSurvey {
  LogRecovery recovery;  // of what can be read
  std::vector<LogGap> gaps;
};

// Reads as RecoverLog() does, but changes nothing, and goes on behind damage with the next block
// that was surely acknowledged.
[[nodiscard]] absl::StatusOr<LogSurvey> SurveyLog(FileSystem* file_system,
                                                  const std::string& directory, uint64_t store_id,
                                                  SequenceNumber flushed,
                                                  const std::vector<LogEnd>& known_ends,
                                                  const DeliverBatch& deliver);

}  // namespace varve
