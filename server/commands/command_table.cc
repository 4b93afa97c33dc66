#include "server/commands/command_table.h"

#include <algorithm>
#include <array>
#include <vector>

#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "util/base/assert.h"
#include "util/base/coding.h"

namespace varve {
namespace {

// Adding a group takes a line here and one in command_groups.h.
using CommandGroup = absl::Span<const Command> (*)();
constexpr CommandGroup kGroups[] = {
    AccessCommands,      AclCommands,      BackupCommands,     BitCommands,
    ChangeCommands,      ClientCommands,   CommandCommands,    ConfigCommands,
    ConnectionCommands,  DatabaseCommands, DifferenceCommands, DumpCommands,
    ExpiryCommands,      FailoverCommands, FeedCommands,       FunctionCommands,
    IngestCommands,      KeyCommands,      KeyListCommands,    LcsCommands,
    MemoryCommands,      MetadataCommands, MonitoringCommands, NamespaceCommands,
    NumberCommands,      PastCommands,     PathCommands,       PubSubCommands,
    PurgeCommands,       RangeCommands,    ReplicaCommands,    ReplicationCommands,
    SaveCommands,        ServerCommands,   StreamCommands,     StringCommands,
    TransactionCommands, UndoCommands,     WaitCommands,       WatchCommands};

constexpr size_t kLongestName = 16;

std::vector<Command> JoinGroups() {
  std::vector<Command> commands;
  for (const CommandGroup group : kGroups)
    commands.insert(commands.end(), group().begin(), group().end());
  std::sort(commands.begin(), commands.end(),
            [](const Command& a, const Command& b) { return a.name < b.name; });
  for (size_t i = 0; i < commands.size(); ++i) {
    VARVE_ASSERT(commands[i].name.size() <= kLongestName);
    VARVE_ASSERT(i == 0 || commands[i - 1].name != commands[i].name);
    commands[i].index = i;
    commands[i].subcommands = SubcommandsOf(commands[i].name);
    if (commands[i].redis.flags.find("denyoom") != std::string_view::npos)
      commands[i].flags |= kAddsDataCommand;
  }
  return commands;
}

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

// Each of the eight bytes as LowerCase() has it.
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

}  // namespace

absl::Span<const Command> AllCommands() {
  static const std::vector<Command> commands = JoinGroups();
  return commands;
}

const Command* FindCommand(std::string_view name) {
  static const NameIndex index;
  return index.Find(name);
}

}  // namespace varve
