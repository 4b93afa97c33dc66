#include "server/server_flags.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "fmt/format.h"
#include "util/size_text.h"
#include "util/status.h"

namespace varve {

// A number of bytes, as a flag.
struct ByteSizeFlag {
  uint64_t bytes = 0;
};
bool AbslParseFlag(absl::string_view text, ByteSizeFlag* flag, std::string* error) {
  const absl::StatusOr<uint64_t> bytes = ParseSize({text.data(), text.size()});
  if (!bytes.ok()) {
    *error = std::string(bytes.status().message());
    return false;
  }
  flag->bytes = *bytes;
  return true;
}
std::string AbslUnparseFlag(const ByteSizeFlag& flag) { return FormatSize(flag.bytes); }

// A length of time, as a flag.
struct DelayFlag {
  std::chrono::nanoseconds delay{0};
};
bool AbslParseFlag(absl::string_view text, DelayFlag* flag, std::string* error) {
  const absl::StatusOr<std::chrono::nanoseconds> delay = ParseDuration({text.data(), text.size()});
  if (!delay.ok()) {
    *error = std::string(delay.status().message());
    return false;
  }
  flag->delay = *delay;
  return true;
}
std::string AbslUnparseFlag(const DelayFlag& flag) { return FormatDuration(flag.delay); }

}  // namespace varve

using varve::ByteSizeFlag;
using varve::DelayFlag;

ABSL_FLAG(std::string, bind, "127.0.0.1", "IP address to listen on");
ABSL_FLAG(int, port, 7777, "TCP port; 0: any free one");
ABSL_FLAG(std::string, dir, "data", "directory of the data, made if it is missing");
ABSL_FLAG(
    std::string, sync, "always",
    "when a write is acknowledged: always (it is on disk), everysec (the kernel has it, synced each second) or no "
    "(the kernel has it)");
ABSL_FLAG(int, threads, 0, "threads of the pool; 0: one for each core, at least 2");
ABSL_FLAG(int, io_threads, 0, "threads that read and answer; 0: one for every four cores, 1 to 8");
ABSL_FLAG(std::string, execution, "adaptive",
          "where requests run: adaptive, pool (always on the pool) or inline (always where they were read)");
ABSL_FLAG(ByteSizeFlag, group_max_bytes, ByteSizeFlag{varve::EngineOptions().group_max_bytes},
          "bytes of writes that are synced together at most");
ABSL_FLAG(DelayFlag, group_max_delay, DelayFlag{},
          "how long a write may wait for company before it is synced, e.g. 200us");
ABSL_FLAG(ByteSizeFlag, write_buffer_size, ByteSizeFlag{varve::EngineOptions().write_buffer_size},
          "memory of one write buffer; when it is full it becomes a segment");
ABSL_FLAG(ByteSizeFlag, offset_table_cache_size, ByteSizeFlag{varve::EngineOptions().offset_table_cache_size},
          "memory for offset tables, which find a record in one read");
ABSL_FLAG(ByteSizeFlag, block_cache_size, ByteSizeFlag{varve::EngineOptions().block_cache_size},
          "memory for records that are read often");
ABSL_FLAG(ByteSizeFlag, value_separation_size, ByteSizeFlag{},
          "values from this size up go to value files; 0, the only size accepted so far: none do");
ABSL_FLAG(int, maxclients, 10000, "connections at a time");
ABSL_FLAG(int, timeout, 0, "seconds after which a silent connection is closed; 0: never");
ABSL_FLAG(int, tcp_keepalive, 300, "seconds after which a silent peer is asked whether it is still there; 0: never");
ABSL_FLAG(DelayFlag, snapshot_max_age, DelayFlag{varve::ServerOptions().snapshot_max_age},
          "how long a client may take for one long reply, which keeps old versions of records; 0: as long as it likes");
ABSL_FLAG(std::string, loglevel, "info", "trace, debug, info, warning, error, critical or off");
ABSL_FLAG(std::string, logfile, "", "file to append the log to; empty: standard error");

namespace varve {
namespace {

constexpr const char* kFlags[] = {"bind",
                                  "port",
                                  "dir",
                                  "sync",
                                  "threads",
                                  "io_threads",
                                  "execution",
                                  "group_max_bytes",
                                  "group_max_delay",
                                  "write_buffer_size",
                                  "offset_table_cache_size",
                                  "block_cache_size",
                                  "value_separation_size",
                                  "maxclients",
                                  "timeout",
                                  "tcp_keepalive",
                                  "snapshot_max_age",
                                  "loglevel",
                                  "logfile"};

std::string WithDashes(std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return dashed;
}

// "--write-buffer-size=64-MiB" -> "--write_buffer_size=64-MiB". Arguments that are no flags stay as they are.
std::string WithUnderscores(std::string_view argument) {
  std::string converted(argument);
  if (!argument.starts_with("--")) return converted;
  const size_t end = std::min(argument.find('='), argument.size());
  std::replace(converted.begin() + 2, converted.begin() + static_cast<ptrdiff_t>(end), '-', '_');
  return converted;
}

template <typename Value>
struct Named {
  std::string_view name;
  Value value;
};

constexpr Named<Durability> kSyncNames[] = {
    {"always", Durability::kAlways}, {"everysec", Durability::kEverySecond}, {"no", Durability::kNone}};
constexpr Named<Execution> kExecutionNames[] = {
    {"adaptive", Execution::kAdaptive}, {"pool", Execution::kPool}, {"inline", Execution::kInline}};
constexpr std::string_view kLogLevels[] = {"trace", "debug", "info", "warning", "error", "critical", "off"};

template <typename Value, size_t kCount>
std::optional<Value> ValueOf(const Named<Value> (&names)[kCount], std::string_view name) {
  for (const auto& named : names) {
    if (named.name == name) return named.value;
  }
  return std::nullopt;
}

template <typename Value, size_t kCount>
std::string NameOf(const Named<Value> (&names)[kCount], Value value) {
  for (const auto& named : names) {
    if (named.value == value) return std::string(named.name);
  }
  return "";
}

template <typename Value, typename Format>
absl::Status CheckBounds(const char* name, Value value, Value min, Value max, const Format& format) {
  if (min <= value && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("--{}={}: {} to {}", WithDashes(name), format(value), format(min), format(max)));
}

absl::Status CheckInt(const absl::Flag<int>& flag, int min, int max) {
  return CheckBounds(flag.Name().data(), absl::GetFlag(flag), min, max, [](int value) { return value; });
}
absl::Status CheckSize(const absl::Flag<ByteSizeFlag>& flag, uint64_t min, uint64_t max) {
  return CheckBounds(flag.Name().data(), absl::GetFlag(flag).bytes, min, max, FormatSize);
}
absl::Status CheckDelay(const absl::Flag<DelayFlag>& flag, std::chrono::nanoseconds max) {
  return CheckBounds(flag.Name().data(), absl::GetFlag(flag).delay, std::chrono::nanoseconds(0), max, FormatDuration);
}

absl::Status CheckNumbers() {
  constexpr int kYear = 365 * 24 * 3600;    // in seconds
  constexpr int kLongestKeepalive = 32767;  // the kernel's
  VARVE_RETURN_IF_ERROR(CheckInt(FLAGS_port, 0, 65535));
  VARVE_RETURN_IF_ERROR(CheckInt(FLAGS_threads, 0, 256));
  VARVE_RETURN_IF_ERROR(CheckInt(FLAGS_io_threads, 0, 256));
  VARVE_RETURN_IF_ERROR(CheckInt(FLAGS_maxclients, 1, 1'000'000));
  VARVE_RETURN_IF_ERROR(CheckInt(FLAGS_timeout, 0, kYear));
  VARVE_RETURN_IF_ERROR(CheckInt(FLAGS_tcp_keepalive, 0, kLongestKeepalive));
  VARVE_RETURN_IF_ERROR(CheckSize(FLAGS_write_buffer_size, 4u << 10, 64ull << 30));
  VARVE_RETURN_IF_ERROR(CheckSize(FLAGS_group_max_bytes, 4u << 10, 1u << 30));
  VARVE_RETURN_IF_ERROR(CheckSize(FLAGS_offset_table_cache_size, 0, 16ull << 40));
  VARVE_RETURN_IF_ERROR(CheckSize(FLAGS_block_cache_size, 0, 16ull << 40));
  VARVE_RETURN_IF_ERROR(CheckDelay(FLAGS_group_max_delay, std::chrono::seconds(10)));
  VARVE_RETURN_IF_ERROR(CheckDelay(FLAGS_snapshot_max_age, std::chrono::seconds(kYear)));
  if (absl::GetFlag(FLAGS_value_separation_size).bytes != 0) {
    return absl::InvalidArgumentError(
        "--value-separation-size: only 0 (off) is accepted, value files do not exist yet");
  }
  return absl::OkStatus();
}

absl::StatusOr<ServerCommandLine> FromFlags() {
  if (const absl::Status status = CheckNumbers(); !status.ok()) return status;
  ServerCommandLine line;
  line.directory = absl::GetFlag(FLAGS_dir);
  line.log_level = absl::GetFlag(FLAGS_loglevel);
  line.log_file = absl::GetFlag(FLAGS_logfile);
  if (std::find(std::begin(kLogLevels), std::end(kLogLevels), line.log_level) == std::end(kLogLevels)) {
    return absl::InvalidArgumentError(fmt::format("--loglevel={}: {}", line.log_level, fmt::join(kLogLevels, ", ")));
  }
  const std::optional<Durability> sync = ValueOf(kSyncNames, absl::GetFlag(FLAGS_sync));
  if (!sync) {
    return absl::InvalidArgumentError(fmt::format("--sync={}: always, everysec or no", absl::GetFlag(FLAGS_sync)));
  }
  const std::optional<Execution> execution = ValueOf(kExecutionNames, absl::GetFlag(FLAGS_execution));
  if (!execution) {
    return absl::InvalidArgumentError(
        fmt::format("--execution={}: adaptive, pool or inline", absl::GetFlag(FLAGS_execution)));
  }
  line.engine.sync = *sync;
  line.engine.group_max_bytes = absl::GetFlag(FLAGS_group_max_bytes).bytes;
  line.engine.group_max_delay =
      std::chrono::duration_cast<std::chrono::microseconds>(absl::GetFlag(FLAGS_group_max_delay).delay);
  line.engine.write_buffer_size = absl::GetFlag(FLAGS_write_buffer_size).bytes;
  line.engine.offset_table_cache_size = absl::GetFlag(FLAGS_offset_table_cache_size).bytes;
  line.engine.block_cache_size = absl::GetFlag(FLAGS_block_cache_size).bytes;
  line.server.bind = absl::GetFlag(FLAGS_bind);
  line.server.port = static_cast<uint16_t>(absl::GetFlag(FLAGS_port));
  line.server.execution = *execution;
  line.server.threads = absl::GetFlag(FLAGS_threads);
  line.server.io_threads = absl::GetFlag(FLAGS_io_threads);
  line.server.max_clients = static_cast<size_t>(absl::GetFlag(FLAGS_maxclients));
  line.server.idle_timeout = std::chrono::seconds(absl::GetFlag(FLAGS_timeout));
  line.server.tcp_keepalive = std::chrono::seconds(absl::GetFlag(FLAGS_tcp_keepalive));
  line.server.snapshot_max_age = absl::GetFlag(FLAGS_snapshot_max_age).delay;
  return line;
}

// Our own flags alone: the libraries' would only confuse here. Sets what `arguments` say, each "--name=value" or "--name value".
absl::Status SetFlags(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const auto known = [&](const char* flag) { return name == std::string("--") + flag; };
    if (std::none_of(std::begin(kFlags), std::end(kFlags), known)) {
      return absl::InvalidArgumentError(fmt::format("{} is no setting; --help lists them", WithDashes(name)));
    }
    if (equals == std::string::npos && i + 1 == arguments.size()) {
      return absl::InvalidArgumentError(fmt::format("{} needs a value", WithDashes(name)));
    }
    const std::string value = equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
    absl::CommandLineFlag* const flag = absl::FindCommandLineFlag(name.substr(2));
    std::string error;
    if (!flag->ParseFrom(value, &error)) {
      return absl::InvalidArgumentError(fmt::format("{}={}: {}", WithDashes(name), value, error));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ServerCommandLine> ParseServerCommandLine(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--help" || argument == "-h" || argument == "--version") {
      ServerCommandLine line;
      (argument == "--version" ? line.version : line.help) = true;
      return line;
    }
    arguments.push_back(WithUnderscores(argument));
  }
  if (const absl::Status status = SetFlags(arguments); !status.ok()) return status;
  return FromFlags();
}

std::string ServerHelp() {
  std::string text =
      "server_main serves an ordered, durable key-value store over Redis' protocol.\n\n"
      "Settings (sizes take KiB, MiB, GiB):\n";
  for (const char* name : kFlags) {
    const absl::CommandLineFlag* const flag = absl::FindCommandLineFlag(name);
    text += fmt::format("  --{}={}\n      {}\n", WithDashes(name), flag->DefaultValue(), flag->Help());
  }
  return text + "  --help, --version\n";
}

std::vector<std::pair<std::string, std::string>> ServerSettings(const ServerCommandLine& line) {
  const std::string sync = NameOf(kSyncNames, line.engine.sync);
  return {
      {"appendfsync", sync},
      {"appendonly", "yes"},
      {"bind", line.server.bind},
      {"block-cache-size", fmt::to_string(line.engine.block_cache_size)},
      {"databases", "1"},
      {"dir", line.directory},
      {"execution", NameOf(kExecutionNames, line.server.execution)},
      {"group-max-bytes", fmt::to_string(line.engine.group_max_bytes)},
      {"group-max-delay", FormatDuration(line.engine.group_max_delay)},
      {"io-threads", fmt::to_string(line.server.io_threads)},
      {"logfile", line.log_file},
      {"loglevel", line.log_level},
      {"maxclients", fmt::to_string(line.server.max_clients)},
      {"maxmemory", "0"},
      {"maxmemory-policy", "noeviction"},
      {"offset-table-cache-size", fmt::to_string(line.engine.offset_table_cache_size)},
      {"port", fmt::to_string(line.server.port)},
      {"proto-max-bulk-len", fmt::to_string(kMaxValueSize)},
      {"save", ""},
      {"snapshot-max-age", FormatDuration(line.server.snapshot_max_age)},
      {"sync", sync},
      {"tcp-keepalive", fmt::to_string(line.server.tcp_keepalive.count())},
      {"threads", fmt::to_string(line.server.threads)},
      {"timeout", fmt::to_string(line.server.idle_timeout.count())},
      {"value-separation-size", "0"},
      {"write-buffer-size", fmt::to_string(line.engine.write_buffer_size)},
  };
}

}  // namespace varve
