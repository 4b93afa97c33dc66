#include "unit-tests/differential/differential_run.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <random>
#include <utility>

#include "fmt/format.h"
#include "server/commands/command_table.h"
#include "type/reply.h"
#include "util/base/status.h"
#include "util/resp/resp_reply.h"

namespace varve::differential {
namespace {

constexpr uint64_t kCommandsPerRound = 400;
constexpr uint64_t kLongestBatch = 64;

Reply Parsed(std::string_view bytes) {
  Reply reply;
  size_t consumed = 0;
  ParseReply(bytes, &reply, &consumed);
  return reply;
}

std::string Quoted(std::string_view bytes) {
  constexpr size_t kShown = 300;
  std::string text = "\"";
  for (const char c : bytes.substr(0, kShown)) {
    if (c == '"' || c == '\\') {
      text += fmt::format("\\{}", c);
    } else if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  text += '"';
  return bytes.size() > kShown ? fmt::format("{}... ({} bytes)", text, bytes.size()) : text;
}

std::string Shown(const CommandLine& line) {
  std::string text;
  for (const std::string& argument : line) text += fmt::format(" {}", Quoted(argument));
  return text;
}

constexpr const char* kUntoldWrite =
    "EXEC after a BITFIELD with OVERFLOW FAIL, which may have made a value longer without setting "
    "a field: Redis "
    "doesn't "
    "count that as a write to a watched key";

constexpr const char* kFlushedWatch =
    "EXEC after WATCH of a key that was missing, and a flush in between: Varve takes such a key "
    "for written";

// The namespace of a grouped run.
constexpr const char* kSpace = "one-group";

// What a grouped run leaves out, with the reason.
constexpr std::pair<const char*, const char*> kNotGrouped[] = {
    {"select", "a number names a database, whose keys have no groups"},
    {"move", "keys of two namespaces are never of one group"},
    {"swapdb", "it exchanges databases, and not every store can"},
    {"reset", "it goes back to database 0"},
    {"flushall", "it empties databases, and leaves the namespace as it is"},
    {"flushdb", "it is refused in transactions, as it is more than one group"},
    {"info", "its keyspace tells of databases alone"},
};

bool IsNullArray(std::string_view reply) { return reply == "*-1\r\n" || reply == "_\r\n"; }

bool IsFailingBitField(const CommandLine& line) {
  return EqualsIgnoreCase(line[0], "bitfield") &&
         std::any_of(line.begin() + 1, line.end(),
                     [](const std::string& word) { return EqualsIgnoreCase(word, "fail"); });
}

// The replies in an array, each as the bytes it came in; none where it is no array.
std::vector<std::string> Elements(std::string_view reply) {
  std::vector<std::string> elements;
  if (!reply.starts_with('*')) return elements;
  reply.remove_prefix(std::min(reply.find('\n'), reply.size() - 1) + 1);
  Reply element;
  for (size_t consumed = 0; !reply.empty(); reply.remove_prefix(consumed)) {
    if (ParseReply(reply, &element, &consumed) != ReplyResult::kReply) return {};
    elements.emplace_back(reply.substr(0, consumed));
  }
  return elements;
}

std::string LowerCase(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DifferentialRun>> DifferentialRun::Start(RunOptions options) {
  std::unique_ptr<DifferentialRun> run(new DifferentialRun(std::move(options)));
  if (absl::Status started = run->StartServers(); !started.ok()) return started;
  return run;
}

absl::Status DifferentialRun::StartServers() {
  redis_server_ = StartRedis(options_.redis_server, directory_.path(), options_.redis_arguments);
  if (redis_server_.process == nullptr) {
    return absl::UnavailableError(options_.redis_server + " can't be started");
  }
  std::vector<std::string> arguments = options_.varve_arguments;
  // Write buffers so small that what is read was flushed and merged now and then.
  if (arguments.empty()) arguments = {"--sync=no", "--write_buffer_size=256KiB"};
  varve_server_ = std::make_unique<testing::ServerProcess>(
      options_.varve_server, directory_.File("varve"), std::move(arguments));
  if (varve_server_->port() == 0)
    return absl::UnavailableError("server_main: " + varve_server_->log());
  for (size_t i = 0; i < kConnections; ++i) {
    absl::StatusOr<std::unique_ptr<Peer>> redis = Peer::Connect("redis-server", redis_server_.port);
    if (!redis.ok()) return redis.status();
    absl::StatusOr<std::unique_ptr<Peer>> varve =
        Peer::Connect("server_main", varve_server_->port());
    if (!varve.ok()) return varve.status();
    redis_[i] = *std::move(redis);
    varve_[i] = *std::move(varve);
  }
  const absl::StatusOr<std::set<std::string>> redis_names = RedisCommands();
  if (!redis_names.ok()) return redis_names.status();
  const absl::StatusOr<std::set<std::string>> varve_names = CommandNames(varve_[0].get());
  if (!varve_names.ok()) return varve_names.status();
  std::set_intersection(redis_names->begin(), redis_names->end(), varve_names->begin(),
                        varve_names->end(), std::inserter(known_, known_.end()));
  return options_.grouped ? PrepareGroup() : absl::OkStatus();
}

absl::Status DifferentialRun::PrepareGroup() {
  for (const auto& left_out : kNotGrouped) known_.erase(left_out.first);
  const CommandLine create = {"NAMESPACE", "CREATE", kSpace, "TOGETHER", "yes"};
  VARVE_RETURN_IF_ERROR(varve_[0]->Send({&create, 1}));
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> created, varve_[0]->Receive(1));
  if (created[0] == "+OK\r\n") return absl::OkStatus();
  return absl::FailedPreconditionError("NAMESPACE CREATE: " + created[0]);
}

std::vector<CommandLine> DifferentialRun::ForVarve(absl::Span<const CommandLine> lines) const {
  std::vector<CommandLine> sent(lines.begin(), lines.end());
  if (!options_.grouped) return sent;
  // Nothing that is made at random begins with these words.
  for (CommandLine& line : sent) {
    if (line[0] == "SELECT") line = {"NAMESPACE", "USE", kSpace};
    if (line[0] == "FLUSHALL") line = {"FLUSHDB"};
  }
  return sent;
}

absl::StatusOr<std::set<std::string>> DifferentialRun::CommandNames(Peer* peer) {
  const CommandLine list = {"COMMAND", "LIST"};
  if (absl::Status sent = peer->Send({&list, 1}); !sent.ok()) return sent;
  const absl::StatusOr<std::vector<std::string>> received = peer->Receive(1);
  if (!received.ok()) return received.status();
  std::set<std::string> names;
  for (const Reply& name : Parsed((*received)[0]).elements) names.insert(name.text);
  return names;
}

absl::StatusOr<std::string> DifferentialRun::Flushes() {
  const CommandLine info = {"INFO"};
  VARVE_RETURN_IF_ERROR(varve_[0]->Send({&info, 1}));
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> received, varve_[0]->Receive(1));
  const size_t at = received[0].find("\nflushes:");
  if (at == std::string::npos) return std::string();
  return received[0].substr(at, received[0].find('\r', at) - at);
}

absl::StatusOr<DifferentialRun::Answers> DifferentialRun::Ask(const CommandLine& line) {
  const absl::StatusOr<Replies> replies = Exchange({&line, 1});
  if (!replies.ok()) return replies.status();
  return Answers{.redis = Parsed(replies->redis[0]), .varve = Parsed(replies->varve[0])};
}

absl::StatusOr<DifferentialRun::Replies> DifferentialRun::Exchange(
    absl::Span<const CommandLine> lines, size_t connection) {
  VARVE_RETURN_IF_ERROR(redis_[connection]->Send(lines));
  VARVE_RETURN_IF_ERROR(varve_[connection]->Send(ForVarve(lines)));
  absl::StatusOr<std::vector<std::string>> redis = redis_[connection]->Receive(lines.size());
  if (!redis.ok()) return redis.status();
  absl::StatusOr<std::vector<std::string>> varve = varve_[connection]->Receive(lines.size());
  if (!varve.ok()) return varve.status();
  return Replies{*std::move(redis), *std::move(varve)};
}

absl::StatusOr<DifferentialRun::Replies> DifferentialRun::Exchange(absl::Span<const Step> steps) {
  Replies all;
  while (!steps.empty()) {
    const size_t connection = steps[0].connection;
    std::vector<CommandLine> lines;
    while (!steps.empty() && steps[0].connection == connection) {
      lines.push_back(steps[0].line);
      steps.remove_prefix(1);
    }
    absl::StatusOr<Replies> replies = Exchange(lines, connection);
    if (!replies.ok()) return replies.status();
    std::move(replies->redis.begin(), replies->redis.end(), std::back_inserter(all.redis));
    std::move(replies->varve.begin(), replies->varve.end(), std::back_inserter(all.varve));
  }
  return all;
}

// RESET ends what is left of a transaction.
absl::Status DifferentialRun::Begin(int protocol) {
  for (size_t i = 0; i < kConnections; ++i) {
    std::vector<CommandLine> lines = {
        {"RESET"}, {"SELECT", "0"}, {"HELLO", std::to_string(protocol)}};
    if (i == 0) lines.push_back({"FLUSHALL"});
    VARVE_RETURN_IF_ERROR(Exchange(lines, i).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<RunResult> DifferentialRun::Run() {
  RunResult result;
  if (options_.grouped) result.left_out.insert(std::begin(kNotGrouped), std::end(kNotGrouped));
  for (uint64_t seed = options_.seed;
       result.commands < options_.commands && result.differences.size() < options_.max_differences;
       ++seed) {
    const int protocol =
        options_.protocol != 0 ? options_.protocol : 2 + static_cast<int>(seed % 2);
    if (absl::Status done = Round(seed, protocol, &result); !done.ok()) return done;
  }
  return result;
}

absl::Status DifferentialRun::Round(uint64_t seed, int protocol, RunResult* result) {
  if (absl::Status begun = Begin(protocol); !begun.ok()) return begun;
  ++result->rounds;
  VARVE_ASSIGN_OR_RETURN(flushes_before_, Flushes());
  history_.clear();
  queues_ = Queues();
  differs_ = false;
  std::deque<CommandGenerator> generators;  // which don't like to be moved
  for (size_t i = 0; i < kConnections; ++i)
    generators.emplace_back(seed * kConnections + i, known_);
  std::mt19937_64 random(seed);
  const uint64_t wanted = std::min(kCommandsPerRound, options_.commands - result->commands);
  while (history_.size() < wanted) {
    const size_t first = history_.size();
    const size_t batch =
        std::min(wanted - first, 1 + random() % (random() % 2 == 0 ? kLongestBatch : 4));
    const size_t connection = random() % kConnections;
    while (history_.size() < first + batch)
      history_.push_back({connection, generators[connection].Next()});
    const absl::StatusOr<Replies> replies = Exchange(absl::MakeConstSpan(history_).subspan(first));
    if (!replies.ok()) {
      return absl::UnavailableError(fmt::format("{} (round with --seed={}, first of the batch:{})",
                                                std::string(replies.status().message()), seed,
                                                Shown(history_[first].line)));
    }
    if (Compare(*replies, first, result))
      return differs_ ? Report(seed, protocol, result) : absl::OkStatus();
  }
  const CommandLine end[] = {{"RESET"}, {"HELLO", std::to_string(protocol)}};
  if (absl::Status ended = Exchange(end).status(); !ended.ok()) return ended;
  if (absl::Status compared = CompareData(); !compared.ok()) return compared;
  return differs_ ? Report(seed, protocol, result) : absl::OkStatus();
}

bool DifferentialRun::Compare(const Replies& replies, size_t first, RunResult* result) {
  for (size_t i = 0; i < replies.redis.size(); ++i) {
    const Step& step = history_[first + i];
    ++result->commands;
    ++result->by_command[LowerCase(step.line[0])];
    switch (CompareOne(step, replies.redis[i], replies.varve[i], &queues_, result)) {
      case Verdict::kSame:
      case Verdict::kExplained:
        continue;
      case Verdict::kOver:
        return true;
      case Verdict::kDiffers:
        differs_ = true;
        history_.resize(first + i + 1);
        return true;
    }
  }
  return false;
}

DifferentialRun::Verdict DifferentialRun::CompareOne(const Step& step, const std::string& redis,
                                                     const std::string& varve, Queues* queues,
                                                     RunResult* result) {
  std::optional<std::vector<CommandLine>>& queue = queues->of[step.connection];
  if (IsFailingBitField(step.line)) queues->fails_fields = true;
  if (redis == "+QUEUED\r\n" && varve == redis) {
    if (queue) queue->push_back(step.line);
    return Verdict::kSame;
  }
  const std::string name = LowerCase(step.line[0]);
  if (name == "multi" && redis == "+OK\r\n" && varve == redis) queue.emplace();
  const Difference* const difference = Explain(step.line);
  if (name != "exec" && name != "discard")
    return CompareReplies(step.line, difference, redis, varve, result);
  std::vector<CommandLine> executed = queue.value_or(std::vector<CommandLine>());
  // A DISCARD that is refused ends nothing.
  if (name == "exec" || redis.starts_with('+')) queue.reset();
  if (queues->fails_fields && IsNullArray(redis) != IsNullArray(varve)) {
    if (result != nullptr) ++result->explained[kUntoldWrite];
    return Verdict::kOver;
  }
  const std::vector<std::string> redis_parts = Elements(redis), varve_parts = Elements(varve);
  if (redis_parts.size() != executed.size() || varve_parts.size() != executed.size() ||
      executed.empty()) {
    return CompareReplies(step.line, difference, redis, varve, result);
  }
  Verdict verdict = Verdict::kSame;
  for (size_t i = 0; i < executed.size(); ++i) {
    if (result != nullptr) ++result->by_command["(in exec) " + LowerCase(executed[i][0])];
    const Difference* const inside =
        options_.grouped ? ExplainInTransaction(executed[i]) : Explain(executed[i]);
    const Verdict each =
        CompareReplies(executed[i], inside, redis_parts[i], varve_parts[i], result);
    if (each == Verdict::kOver || each == Verdict::kDiffers) return each;
    if (each == Verdict::kExplained) verdict = each;
  }
  return verdict;
}

DifferentialRun::Verdict DifferentialRun::CompareReplies(const CommandLine& line,
                                                         const Difference* difference,
                                                         const std::string& redis,
                                                         const std::string& varve,
                                                         RunResult* result) {
  redis_reply_ = Comparable(line, redis);
  varve_reply_ = Comparable(line, varve);
  if (redis_reply_ == varve_reply_ && (difference == nullptr || !difference->changes_data))
    return Verdict::kSame;
  if (difference == nullptr) return Verdict::kDiffers;
  if (result != nullptr) ++result->explained[difference->reason];
  return difference->changes_data ? Verdict::kOver : Verdict::kExplained;
}

absl::Status DifferentialRun::CompareData() {
  std::vector<CommandLine> lines;
  const uint64_t databases = options_.grouped ? 1 : CommandGenerator::kDatabases;
  for (uint64_t database = 0; database < databases; ++database) {
    lines.push_back({"SELECT", std::to_string(database)});
    for (const std::string& key : CommandGenerator::Keys()) lines.push_back({"GET", key});
    lines.push_back({"DBSIZE"});
  }
  const absl::StatusOr<Replies> replies = Exchange(lines);
  if (!replies.ok()) return replies.status();
  for (size_t i = 0; i < lines.size() && !differs_; ++i) {
    if (replies->redis[i] == replies->varve[i]) continue;
    differs_ = true;
    redis_reply_ = replies->redis[i];
    varve_reply_ = replies->varve[i];
    history_.push_back({.connection = kConnections - 1, .line = {"RESET"}});
    for (size_t from = i; from > 0 && lines[from][0] != "SELECT"; --from) {
      if (lines[from - 1][0] == "SELECT")
        history_.push_back({.connection = kConnections - 1, .line = lines[from - 1]});
    }
    history_.push_back({.connection = kConnections - 1, .line = lines[i]});
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> DifferentialRun::Differs(const std::vector<Step>& steps, int protocol) {
  if (absl::Status begun = Begin(protocol); !begun.ok()) return begun;
  const absl::StatusOr<Replies> replies = Exchange(steps);
  if (!replies.ok()) return replies.status();
  Queues queues;
  Verdict last = Verdict::kSame;
  for (size_t i = 0; i < steps.size(); ++i) {
    last = CompareOne(steps[i], replies->redis[i], replies->varve[i], &queues, nullptr);
  }
  return last == Verdict::kDiffers;
}

// Leaves out ever smaller parts of the history for as long as the last command's replies go on to
// differ.
absl::Status DifferentialRun::Report(uint64_t seed, int protocol, RunResult* result) {
  const std::string redis_reply = redis_reply_, varve_reply = varve_reply_;
  VARVE_ASSIGN_OR_RETURN(const std::string flushes, Flushes());
  const bool has_flushed = flushes != flushes_before_;
  std::vector<Step> shortest = history_;
  absl::StatusOr<bool> again = Differs(shortest, protocol);
  if (!again.ok()) return again.status();
  const bool repeatable = *again;
  // When buffers are flushed no history can repeat.
  if (!repeatable && has_flushed && IsNullArray(varve_reply) &&
      EqualsIgnoreCase(history_.back().line[0], "exec") &&
      std::any_of(history_.begin(), history_.end(),
                  [](const Step& step) { return EqualsIgnoreCase(step.line[0], "watch"); })) {
    ++result->explained[kFlushedWatch];
    return absl::OkStatus();
  }
  for (size_t part = shortest.size() / 2; repeatable && part > 0; part /= 2) {
    for (size_t at = 0; at + 1 < shortest.size();) {
      std::vector<Step> shorter = shortest;
      const size_t end = std::min(at + part, shorter.size() - 1);
      shorter.erase(shorter.begin() + static_cast<std::ptrdiff_t>(at),
                    shorter.begin() + static_cast<std::ptrdiff_t>(end));
      again = Differs(shorter, protocol);
      if (!again.ok()) return again.status();
      if (*again) {
        shortest = std::move(shorter);
      } else {
        at += part;
      }
    }
  }
  if (repeatable && !Differs(shortest, protocol).ok())
    return absl::UnavailableError("a server is gone");
  std::string text =
      fmt::format("--seed={} --protocol={}{}\n", seed, protocol,
                  repeatable ? "" : ", not when sent again in one go; the last commands were");
  const size_t shown = std::min<size_t>(shortest.size(), 20);
  for (size_t i = shortest.size() - shown; i < shortest.size(); ++i) {
    text += fmt::format("  {}>{}\n", shortest[i].connection, Shown(shortest[i].line));
  }
  text += fmt::format("  redis {}\n  varve {}", Quoted(repeatable ? redis_reply_ : redis_reply),
                      Quoted(repeatable ? varve_reply_ : varve_reply));
  result->differences.push_back(std::move(text));
  return absl::OkStatus();
}

}  // namespace varve::differential
