// MEMORY: what the server's memory is used for, and what a key takes.
#include <malloc.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "server/clients/client_description.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/execution/database_index.h"
#include "server/statistics/process_memory.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

// About what a record takes beside its key and value: its header and checksums, and its slot in an
// offset table.
constexpr size_t kRecordOverhead = 24;

void HandleMemoryUsage(CommandContext& context, Arguments arguments) {
  for (size_t i = 3; i < arguments.size(); i += 2) {
    if (!EqualsIgnoreCase(arguments[i], "samples") || i + 1 == arguments.size())
      return ReplySyntaxError(context);
    int64_t samples = 0;  // of nested values, which there are none of
    if (!ParseRespInteger(arguments[i + 1], &samples)) {
      return context.reply.Error(kNoInteger);
    }
    if (samples < 0) return ReplySyntaxError(context);
  }
  // No event for a missing key, as in Redis.
  const absl::StatusOr<ReadResult> read = context.LookUp(arguments[2]);
  if (!read.ok()) return context.Fail(read.status());
  context.DependOn(read->durable_after);
  if (!read->found) return context.reply.Null();
  context.reply.Integer(
      static_cast<int64_t>(arguments[2].size() + read->value_size + kRecordOverhead));
}

struct MemoryFigures {
  ProcessMemory process;
  uint64_t clients = 0;
  uint64_t write_buffers = 0;
  uint64_t block_cache = 0;
  uint64_t offset_tables = 0;

  uint64_t Known() const { return clients + write_buffers + block_cache + offset_tables; }
};

MemoryFigures ReadMemoryFigures(CommandContext& context) {
  MemoryFigures figures;
  figures.process = ReadProcessMemory();
  context.server.clients.registry.ForEach(
      [&](const ClientState& client) { figures.clients += ClientBytes(client); });
  for (const auto& [name, value] : context.server.store->Statistics()) {
    if (name == "write_buffer_bytes") figures.write_buffers = value;
    if (name == "block_cache_bytes") figures.block_cache = value;
    if (name == "offset_table_cache_bytes") figures.offset_tables = value;
  }
  return figures;
}

// Redis' names where the figure means the same.
void ReplyMemoryStats(CommandContext& context) {
  const MemoryFigures figures = ReadMemoryFigures(context);
  const absl::StatusOr<CountResult> count = CountAllKeys(context.store);
  if (!count.ok()) return context.Fail(count.status());
  context.DependOn(count->durable_after);
  const std::pair<std::string_view, uint64_t> lines[] = {
      {"peak.allocated", figures.process.peak},
      {"total.allocated", figures.process.resident},
      {"clients.normal", figures.clients},
      {"write.buffers", figures.write_buffers},
      {"block.cache", figures.block_cache},
      {"offset.tables", figures.offset_tables},
      {"keys.count", count->keys},
      {"keys.bytes-per-key", count->keys == 0 ? 0 : figures.process.resident / count->keys},
  };
  context.reply.Map(std::size(lines));
  for (const auto& [name, value] : lines) {
    context.reply.Bulk(name);
    context.reply.Integer(static_cast<int64_t>(value));
  }
}

std::string MemoryReport(const MemoryFigures& figures) {
  const auto mib = [](uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const uint64_t rest =
      figures.process.resident - std::min(figures.process.resident, figures.Known());
  return fmt::format(
      "{:.1f} MiB are resident: {:.1f} in write buffers (--write-buffer-size), {:.1f} in cached "
      "blocks "
      "(--block-cache-size), {:.1f} in offset tables (--offset-table-cache-size), {:.1f} for "
      "connections, and {:.1f} "
      "of "
      "other things. Data itself lies on disk.\n",
      mib(figures.process.resident), mib(figures.write_buffers), mib(figures.block_cache),
      mib(figures.offset_tables), mib(figures.clients), mib(rest));
}

std::string AllocatorReport() {
  const struct mallinfo2 info = ::mallinfo2();
  return fmt::format(
      "arenas: {} bytes\nin use: {} bytes\nfree: {} bytes\nof it at the end of the heap: {} "
      "bytes\nmapped apart: {} "
      "bytes in {} pieces\n",
      info.arena, info.uordblks, info.fordblks, info.keepcost, info.hblkhd, info.hblks);
}

void HandleMemory(CommandContext& context, Arguments arguments) {
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  const std::string_view what = subcommand->word();
  if (what == "usage") {
    HandleMemoryUsage(context, arguments);
  } else if (what == "stats") {
    ReplyMemoryStats(context);
  } else if (what == "doctor") {
    context.reply.Verbatim(MemoryReport(ReadMemoryFigures(context)));
  } else if (what == "malloc-stats") {
    context.reply.Verbatim(AllocatorReport());
  } else {  // purge
    ::malloc_trim(0);
    context.reply.Ok();
  }
}

constexpr Command kMemoryRows[] = {
    {.name = "memory",
     .arity = -2,
     .flags = kReadCommand | kSlowCommand | kContainerCommand,
     .keys = {.first = 2, .last = 2, .step = 1},
     .handler = HandleMemory,
     .group = "server",
     .summary = "Shows what the memory is used for.",
     .syntax = "DOCTOR | MALLOC-STATS | PURGE | STATS | USAGE | HELP"},
};

}  // namespace

absl::Span<const Command> MemoryCommands() { return kMemoryRows; }

}  // namespace varve
