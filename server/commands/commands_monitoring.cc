// Commands that tell what the server was and is busy with: SLOWLOG, SERVERLOG, LATENCY, EXPLAIN,
// STATUS.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/past/past_read.h"
#include "server/statistics/server_log.h"
#include "server/status/status_document.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

// --- SLOWLOG -------------------------------------------------------------------------------------

constexpr int64_t kSlowLogEntriesShown = 10;  // by default, as in Redis

void ReplySlowLog(CommandContext& context, int64_t count) {
  const std::vector<SlowLog::Entry> entries =
      context.server.statistics.slow_log.Newest(count < 0 ? SIZE_MAX : static_cast<size_t>(count));
  RespWriter& reply = context.reply;
  reply.Array(entries.size());
  for (const SlowLog::Entry& entry : entries) {
    reply.Array(6);
    reply.Integer(static_cast<int64_t>(entry.id));
    reply.Integer(entry.unix_seconds);
    reply.Integer(entry.micros);
    reply.Array(entry.arguments.size());
    for (const std::string& argument : entry.arguments) reply.Bulk(argument);
    reply.Bulk(entry.client_address);
    reply.Bulk(entry.client_name);
  }
}

void HandleSlowLog(CommandContext& context, Arguments arguments) {
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  const std::string_view what = subcommand->word();
  if (what == "get") {
    int64_t count = kSlowLogEntriesShown;
    if (arguments.size() > 3) return ReplySubcommandSyntax(context, arguments);
    if (arguments.size() == 3 && (!ParseRespInteger(arguments[2], &count) || count < -1)) {
      return context.reply.Error("ERR count should be greater than or equal to -1");
    }
    ReplySlowLog(context, count);
  } else if (what == "len") {
    context.reply.Integer(static_cast<int64_t>(context.server.statistics.slow_log.size()));
  } else {  // reset
    context.server.statistics.slow_log.Clear();
    context.reply.Ok();
  }
}

// --- SERVERLOG -----------------------------------------------------------------------------------

constexpr int64_t kLogLinesShown = 100;  // by default

void HandleServerLog(CommandContext& context, Arguments arguments) {
  int64_t count = kLogLinesShown;
  if (arguments.size() > 2) return context.reply.Error("ERR syntax error");
  if (arguments.size() == 2 && (!ParseRespInteger(arguments[1], &count) || count < -1))
    return context.reply.Error("ERR count should be greater than or equal to -1");
  const std::vector<std::string> lines =
      RecentLogLines(count < 0 ? SIZE_MAX : static_cast<size_t>(count));
  context.reply.Array(lines.size());
  for (const std::string& line : lines) context.reply.Bulk(line);
}

// --- LATENCY -------------------------------------------------------------------------------------

// Counts by microseconds: what took at most 1.024 µs times a power of two, cumulated; where
// nothing is added, nothing is said.
void ReplyHistogram(CommandContext& context, const Command& command,
                    const CommandFigures& figures) {
  std::vector<std::pair<int64_t, int64_t>> lines;
  uint64_t count = 0, said = 0;
  for (size_t bucket = 0; bucket < LatencyBuckets::kCount; ++bucket) {
    count += figures.histogram[bucket];
    const uint64_t end = LatencyBuckets::EndOf(bucket);
    const bool is_boundary = (end & (end - 1)) == 0 || bucket + 1 == LatencyBuckets::kCount;
    if (!is_boundary || count == said) continue;
    // Redis' histogram has a resolution of 1/128 and shows the highest value that it takes for the
    // same.
    lines.emplace_back(static_cast<int64_t>((end + end / 128 - 1) / 1000),
                       static_cast<int64_t>(count));
    said = count;
  }
  RespWriter& reply = context.reply;
  reply.Bulk(command.name);
  reply.Map(2);
  reply.Bulk("calls");
  reply.Integer(static_cast<int64_t>(figures.calls));
  reply.Bulk("histogram_usec");
  reply.Map(lines.size());
  for (const auto& [micros, cumulated] : lines) {
    reply.Integer(micros);
    reply.Integer(cumulated);
  }
}

void HandleLatencyHistogram(CommandContext& context, Arguments names) {
  if (TooManyNames(context, names)) return;
  const std::vector<CommandFigures> figures = context.server.statistics.commands.Read();
  std::vector<const Command*> shown;
  const auto show = [&](const Command* command) {
    if (command != nullptr && figures[command->index].calls > 0) shown.push_back(command);
  };
  if (names.empty()) {
    for (const Command& command : AllCommands()) show(&command);
  }
  for (const std::string_view name : names) show(FindCommand(name));
  context.reply.Map(shown.size());
  for (const Command* command : shown) ReplyHistogram(context, *command, figures[command->index]);
}

void HandleLatency(CommandContext& context, Arguments arguments) {
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  const std::string_view what = subcommand->word();
  if (what == "histogram") return HandleLatencyHistogram(context, arguments.subspan(2));
  // Events are not recorded one by one, as in Redis without a latency-monitor-threshold.
  if (what == "reset") return context.reply.Integer(0);
  if (what == "graph") {
    return context.reply.Error(
        fmt::format("ERR No samples available for event '{}'", ShownInError(arguments[2])));
  }
  if (what != "doctor") return context.reply.Array(0);  // latest, history
  context.reply.Verbatim(
      "Latency events are not recorded. LATENCY HISTOGRAM shows how long commands took, SLOWLOG "
      "GET which were slow, "
      "EXPLAIN GET key where the time of a read goes.\n");
}

// --- EXPLAIN -------------------------------------------------------------------------------------

std::string_view NameOf(KeyState state) {
  switch (state) {
    case KeyState::kFound:
      return "found";
    case KeyState::kDeleted:
      return "deleted";
    case KeyState::kExpired:
      return "expired";
    case KeyState::kNeverThere:
      return "never_there";
    case KeyState::kBelowHorizon:
      return "below_horizon";
  }
  return "found";
}

void HandleExplain(CommandContext& context, Arguments arguments) {
  if (!EqualsIgnoreCase(arguments[1], "get"))
    return context.reply.Error("ERR EXPLAIN knows GET alone: EXPLAIN GET key");
  const absl::StatusOr<ExplainedRead> read =
      context.store.ExplainGet(NoWaitReadOptions(context.space()), arguments[2]);
  if (!read.ok()) return context.Fail(read.status());
  context.DependOn(read->result.durable_after);
  RespWriter& reply = context.reply;
  const std::array<std::pair<std::string_view, uint64_t>, 7> figures{{
      {"found", read->result.found ? 1 : 0},
      {"version", read->result.version},
      {"value_bytes", read->value_bytes},
      {"tables_probed", read->tables_probed},
      {"disk_reads", read->disk_reads},
      {"cache_hits", read->cache_hits},
      {"nanoseconds", read->nanos},
  }};
  reply.Map(figures.size() + 2);
  for (const auto& [name, value] : figures) {
    reply.Bulk(name);
    reply.Integer(static_cast<int64_t>(value));
  }
  reply.Bulk("state");
  reply.Bulk(NameOf(read->state));
  reply.Bulk("steps");
  reply.Array(read->steps.size());
  for (const ExplainedStep& step : read->steps) {
    reply.Bulk(fmt::format("{:>9} ns  {} reads  {}", step.nanos, step.disk_reads, step.what));
  }
}

// --- STATUS --------------------------------------------------------------------------------------

void ReplyStatus(RespWriter& reply, const StatusValue& value) {
  switch (value.kind()) {
    case StatusValue::Kind::kNumber:
      return reply.Bulk(fmt::format("{}", value.number()));
    case StatusValue::Kind::kInteger:
      return reply.Integer(value.integer());
    case StatusValue::Kind::kTruth:
      return reply.Integer(value.truth() ? 1 : 0);
    case StatusValue::Kind::kText:
      return reply.Bulk(value.text());
    case StatusValue::Kind::kList:
      reply.Array(value.members().size());
      break;
    case StatusValue::Kind::kMap:
      reply.Map(value.members().size());
      break;
  }
  for (const auto& [name, member] : value.members()) {
    if (value.kind() == StatusValue::Kind::kMap) reply.Bulk(name);
    ReplyStatus(reply, member);
  }
}

void HandleStatus(CommandContext& context, Arguments) {
  ReplyStatus(context.reply, StatusDocument(context.server));
}

constexpr Command kMonitoringRows[] = {
    {.name = "explain",
     .arity = 3,
     .flags = kReadCommand | kSlowCommand | kPastCommand,
     .keys = {.first = 2, .last = 2, .step = 1},
     .handler = NowOrAt<HandleExplain, 3>,
     .group = "server",
     .summary =
         "Reads a key and tells what became of it, where it was looked for, what that cost, and "
         "which disk reads it took.",
     .syntax = "GET key [AT version|AT TIME ms|AT AGO seconds]",
     .complexity = "O(1)",
     .redis = {.categories = "@keyspace"}},
    {.name = "latency",
     .arity = -2,
     .flags = kAdminCommand | kSlowCommand | kContainerCommand,
     .handler = HandleLatency,
     .group = "server",
     .summary = "Shows how the times of commands are spread.",
     .syntax = "DOCTOR | GRAPH | HISTOGRAM | HISTORY | LATEST | RESET | HELP"},
    {.name = "serverlog",
     .arity = -1,
     .flags = kAdminCommand | kSlowCommand,
     .handler = HandleServerLog,
     .group = "server",
     .summary = "Shows the newest lines of the server's own log.",
     .syntax = "[count]",
     .complexity = "O(N) for N lines",
     .redis = {.flags = "loading stale"}},
    {.name = "slowlog",
     .arity = -2,
     .flags = kAdminCommand | kSlowCommand | kContainerCommand,
     .handler = HandleSlowLog,
     .group = "server",
     .summary = "Shows the requests that took long.",
     .syntax = "GET | LEN | RESET | HELP"},
    {.name = "status",
     .arity = 1,
     .flags = kSlowCommand,
     .handler = HandleStatus,
     .group = "server",
     .summary = "Shows whether the server is healthy, what limits it, and its main figures.",
     .complexity = "O(N) for N namespaces",
     .redis = {.flags = "loading stale", .categories = "@dangerous"}},
};

}  // namespace

absl::Span<const Command> MonitoringCommands() { return kMonitoringRows; }

}  // namespace varve
