#include "unit-tests/server/reference/reference_pages.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "server/commands/command_traits.h"
#include "server/config/settings.h"
#include "server/execution/store_capability.h"
#include "util/base/letter_case.h"

namespace varve::reference {
namespace {

constexpr std::string_view kGenerated =
    "<!-- `make docs-reference` writes this page; a test compares it with the program. -->\n\n";

struct Group {
  std::string_view name;
  std::string_view title;
};

// The order of the pages is the one in which commands are best learned.
constexpr Group kGroups[] = {
    {"string", "Values"},
    {"generic", "Keys"},
    {"range", "Ranges"},
    {"bitmap", "Bits"},
    {"transactions", "Transactions"},
    {"stream", "Changes"},
    {"pubsub", "Channels"},
    {"connection", "Connections"},
    {"server", "Server, databases and namespaces"},
    {"scripting", "Functions"},
};

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    c = c == '|' ? ' ' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return upper;
}

// Returns `text` as a cell of a table or a paragraph, where some characters have a meaning.
std::string Prose(std::string_view text) {
  std::string prose;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '*' || c == '_' || c == '`') prose += '\\';
    prose += c;
  }
  return prose;
}

std::string PageOf(std::string_view group) { return fmt::format("commands-{}.md", group); }

std::string AnchorOf(std::string_view name) {
  std::string anchor(name);
  std::replace(anchor.begin(), anchor.end(), '|', '-');
  return anchor;
}

bool Has(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Returns the codes with which the server refuses such a command, besides ERR and NOPERM.
Words ErrorsOf(const NamedCommand& command) {
  const uint32_t flags = command.flags();
  Words errors;
  if (flags & kWriteCommand) errors.push_back("MISCONF");
  if (Has(FlagNames(command), "denyoom")) {
    errors.push_back("OOM");
    errors.push_back("QUOTA");
  }
  const bool range = command.command.group == "range";
  if ((flags & (kReadCommand | kWriteCommand)) != 0 && (command.HasKeys() || range))
    errors.push_back("DATALOSS");
  return errors;
}

void AppendFact(std::string_view title, const Words& words, std::string* page) {
  if (!words.empty()) *page += fmt::format("- {}: `{}`\n", title, fmt::join(words, "` `"));
}

void AppendFacts(const NamedCommand& command, std::string_view complexity, std::string_view since,
                 std::string* page) {
  if (!complexity.empty()) *page += fmt::format("- Complexity: {}\n", Prose(complexity));
  *page += fmt::format("- Since: {}\n", since);
  AppendFact("Flags", FlagNames(command), page);
  AppendFact("ACL categories", Categories(command), page);
  AppendFact("Errors", ErrorsOf(command), page);
  if (command.flags() & kNotInTransactionCommand) *page += "- Refused between `MULTI` and `EXEC`\n";
}

void AppendSyntax(std::string_view name, std::string_view syntax, std::string* page) {
  const std::string upper = Upper(name);
  *page += fmt::format("```text\n{}{}{}\n```\n\n", upper, syntax.empty() ? "" : " ",
                       std::string(syntax));
}

void AppendCommand(const Command& command, std::string* page) {
  *page += fmt::format("\n## {}\n\n", Upper(command.name));
  AppendSyntax(command.name, command.syntax, page);
  *page += fmt::format("{}\n\n", Prose(command.summary));
  AppendFacts(NamedCommand(command), command.complexity, command.since, page);
  for (const Subcommand& subcommand : command.subcommands) {
    *page += fmt::format("\n### {}\n\n", Upper(subcommand.name));
    AppendSyntax(subcommand.name, subcommand.syntax, page);
    *page += fmt::format("{}\n\n", Prose(subcommand.summary));
    AppendFacts({command, subcommand}, {}, subcommand.since, page);
  }
}

std::string IndexPage() {
  std::string page = "# Commands\n\n" + std::string(kGenerated);
  page +=
      "What `COMMAND DOCS` and `COMMAND INFO` say of every command. [protocol.md](../protocol.md) "
      "explains the commands,\ntheir replies and their limits, and lists what Redis has and Varve "
      "has not.\n\n"
      "A complexity counts the lookup of a key as 1. A lookup asks the write buffers and, in "
      "memory, one table of each\nsorted run that may hold the key, and reads the disk at most "
      "once where the tables are in memory.\n\n"
      "Any command can be answered with `ERR` (the request is wrong) and `NOPERM` (the user may "
      "not do that); the others\nare named: `MISCONF` (the log takes no writes), `OOM` "
      "(`maxmemory` is reached), `QUOTA` (the namespace is full),\n`DATALOSS` (a record is "
      "damaged). [protocol.md](../protocol.md#errors) explains them.\n\n"
      "Flags and categories are Redis' words. `write` and `readonly` say what a command does to "
      "keys, `denyoom` that it\nmay make data grow, `fast` that it takes about the same time "
      "whatever the data is, `no_auth` that it needs no login,\nand `admin` and `pubsub` what it "
      "is about. The others (`loading`, `stale`, `noscript`, ...) matter to clients of Redis\n"
      "and change nothing here. The categories are those of [users' rights](../access.md#rules).\n";
  for (const Group& group : kGroups) {
    page += fmt::format("\n## {}\n\n| command | |\n| --- | --- |\n", group.title);
    for (const Command& command : AllCommands()) {
      if (command.group != group.name) continue;
      page += fmt::format("| [{}]({}#{}) | {} |\n", Upper(command.name), PageOf(group.name),
                          AnchorOf(command.name), Prose(command.summary));
    }
  }
  return page;
}

// Returns what a value of the setting may be, in words.
std::string TakenBy(const Setting& setting) {
  ServerConfig scratch;
  const std::string taken(AssignSetting(setting, "\x01", &scratch).message());
  constexpr std::string_view kTakes = "takes ";
  return taken.starts_with(kTakes) ? taken.substr(kTakes.size()) : "a text";
}

struct Family {
  std::string help;
  std::string type;
  std::set<std::string> labels;
};

// Adds the names of the labels in `{a="b",c="d"}`. `le` is every histogram's.
void AddLabels(std::string_view sample, std::set<std::string>* labels) {
  const size_t open = sample.find('{');
  if (open == std::string_view::npos) return;
  size_t at = open + 1;
  while (at < sample.size() && sample[at] != '}') {
    const size_t equals = sample.find('=', at);
    const std::string name(sample.substr(at, equals - at));
    if (name != "le") labels->insert(name);
    size_t end = equals + 2;  // behind the opening quote
    while (sample[end] != '"') end += sample[end] == '\\' ? 2 : 1;
    at = sample[end + 1] == ',' ? end + 2 : end + 1;
  }
}

}  // namespace

std::map<std::string, std::string> CommandPages() {
  std::map<std::string, std::string> pages = {{"commands.md", IndexPage()}};
  for (const Command& command : AllCommands()) {
    const auto group = std::find_if(std::begin(kGroups), std::end(kGroups),
                                    [&](const Group& g) { return g.name == command.group; });
    // A group without a title shows up as a page without one.
    const std::string_view title = group == std::end(kGroups) ? command.group : group->title;
    std::string& page = pages[PageOf(command.group)];
    if (page.empty()) page = fmt::format("# Commands: {}\n\n{}", title, kGenerated);
    if (page.ends_with("-->\n\n")) page.pop_back();
    AppendCommand(command, &page);
  }
  return pages;
}

std::string SettingPage() {
  std::string page = "# Settings\n\n" + std::string(kGenerated);
  page +=
      "A setting is a flag (`--maxclients=500`), a line of the configuration file, or, where it "
      "is live, a value for\n`CONFIG SET`. [operations.md](../operations.md#settings) explains "
      "them.\n\n"
      "| setting | default | takes | live | meaning |\n| --- | --- | --- | --- | --- |\n";
  for (const Setting& setting : AllSettings()) {
    std::string value = WriteSetting(setting, ServerConfig());
    if (!value.empty()) value = "`" + value + "`";
    std::string meaning = Prose(setting.help);
    if (!setting.redis_name.empty())
      meaning += fmt::format(". `CONFIG` knows it as `{}`, too", setting.redis_name);
    page += fmt::format("| `{}` | {} | {} | {} | {} |\n", setting.name, value,
                        Prose(TakenBy(setting)), setting.apply != nullptr ? "live" : "", meaning);
  }
  page += "\n## Names of Redis with one value\n\n| name | value |\n| --- | --- |\n";
  for (const auto& [name, value] : FixedSettings()) {
    page +=
        fmt::format("| `{}` | {} |\n", name, value.empty() ? "empty" : fmt::format("`{}`", value));
  }
  return page;
}

std::string MetricPage(std::string_view metrics) {
  std::vector<std::string> order;
  std::map<std::string, Family> families;
  std::string current;
  std::istringstream lines{std::string(metrics)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ")) {
      const size_t end = line.find(' ', 7);
      current = line.substr(7, end - 7);
      order.push_back(current);
      families[current].help = line.substr(end + 1);
    } else if (line.starts_with("# TYPE ")) {
      families[current].type = line.substr(line.rfind(' ') + 1);
    } else if (!line.starts_with('#')) {
      AddLabels(line, &families[current].labels);
    }
  }
  std::string page = "# Metrics\n\n" + std::string(kGenerated);
  page +=
      "What `/metrics` shows. [metrics.md](../metrics.md) explains the figures and the other "
      "pages of the HTTP listener.\n\n"
      "| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n";
  for (const std::string& name : order) {
    const Family& family = families[name];
    std::string labels;
    for (const std::string& label : family.labels)
      labels += fmt::format("{}`{}`", labels.empty() ? "" : " ", label);
    page += fmt::format("| `{}` | {} | {} | {} |\n", name, family.type, labels, Prose(family.help));
  }
  return page;
}

std::string StoreNeedTables() {
  std::string tables = "\n| Ability | What it means |\n| --- | --- |\n";
  for (size_t i = 0; i < kStoreNeeds; ++i) {
    const auto need = static_cast<StoreNeed>(i);
    tables += fmt::format("| `{}` | {} |\n", NameOf(need), DescriptionOf(need));
  }
  tables += "\n| Command | needs | on a store without it |\n| --- | --- | --- |\n";
  for (const CommandNeed& row : CommandNeeds()) {
    std::string command = UpperCase(row.command);
    std::replace(command.begin(), command.end(), '|', ' ');
    tables += fmt::format("| `{}` | `{}` | {} |\n", command, NameOf(row.need),
                          DescriptionOf(row.without));
  }
  return tables + "\n";
}

}  // namespace varve::reference
