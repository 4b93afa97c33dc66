#include "client/cli/move.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "client/console/interrupt.h"
#include "client/move/mover.h"
#include "client/url.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::chrono::milliseconds kReportToPeople{1000};

// Reads NAME=together or NAME=delimiter into the options. The name may have any bytes in it.
absl::Status TakeGrouping(const std::string& text, MoveOptions* options) {
  constexpr std::string_view kTogether = "=together";
  const bool is_together = text.ends_with(kTogether);
  const size_t name = text.size() - std::min(text.size(), is_together ? kTogether.size() : 2);
  if (name == 0 || text[name] != '=') {
    return absl::InvalidArgumentError(fmt::format(
        "--grouping={}: it is NAME=together, or NAME= and a delimiter of one byte", text));
  }
  options->groupings[text.substr(0, name)] = text.substr(name + 1);
  return absl::OkStatus();
}

absl::StatusOr<ClientOptions> TargetOf(const CommandLine& line) {
  ClientOptions target;
  target.tls = line.connection.tls;  // the same authorities and certificate
  target.timeout = line.connection.timeout;
  if (const char* password = std::getenv("VARVE_TARGET_PASSWORD"); password != nullptr)
    target.password = password;
  if (const absl::Status applied = ApplyUrl(line.words[1], &target); !applied.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("the target: {}", std::string(applied.message())));
  }
  if (target.database == 0) return target;
  return absl::InvalidArgumentError(
      "the target: keys move into the database or namespace of the same name, so its URL names "
      "none; "
      "--into names another one");
}

absl::StatusOr<MoveOptions> OptionsOf(const CommandLine& line) {
  MoveOptions options;
  options.source = line.connection;
  VARVE_ASSIGN_OR_RETURN(options.target, TargetOf(line));
  const MoveFlags& flags = line.move;
  if (flags.one_space) {
    const std::string& name = line.connection.namespace_name;
    options.space = name.empty() ? fmt::to_string(line.connection.database) : name;
  }
  options.into = flags.into;
  options.prefix = line.prefix;
  for (const std::string& grouping : flags.groupings)
    VARVE_RETURN_IF_ERROR(TakeGrouping(grouping, &options));
  options.state = flags.state;
  options.bytes_per_second = static_cast<uint64_t>(line.copies.bytes_per_second);
  options.feed_bytes = static_cast<uint64_t>(line.copies.feed_bytes);
  options.until_caught_up = flags.until_caught_up;
  options.finish = flags.finish;
  options.verify = flags.verify;
  options.replace = flags.replace;
  options.skip_options = flags.skip_options;
  options.skip_refused = flags.skip_refused;
  if (line.progress || isatty(STDERR_FILENO) != 0) options.report_every = kReportToPeople;
  return options;
}

}  // namespace

int RunMove(const CommandLine& line) {
  absl::StatusOr<MoveOptions> options = OptionsOf(line);
  if (!options.ok()) return Fail(options.status());
  const Interrupt interrupt(Interrupt::Signals::kInterruptAndTerminate);
  Mover mover(
      *std::move(options), [&interrupt] { return interrupt.happened(); },
      [](const std::string& text) {
        fmt::print(stderr, "{}: {}\n", program_invocation_short_name, text);
      });
  const absl::Status status = mover.Run();
  return status.ok() ? kDone : Fail(status);
}

}  // namespace varve
