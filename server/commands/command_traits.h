// The properties that COMMAND tells of a command, made of its row in the table: Redis' words for
// what it does, its categories of access control, its tips for routers, and how it uses which of
// its keys.
//
// Thread-safety: The functions are pure.
#pragma once

#include <string_view>
#include <vector>

#include "server/commands/command_names.h"
#include "server/commands/command_table.h"

namespace varve {

using Words = std::vector<std::string_view>;

// One of Redis' key specifications: arguments that are found and used alike.
struct KeySpecification {
  std::string_view notes;
  Words flags;
  int first;  // counted from the command's name
  int last;   // counted from `first`, or, negative, from the end
  int step;
};

// A command, or a subcommand of it, that a client asks about.
struct NamedCommand {
  explicit NamedCommand(const Command& the_command)
      : command(the_command), name(the_command.name) {}
  NamedCommand(const Command& container, const Subcommand& the_subcommand)
      : command(container), subcommand(&the_subcommand), name(the_subcommand.name) {}

  const Command& command;
  const Subcommand* subcommand = nullptr;
  std::string_view name;  // full

  uint32_t flags() const { return subcommand != nullptr ? subcommand->flags : command.flags; }
  int arity() const { return subcommand != nullptr ? subcommand->arity : command.arity; }
  const RedisTraits& redis() const {
    return subcommand != nullptr ? subcommand->redis : command.redis;
  }
  // It has keys where the command's row says; a container leaves them to those of its subcommands
  // that read.
  bool HasKeys() const;
};

Words FlagNames(const NamedCommand& command);
Words Categories(const NamedCommand& command);
Words Tips(const NamedCommand& command);
std::vector<KeySpecification> KeySpecifications(const NamedCommand& command);

// Returns how the request uses the keys of `specification`, if that depends on its options.
Words KeyFlagsOf(const KeySpecification& specification, const Command& command, Arguments request);

}  // namespace varve
