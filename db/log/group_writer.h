// A group writer makes a group durable: all records that were appended before the call, with one
// write to the disk. There are two group writers:
//
//   buffered  writes to the kernel's cache (pwrite), then syncs the file (fdatasync); one group at
//             a time
//   direct    writes around the kernel's cache (O_DIRECT | O_DSYNC), up to two groups at a time. A
//             group takes 34 us instead of 39, and with the second group 8 threads reach 79,000
//             instead of 65,000 groups a second (docs/decisions/0009)
//
// Thread-safety: all functions may be called from any thread. Up to most_at_once() calls of
// WriteGroup() may run at a time.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "db/log/log_progress.h"
#include "db/log/log_writer.h"
#include "varve/options.h"

namespace varve {

class GroupWriter {
 public:
  virtual ~GroupWriter() = default;

  // Makes everything durable that was appended before the call. A failure is a final failure of the
  // log.
  [[nodiscard]] virtual absl::Status WriteGroup() = 0;
  // Writes a block that only brings the durable mark on disk up to date (LogWriter::WriteMark).
  virtual void WriteMark() = 0;
  // Returns how many groups may be under way at once.
  virtual int most_at_once() const = 0;
};

// Returns the group writer for kPwrite or kDirect. Requires: `writer` and `progress` outlive it.
std::unique_ptr<GroupWriter> NewGroupWriter(SyncBackend backend, LogWriter* writer,
                                            LogProgress* progress);

}  // namespace varve
