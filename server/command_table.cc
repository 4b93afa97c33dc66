#include "server/command_table.h"

#include <array>
#include <cstring>
#include <string>

#include "fmt/format.h"
#include "server/command_handlers.h"

namespace varve {
namespace {

constexpr Command kCommands[] = {
    {"client", -2, kConnectionCommand, 0, 0, 0, CommandKind::kOther, HandleClient, "connection",
     "Shows or sets what the server knows of this connection.",
     "SETNAME name | GETNAME | ID | INFO | SETINFO attribute value | NO-EVICT on|off"},
    {"command", -1, kSlowCommand, 0, 0, 0, CommandKind::kOther, HandleCommand, "server",
     "Describes the commands of this server.", "[COUNT | LIST | INFO [name ...] | DOCS [name ...]]"},
    {"compact", -1, kAdminCommand | kMaintenanceCommand, 0, 0, 0, CommandKind::kOther, HandleCompact, "server",
     "Merges a range of keys down to one sorted run; answers when done.", "[min max]"},
    {"config", -2, kAdminCommand | kSlowCommand, 0, 0, 0, CommandKind::kOther, HandleConfig, "server",
     "Shows the settings in force.", "GET pattern [pattern ...]"},
    {"count", 3, kReadCommand | kSlowCommand, 0, 0, 0, CommandKind::kOther, HandleCount, "range",
     "Counts the keys between two bounds.", "min max"},
    {"dbsize", 1, kReadCommand | kSlowCommand, 0, 0, 0, CommandKind::kOther, HandleDbSize, "server", "Counts all keys.",
     ""},
    {"del", -2, kWriteCommand, 1, -1, 1, CommandKind::kOther, HandleDel, "key",
     "Deletes keys; answers how many there were.", "key [key ...]"},
    {"delete", -2, kWriteCommand, 1, -1, 1, CommandKind::kOther, HandleDel, "key", "The same as DEL.", "key [key ...]"},
    {"delrange", 3, kWriteCommand, 0, 0, 0, CommandKind::kOther, HandleDelRange, "range",
     "Deletes the keys between two bounds in constant time.", "min max"},
    {"echo", 2, kConnectionCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandleEcho, "connection",
     "Answers its argument.", "message"},
    {"exists", -2, kReadCommand | kFastCommand, 1, -1, 1, CommandKind::kOther, HandleExists, "key",
     "Counts how many of the keys exist.", "key [key ...]"},
    {"flushall", -1, kWriteCommand, 0, 0, 0, CommandKind::kOther, HandleFlushAll, "server",
     "Deletes all keys in constant time.", "[ASYNC | SYNC]"},
    {"get", 2, kReadCommand | kFastCommand, 1, 1, 1, CommandKind::kGet, HandleGet, "key", "Reads the value of a key.",
     "key"},
    {"hello", -1, kConnectionCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandleHello, "connection",
     "Chooses the version of the protocol.", "[2 | 3 [AUTH username password] [SETNAME name]]"},
    {"incr", 2, kWriteCommand | kFastCommand, 1, 1, 1, CommandKind::kOther, HandleIncr, "key",
     "Adds one to the integer value of a key.", "key"},
    {"info", -1, kReadCommand | kSlowCommand, 0, 0, 0, CommandKind::kOther, HandleInfo, "server",
     "Shows figures of the server and the engine.", "[section ...]"},
    {"mget", -2, kReadCommand | kFastCommand, 1, -1, 1, CommandKind::kOther, HandleMGet, "key",
     "Reads the values of several keys at one instant.", "key [key ...]"},
    {"mset", -3, kWriteCommand, 1, -1, 2, CommandKind::kOther, HandleMSet, "key", "Writes several keys, all or none.",
     "key value [key value ...]"},
    {"ping", -1, kConnectionCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandlePing, "connection",
     "Answers PONG, or its argument.", "[message]"},
    {"prefix", -2, kReadCommand | kSlowCommand, 0, 0, 0, CommandKind::kOther, HandlePrefix, "range",
     "Lists the keys that begin with a prefix, in order, with their values.",
     "prefix [REV] [LIMIT offset count] [KEYS]"},
    {"put", -3, kWriteCommand, 1, 1, 1, CommandKind::kSet, HandleSet, "key", "The same as SET.",
     "key value [NX | XX] [GET]"},
    {"quit", -1, kConnectionCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandleQuit, "connection",
     "Closes the connection after the replies before it.", ""},
    {"range", -3, kReadCommand | kSlowCommand, 0, 0, 0, CommandKind::kOther, HandleRange, "range",
     "Lists the keys between two bounds, in order, with their values.", "min max [REV] [LIMIT offset count] [KEYS]"},
    {"select", 2, kConnectionCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandleSelect, "connection",
     "Accepts database 0, the only one.", "index"},
    {"set", -3, kWriteCommand, 1, 1, 1, CommandKind::kSet, HandleSet, "key", "Writes the value of a key.",
     "key value [NX | XX] [GET]"},
};

constexpr size_t kLongestName = 16;

// A name as two words, lower-cased and padded with zeros: compared and hashed at once.
struct PackedName {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const PackedName& other) const = default;
  size_t Slot() const { return ((low * 0x9E3779B97F4A7C15u) ^ (high * 0xC2B2AE3D27D4EB4Fu)) >> 56; }
};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

PackedName Pack(std::string_view name) {
  char bytes[kLongestName] = {};
  for (size_t i = 0; i < name.size(); ++i) bytes[i] = Lower(name[i]);
  PackedName packed;
  std::memcpy(&packed.low, bytes, 8);
  std::memcpy(&packed.high, bytes + 8, 8);
  return packed;
}

// Open addressing in 256 slots.
class NameIndex {
 public:
  NameIndex() {
    for (const Command& command : kCommands) {
      const PackedName name = Pack(command.name);
      size_t slot = name.Slot();
      while (slots_[slot].command != nullptr) slot = (slot + 1) % slots_.size();
      slots_[slot] = {name, &command};
    }
  }

  const Command* Find(std::string_view name) const {
    if (name.size() > kLongestName || name.empty()) return nullptr;
    const PackedName packed = Pack(name);
    for (size_t slot = packed.Slot(); slots_[slot].command != nullptr; slot = (slot + 1) % slots_.size()) {
      // The padding makes a name with zeros behind it look the same, its length does not.
      if (slots_[slot].name == packed && slots_[slot].command->name.size() == name.size()) return slots_[slot].command;
    }
    return nullptr;
  }

 private:
  struct Slot {
    PackedName name;
    const Command* command = nullptr;
  };
  std::array<Slot, 256> slots_;
};

// At most `limit` bytes of what a client sent, for an error text.
std::string_view Head(std::string_view text, size_t limit) { return text.substr(0, limit); }

}  // namespace

absl::Span<const Command> AllCommands() { return kCommands; }

const Command* FindCommand(std::string_view name) {
  static const NameIndex index;
  return index.Find(name);
}

uint32_t KeyCount(const Command& command, size_t arguments) {
  if (command.first_key == 0 || arguments <= static_cast<size_t>(command.first_key)) return 0;
  const size_t last = command.last_key >= 0 ? static_cast<size_t>(command.last_key) : arguments - 1;
  const size_t step = static_cast<size_t>(command.key_step);
  return static_cast<uint32_t>((last - static_cast<size_t>(command.first_key)) / step + 1);
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

void ReplyUnknownCommand(CommandContext& context, Arguments arguments) {
  constexpr size_t kShown = 128;  // bytes of the name and of all arguments
  std::string shown;
  for (size_t i = 1; i < arguments.size() && shown.size() < kShown; ++i) {
    shown += fmt::format("'{}' ", Head(arguments[i], kShown - shown.size()));
  }
  context.reply.Error(
      fmt::format("ERR unknown command '{}', with args beginning with: {}", Head(arguments[0], kShown), shown));
}

void ReplyWrongArity(CommandContext& context, std::string_view name) {
  context.reply.Error(fmt::format("ERR wrong number of arguments for '{}' command", name));
}

void ReplySyntaxError(CommandContext& context) { context.reply.Error("ERR syntax error"); }

void ReplyUnknownSubcommand(CommandContext& context, std::string_view command, std::string_view subcommand) {
  std::string upper(command);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 0x20) : c;
  context.reply.Error(fmt::format("ERR unknown subcommand '{}'. Try {} HELP.", Head(subcommand, 128), upper));
}

}  // namespace varve
