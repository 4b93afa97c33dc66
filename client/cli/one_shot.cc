#include "client/cli/one_shot.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/cli/tree.h"
#include "client/console/json_records.h"
#include "client/console/output.h"
#include "client/console/text.h"
#include "fmt/format.h"
#include "util/base/nearest_text.h"

namespace varve {
namespace {

// Nothing when it can't be read to its end.
std::optional<std::string> ReadStandardInput() {
  std::string bytes;
  char buffer[1 << 16];
  size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof(buffer), stdin)) > 0) bytes.append(buffer, got);
  if (std::ferror(stdin)) return std::nullopt;
  return bytes;
}

// One command under way: who asks, and how it is shown.
struct Asked {
  Client& client;
  const CommandLine& line;
  const Output output;
  const std::vector<std::string>& words;

  // `range` and `count` take two bounds or none.
  bool has_bounds() const { return words.size() == 3; }
  std::string_view min() const { return has_bounds() ? words[1] : std::string_view("-"); }
  std::string_view max() const { return has_bounds() ? words[2] : std::string_view("+"); }
};

int RunPut(const Asked& asked) {
  const std::optional<std::string> value =
      asked.words.size() == 3 ? asked.words[2] : ReadStandardInput();
  if (!value) return Fail(absl::DataLossError("standard input could not be read"));
  const absl::Status put = asked.client.Put(asked.words[1], *value);
  return put.ok() ? kDone : Fail(put);
}

int RunGet(const Asked& asked) {
  const absl::StatusOr<std::optional<std::string>> value = asked.client.Get(asked.words[1]);
  if (!value.ok()) return Fail(value.status());
  if (!value->has_value()) return kMissing;
  if (asked.output.style == OutputStyle::kJson) {
    std::string record;
    AppendJsonRecord(asked.words[1], **value, /*expiry=*/"", /*metadata=*/"", &record);
    PrintOut(record);
  } else if (asked.output.style == OutputStyle::kTable) {
    PrintOut(Escaped(**value, true) + "\n");
  } else {
    PrintOut(**value);
  }
  return kDone;
}

int RunDelete(const Asked& asked) {
  const std::vector<std::string_view> keys(asked.words.begin() + 1, asked.words.end());
  const absl::StatusOr<int64_t> deleted = asked.client.Delete(keys);
  if (!deleted.ok()) return Fail(deleted.status());
  PrintOut(fmt::format("{}\n", *deleted));
  return *deleted > 0 ? kDone : kMissing;
}

// Prints pairs as they arrive, so that a range may be larger than memory.
int RunRange(const Asked& asked, bool is_prefix) {
  const RangeQuery& query = asked.line.query;
  PairPrinter printer(asked.output, query.keys_only);
  Client::PairSink sink;
  sink.pair = [&](std::string&& key, std::string&& value, uint64_t) {
    printer.Add(key, value);
    return !std::ferror(stdout);
  };
  const absl::Status status = is_prefix
                                  ? asked.client.StreamPrefix(asked.words[1], query, sink)
                                  : asked.client.StreamRange(asked.min(), asked.max(), query, sink);
  if (!status.ok()) return Fail(status);
  printer.Finish();
  return kDone;
}

int RunCount(const Asked& asked) {
  const absl::StatusOr<int64_t> count = asked.client.Count(asked.min(), asked.max());
  if (!count.ok()) return Fail(count.status());
  PrintOut(fmt::format("{}\n", *count));
  return kDone;
}

int RunPing(const Asked& asked) {
  if (const absl::Status ping = asked.client.Ping(); !ping.ok()) return Fail(ping);
  PrintOut(asked.output.style == OutputStyle::kJson ? "\"PONG\"\n" : "PONG\n");
  return kDone;
}

int RunCall(const Asked& asked) {
  const std::vector<std::string_view> words(asked.words.begin() + 1, asked.words.end());
  const absl::StatusOr<Reply> reply = asked.client.Call(words);
  if (!reply.ok()) return Fail(reply.status());
  PrintOut(RenderReply(*reply, asked.output));
  return kDone;
}

int RunTreeOf(const Asked& asked) { return RunTree(asked.client, asked.line, asked.output); }

struct OneShotCommand {
  std::string_view name;
  std::string_view arguments;
  size_t least_words;  // with the command itself
  size_t most_words;
  int (*run)(const Asked&);
};

constexpr OneShotCommand kCommands[] = {
    {"put", "KEY [VALUE]", 2, 3, RunPut},
    {"get", "KEY", 2, 2, RunGet},
    {"delete", "KEY [KEY ...]", 2, SIZE_MAX, RunDelete},
    {"range", "[MIN MAX]", 1, 3, [](const Asked& asked) { return RunRange(asked, false); }},
    {"prefix", "PREFIX", 2, 2, [](const Asked& asked) { return RunRange(asked, true); }},
    {"count", "[MIN MAX]", 1, 3, RunCount},
    {"tree", "[PREFIX]", 1, 2, RunTreeOf},
    {"ping", "", 1, 1, RunPing},
    {"call", "COMMAND [ARG ...]", 2, SIZE_MAX, RunCall},
};

// Those that run.cc knows, which come here with the wrong number of arguments.
constexpr std::pair<std::string_view, std::string_view> kOthers[] = {{"import", "FILE"},
                                                                     {"export", "FILE [MIN MAX]"},
                                                                     {"bench", ""},
                                                                     {"changes", ""},
                                                                     {"move", "TARGET_URL"},
                                                                     {"bundle", "FILE.tar.gz"},
                                                                     {"dump-log", "FILE|DIR"},
                                                                     {"dump-segment", "FILE"},
                                                                     {"dump-manifest", "DIR"},
                                                                     {"verify", "DIR"},
                                                                     {"repair", "DIR"},
                                                                     {"backup", "DEST"},
                                                                     {"backups", "DEST"},
                                                                     {"restore", "DEST NEWDIR"}};

const OneShotCommand* FindCommand(const std::vector<std::string>& words) {
  for (const OneShotCommand& command : kCommands) {
    if (command.name != words[0] || words.size() < command.least_words ||
        words.size() > command.most_words)
      continue;
    const bool takes_bounds = command.name == "range" || command.name == "count";
    return takes_bounds && words.size() == 2 ? nullptr : &command;
  }
  return nullptr;
}

int Misused(std::string_view name, std::string_view arguments) {
  return Fail(absl::InvalidArgumentError(fmt::format("{} is used as: {} {}{}{}", name,
                                                     program_invocation_short_name, name,
                                                     arguments.empty() ? "" : " ", arguments)));
}

// Says why the words are no command, in one line; --help has the rest.
int Explain(const std::vector<std::string>& words) {
  std::vector<std::string_view> names;
  for (const OneShotCommand& command : kCommands) {
    if (command.name == words[0]) return Misused(command.name, command.arguments);
    names.push_back(command.name);
  }
  for (const auto& [name, arguments] : kOthers) {
    if (name == words[0]) return Misused(name, arguments);
    names.push_back(name);
  }
  const std::string_view nearest = NearestText(words[0], names);
  return Fail(absl::InvalidArgumentError(fmt::format(
      "there is no command {}{}; --help lists them, and `call {}` sends it to the server as it is",
      words[0], nearest.empty() ? std::string() : fmt::format(" (did you mean {}?)", nearest),
      words[0])));
}

}  // namespace

int RunOneShot(const CommandLine& line) {
  if (line.last_from_input) {
    std::optional<std::string> last = ReadStandardInput();
    if (!last) return Fail(absl::DataLossError("standard input could not be read"));
    CommandLine complete = line;
    complete.last_from_input = false;
    complete.words.push_back(*std::move(last));
    return RunOneShot(complete);
  }
  const OneShotCommand* const command = FindCommand(line.words);
  if (command == nullptr) return Explain(line.words);
  ClientOptions options = line.connection;
  // Replies of RESP3 say more: maps, text that is laid out for people.
  if (command->name == "call") options.protocol = line.protocol == 0 ? 3 : line.protocol;
  // A script decides for itself whether to try again.
  options.reconnect_for = std::chrono::milliseconds(0);
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(std::move(options));
  if (!client.ok()) return Fail(client.status());
  return command->run({**client, line, Output::ForStandardOutput(line.style), line.words});
}

}  // namespace varve
