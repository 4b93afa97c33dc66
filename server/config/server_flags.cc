#include "server/config/server_flags.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "server/config/config_file.h"
#include "server/config/environment.h"
#include "server/config/memory_plan.h"
#include "util/base/status.h"

namespace varve {
namespace {

struct Flag {
  std::string name;
  std::string value;
};

std::string NameOf(std::string_view argument) {
  std::string name(argument.substr(2));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// Takes what asks for something else than serving (true), or nothing.
bool TakeQuestion(std::string_view argument, ServerCommandLine* line) {
  const std::pair<std::string_view, bool*> questions[] = {
      {"--help", &line->help},
      {"-h", &line->help},
      {"--version", &line->version},
      {"--check-config", &line->check_config},
      {"--example-config", &line->example_config}};
  for (const auto& [name, asked] : questions) {
    if (argument == name) return *asked = true;
  }
  return false;
}

absl::StatusOr<std::vector<Flag>> SplitFlags(int argc, char** argv, ServerCommandLine* line) {
  std::vector<Flag> flags;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (TakeQuestion(argument, line)) continue;
    if (!argument.starts_with("--")) {
      return absl::InvalidArgumentError(
          fmt::format("{} is no setting; --help lists them", argument));
    }
    const size_t equals = argument.find('=');
    Flag flag{NameOf(argument.substr(0, equals)), ""};
    if (flag.name != "config" && FindSetting(flag.name) == nullptr) {
      const std::string suggestion = SettingSuggestion(flag.name, "--");
      return absl::InvalidArgumentError(
          fmt::format("--{} is no setting{}", flag.name,
                      suggestion.empty() ? "; --help lists them" : suggestion));
    }
    const Setting* const setting = FindSetting(flag.name);
    const bool is_last = i + 1 == argc || std::string_view(argv[i + 1]).starts_with("--");
    if (equals != std::string_view::npos) {
      flag.value = argument.substr(equals + 1);
    } else if (is_last && setting != nullptr && setting->kind == SettingKind::kSwitch) {
      flag.value = "yes";
    } else if (i + 1 < argc) {
      flag.value = argv[++i];
    } else {
      return absl::InvalidArgumentError(fmt::format("--{} needs a value", flag.name));
    }
    flags.push_back(std::move(flag));
  }
  return flags;
}

absl::Status TakeFlag(const Flag& flag, ServerConfig* config) {
  const Setting& setting = *FindSetting(flag.name);
  if (setting.secret) {
    return absl::InvalidArgumentError(
        fmt::format("--{}: a command line can be read by others on this machine; write it into a "
                    "file (--{}-file, or "
                    "{} in --config)",
                    flag.name, flag.name, flag.name));
  }
  if (const absl::Status status = AssignSetting(setting, flag.value, config); !status.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("--{}={}: {}", flag.name, flag.value, std::string(status.message())));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ServerCommandLine> ParseServerCommandLine(int argc, char** argv,
                                                         const char* const* environment) {
  ServerCommandLine line;
  VARVE_ASSIGN_OR_RETURN(const std::vector<Flag> flags, SplitFlags(argc, argv, &line));
  if (line.help || line.version || line.example_config) return line;
  for (const Flag& flag : flags) {
    if (flag.name == "config") line.config_file = flag.value;
  }
  if (!line.config_file.empty())
    VARVE_RETURN_IF_ERROR(ReadConfigFile(line.config_file, &line.config));
  if (environment != nullptr) VARVE_RETURN_IF_ERROR(TakeEnvironment(environment, &line.config));
  for (const Flag& flag : flags) {
    if (flag.name != "config") VARVE_RETURN_IF_ERROR(TakeFlag(flag, &line.config));
  }
  VARVE_RETURN_IF_ERROR(CheckTogether(line.config));
  VARVE_RETURN_IF_ERROR(LoadPassword(&line.config));
  VARVE_ASSIGN_OR_RETURN(line.fitted, FitIntoMemory(line.config, MemoryAtHand()));
  return line;
}

std::string ServerHelp() {
  std::string text =
      "varve-server serves an ordered, durable key-value store over Redis' protocol.\n\n"
      "  --config FILE\n      a TOML file with the settings below; flags and variables go before "
      "it\n"
      "  --check-config\n      look for mistakes in the settings and end: 0, or 1 when there are "
      "some\n"
      "  --example-config\n      print a file with every setting\n"
      "  --help, --version\n\n"
      "Settings (sizes take KiB, MiB, GiB; the variable VARVE_FOO_BAR sets foo-bar, and "
      "VARVE_FOO_BAR_FILE\nnames a file that holds its value):\n";
  const ServerConfig defaults;
  for (const Setting& setting : AllSettings()) {
    if (setting.secret) continue;
    text += fmt::format("  --{}={}\n      {}\n", setting.name, WriteSetting(setting, defaults),
                        setting.help);
  }
  return text;
}

}  // namespace varve
