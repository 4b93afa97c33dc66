// client_main: one request to a running server, for people and scripts.
// Exit codes: 0 done, 1 the key is missing (get) or none of the keys was there (delete), 2 a wrong command line, no connection or
// an error of the server, which is printed to standard error.
#include <unistd.h>

#include <cstdio>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "fmt/format.h"
#include "util/resp_parser.h"

namespace varve {
namespace {

constexpr int kDone = 0;
constexpr int kMissing = 1;
constexpr int kFailed = 2;

constexpr std::string_view kUsage =
    "client_main [--host=127.0.0.1] [--port=7777] COMMAND\n\n"
    "  put KEY [VALUE]        writes a value; without VALUE it is read from standard input\n"
    "  get KEY                prints the value as it is (and a line end on a terminal)\n"
    "  delete KEY [KEY ...]   prints how many of the keys there were\n"
    "  range [MIN MAX]        prints the keys between two bounds, one to a line: key, tab, value\n"
    "  prefix PREFIX          the same for all keys that begin with PREFIX\n"
    "  count [MIN MAX]        prints how many keys lie between two bounds\n"
    "  ping                   asks whether the server answers\n\n"
    "A bound is - (the first key), + (the last), [KEY (included) or (KEY (not included).\n"
    "  --limit=N    at most N keys          --reverse    from the last key to the first\n"
    "  --keys       keys without values     --timeout=MS give up after so many milliseconds (0: never)\n"
    "  --           what follows is no option, e.g. a key that begins with --\n\n"
    "Exit codes: 0 done, 1 missing, 2 an error (printed to standard error).\n";

struct CommandLine {
  std::string host = "127.0.0.1";
  int64_t port = 7777;
  int64_t timeout_ms = 0;
  RangeQuery query;
  bool help = false;
  std::vector<std::string> words;  // the command and its arguments
};

// Reads `--name=value` or `--name value`. Nothing, after saying why, when the command line is wrong.
std::optional<CommandLine> ParseCommandLine(int argc, char** argv) {
  CommandLine line;
  bool options = true;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!options || !argument.starts_with("--")) {
      line.words.emplace_back(argument);
      continue;
    }
    const size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    if (argument == "--") {
      options = false;
    } else if (argument == "--help") {
      line.help = true;
    } else if (argument == "--reverse") {
      line.query.reverse = true;
    } else if (argument == "--keys") {
      line.query.keys_only = true;
    } else if (name == "--host" || name == "--port" || name == "--limit" || name == "--timeout") {
      if (equals == std::string_view::npos && i + 1 == argc) {
        fmt::print(stderr, "client_main: {} needs a value\n", name);
        return std::nullopt;
      }
      const std::string_view value = equals == std::string_view::npos ? argv[++i] : argument.substr(equals + 1);
      if (name == "--host") {
        line.host.assign(value);
        continue;
      }
      int64_t* const number = name == "--port" ? &line.port : name == "--limit" ? &line.query.limit : &line.timeout_ms;
      if (!ParseRespInteger(value, number) || *number < 0 || (name == "--port" && *number > 65535)) {
        fmt::print(stderr, "client_main: {}={}: not such a number\n", name, value);
        return std::nullopt;
      }
    } else {
      fmt::print(stderr, "client_main: {} is no option; --help lists them\n", name);
      return std::nullopt;
    }
  }
  return line;
}

void Print(std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stdout); }

int Fail(const absl::Status& status) {
  fmt::print(stderr, "client_main: {}\n", std::string(status.message()));
  return kFailed;
}

int WrongUse() {
  fmt::print(stderr, "{}", kUsage);
  return kFailed;
}

// Nothing when it can't be read to its end.
std::optional<std::string> ReadStandardInput() {
  std::string bytes;
  char buffer[1 << 16];
  size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof(buffer), stdin)) > 0) bytes.append(buffer, got);
  if (std::ferror(stdin)) return std::nullopt;
  return bytes;
}

int PrintPairs(const absl::StatusOr<Client::Pairs>& pairs, bool keys_only) {
  if (!pairs.ok()) return Fail(pairs.status());
  for (const auto& [key, value] : *pairs) {
    Print(key);
    if (!keys_only) {
      Print("\t");
      Print(value);
    }
    Print("\n");
  }
  return kDone;
}

int RunGet(Client* client, const std::string& key) {
  const absl::StatusOr<std::optional<std::string>> value = client->Get(key);
  if (!value.ok()) return Fail(value.status());
  if (!value->has_value()) return kMissing;
  Print(**value);
  if (isatty(STDOUT_FILENO)) Print("\n");
  return kDone;
}

int RunDelete(Client* client, const std::vector<std::string>& words) {
  const std::vector<std::string_view> keys(words.begin() + 1, words.end());
  const absl::StatusOr<int64_t> deleted = client->Delete(keys);
  if (!deleted.ok()) return Fail(deleted.status());
  Print(fmt::format("{}\n", *deleted));
  return *deleted > 0 ? kDone : kMissing;
}

int RunCount(Client* client, std::string_view min, std::string_view max) {
  const absl::StatusOr<int64_t> count = client->Count(min, max);
  if (!count.ok()) return Fail(count.status());
  Print(fmt::format("{}\n", *count));
  return kDone;
}

int Run(Client* client, const CommandLine& line) {
  const std::vector<std::string>& words = line.words;
  const std::string& command = words[0];
  const bool bounded = words.size() == 3;
  const std::string_view min = bounded ? words[1] : std::string_view("-");
  const std::string_view max = bounded ? words[2] : std::string_view("+");
  if (command == "put" && (words.size() == 2 || words.size() == 3)) {
    const std::optional<std::string> value = words.size() == 3 ? words[2] : ReadStandardInput();
    if (!value) return Fail(absl::DataLossError("standard input could not be read"));
    const absl::Status put = client->Put(words[1], *value);
    return put.ok() ? kDone : Fail(put);
  }
  if (command == "get" && words.size() == 2) return RunGet(client, words[1]);
  if (command == "delete" && words.size() >= 2) return RunDelete(client, words);
  if (command == "range" && (words.size() == 1 || bounded)) {
    return PrintPairs(client->Range(min, max, line.query), line.query.keys_only);
  }
  if (command == "prefix" && words.size() == 2) {
    return PrintPairs(client->Prefix(words[1], line.query), line.query.keys_only);
  }
  if (command == "count" && (words.size() == 1 || bounded)) return RunCount(client, min, max);
  if (command == "ping" && words.size() == 1) {
    const absl::Status ping = client->Ping();
    if (!ping.ok()) return Fail(ping);
    Print("PONG\n");
    return kDone;
  }
  return WrongUse();
}

int Main(int argc, char** argv) {
  const std::optional<CommandLine> line = ParseCommandLine(argc, argv);
  if (!line) return kFailed;
  if (line->help) {
    Print(kUsage);
    return kDone;
  }
  if (line->words.empty()) return WrongUse();
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect(line->host, static_cast<uint16_t>(line->port), std::chrono::milliseconds(line->timeout_ms));
  if (!client.ok()) return Fail(client.status());
  const int code = Run(client->get(), *line);
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    fmt::print(stderr, "client_main: standard output could not be written\n");
    return kFailed;
  }
  return code;
}

}  // namespace
}  // namespace varve

int main(int argc, char** argv) { return varve::Main(argc, argv); }
