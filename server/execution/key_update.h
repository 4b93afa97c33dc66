// Helpers of commands that read keys, decide, and write: each such command is one atomic step.
//
// Thread-safety: all functions may be called on any thread that may use the context.
#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "server/execution/command_context.h"
#include "server/requests/request_batch.h"

namespace varve {

// Returns an empty batch that uses the namespace of the connection, scratch of one thread;
// WriteBatch::Clear() gives large memory back.
WriteBatch& ClearedBatch(const CommandContext& context);

// Runs a read-decide-write of `keys` through Store::Update: `decide` may run several times; its
// batch uses the namespace of the connection. False: it failed, and the error was answered. The
// reply depends on what was read and written. `*last`, if not null, becomes the sequence of the
// last operation, where it is known: inside EXEC it is not.
[[nodiscard]] bool Update(CommandContext& context, Arguments keys,
                          absl::FunctionRef<absl::Status(WriteBatch*)> decide,
                          SequenceNumber* last = nullptr);

// Reads `key` inside an Update and makes the write depend on what was read. A missing key empties
// `*value`, and its expiry is what is usual for a new one.
[[nodiscard]] absl::StatusOr<ReadResult> ReadForUpdate(CommandContext& context,
                                                       std::string_view key, std::string* value,
                                                       WriteBatch* batch);
// Reads `key` of another namespace, and is ReadForUpdate() otherwise.
[[nodiscard]] absl::StatusOr<ReadResult> ReadForUpdateIn(NamespaceId space, CommandContext& context,
                                                         std::string_view key, std::string* value,
                                                         WriteBatch* batch);

}  // namespace varve
