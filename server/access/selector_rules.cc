#include "server/access/selector_rules.h"

#include <algorithm>
#include <optional>

#include "server/requests/foreign_commands.h"
#include "util/base/assert.h"
#include "util/base/glob.h"
#include "util/base/letter_case.h"

namespace varve {
namespace {

absl::Status SyntaxError() { return absl::InvalidArgumentError("Syntax error"); }

absl::Status UnknownName() {
  return absl::InvalidArgumentError("Unknown command or category name in ACL");
}

// --- Commands ------------------------------------------------------------------------------------

void SetAllCommands(bool allows, Selector* selector) {
  std::fill(selector->commands.begin(), selector->commands.end(), allows);
  selector->all_commands = selector->later_commands = allows;
  selector->first_arguments.clear();
  selector->rules.clear();
  VARVE_ASSERT(selector->rules.empty());
}

// A later rule for a name makes earlier ones superfluous, for a command also those for its
// subcommands; and a rule that says what +@all or -@all has said is superfluous itself.
void NoteRule(bool allows, std::string name, Selector* selector) {
  std::erase_if(selector->rules, [&](const CommandRule& rule) {
    return rule.name == name || rule.name.starts_with(name + "|");
  });
  selector->rules.push_back({allows, std::move(name)});
  const auto says_more = [&](const CommandRule& rule) {
    return rule.allows != selector->later_commands;
  };
  std::vector<CommandRule>& rules = selector->rules;
  rules.erase(rules.begin(), std::find_if(rules.begin(), rules.end(), says_more));
  VARVE_ASSERT(rules.empty() || says_more(rules.front()));
}

// Allows or forbids a command with all its subcommands, or one subcommand.
void SetFamily(const CommandCatalog& catalog, size_t number, bool allows, Selector* selector) {
  const size_t members = catalog.Family(number).size();
  VARVE_ASSERT(number + members <= selector->commands.size());
  for (size_t i = number; i < number + members; ++i) selector->commands[i] = allows;
  selector->first_arguments.erase(number);
  if (!allows) selector->all_commands = false;
}

absl::Status ApplyCategory(const CommandCatalog& catalog, bool allows, std::string_view name,
                           Selector* selector) {
  if (EqualsIgnoreCase(name, "all")) {
    SetAllCommands(allows, selector);
    return absl::OkStatus();
  }
  const std::optional<size_t> category = FindCategory(name);
  if (!category) return UnknownName();
  for (size_t number = 0; number < catalog.size(); ++number) {
    if ((catalog.entry(number).categories >> *category & 1) != 0)
      SetFamily(catalog, number, allows, selector);
  }
  if (!allows) selector->all_commands = false;
  NoteRule(allows, "@" + LowerCase(name), selector);
  return absl::OkStatus();
}

// Notes a rule for a command of Redis that Varve does not have, so that users of Redis can be
// taken over. Returns false if Redis has no such command.
bool NoteForeignRule(bool allows, std::string_view name, Selector* selector) {
  const size_t bar = std::min(name.find('|'), name.size());
  if (bar + 1 == name.size() || HasSpaces(name) || ForeignCommandError(name.substr(0, bar)).empty())
    return false;
  NoteRule(allows, LowerCase(name), selector);
  return true;
}

// "+select|0": the command with this first argument.
absl::Status AllowFirstArgument(const CommandCatalog& catalog, std::string_view name,
                                Selector* selector) {
  const size_t bar = name.rfind('|');
  const std::optional<size_t> number = catalog.Find(name.substr(0, bar));
  if (bar == std::string_view::npos || !number) return UnknownName();
  if (catalog.entry(*number).subcommand != nullptr) {
    return absl::InvalidArgumentError("Allowing first-arg of a subcommand is not supported");
  }
  const std::string_view argument = name.substr(bar + 1);
  if (argument.empty() || HasSpaces(argument)) return SyntaxError();
  if (!catalog.entry(*number).command->subcommands.empty()) return UnknownName();
  if (selector->commands[*number]) return absl::OkStatus();  // allowed with any argument
  std::vector<std::string>& allowed = selector->first_arguments[*number];
  const auto is_it = [&](const std::string& known) { return EqualsIgnoreCase(known, argument); };
  if (std::none_of(allowed.begin(), allowed.end(), is_it)) allowed.push_back(LowerCase(argument));
  NoteRule(true, LowerCase(name), selector);
  return absl::OkStatus();
}

absl::Status ApplyCommand(const CommandCatalog& catalog, bool allows, std::string_view name,
                          Selector* selector) {
  if (name.starts_with('@')) return ApplyCategory(catalog, allows, name.substr(1), selector);
  const std::optional<size_t> number = catalog.Find(name);
  if (!number && NoteForeignRule(allows, name, selector)) return absl::OkStatus();
  if (!number) return allows ? AllowFirstArgument(catalog, name, selector) : UnknownName();
  SetFamily(catalog, *number, allows, selector);
  NoteRule(allows, LowerCase(name), selector);
  return absl::OkStatus();
}

// --- Keys and channels ---------------------------------------------------------------------------

absl::Status AddKeys(std::string_view pattern, KeyRights rights, Selector* selector) {
  if (selector->all_keys) {
    return absl::InvalidArgumentError(
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not "
        "have any effect. Try 'resetkeys' to start with an empty list of patterns");
  }
  if (HasSpaces(pattern)) return SyntaxError();
  for (KeyPattern& known : selector->keys) {
    if (known.pattern != pattern) continue;
    known.rights |= rights;
    return absl::OkStatus();
  }
  VARVE_ASSERT(rights != 0);
  selector->keys.push_back({std::string(pattern), rights});
  return absl::OkStatus();
}

// "%R~pattern", "%W~pattern", "%RW~pattern".
absl::Status ApplyKeysWithRights(std::string_view rule, Selector* selector) {
  if (selector->all_keys) return AddKeys(rule, kMayBoth, selector);  // answers the error
  KeyRights rights = 0;
  size_t i = 1;
  for (; i < rule.size() && rule[i] != '~'; ++i) {
    const char letter = LowerCase(rule[i]);
    const KeyRights right = letter == 'r' ? kMayRead : letter == 'w' ? kMayWrite : KeyRights{0};
    if (right == 0 || (rights & right) != 0) return SyntaxError();
    rights |= right;
  }
  if (i == rule.size() || rights == 0) return SyntaxError();
  return AddKeys(rule.substr(i + 1), rights, selector);
}

absl::Status AddChannel(std::string_view pattern, Selector* selector) {
  if (selector->all_channels) {
    return absl::InvalidArgumentError(
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does "
        "not have any effect. Try 'resetchannels' to start with an empty list of channels");
  }
  if (HasSpaces(pattern) || pattern.size() > kMaxGlobPattern) return SyntaxError();
  std::vector<std::string>& known = selector->channels;
  if (std::find(known.begin(), known.end(), pattern) == known.end()) known.emplace_back(pattern);
  VARVE_ASSERT(!known.empty());
  return absl::OkStatus();
}

// --- Databases and namespaces --------------------------------------------------------------------

// `rights` are given by a rule now; what no rule gave of the other kind is taken away.
void SetPlaces(bool all, PlaceRights* rights, PlaceRights* others) {
  rights->all = all;
  rights->given = true;
  rights->names.clear();
  if (!all && !others->given) others->all = false;
}

bool IsDatabase(std::string_view name) {
  return !name.empty() && name.size() <= 9 && (name == "0" || name[0] != '0') &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "db=0,3" and "ns=app,tenant-*".
absl::Status AddPlaces(std::string_view names, bool are_databases, Selector* selector) {
  PlaceRights& rights = are_databases ? selector->databases : selector->namespaces;
  PlaceRights& others = are_databases ? selector->namespaces : selector->databases;
  if (names.ends_with(',')) return SyntaxError();
  if (rights.all) SetPlaces(false, &rights, &others);
  do {
    const size_t end = std::min(names.find(','), names.size());
    const std::string_view name = names.substr(0, end);
    names.remove_prefix(std::min(end + 1, names.size()));
    if (name.empty() || (are_databases ? !IsDatabase(name) : HasSpaces(name))) return SyntaxError();
    if (std::find(rights.names.begin(), rights.names.end(), name) == rights.names.end())
      rights.names.emplace_back(name);
  } while (!names.empty());
  VARVE_ASSERT(!rights.all && !rights.names.empty());
  return absl::OkStatus();
}

}  // namespace

Selector NewSelector(const RuleContext& context) {
  Selector selector;
  selector.commands.resize(context.catalog.size());
  selector.all_channels = context.all_channels;
  return selector;
}

absl::Status ApplySelectorRule(const RuleContext& context, std::string_view rule,
                               Selector* selector) {
  VARVE_ASSERT(selector->commands.size() == context.catalog.size());
  const auto is = [&](std::string_view word) { return EqualsIgnoreCase(rule, word); };
  if (is("allkeys") || is("~*") || is("resetkeys")) {
    selector->all_keys = !is("resetkeys");
    selector->keys.clear();
  } else if (is("allchannels") || is("&*") || is("resetchannels")) {
    selector->all_channels = !is("resetchannels");
    selector->channels.clear();
  } else if (is("allcommands") || is("nocommands")) {
    SetAllCommands(is("allcommands"), selector);
  } else if (is("alldbs") || is("resetdbs")) {
    SetPlaces(is("alldbs"), &selector->databases, &selector->namespaces);
  } else if (is("allns") || is("resetns")) {
    SetPlaces(is("allns"), &selector->namespaces, &selector->databases);
  } else if (rule.starts_with("db=") || rule.starts_with("ns=")) {
    return AddPlaces(rule.substr(3), rule[0] == 'd', selector);
  } else if (rule.starts_with('~')) {
    return AddKeys(rule.substr(1), kMayBoth, selector);
  } else if (rule.starts_with('%')) {
    return ApplyKeysWithRights(rule, selector);
  } else if (rule.starts_with('&')) {
    return AddChannel(rule.substr(1), selector);
  } else if (rule.starts_with('+') || rule.starts_with('-')) {
    return ApplyCommand(context.catalog, rule[0] == '+', rule.substr(1), selector);
  } else {
    return SyntaxError();
  }
  return absl::OkStatus();
}

}  // namespace varve
