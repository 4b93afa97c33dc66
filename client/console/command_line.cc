#include "client/console/command_line.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "absl/types/span.h"
#include "fmt/format.h"
#include "util/base/nearest_text.h"
#include "util/resp/resp_parser.h"

namespace varve {

const std::string_view kUsage =
    "client_main [options] [COMMAND]\n\n"
    "Without a command: a prompt, with history, completion (Tab) and hints; where standard input "
    "is no terminal, its\n"
    "lines are executed. With one:\n"
    "  put KEY [VALUE]        writes a value; without VALUE it is read from standard input\n"
    "  get KEY                prints the value as it is (on a terminal: escaped, with a line end)\n"
    "  delete KEY [KEY ...]   prints how many of the keys there were\n"
    "  range [MIN MAX]        prints the keys between two bounds, one to a line: key, tab, value\n"
    "  prefix PREFIX          the same for all keys that begin with PREFIX\n"
    "  count [MIN MAX]        prints how many keys lie between two bounds\n"
    "  ping                   asks whether the server answers\n"
    "  call COMMAND [ARG ...] sends any command and prints its reply\n"
    "  export FILE [MIN MAX]  writes keys and values to FILE (-: standard output)\n"
    "  import FILE            writes what FILE (-: standard input) holds to the server\n"
    "  bench                  measures SET and GET for a few seconds\n"
    "  dump-log FILE|DIR      prints log files of a store, without a server\n"
    "  dump-segment FILE      prints a segment of a store, without a server\n"
    "  verify DIR             reads all of a store, without a server, and names each damaged "
    "place\n"
    "  repair DIR             makes a damaged store whole again with all that can be read of it\n\n"
    "A bound is - (the first key), + (the last), [KEY (included) or (KEY (not included).\n\n"
    "Connection:\n"
    "  --host=127.0.0.1  --port=7777  --unixsocket=PATH\n"
    "  --db=N  --namespace=NAME       where keys are looked for and written; default: database 0\n"
    "  --user=NAME  --password=WORD   better: in the environment, as VARVE_PASSWORD\n"
    "  --timeout=MS           give up after so many milliseconds without an answer (0: never)\n"
    "  --reconnect=10000      import and export: try so many milliseconds to have a lost "
    "connection back\n"
    "Output:\n"
    "  --raw                  bytes as they are        --json       one JSON value a line\n"
    "  --table                columns, escaped; the default on a terminal (colours: unless "
    "NO_COLOR is set)\n"
    "  --limit=N              at most N keys           --reverse    from the last key to the "
    "first\n"
    "  --keys                 keys without values\n"
    "Files:\n"
    "  --format=resp|csv|json|rdb|aof                  default: by the file's content or name\n"
    "  --resume               go on where an interrupted import or export ended\n"
    "  --force                export: replace FILE; import: take what is refused otherwise\n"
    "  --progress             verify, repair, import, export: show progress also where standard\n"
    "                         error is no terminal\n"
    "Bench:\n"
    "  --connections=50  --pipeline=1  --size=100 (bytes of a value)  --keyspace=100000  "
    "--seconds=2\n\n"
    "  --help  --version\n"
    "  --                     what follows is no option, e.g. a key that begins with --\n\n"
    "Exit codes: 0 done, 1 missing (lines from standard input: an error reply), 2 an error "
    "(printed to standard "
    "error).\n";

namespace {

enum class OptionKind { kFlag, kText, kNumber };

// The commands that take an option.
constexpr std::string_view kPrompt = "the prompt";  // also of lines from standard input
constexpr std::string_view kShowing[] = {"get",  "delete", "range",  "prefix", "count", "ping",
                                         "call", "bench",  "verify", "repair", kPrompt};
constexpr std::string_view kListing[] = {"range", "prefix"};
constexpr std::string_view kLimited[] = {"range", "prefix", "export"};
constexpr std::string_view kFiles[] = {"import", "export"};
constexpr std::string_view kLong[] = {"import", "export", "verify", "repair"};
constexpr std::string_view kBench[] = {"bench"};

struct Option {
  std::string_view name;
  OptionKind kind;
  void* target;
  absl::Span<const std::string_view> commands = {};  // none: all of them
  int64_t least = 0;
  int64_t most = INT64_MAX;
};

// Numbers as they stand on the command line, before they go where they belong.
struct Numbers {
  int64_t port = 7777;
  int64_t database = 0;
  int64_t timeout_ms = 0;
  int64_t reconnect_ms = 10000;
};

// Nothing, after saying why, where there is no such option.
const Option* FindOption(absl::Span<const Option> options, std::string_view argument) {
  const size_t equals = argument.find('=');
  const std::string_view name = argument.substr(0, equals);
  std::vector<std::string_view> names;
  for (const Option& option : options) {
    const bool may_be = option.kind != OptionKind::kFlag || equals == std::string_view::npos;
    if (option.name == name && may_be) return &option;
    names.push_back(option.name);
  }
  const std::string_view nearest = NearestText(name, names);
  fmt::print(stderr, "client_main: {} is no option{}; --help lists them\n", argument,
             nearest.empty() ? std::string() : fmt::format(" (did you mean {}?)", nearest));
  return nullptr;
}

// False, after saying so, where the command would ignore the option.
bool Takes(std::string_view command, const Option& option) {
  const auto& commands = option.commands;
  if (commands.empty() || std::find(commands.begin(), commands.end(), command) != commands.end())
    return true;
  fmt::print(stderr, "client_main: {} does not take {}, which is for {}\n", command, option.name,
             fmt::join(commands, ", "));
  return false;
}

bool SetOption(const Option& option, std::string_view value) {
  if (option.kind == OptionKind::kText) {
    static_cast<std::string*>(option.target)->assign(value);
    return true;
  }
  int64_t number = 0;
  if (!ParseRespInteger(value, &number) || number < option.least || number > option.most) {
    fmt::print(stderr, "client_main: {}={}: not such a number\n", option.name, value);
    return false;
  }
  *static_cast<int64_t*>(option.target) = number;
  return true;
}

// Sets the targets of the options among the arguments, which `given` then holds, and adds every
// other argument to `words`. Returns false, after saying why, where an option can't be taken.
bool ReadArguments(absl::Span<const Option> options, int argc, char** argv,
                   std::vector<std::string>* words, std::vector<const Option*>* given) {
  bool options_end = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (options_end || !argument.starts_with("--")) {
      words->emplace_back(argument);
      continue;
    }
    if (argument == "--") {
      options_end = true;
      continue;
    }
    const size_t equals = argument.find('=');
    const Option* const found = FindOption(options, argument);
    if (found == nullptr) return false;
    given->push_back(found);
    if (found->kind == OptionKind::kFlag) {
      *static_cast<bool*>(found->target) = true;
      continue;
    }
    if (equals == std::string_view::npos && i + 1 == argc) {
      fmt::print(stderr, "client_main: {} needs a value\n", found->name);
      return false;
    }
    const bool behind = equals == std::string_view::npos;
    if (!SetOption(*found, behind ? argv[++i] : argument.substr(equals + 1))) return false;
  }
  return true;
}

// Returns whether the given options may stand beside each other, after saying so where they may
// not. `styles` is the number of ways of showing among them.
bool GoTogether(const std::vector<const Option*>& given, const std::string& namespace_name,
                int styles) {
  const auto was_given = [&given](std::string_view name) {
    return std::any_of(given.begin(), given.end(),
                       [name](const Option* option) { return option->name == name; });
  };
  // An empty variable in a script must not lead to another place.
  if (was_given("--namespace") && namespace_name.empty()) {
    fmt::print(stderr, "client_main: --namespace needs a name\n");
    return false;
  }
  if (was_given("--namespace") && was_given("--db")) {
    fmt::print(stderr, "client_main: --db and --namespace exclude each other\n");
    return false;
  }
  if (styles > 1) {
    fmt::print(stderr, "client_main: --raw, --json and --table exclude each other\n");
    return false;
  }
  return true;
}

}  // namespace

int Fail(const absl::Status& status) {
  fmt::print(stderr, "client_main: {}{}\n", std::string(status.message()),
             absl::IsUnauthenticated(status)
                 ? " (the password is taken from the environment, as VARVE_PASSWORD)"
                 : "");
  return kFailed;
}

std::optional<CommandLine> ParseCommandLine(int argc, char** argv) {
  CommandLine line;
  Numbers numbers;
  bool raw = false, json = false, table = false;
  constexpr int64_t kMost = 1 << 30;
  const Option options[] = {
      {"--host", OptionKind::kText, &line.connection.host},
      {"--port", OptionKind::kNumber, &numbers.port, {}, 0, 65535},
      {"--unixsocket", OptionKind::kText, &line.connection.unix_socket},
      {"--db", OptionKind::kNumber, &numbers.database, {}, 0, INT32_MAX},
      {"--namespace", OptionKind::kText, &line.connection.namespace_name},
      {"--user", OptionKind::kText, &line.connection.user},
      {"--password", OptionKind::kText, &line.connection.password},
      {"--timeout", OptionKind::kNumber, &numbers.timeout_ms, {}, 0, kMost},
      {"--reconnect", OptionKind::kNumber, &numbers.reconnect_ms, kFiles, 0, kMost},
      {"--limit", OptionKind::kNumber, &line.query.limit, kLimited},
      {"--reverse", OptionKind::kFlag, &line.query.reverse, kListing},
      {"--keys", OptionKind::kFlag, &line.query.keys_only, kListing},
      {"--raw", OptionKind::kFlag, &raw, kShowing},
      {"--json", OptionKind::kFlag, &json, kShowing},
      {"--table", OptionKind::kFlag, &table, kShowing},
      {"--format", OptionKind::kText, &line.format, kFiles},
      {"--resume", OptionKind::kFlag, &line.resume, kFiles},
      {"--force", OptionKind::kFlag, &line.force, kFiles},
      {"--progress", OptionKind::kFlag, &line.progress, kLong},
      {"--connections", OptionKind::kNumber, &line.bench.connections, kBench, 1, 10000},
      {"--pipeline", OptionKind::kNumber, &line.bench.pipeline, kBench, 1, 100000},
      {"--size", OptionKind::kNumber, &line.bench.value_size, kBench, 0, kMost},
      {"--keyspace", OptionKind::kNumber, &line.bench.keyspace, kBench, 1},
      {"--seconds", OptionKind::kNumber, &line.bench.seconds, kBench, 1, 3600},
      {"--help", OptionKind::kFlag, &line.help},
      {"--version", OptionKind::kFlag, &line.version},
  };
  if (const char* password = std::getenv("VARVE_PASSWORD"); password != nullptr)
    line.connection.password = password;
  std::vector<const Option*> given;
  if (!ReadArguments(options, argc, argv, &line.words, &given)) return std::nullopt;
  if (line.help || line.version) return line;
  const std::string_view command = line.words.empty() ? kPrompt : std::string_view(line.words[0]);
  for (const Option* option : given) {
    if (!Takes(command, *option)) return std::nullopt;
  }
  line.connection.port = static_cast<uint16_t>(numbers.port);
  line.connection.database = static_cast<int>(numbers.database);
  line.connection.reconnect_for = std::chrono::milliseconds(numbers.reconnect_ms);
  line.connection.timeout = std::chrono::milliseconds(numbers.timeout_ms);
  if (!GoTogether(given, line.connection.namespace_name, raw + json + table)) return std::nullopt;
  line.style = raw     ? OutputStyle::kRaw
               : json  ? OutputStyle::kJson
               : table ? OutputStyle::kTable
                       : OutputStyle::kAuto;
  return line;
}

}  // namespace varve
