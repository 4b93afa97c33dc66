// LCS: what two values have in common.
#include <string>
#include <vector>

#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/commands/common_subsequence.h"
#include "server/execution/key_read.h"
#include "util/resp/resp_parser.h"
#include "varve/options.h"

namespace varve {
namespace {

struct LcsOptions {
  bool length_only = false;
  bool runs = false;
  bool run_lengths = false;
  int64_t shortest_run = 0;
};

// Answers an error and returns false when the options can't be followed.
bool ParseLcsOptions(CommandContext& context, Arguments options, LcsOptions* parsed) {
  for (size_t i = 0; i < options.size(); ++i) {
    if (EqualsIgnoreCase(options[i], "len")) {
      parsed->length_only = true;
    } else if (EqualsIgnoreCase(options[i], "idx")) {
      parsed->runs = true;
    } else if (EqualsIgnoreCase(options[i], "withmatchlen")) {
      parsed->run_lengths = true;
    } else if (EqualsIgnoreCase(options[i], "minmatchlen") && i + 1 < options.size()) {
      if (!ParseRespInteger(options[++i], &parsed->shortest_run)) {
        context.reply.Error(kNoInteger);
        return false;
      }
    } else {
      ReplySyntaxError(context);
      return false;
    }
  }
  if (parsed->length_only && parsed->runs) {
    context.reply.Error("ERR If you want both the length and indexes, please just use IDX.");
    return false;
  }
  return true;
}

void ReplyRuns(RespWriter& reply, const CommonSubsequence& found, const LcsOptions& options) {
  std::vector<const CommonRun*> shown;
  for (const CommonRun& run : found.runs) {
    if (static_cast<int64_t>(run.size()) >= options.shortest_run) shown.push_back(&run);
  }
  const auto range = [&reply](size_t first, size_t last) {
    reply.Array(2);
    reply.Integer(static_cast<int64_t>(first));
    reply.Integer(static_cast<int64_t>(last));
  };
  reply.Map(2);
  reply.Bulk("matches");
  reply.Array(shown.size());
  for (const CommonRun* run : shown) {
    reply.Array(options.run_lengths ? 3 : 2);
    range(run->a_first, run->a_last);
    range(run->b_first, run->b_last);
    if (options.run_lengths) reply.Integer(static_cast<int64_t>(run->size()));
  }
  reply.Bulk("len");
  reply.Integer(static_cast<int64_t>(found.bytes.size()));
}

void HandleLcs(CommandContext& context, Arguments arguments) {
  MultiGetResult values[2];
  ReadOptions read_options = NoWaitReadOptions(context.space());
  read_options.deadline = context.store_deadline();
  const absl::Status status = context.store.MultiGet(read_options, arguments.subspan(1, 2), values);
  if (!status.ok()) return context.Fail(status);
  for (size_t i = 0; i < 2; ++i) {
    MultiGetResult& value = values[i];
    if (!value.status.ok()) return context.Fail(value.status);
    NoteRead(context, arguments[1 + i], value.result);
    if (!value.result.found) value.value.clear();
  }
  LcsOptions options;
  if (!ParseLcsOptions(context, arguments.subspan(3), &options)) return;
  const std::string_view a = values[0].value;
  const std::string_view b = values[1].value;
  // The limit of Redis, whose table takes four bytes a cell: it bounds the time here as there.
  if ((a.size() + 1) * (b.size() + 1) * 4 > context.server.live.max_value_bytes) {
    return context.reply.Error(
        "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
  }
  if (options.length_only)
    return context.reply.Integer(static_cast<int64_t>(CommonSubsequenceLength(a, b)));
  const CommonSubsequence found = FindCommonSubsequence(a, b);
  if (options.runs) return ReplyRuns(context.reply, found, options);
  context.reply.Bulk(found.bytes);
}

constexpr Command kLcsRows[] = {
    {.name = "lcs",
     .arity = -3,
     .flags = kReadCommand | kSlowCommand,
     .keys = {.first = 1, .last = 2, .step = 1},
     .handler = HandleLcs,
     .group = "string",
     .summary = "Finds the longest bytes that stand in two values in the same order.",
     .syntax = "key1 key2 [LEN | IDX [MINMATCHLEN length] [WITHMATCHLEN]]",
     .complexity = "O(N * M) for values of N and M bytes"},
};

}  // namespace

absl::Span<const Command> LcsCommands() { return kLcsRows; }

}  // namespace varve
