#include "server/commands/command_table.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "server/commands/command_groups.h"
#include "server/commands/foreign_commands.h"
#include "util/base/coding.h"

namespace varve {
namespace {

// Adding a group takes a line here and one in command_groups.h.
using CommandGroup = absl::Span<const Command> (*)();
constexpr CommandGroup kGroups[] = {
    AccessCommands,     BitCommands,      ClientCommands,     CommandCommands, ConfigCommands,
    ConnectionCommands, DatabaseCommands, DumpCommands,       ExpiryCommands,  FunctionCommands,
    KeyCommands,        KeyListCommands,  LcsCommands,        MemoryCommands,  MonitoringCommands,
    NamespaceCommands,  NumberCommands,   PubSubCommands,     RangeCommands,   SaveCommands,
    ServerCommands,     StringCommands,   TransactionCommands};

std::vector<Command> JoinGroups() {
  std::vector<Command> commands;
  for (const CommandGroup group : kGroups)
    commands.insert(commands.end(), group().begin(), group().end());
  std::sort(commands.begin(), commands.end(),
            [](const Command& a, const Command& b) { return a.name < b.name; });
  return commands;
}

constexpr size_t kLongestName = 16;
constexpr int kSlotBits = 10;  // several times the number of commands

// A name as two words, lower-cased and padded with zeros: compared and hashed at once.
struct PackedName {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const PackedName& other) const = default;
  size_t Slot() const {
    return ((low * 0x9E3779B97F4A7C15u) ^ (high * 0xC2B2AE3D27D4EB4Fu)) >> (64 - kSlotBits);
  }
};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

// Each of the eight bytes as Lower() has it.
uint64_t LowerEight(uint64_t bytes) {
  constexpr uint64_t kEach = 0x0101010101010101u;
  const uint64_t low_bits = bytes & kEach * 0x7F;
  const uint64_t from_a = low_bits + kEach * (0x80 - 'A');
  const uint64_t behind_z = low_bits + kEach * (0x7F - 'Z');
  return bytes | (((from_a ^ behind_z) & ~bytes & kEach * 0x80) >> 2);
}

PackedName Pack(std::string_view name) {
  return {LowerEight(LeadingWord(name)),
          name.size() > 8 ? LowerEight(LeadingWord(name.substr(8))) : 0};
}

// Open addressing.
class NameIndex {
 public:
  NameIndex() {
    for (const Command& command : AllCommands()) {
      const PackedName name = Pack(command.name);
      size_t slot = name.Slot();
      while (slots_[slot].command != nullptr) slot = (slot + 1) % slots_.size();
      slots_[slot] = {name, &command};
    }
  }

  const Command* Find(std::string_view name) const {
    if (name.size() > kLongestName || name.empty()) return nullptr;
    const PackedName packed = Pack(name);
    for (size_t slot = packed.Slot(); slots_[slot].command != nullptr;
         slot = (slot + 1) % slots_.size()) {
      // The padding makes a name with zeros behind it look the same, its length does not.
      if (slots_[slot].name == packed && slots_[slot].command->name.size() == name.size())
        return slots_[slot].command;
    }
    return nullptr;
  }

 private:
  struct Slot {
    PackedName name;
    const Command* command = nullptr;
  };
  std::array<Slot, size_t{1} << kSlotBits> slots_;
};

// Bytes of what a client sent that an error text repeats.
constexpr size_t kShownOfNames = 128;
constexpr size_t kShownOfWords = 1024;

// At most `limit` bytes, for an error text; like Redis' it ends at a zero.
std::string_view Head(std::string_view text, size_t limit) {
  return text.substr(0, std::min(limit, text.find('\0')));
}

}  // namespace

absl::Span<const Command> AllCommands() {
  static const std::vector<Command> commands = JoinGroups();
  return commands;
}

size_t CommandIndex(const Command& command) {
  return static_cast<size_t>(&command - AllCommands().data());
}

const Command* FindCommand(std::string_view name) {
  static const NameIndex index;
  return index.Find(name);
}

bool TakesArguments(const Command& command, Arguments arguments) {
  return ArityMatches(command.arity, arguments.size()) ||
         (command.kind == CommandKind::kGet && arguments.size() == 3 &&
          EqualsIgnoreCase(arguments[2], "withversion"));
}

uint32_t KeyCount(const Command& command, size_t arguments) {
  if (command.first_key == 0 || arguments <= static_cast<size_t>(command.first_key)) return 0;
  const size_t last = command.last_key >= 0 ? static_cast<size_t>(command.last_key) : arguments - 1;
  const size_t step = static_cast<size_t>(command.key_step);
  return static_cast<uint32_t>((last - static_cast<size_t>(command.first_key)) / step + 1);
}

bool TriesPassword(const Command& command, size_t arguments) {
  constexpr uint32_t kLogin = kSecretArguments | kBeforeLoginCommand;
  return (command.flags & kLogin) == kLogin && (command.name == "auth" || arguments >= 5);
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

void ReplyUnknownCommand(CommandContext& context, Arguments arguments) {
  if (const std::string foreign = ForeignCommandError(arguments[0]); !foreign.empty()) {
    return context.reply.Error(foreign);
  }
  std::string shown;
  for (size_t i = 1; i < arguments.size() && shown.size() < kShownOfNames; ++i) {
    shown += fmt::format("'{}' ", Head(arguments[i], kShownOfNames - shown.size()));
  }
  context.reply.Error(fmt::format("ERR unknown command '{}', with args beginning with: {}",
                                  NameInError(arguments[0]), shown));
}

void ReplyWrongArity(CommandContext& context, std::string_view name) {
  context.reply.Error(fmt::format("ERR wrong number of arguments for '{}' command", name));
}

void ReplySyntaxError(CommandContext& context) { context.reply.Error("ERR syntax error"); }

std::string_view NameInError(std::string_view name) { return Head(name, kShownOfNames); }

std::string_view ShownInError(std::string_view text) { return Head(text, kShownOfWords); }

}  // namespace varve
