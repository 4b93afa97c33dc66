#include "server/following/reply_errors.h"

#include <cstdint>

#include "util/base/assert.h"
#include "util/resp/resp_parser.h"

namespace varve {

size_t ForEachError(std::string_view replies, absl::FunctionRef<void(std::string_view)> visit) {
  size_t position = 0;
  uint64_t left = 1;  // replies to go over, those inside arrays among them
  while (left > 0) {
    const size_t end = replies.find("\r\n", position);
    VARVE_ASSERT(end != std::string_view::npos && end > position);
    const char kind = replies[position];
    const std::string_view text = replies.substr(position + 1, end - position - 1);
    position = end + 2;
    --left;
    if (kind == '-') visit(text);
    if (kind != '$' && kind != '*') continue;
    int64_t length = -1;
    const bool is_number = ParseRespInteger(text, &length);
    VARVE_ASSERT(is_number);
    if (!is_number || length < 0) continue;
    if (kind == '*') left += static_cast<uint64_t>(length);
    if (kind == '$') position += static_cast<size_t>(length) + 2;
  }
  VARVE_ASSERT(position <= replies.size());
  return position;
}

}  // namespace varve
