// The command `import FILE --atomic` makes all keys of a file visible in one step, through INGEST
// (docs/protocol.md). With --replace-prefix they take the place of all keys with that prefix, and
// with --sort the file may have its keys in any order.
//
// Whatever goes wrong before the commit leaves the server as it was.
#pragma once

#include "absl/status/status.h"
#include "client/console/command_line.h"
#include "client/transfer/formats.h"

namespace varve {

[[nodiscard]] absl::Status ImportAtomically(const CommandLine& line, FileFormat format);

}  // namespace varve
