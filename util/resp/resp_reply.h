// The reply parser reads replies (RESP2 and RESP3) from the bytes that a server sent. The file is
// the client's half of the protocol, so it encodes requests as well.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "type/reply.h"
#include "util/resp/resp_buffer.h"

namespace varve {

enum class ReplyResult { kReply, kNeedMore, kError };

// Reads one reply from the front of `bytes`. kReply: `*consumed` is its length. kNeedMore: call
// again with more bytes. kError: these bytes are no RESP. Nested deeper than 80 levels is an error:
// TREE takes 65, and two more inside EXEC.
ReplyResult ParseReply(std::string_view bytes, Reply* reply, size_t* consumed);

// Appends the request as a RESP array of bulk strings.
void AppendRequest(absl::Span<const std::string_view> arguments, ByteBuffer* out);

}  // namespace varve
