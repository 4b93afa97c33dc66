#include "server/access/command_catalog.h"

#include <iterator>
#include <utility>

#include "util/base/assert.h"
#include "util/base/letter_case.h"

namespace varve {

std::optional<size_t> FindCategory(std::string_view name) {
  for (size_t i = 0; i < std::size(kAccessCategories); ++i) {
    if (EqualsIgnoreCase(kAccessCategories[i], name)) return i;
  }
  return std::nullopt;
}

CommandCatalog::CommandCatalog(std::vector<CommandEntry> entries, RightsOf rights_of)
    : entries_(std::move(entries)), rights_of_(rights_of) {
  for (size_t number = 0; number < entries_.size(); ++number) {
    const CommandEntry& entry = entries_[number];
    if (entry.subcommand == nullptr) {
      VARVE_ASSERT(entry.command->index == numbers_.size());
      numbers_.push_back(number);
    }
    const bool is_new = names_.emplace(std::string(entry.name), number).second;
    VARVE_ASSERT(is_new);
  }
}

size_t CommandCatalog::NumberOf(const Command& command, Arguments request) const {
  VARVE_ASSERT(command.index < numbers_.size());
  const size_t number = numbers_[command.index];
  const Subcommand* const subcommand = FindSubcommand(command, request);
  if (subcommand == nullptr) return number;
  return number + 1 + static_cast<size_t>(subcommand - command.subcommands.data());
}

std::optional<size_t> CommandCatalog::Find(std::string_view name) const {
  const auto found = names_.find(LowerCase(name));
  if (found == names_.end()) return std::nullopt;
  return found->second;
}

absl::Span<const CommandEntry> CommandCatalog::Family(size_t number) const {
  VARVE_ASSERT(number < entries_.size());
  const CommandEntry& entry = entries_[number];
  const size_t members = entry.subcommand == nullptr ? 1 + entry.command->subcommands.size() : 1;
  return absl::MakeSpan(entries_).subspan(number, members);
}

}  // namespace varve
