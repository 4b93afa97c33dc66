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
// Does the same, and leaves the answer to an error to its caller.
[[nodiscard]] absl::Status TryUpdate(CommandContext& context, Arguments keys,
                                     absl::FunctionRef<absl::Status(WriteBatch*)> decide,
                                     SequenceNumber* last = nullptr);

// Reads `key` inside an Update, with its metadata, and makes the write depend on what was read. A
// missing key empties `*value`, and its expiry is what is usual for a new one. A key that is there
// was used.
[[nodiscard]] absl::StatusOr<ReadResult> ReadForUpdate(CommandContext& context,
                                                       std::string_view key, std::string* value,
                                                       WriteBatch* batch);
// Reads `key` in order to delete it, which is no use of it, and is ReadForUpdate() otherwise.
[[nodiscard]] absl::StatusOr<ReadResult> ReadForDelete(CommandContext& context,
                                                       std::string_view key, std::string* value,
                                                       WriteBatch* batch);
// Reads `key` of another namespace, and is ReadForUpdate() otherwise.
[[nodiscard]] absl::StatusOr<ReadResult> ReadForUpdateIn(NamespaceId space, CommandContext& context,
                                                         std::string_view key, std::string* value,
                                                         WriteBatch* batch);

// Returns what a write keeps that changes the value which ReadForUpdate() read: its expiry and its
// metadata. They point into `read`.
inline PutExtras ExtrasOf(const ReadResult& read) {
  return {.expiry_ms = read.expiry_ms, .metadata = read.MetadataView()};
}
// Returns what a write has that changes nothing but when the key expires.
inline PutExtras ExtrasWithExpiry(const ReadResult& read, uint64_t expiry_ms) {
  return {
      .expiry_ms = expiry_ms, .metadata = read.MetadataView(), .cause = WriteCause::kExpiryChange};
}

// The error for metadata of more than kMaxMetadataSize bytes.
inline constexpr std::string_view kMetadataTooLong = "ERR metadata of a value has at most 64 KiB";

}  // namespace varve
