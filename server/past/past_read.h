// Reads as of a past point (server/requests/past_point.h): a handler runs against the store as it
// was then.
//
// Thread-safety: all functions may be called on any thread that may use the context.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "server/execution/command_context.h"
#include "server/requests/command.h"
#include "server/requests/past_point.h"
#include "varve/snapshot.h"
#include "varve/store.h"

namespace varve {

// The version that a point is for a namespace, and the instant if it names one.
struct PastVersion {
  SequenceNumber version = kNoSequence;
  std::optional<uint64_t> instant_ms;  // nothing: that of the version
};
// Returns Trimmed if the store does not know of the instant any more, and OutOfRange if the point
// lies ahead.
absl::StatusOr<PastVersion> FindPastVersion(const Store& store, NamespaceId space,
                                            const PastPoint& point);

// Returns a snapshot of the namespace as it was at the point. Returns Trimmed if the namespace does
// not keep its versions that long, and OutOfRange if the point lies ahead.
absl::StatusOr<std::shared_ptr<const Snapshot>> SnapshotOf(const Store& store, NamespaceId space,
                                                           const PastPoint& point);
// Returns a snapshot of the client's namespace as it was at the point. Returns Trimmed if the
// namespace does not keep its versions that long, and OutOfRange if the point lies ahead.
absl::StatusOr<std::shared_ptr<const Snapshot>> SnapshotOf(CommandContext& context,
                                                           const PastPoint& point);

// Has `handler` answer the request from the store as it was at the point, or answers why that
// cannot be. Requires: the handler writes nothing, and the client may execute the request.
void ExecuteAt(CommandContext& context, const PastPoint& point, CommandHandler handler,
               Arguments arguments);

// Answers a request that ends with AT and a point; requests without are the handler's.
void ExecuteAtSuffix(CommandContext& context, CommandHandler handler, size_t fewest_arguments,
                     Arguments arguments);

// The handler of a command with kPastCommand in its row: kHandler, which takes at least
// `kFewestArguments` with the name, at the point that the request ends with.
template <CommandHandler kHandler, size_t kFewestArguments>
void NowOrAt(CommandContext& context, Arguments arguments) {
  ExecuteAtSuffix(context, kHandler, kFewestArguments, arguments);
}

}  // namespace varve
