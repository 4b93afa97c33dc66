// Shrinks a log file that holds its last record. A file is made larger than what it holds, for
// records to come; once the log is closed there are none.
//
// The file is not truncated: its header says how large it was made, so that recovery can tell a
// file that lost its end. A smaller file with the same records is written beside it and renamed
// over it, as a new log file is made (db/log/log_file_maker.h). So a crash at any instant leaves
// the one or the other, both whole, and what has the old file open or under another name keeps it.
//
// Thread-safety: a stateless function. Requires: nobody writes to the file.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "db/format/log_end.h"
#include "db/log/log_options.h"
#include "util/os/file_system.h"

namespace varve {

// Shrinks the file to its end, where that gives back at least 64 KiB and a quarter of what has to
// be copied. If this fails, the file stays as it is.
// Requires: the records up to `end` are synced.
[[nodiscard]] absl::Status ShrinkLogFile(FileSystem* file_system, const LogOptions& options,
                                         const LogEnd& end);

}  // namespace varve
