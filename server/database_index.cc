#include "server/database_index.h"

#include <limits>

#include "fmt/format.h"
#include "util/resp_parser.h"

namespace varve {

std::optional<int32_t> ParseDatabaseIndex(CommandContext& context, std::string_view text) {
  using Limits = std::numeric_limits<int32_t>;
  int64_t index = 0;
  if (!ParseRespInteger(text, &index)) {
    context.reply.Error("ERR value is not an integer or out of range");
    return std::nullopt;
  }
  if (index < Limits::min() || index > Limits::max()) {
    context.reply.Error(
        fmt::format("ERR value is out of range, value must between {} and {}", Limits::min(), Limits::max()));
    return std::nullopt;
  }
  return static_cast<int32_t>(index);
}

}  // namespace varve
