#include "server/config/environment.h"

#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "server/config/secret_file.h"
#include "util/base/nearest_text.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::string_view kPrefix = "VARVE_";
constexpr std::string_view kFileSuffix = "_FILE";

// Shorter names are near to each other by chance.
constexpr size_t kShortestSlip = 8;

using Variables = std::map<std::string_view, std::string_view>;

// "foo-bar" for "FOO_BAR".
std::string SettingOf(std::string_view rest) {
  std::string name;
  for (const char c : rest) name += c == '_' ? '-' : absl::ascii_tolower(c);
  return name;
}

Variables OwnVariables(const char* const* variables) {
  Variables own;
  for (; *variables != nullptr; ++variables) {
    const std::string_view variable = *variables;
    const size_t equals = variable.find('=');
    if (equals == std::string_view::npos || !variable.starts_with(kPrefix)) continue;
    if (equals + 1 < variable.size()) own[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  return own;
}

// Takes the variable out of the map and returns its value; empty: there is none.
std::string Take(const std::string& name, Variables* variables) {
  const auto found = variables->find(name);
  if (found == variables->end()) return "";
  std::string value(found->second);
  variables->erase(found);
  return value;
}

absl::Status Assign(const Setting& setting, const std::string& variable, const std::string& value,
                    ServerConfig* config) {
  const absl::Status status = AssignSetting(setting, value, config);
  if (status.ok()) return status;
  // Kubernetes gives every container such variables about the services of its namespace.
  const std::string_view advice =
      value.starts_with("tcp://") ? " (enableServiceLinks: false keeps Kubernetes from setting it)"
                                  : "";
  return absl::InvalidArgumentError(fmt::format("{}{}: {}{}", variable,
                                                setting.secret ? "" : "=" + value,
                                                std::string(status.message()), advice));
}

absl::Status TakeSetting(const Setting& setting, Variables* variables, ServerConfig* config) {
  const std::string variable = VariableOf(setting.name);
  const std::string value = Take(variable, variables);
  if (!value.empty()) VARVE_RETURN_IF_ERROR(Assign(setting, variable, value, config));
  // requirepass-file is a setting of its own.
  if (FindSetting(fmt::format("{}-file", setting.name)) != nullptr) return absl::OkStatus();
  const std::string file_variable = fmt::format("{}{}", variable, kFileSuffix);
  const std::string path = Take(file_variable, variables);
  if (path.empty()) return absl::OkStatus();
  if (!value.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{} and {}: only one of them can be set", variable, file_variable));
  }
  const absl::StatusOr<std::string> secret = ReadSecretFile(path);
  if (!secret.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {}", file_variable, std::string(secret.status().message())));
  }
  return Assign(setting, file_variable, *secret, config);
}

}  // namespace

std::string VariableOf(std::string_view setting) {
  std::string name(kPrefix);
  for (const char c : setting) name += c == '-' ? '_' : absl::ascii_toupper(c);
  return name;
}

absl::Status TakeEnvironment(const char* const* variables, ServerConfig* config) {
  Variables left = OwnVariables(variables);
  std::vector<std::string_view> names;
  for (const Setting& setting : AllSettings()) {
    VARVE_RETURN_IF_ERROR(TakeSetting(setting, &left, config));
    names.push_back(setting.name);
  }
  // Other programs have variables that begin so, too: only what looks like a slip is refused.
  for (const auto& [variable, value] : left) {
    const std::string_view rest = variable.substr(kPrefix.size());
    if (rest.size() < kShortestSlip) continue;
    const std::string_view nearest = NearestText(SettingOf(rest), names);
    if (nearest.empty()) continue;
    return absl::InvalidArgumentError(fmt::format("{}: there is no such setting, did you mean {}?",
                                                  variable, VariableOf(nearest)));
  }
  return absl::OkStatus();
}

}  // namespace varve
