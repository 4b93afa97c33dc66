// Recovery of the log replays the operations that no segment holds yet. A survey reads a damaged
// log as far as it can, for repairs. db/format/log_format.h draws the bytes and has the rules that
// tell a tear, which recovery truncates, from corruption, which it refuses.
//
// Thread-safety: stateless functions. Requires: no other thread or process writes to the directory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/format/log_end.h"
#include "db/format/time_mark.h"
#include "util/os/file_system.h"
#include "varve/replay_progress.h"
#include "varve/types.h"

namespace varve {

struct LogRecovery {
  // The last operation that was delivered, or `flushed` if none was.
  SequenceNumber last_sequence = 0;
  uint64_t last_file_number = 0;  // highest number seen, also of files without content
  // Files that hold operations behind `flushed`, oldest first, with their good ends.
  std::vector<LogEnd> files;
  std::vector<TimeMark> marks;  // of the batches that were delivered, ascending
  uint64_t torn_bytes = 0;      // truncated behind the end
  std::string torn_path;        // the file that was truncated
  uint64_t torn_offset = 0;     // and where
  // Files with nothing to recover. The caller removes them and syncs the directory before the log
  // takes new operations, because those get sequences that torn operations in these files had.
  std::vector<std::string> obsolete_paths;
};

// A function that takes the operations of a batch (its record without the header), their first
// sequence and their number.
using DeliverBatch =
    std::function<absl::Status(std::string_view operations, SequenceNumber first, uint32_t count)>;

// A function that takes a time mark before the batch that it was made for.
using TakeMark = std::function<void(const TimeMark& mark)>;

// Replays all batches with operations behind `flushed`, oldest first, from the log files of
// `directory`. `known_ends` are the ends in the manifest of files that were closed cleanly or
// truncated by an earlier recovery. The function syncs what it replays. Returns DataLoss, with file
// and offset, if an acknowledged part is damaged. `on_replay` is told of the progress if there is
// something to replay; null: nobody is. So may `on_mark` be.
// Requires: no log is open in the directory.
[[nodiscard]] absl::StatusOr<LogRecovery> RecoverLog(
    FileSystem* file_system, const std::string& directory, uint64_t store_id,
    SequenceNumber flushed, const std::vector<LogEnd>& known_ends, const DeliverBatch& deliver,
    const ReplayListener& on_replay = nullptr, const TakeMark& on_mark = nullptr);

// A gap is a range of lost operations. Recovery refuses a log with a gap; a repair goes on behind
// it.
struct LogGap {
  absl::Status damage;  // DataLoss, which names file and offset
  SequenceNumber first = kNoSequence;
  // `first` - 1: no operation is lost. kNoSequence: nothing behind the gap can be read, so the end
  // is not known.
  SequenceNumber last = kNoSequence;
};
struct LogSurvey {
  LogRecovery recovery;  // of what can be read
  std::vector<LogGap> gaps;
};

// Reads like RecoverLog() but changes nothing, and continues behind damage with the next block that
// was surely acknowledged.
[[nodiscard]] absl::StatusOr<LogSurvey> SurveyLog(FileSystem* file_system,
                                                  const std::string& directory, uint64_t store_id,
                                                  SequenceNumber flushed,
                                                  const std::vector<LogEnd>& known_ends,
                                                  const DeliverBatch& deliver);

}  // namespace varve
