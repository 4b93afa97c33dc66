// Refuses commands that need a promise which the store does not keep (StoreCapabilities). The
// embedded engine keeps all of them.
//
// Thread-safety: one thread at a time uses a context; the store answers locally.
#pragma once

#include "server/execution/command_context.h"

namespace varve {

// The needs that a command may have.
enum class StoreNeed { kSnapshots, kConstantTimeClone, kConstantTimeRangeDelete, kExactCounts };

// Returns whether the server's store meets the need. If not, the command was answered with an error
// that names the need, and has to end.
[[nodiscard]] bool StoreMeets(CommandContext& context, StoreNeed need);

}  // namespace varve
