#include "client/console/command_line.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "client/console/time_text.h"
#include "client/url.h"
#include "fmt/format.h"
#include "util/base/nearest_text.h"
#include "util/base/size_text.h"
#include "util/resp/resp_parser.h"

namespace varve {

namespace {

enum class OptionKind { kFlag, kText, kTexts, kNumber, kSize, kTime, kDuration };

// The commands that take an option.
constexpr std::string_view kPrompt = "the prompt";  // also of lines from standard input
constexpr std::string_view kShowing[] = {
    "get",    "delete", "range",   "prefix", "count",   "ping",    "call",          "bench",
    "verify", "repair", "changes", "backup", "backups", "restore", "archive-check", kPrompt};
constexpr std::string_view kJson[] = {"get",           "delete", "range",  "prefix",  "count",
                                      "ping",          "call",   "bench",  "verify",  "repair",
                                      "changes",       "tree",   "backup", "backups", "restore",
                                      "archive-check", kPrompt};
constexpr std::string_view kSpeaking[] = {"call", kPrompt};
constexpr std::string_view kReading[] = {"put",    "get",   "delete", "range",
                                         "prefix", "count", "call"};
constexpr std::string_view kListing[] = {"range", "prefix"};
constexpr std::string_view kWithKeys[] = {"range", "prefix", "changes"};
constexpr std::string_view kChanges[] = {"changes"};
constexpr std::string_view kLimited[] = {"range", "prefix", "export", "tree"};
constexpr std::string_view kTree[] = {"tree"};
constexpr std::string_view kFiles[] = {"import", "export"};
constexpr std::string_view kImport[] = {"import"};
constexpr std::string_view kLong[] = {"import",  "export",  "verify",        "repair", "backup",
                                      "restore", "archive", "archive-check", "move"};
constexpr std::string_view kBackup[] = {"backup"};
constexpr std::string_view kRestore[] = {"restore"};
constexpr std::string_view kArchive[] = {"archive"};
constexpr std::string_view kMove[] = {"move"};
constexpr std::string_view kWithRate[] = {"backup", "archive", "move"};
constexpr std::string_view kWithFeed[] = {"archive", "move"};
constexpr std::string_view kWithPrefix[] = {"changes", "move"};
constexpr std::string_view kKeeping[] = {"backup", "archive"};
constexpr std::string_view kBench[] = {"bench"};
constexpr std::string_view kBundle[] = {"bundle"};

struct Option {
  std::string_view name;
  OptionKind kind;
  void* target;
  absl::Span<const std::string_view> commands = {};  // none: all of them
  int64_t least = 0;
  int64_t most = INT64_MAX;
};

// An option that stands on the command line.
struct Given {
  const Option* option;
  std::string_view value;
};

// What stands on the command line, before it goes where it belongs.
struct Parsed {
  CommandLine line;
  std::string url;
  int64_t port = 0;
  int64_t database = 0;
  int64_t timeout_ms = 0;
  int64_t reconnect_ms = 10000;
  bool resp2 = false, resp3 = false;
  bool raw = false, json = false, table = false;
  bool shows_password = false;  // to other users of the machine
  bool no_auth_warning = false;
  std::vector<Given> given;

  // Whether an option with that target was given.
  bool Has(const void* target) const {
    return std::any_of(given.begin(), given.end(),
                       [target](const Given& each) { return each.option->target == target; });
  }
  bool HasNamed(std::string_view name) const {
    return std::any_of(given.begin(), given.end(),
                       [name](const Given& each) { return each.option->name == name; });
  }
};

constexpr int64_t kMost = 1 << 30;

std::vector<Option> ConnectionOptions(Parsed* parsed) {
  ClientOptions& connection = parsed->line.connection;
  ClientTlsOptions& tls = connection.tls;
  return {
      {"--host", OptionKind::kText, &connection.host},
      {"-h", OptionKind::kText, &connection.host},
      {"--port", OptionKind::kNumber, &parsed->port, {}, 0, 65535},
      {"-p", OptionKind::kNumber, &parsed->port, {}, 0, 65535},
      {"--unixsocket", OptionKind::kText, &connection.unix_socket},
      {"-s", OptionKind::kText, &connection.unix_socket},
      {"-u", OptionKind::kText, &parsed->url},
      {"--db", OptionKind::kNumber, &parsed->database, {}, 0, INT32_MAX},
      {"-n", OptionKind::kNumber, &parsed->database, {}, 0, INT32_MAX},
      {"--namespace", OptionKind::kText, &connection.namespace_name},
      {"--user", OptionKind::kText, &connection.user},
      {"--password", OptionKind::kText, &connection.password},
      {"--pass", OptionKind::kText, &connection.password},
      {"-a", OptionKind::kText, &connection.password},
      {"--no-auth-warning", OptionKind::kFlag, &parsed->no_auth_warning},
      {"--tls", OptionKind::kFlag, &tls.enabled},
      {"--cacert", OptionKind::kText, &tls.ca_file},
      {"--cacertdir", OptionKind::kText, &tls.ca_directory},
      {"--cert", OptionKind::kText, &tls.certificate_file},
      {"--key", OptionKind::kText, &tls.key_file},
      {"--sni", OptionKind::kText, &tls.server_name},
      {"--insecure", OptionKind::kFlag, &tls.insecure},
      {"--timeout", OptionKind::kNumber, &parsed->timeout_ms, {}, 0, kMost},
      {"--reconnect", OptionKind::kNumber, &parsed->reconnect_ms, kFiles, 0, kMost},
      {"-2", OptionKind::kFlag, &parsed->resp2, kSpeaking},
      {"-3", OptionKind::kFlag, &parsed->resp3, kSpeaking},
  };
}

std::vector<Option> CommandOptions(Parsed* parsed) {
  CommandLine& line = parsed->line;
  return {
      {"-x", OptionKind::kFlag, &line.last_from_input, kReading},
      {"--limit", OptionKind::kNumber, &line.query.limit, kLimited},
      {"--reverse", OptionKind::kFlag, &line.query.reverse, kListing},
      {"--keys", OptionKind::kFlag, &line.query.keys_only, kWithKeys},
      {"--raw", OptionKind::kFlag, &parsed->raw, kShowing},
      {"--json", OptionKind::kFlag, &parsed->json, kJson},
      {"--delim", OptionKind::kText, &line.tree.delimiter, kTree},
      {"--depth", OptionKind::kNumber, &line.tree.depth, kTree, 1, 32},
      {"--sizes", OptionKind::kFlag, &line.tree.sizes, kTree},
      {"--ascii", OptionKind::kFlag, &line.tree.ascii, kTree},
      {"--table", OptionKind::kFlag, &parsed->table, kShowing},
      {"--since", OptionKind::kText, &line.since, kChanges},
      {"--prefix", OptionKind::kText, &line.prefix, kWithPrefix},
      {"--follow", OptionKind::kFlag, &line.follow, kChanges},
      {"--format", OptionKind::kText, &line.format, kFiles},
      {"--resume", OptionKind::kFlag, &line.resume, kFiles},
      {"--force", OptionKind::kFlag, &line.force, kFiles},
      {"--atomic", OptionKind::kFlag, &line.atomic, kImport},
      {"--sort", OptionKind::kFlag, &line.sort, kImport},
      {"--replace-prefix", OptionKind::kText, &line.replace_prefix, kImport},
      {"--progress", OptionKind::kFlag, &line.progress, kLong},
      {"--incremental", OptionKind::kFlag, &line.copies.incremental, kBackup},
      {"--rate", OptionKind::kSize, &line.copies.bytes_per_second, kWithRate, 1},
      {"--keep", OptionKind::kText, &line.copies.keep, kKeeping},
      {"--backup", OptionKind::kText, &line.copies.backup, kRestore},
      {"--at-version", OptionKind::kNumber, &line.copies.at_version, kRestore, 1},
      {"--at-time", OptionKind::kTime, &line.copies.at_time_ms, kRestore},
      {"--dry-run", OptionKind::kFlag, &line.copies.dry_run, kRestore},
      {"--interval", OptionKind::kDuration, &line.copies.interval_ms, kArchive, 10, 3600 * 1000},
      {"--once", OptionKind::kFlag, &line.copies.once, kArchive},
      {"--base-every", OptionKind::kDuration, &line.copies.base_every_ms, kArchive, 1000, kMost},
      {"--exec", OptionKind::kText, &line.copies.exec, kArchive},
      {"--feed-size", OptionKind::kSize, &line.copies.feed_bytes, kWithFeed, 1},
      {"--http-port", OptionKind::kNumber, &line.http_port, kBundle, 1, 65535},
      {"--connections", OptionKind::kNumber, &line.bench.connections, kBench, 1, 10000},
      {"--pipeline", OptionKind::kNumber, &line.bench.pipeline, kBench, 1, 100000},
      {"--size", OptionKind::kNumber, &line.bench.value_size, kBench, 0, kMost},
      {"--keyspace", OptionKind::kNumber, &line.bench.keyspace, kBench, 1},
      {"--seconds", OptionKind::kNumber, &line.bench.seconds, kBench, 1, 3600},
      {"--help", OptionKind::kFlag, &line.help},
      {"--version", OptionKind::kFlag, &line.version},
      {"-v", OptionKind::kFlag, &line.version},
  };
}

std::vector<Option> OptionsOfMove(MoveFlags* move) {
  return {
      {"--into", OptionKind::kText, &move->into, kMove},
      {"--grouping", OptionKind::kTexts, &move->groupings, kMove},
      {"--state", OptionKind::kText, &move->state, kMove},
      {"--until-caught-up", OptionKind::kFlag, &move->until_caught_up, kMove},
      {"--finish", OptionKind::kFlag, &move->finish, kMove},
      {"--verify", OptionKind::kFlag, &move->verify, kMove},
      {"--replace", OptionKind::kFlag, &move->replace, kMove},
      {"--skip-options", OptionKind::kFlag, &move->skip_options, kMove},
      {"--skip-refused", OptionKind::kFlag, &move->skip_refused, kMove},
  };
}

// Nothing, after saying why, where there is no such option.
const Option* FindOption(absl::Span<const Option> options, std::string_view argument) {
  const bool is_long = argument.starts_with("--");
  const size_t equals = is_long ? argument.find('=') : std::string_view::npos;
  const std::string_view name = argument.substr(0, equals);
  std::vector<std::string_view> names;
  for (const Option& option : options) {
    const bool may_be = option.kind != OptionKind::kFlag || equals == std::string_view::npos;
    if (option.name == name && may_be) return &option;
    if (is_long) names.push_back(option.name);
  }
  const std::string_view nearest = NearestText(name, names);
  fmt::print(stderr, "{}: {} is no option{}; --help lists them\n", program_invocation_short_name,
             argument,
             nearest.empty() ? std::string() : fmt::format(" (did you mean {}?)", nearest));
  return nullptr;
}

// False, after saying so, where the command would ignore the option.
bool Takes(std::string_view command, const Option& option) {
  const auto& commands = option.commands;
  if (commands.empty() || std::find(commands.begin(), commands.end(), command) != commands.end())
    return true;
  fmt::print(stderr, "{}: {} does not take {}, which is for {}\n", program_invocation_short_name,
             command, option.name, fmt::join(commands, ", "));
  return false;
}

// Returns the number that a value means: itself, bytes, or milliseconds (since the epoch).
absl::StatusOr<int64_t> NumberOf(const Option& option, std::string_view value) {
  int64_t number = 0;
  if (option.kind == OptionKind::kNumber) {
    if (!ParseRespInteger(value, &number)) return absl::InvalidArgumentError("not such a number");
  } else if (option.kind == OptionKind::kDuration) {
    const absl::StatusOr<std::chrono::nanoseconds> parsed = ParseDuration(value);
    if (!parsed.ok()) return parsed.status();
    number = std::chrono::duration_cast<std::chrono::milliseconds>(*parsed).count();
  } else {
    const absl::StatusOr<uint64_t> parsed =
        option.kind == OptionKind::kSize ? ParseSize(value) : ParseTimeText(value);
    if (!parsed.ok()) return parsed.status();
    number = static_cast<int64_t>(std::min<uint64_t>(*parsed, INT64_MAX));
  }
  if (number < option.least || number > option.most)
    return absl::InvalidArgumentError("not such a number");
  return number;
}

bool SetOption(const Option& option, std::string_view value) {
  if (option.kind == OptionKind::kText) {
    static_cast<std::string*>(option.target)->assign(value);
    return true;
  }
  if (option.kind == OptionKind::kTexts) {
    static_cast<std::vector<std::string>*>(option.target)->emplace_back(value);
    return true;
  }
  const absl::StatusOr<int64_t> number = NumberOf(option, value);
  if (!number.ok()) {
    fmt::print(stderr, "{}: {}={}: {}\n", program_invocation_short_name, option.name, value,
               std::string(number.status().message()));
    return false;
  }
  *static_cast<int64_t*>(option.target) = *number;
  return true;
}

// Notes the options among the arguments, and adds every other argument to the words of the line.
// Returns false, after saying why, where an argument can't be taken.
bool ReadArguments(absl::Span<const Option> options, int argc, char** argv, Parsed* parsed) {
  std::vector<std::string>& words = parsed->line.words;
  bool options_end = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    // Behind the command, what begins with one - is a key, a number or a bound.
    const bool is_option = argument.starts_with("--") ||
                           (words.empty() && argument.starts_with("-") && argument.size() > 1);
    if (options_end || !is_option) {
      words.emplace_back(argument);
      continue;
    }
    if (argument == "--") {
      options_end = true;
      continue;
    }
    const Option* const found = FindOption(options, argument);
    if (found == nullptr) return false;
    Given& given = parsed->given.emplace_back(Given{found, {}});
    if (found->kind == OptionKind::kFlag) continue;
    if (argument.size() > found->name.size()) {
      given.value = argument.substr(found->name.size() + 1);
    } else if (++i < argc) {
      given.value = argv[i];
    } else {
      fmt::print(stderr, "{}: {} needs a value\n", program_invocation_short_name, found->name);
      return false;
    }
  }
  return true;
}

// Takes the password from the environment if it is there: VARVE_PASSWORD, or the first line of the
// file that VARVE_PASSWORD_FILE names. False, after saying why, where that file can't be read.
bool ReadPassword(std::string* password) {
  const char* const given = std::getenv("VARVE_PASSWORD");
  const char* const path = std::getenv("VARVE_PASSWORD_FILE");
  if (given != nullptr) {
    *password = given;
  } else if (path != nullptr && *path != '\0') {
    std::ifstream file(path);
    if (!std::getline(file, *password)) {
      fmt::print(stderr, "{}: VARVE_PASSWORD_FILE: {} has no first line to read\n",
                 program_invocation_short_name, path);
      return false;
    }
  }
  return true;
}

// Takes what the environment says. Returns false, after saying why, where it makes no sense.
bool TakeEnvironment(ClientOptions* connection) {
  if (const char* password = std::getenv("REDISCLI_AUTH"); password != nullptr)
    connection->password = password;
  if (!ReadPassword(&connection->password)) return false;
  const char* const url = std::getenv("VARVE_URL");
  if (url == nullptr || *url == '\0') return true;
  const absl::Status applied = ApplyUrl(url, connection);
  if (!applied.ok())
    fmt::print(stderr, "{}: VARVE_URL: {}\n", program_invocation_short_name,
               std::string(applied.message()));
  return applied.ok();
}

// Takes the URL of the command line, and then the other options, which say more.
bool TakeOptions(Parsed* parsed) {
  ClientOptions& connection = parsed->line.connection;
  for (const Given& given : parsed->given) {
    if (given.option->target != &parsed->url) continue;
    if (const absl::Status applied = ApplyUrl(given.value, &connection); !applied.ok()) {
      fmt::print(stderr, "{}: -u: {}\n", program_invocation_short_name,
                 std::string(applied.message()));
      return false;
    }
    parsed->shows_password |= !OptionsOfUrl(given.value)->password.empty();
  }
  // A host that is named is not to be reached through the socket of a URL.
  if (parsed->Has(&connection.host) || parsed->Has(&parsed->port)) connection.unix_socket.clear();
  parsed->port = connection.port;
  parsed->database = connection.database;
  for (const Given& given : parsed->given) {
    if (given.option->kind == OptionKind::kFlag) {
      *static_cast<bool*>(given.option->target) = true;
    } else if (!SetOption(*given.option, given.value)) {
      return false;
    }
  }
  parsed->line.replaces = parsed->Has(&parsed->line.replace_prefix);
  connection.port = static_cast<uint16_t>(parsed->port);
  connection.database = static_cast<int>(parsed->database);
  parsed->line.move.one_space = parsed->Has(&parsed->database) || parsed->database != 0 ||
                                parsed->Has(&connection.namespace_name);
  connection.reconnect_for = std::chrono::milliseconds(parsed->reconnect_ms);
  connection.timeout = std::chrono::milliseconds(parsed->timeout_ms);
  return true;
}

// Returns whether the given options may stand beside each other, after saying so where they may
// not.
bool GoTogether(const Parsed& parsed) {
  const ClientOptions& connection = parsed.line.connection;
  const ClientTlsOptions& tls = connection.tls;
  const auto refuse = [](std::string_view why) {
    fmt::print(stderr, "{}: {}\n", program_invocation_short_name, why);
    return false;
  };
  const bool in_namespace = parsed.Has(&connection.namespace_name);
  // An empty variable in a script must not lead to another place.
  if (in_namespace && connection.namespace_name.empty()) return refuse("--namespace needs a name");
  if (in_namespace && parsed.Has(&parsed.database))
    return refuse("--db and --namespace exclude each other");
  if (parsed.raw + parsed.json + parsed.table > 1)
    return refuse("--raw, --json and --table exclude each other");
  const CommandLine& line = parsed.line;
  if (!line.atomic && (line.sort || line.replaces))
    return refuse("--sort and --replace-prefix need --atomic beside them");
  if (line.atomic && line.resume)
    return refuse("--atomic and --resume exclude each other: nothing is there that could go on");
  if (parsed.Has(&line.copies.at_version) && parsed.Has(&line.copies.at_time_ms))
    return refuse("--at-version and --at-time exclude each other");
  if (!line.move.into.empty() && !line.move.one_space)
    return refuse("--into needs --db or --namespace beside it");
  if (parsed.resp2 && parsed.resp3) return refuse("-2 and -3 exclude each other");
  // The target of a move may speak TLS where the source does not.
  const bool moves_over_tls =
      line.words.size() == 2 && line.words[0] == "move" && line.words[1].starts_with("rediss:");
  for (const void* target :
       {static_cast<const void*>(&tls.ca_file), static_cast<const void*>(&tls.ca_directory),
        static_cast<const void*>(&tls.certificate_file), static_cast<const void*>(&tls.key_file),
        static_cast<const void*>(&tls.server_name), static_cast<const void*>(&tls.insecure)}) {
    if (parsed.Has(target) && !tls.enabled && !moves_over_tls)
      return refuse(
          "--cacert, --cacertdir, --cert, --key, --sni and --insecure need --tls beside "
          "them, or a URL that begins with rediss://");
  }
  return true;
}

}  // namespace

int Fail(const absl::Status& status) {
  fmt::print(stderr, "{}: {}{}\n", program_invocation_short_name, std::string(status.message()),
             absl::IsUnauthenticated(status) && absl::StrContains(status.message(), "NOAUTH")
                 ? " (the password is taken from the environment, as VARVE_PASSWORD)"
                 : "");
  return kFailed;
}

std::optional<CommandLine> ParseCommandLine(int argc, char** argv) {
  Parsed parsed;
  CommandLine& line = parsed.line;
  std::vector<Option> options = ConnectionOptions(&parsed);
  for (const std::vector<Option>& others : {CommandOptions(&parsed), OptionsOfMove(&line.move)})
    options.insert(options.end(), others.begin(), others.end());
  if (!ReadArguments(options, argc, argv, &parsed)) return std::nullopt;
  line.help = parsed.Has(&line.help);
  line.version = parsed.Has(&line.version);
  if (line.help || line.version) return line;
  const std::string_view command = line.words.empty() ? kPrompt : std::string_view(line.words[0]);
  for (const Given& given : parsed.given) {
    if (!Takes(command, *given.option)) return std::nullopt;
  }
  if (!TakeEnvironment(&line.connection) || !TakeOptions(&parsed) || !GoTogether(parsed))
    return std::nullopt;
  parsed.shows_password |= parsed.HasNamed("-a") || parsed.HasNamed("--pass");
  if (parsed.shows_password && !parsed.no_auth_warning) {
    fmt::print(stderr,
               "Warning: Using a password with '-a' or '-u' option on the command line interface "
               "may not be safe.\n");
  }
  line.protocol = parsed.resp2 ? 2 : parsed.resp3 ? 3 : 0;
  line.style = parsed.raw     ? OutputStyle::kRaw
               : parsed.json  ? OutputStyle::kJson
               : parsed.table ? OutputStyle::kTable
                              : OutputStyle::kAuto;
  return line;
}

}  // namespace varve
