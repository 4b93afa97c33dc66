// Helpers of commands that read one key. They answer errors, make the reply depend on what was
// read, and count the lookup.
//
// Thread-safety: all functions may be called on any thread that may use the context.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/execution/command_context.h"

namespace varve {

// Notes what was read of `key`: the reply depends on it, the lookup is counted, and the key was
// used if it was found.
void NoteRead(CommandContext& context, std::string_view key, const ReadResult& read);

// Reads the value of `key`; a missing key empties `*value`. Nothing: an error was answered.
[[nodiscard]] std::optional<ReadResult> ReadKey(CommandContext& context, std::string_view key,
                                                std::string* value, bool with_metadata = false);

// Looks `key` up without its value: ReadResult says whether the key is there, and the size of its
// value. Cheap for a large value in memory. Nothing: an error was answered.
[[nodiscard]] std::optional<ReadResult> LookUpKey(CommandContext& context, std::string_view key,
                                                  bool with_metadata = false);

// Looks `key` up as LookUpKey() does, for a command that asks about a key and does not use it (TTL,
// TYPE): evictions do not spare it for that.
[[nodiscard]] std::optional<ReadResult> PeekAtKey(CommandContext& context, std::string_view key,
                                                  bool with_metadata = false);

// Writes the metadata of what was read as part of the reply: null where there is none.
void ReplyMetadata(CommandContext& context, std::string_view metadata);
// Writes the version of what was read as part of the reply. What EXEC has written itself has none
// yet: null.
void ReplyVersion(CommandContext& context, SequenceNumber version);

}  // namespace varve
