#include "client/cli/run.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>

#include "client/cli/bench.h"
#include "client/cli/changes.h"
#include "client/cli/move.h"
#include "client/cli/one_shot.h"
#include "client/cli/prompt.h"
#include "client/console/command_line.h"
#include "client/console/lines.h"
#include "client/console/output.h"
#include "client/transfer/export.h"
#include "client/transfer/import.h"
#include "fmt/format.h"
#include "type/version.h"

namespace varve {
namespace {

int RunOnFiles(const CommandLine& line, const FileCommand& command) {
  if (line.words.size() != command.count + 1) {
    return Fail(
        absl::InvalidArgumentError(fmt::format("{0} is used as: {1} {0} {2}", command.name,
                                               program_invocation_short_name, command.arguments)));
  }
  const absl::Status status = command.run(line);
  return status.ok() ? kDone : Fail(status);
}

int RunCommand(const CommandLine& line, absl::Span<const FileCommand> file_commands,
               const DescribeStore& describe_store) {
  if (line.words.empty()) return isatty(STDIN_FILENO) ? RunPrompt(line) : RunLines(line);
  for (const FileCommand& command : file_commands) {
    if (command.name == line.words[0]) return RunOnFiles(line, command);
  }
  const size_t count = line.words.size();
  if (line.words[0] == "import" && count == 2) return RunImport(line);
  if (line.words[0] == "export" && (count == 2 || count == 4)) return RunExport(line);
  if (line.words[0] == "changes" && count == 1) return RunChanges(line);
  if (line.words[0] == "move" && count == 2) return RunMove(line);
  if (line.words[0] == "bundle") return RunBundle(line, describe_store);
  if (line.words[0] == "bench" && count == 1) return RunBench(line);
  return RunOneShot(line);
}

}  // namespace

int RunClient(int argc, char** argv, absl::Span<const FileCommand> file_commands,
              const DescribeStore& describe_store) {
  const std::optional<CommandLine> line = ParseCommandLine(argc, argv);
  if (!line) return kFailed;
  if (line->help) {
    PrintOut(fmt::format("{} {}", program_invocation_short_name, kUsage));
    return kDone;
  }
  if (line->version) {
    PrintOut(fmt::format("varve {}\n", kVarveVersion));
    return kDone;
  }
  const int code = RunCommand(*line, file_commands, describe_store);
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    fmt::print(stderr, "{}: standard output could not be written\n", program_invocation_short_name);
    return kFailed;
  }
  return code;
}

}  // namespace varve
