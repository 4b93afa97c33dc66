#include "server/requests/command.h"

#include <optional>

#include "server/requests/past_point.h"
#include "util/base/assert.h"
#include "util/base/letter_case.h"

namespace varve {

namespace {

bool FitsWithoutPast(const Command& command, Arguments arguments) {
  return ArityMatches(command.arity, arguments.size()) ||
         (command.kind == CommandKind::kGet && arguments.size() == 3 &&
          (EqualsIgnoreCase(arguments[2], "withversion") ||
           EqualsIgnoreCase(arguments[2], "withmeta")));
}

}  // namespace

bool TakesArguments(const Command& command, Arguments arguments) {
  if (FitsWithoutPast(command, arguments)) [[likely]]
    return true;
  if ((command.flags & kPastCommand) == 0) return false;
  const std::optional<size_t> before = FindPastSuffix(arguments);
  return before.has_value() && FitsWithoutPast(command, arguments.first(*before));
}

std::optional<Arguments> WrongPastPoint(const Command& command, Arguments arguments) {
  if ((command.flags & kPastCommand) == 0) return std::nullopt;
  const size_t count = arguments.size();
  for (const size_t behind : {0, 1}) {
    if (count < behind + 2) break;
    const size_t before = count - behind - 1;
    if (EqualsIgnoreCase(arguments[before], "at") &&
        FitsWithoutPast(command, arguments.first(before)))
      return arguments.subspan(before + 1);
  }
  return std::nullopt;
}

uint32_t KeyCount(const Command& command, size_t arguments) {
  const auto [first, last, step] = command.keys;
  if (first == 0 || arguments <= static_cast<size_t>(first)) return 0;
  VARVE_ASSERT(step > 0);
  VARVE_ASSERT(last >= -1);
  const size_t end = last >= 0 ? static_cast<size_t>(last) : arguments - 1;
  return static_cast<uint32_t>((end - static_cast<size_t>(first)) / static_cast<size_t>(step) + 1);
}

bool TriesPassword(const Command& command, size_t arguments) {
  constexpr uint32_t kLogin = kSecretArguments | kBeforeLoginCommand;
  return (command.flags & kLogin) == kLogin && (command.name == "auth" || arguments >= 5);
}

const Subcommand* FindSubcommand(const Command& command, Arguments arguments) {
  if (arguments.size() < 2) return nullptr;
  for (const Subcommand& subcommand : command.subcommands) {
    if (EqualsIgnoreCase(subcommand.word(), arguments[1])) return &subcommand;
  }
  return nullptr;
}

const char* FullCommandName(const Command& command, Arguments arguments) {
  const Subcommand* const subcommand = FindSubcommand(command, arguments);
  // The command's name is a literal, so it ends with a zero.
  return subcommand != nullptr ? subcommand->name : command.name.data();
}

}  // namespace varve
