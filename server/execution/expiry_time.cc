#include "server/execution/expiry_time.h"

#include "fmt/format.h"
#include "server/execution/request_checks.h"
#include "util/base/letter_case.h"
#include "util/resp/resp_parser.h"

namespace varve {

std::optional<ExpiryUnit> ExpiryUnitOf(std::string_view option) {
  if (EqualsIgnoreCase(option, "ex")) return ExpiryUnit{.seconds = true, .from_now = true};
  if (EqualsIgnoreCase(option, "px")) return ExpiryUnit{.seconds = false, .from_now = true};
  if (EqualsIgnoreCase(option, "exat")) return ExpiryUnit{.seconds = true, .from_now = false};
  if (EqualsIgnoreCase(option, "pxat")) return ExpiryUnit{.seconds = false, .from_now = false};
  return std::nullopt;
}

std::optional<int64_t> ParseExpiry(CommandContext& context, std::string_view command,
                                   std::string_view time, ExpiryUnit unit, bool may_be_past) {
  int64_t instant = 0;
  if (!ParseRespInteger(time, &instant)) {
    context.reply.Error(kNoInteger);
    return std::nullopt;
  }
  const auto now = static_cast<int64_t>(context.store.NowMillis());
  if ((instant <= 0 && !may_be_past) ||
      (unit.seconds && __builtin_mul_overflow(instant, 1000, &instant)) ||
      (unit.from_now && __builtin_add_overflow(instant, now, &instant))) {
    context.reply.Error(fmt::format("ERR invalid expire time in '{}' command", command));
    return std::nullopt;
  }
  return instant;
}

}  // namespace varve
