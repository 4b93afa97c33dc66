#include "server/config/config_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "server/config/toml_parser.h"
#include "util/base/status.h"
#include "util/os/file_system.h"

namespace varve {
namespace {

// Where a value stands in a text: [begin, end) in bytes.
struct Place {
  size_t begin;
  size_t end;
};

struct Parsed {
  std::map<std::string_view, Place> places;  // by setting
  std::map<uint32_t, std::string> mistakes;  // by line
};

// Begins of all lines.
std::vector<size_t> LineBegins(std::string_view text) {
  std::vector<size_t> begins = {0};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') begins.push_back(i + 1);
  }
  return begins;
}

// toml++ counts columns in characters, from 1, and a byte order mark as none.
size_t OffsetOf(std::string_view text, const std::vector<size_t>& lines,
                const toml::source_position& position) {
  if (position.line == 0 || position.line > lines.size()) return text.size();
  size_t offset = lines[position.line - 1];
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (offset == 0 && text.starts_with(kByteOrderMark)) offset = kByteOrderMark.size();
  for (uint32_t column = 1; column < position.column && offset < text.size(); ++column) {
    do {
      ++offset;
    } while (offset < text.size() && (static_cast<unsigned char>(text[offset]) & 0xC0) == 0x80);
  }
  return offset;
}

absl::StatusOr<std::string> ValueText(const toml::node& node) {
  if (const auto text = node.as_string()) return text->get();
  if (const auto number = node.as_integer()) return fmt::to_string(number->get());
  if (const auto boolean = node.as_boolean()) return std::string(boolean->get() ? "yes" : "no");
  return absl::InvalidArgumentError("a value is a text, a number, true or false");
}

void ParseEntry(const toml::key& key, const toml::node& node, std::string_view text,
                const std::vector<size_t>& lines, ServerConfig* config, Parsed* parsed) {
  const uint32_t line = key.source().begin.line;
  const std::string_view name = key.str();
  const auto mistake = [&](std::string what) { parsed->mistakes.emplace(line, std::move(what)); };
  if (node.is_table())
    return mistake(fmt::format("[{}]: there are no sections, settings stand by themselves", name));
  const Setting* const setting = FindSetting(name);
  if (setting == nullptr)
    return mistake(fmt::format("{} is no setting{}", name, SettingSuggestion(name)));
  const absl::StatusOr<std::string> value = ValueText(node);
  const absl::Status assigned =
      value.ok() ? AssignSetting(*setting, *value, config) : value.status();
  if (!assigned.ok()) {
    const std::string shown = value.ok() && !setting->secret ? " = " + *value : "";
    return mistake(fmt::format("{}{}: {}", name, shown, std::string(assigned.message())));
  }
  parsed->places[setting->name] = {OffsetOf(text, lines, node.source().begin),
                                   OffsetOf(text, lines, node.source().end)};
}

// The line on which toml++ loses its way.
size_t LineOfConfusion(std::string_view text) {
  const std::vector<size_t> begins = LineBegins(text);
  for (size_t line = 1; line < begins.size(); ++line) {
    try {
      (void)toml::parse(text.substr(0, begins[line]));
    } catch (const toml::parse_error&) {
      // The beginning of a longer value.
    } catch (const TomlConfusion&) {
      return line;
    }
  }
  return begins.size();
}

absl::StatusOr<toml::table> ParseToml(std::string_view text, std::string_view path) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(fmt::format("{}:{}: {}", path, error.source().begin.line,
                                                  std::string(error.description())));
  } catch (const TomlConfusion&) {
    return absl::InvalidArgumentError(
        fmt::format("{}:{}: this can't be read as TOML", path, LineOfConfusion(text)));
  }
}

absl::StatusOr<Parsed> ParseText(std::string_view text, std::string_view path,
                                 ServerConfig* config) {
  VARVE_ASSIGN_OR_RETURN(const toml::table table, ParseToml(text, path));
  const std::vector<size_t> lines = LineBegins(text);
  Parsed parsed;
  for (const auto& [key, node] : table) ParseEntry(key, node, text, lines, config, &parsed);
  if (parsed.mistakes.empty()) return parsed;
  std::string all;
  for (const auto& [line, what] : parsed.mistakes) {
    all += fmt::format("{}{}:{}: {}", all.empty() ? "" : "\n", path, line, what);
  }
  return absl::InvalidArgumentError(all);
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {  // opening one succeeds
    return absl::InvalidArgumentError(fmt::format("{}: is a directory", path));
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file.is_open() || file.bad())
    return absl::InvalidArgumentError(fmt::format("{}: can't be read", path));
  return std::move(text).str();
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      quoted += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string TomlValue(const Setting& setting, const ServerConfig& config) {
  const std::string value = WriteSetting(setting, config);
  const bool is_number = !value.empty() && std::all_of(value.begin(), value.end(),
                                                       [](char c) { return c >= '0' && c <= '9'; });
  if (setting.kind == SettingKind::kSwitch) return value == "yes" ? "true" : "false";
  const bool may_be_number =
      setting.kind == SettingKind::kInteger || setting.kind == SettingKind::kSize ||
      setting.kind == SettingKind::kDuration || setting.kind == SettingKind::kSeconds;
  return is_number && may_be_number ? value : Quoted(value);
}

// The end (behind the line's newline) of the line "# name = ..." or "#name = ...", or npos.
size_t EndOfCommentedLine(std::string_view text, std::string_view name) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = std::min(end + 1, text.size());
    if (!line.starts_with('#')) continue;
    line.remove_prefix(std::min(line.find_first_not_of("# "), line.size()));
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    const size_t equals = line.find_first_not_of(' ');
    if (equals != std::string_view::npos && line[equals] == '=') return begin;
  }
  return std::string_view::npos;
}

}  // namespace

absl::Status ParseConfigText(std::string_view text, std::string_view path, ServerConfig* config) {
  return ParseText(text, path, config).status();
}

absl::Status ReadConfigFile(const std::string& path, ServerConfig* config) {
  VARVE_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return ParseConfigText(text, path, config);
}

absl::StatusOr<std::string> RewriteConfigText(std::string_view text, std::string_view path,
                                              const ServerConfig& config) {
  ServerConfig old;
  VARVE_ASSIGN_OR_RETURN(const Parsed parsed, ParseText(text, path, &old));
  struct Edit {
    Place place;
    std::string text;
  };
  std::vector<Edit> edits;
  std::string result(text);
  std::string behind;
  for (const Setting& setting : AllSettings()) {
    const auto is_given = [&setting](const ServerConfig& by) {
      return by.given.contains(setting.name);
    };
    // A size that is given is not the same as one that is left to the server.
    const bool becomes_given = setting.shares_memory && is_given(config) && !is_given(old);
    if (WriteSetting(setting, config) == WriteSetting(setting, old) && !becomes_given) continue;
    if (setting.secret && !config.password_file.empty()) continue;  // it stands in that file
    const std::string value = TomlValue(setting, config);
    const std::string line = fmt::format("{} = {}\n", setting.name, value);
    if (const auto place = parsed.places.find(setting.name); place != parsed.places.end()) {
      edits.push_back({place->second, value});
    } else if (const size_t end = EndOfCommentedLine(text, setting.name);
               end != std::string_view::npos) {
      edits.push_back({{end, end}, (text[end - 1] == '\n' ? "" : "\n") + line});
    } else {
      behind += line;
    }
  }
  std::stable_sort(edits.begin(), edits.end(),
                   [](const Edit& a, const Edit& b) { return a.place.begin > b.place.begin; });
  for (const Edit& edit : edits)
    result.replace(edit.place.begin, edit.place.end - edit.place.begin, edit.text);
  if (!behind.empty() && !result.empty() && !result.ends_with('\n')) result += '\n';
  return result + behind;
}

absl::Status RewriteConfigFile(const std::string& path, const ServerConfig& config) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);  // a link stays one
  if (error) return absl::FailedPreconditionError(fmt::format("{}: {}", path, error.message()));
  VARVE_ASSIGN_OR_RETURN(const std::string old, ReadText(real.string()));
  VARVE_ASSIGN_OR_RETURN(const std::string text, RewriteConfigText(old, path, config));
  // What the server could not read again must not replace what it can.
  ServerConfig again;
  VARVE_RETURN_IF_ERROR(ParseConfigText(text, path, &again));
  if (text == old) return absl::OkStatus();

  FileSystem* const files = PosixFileSystem();
  const std::string temporary = real.string() + ".tmp";
  const std::filesystem::perms mode = std::filesystem::status(real, error).permissions();
  const auto write = [&]() -> absl::Status {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files->OpenForWrite(temporary, true));
    VARVE_RETURN_IF_ERROR(file->Write(0, text));
    std::filesystem::permissions(temporary, mode, error);
    if (error)
      return absl::InternalError(
          fmt::format("can't give {} the mode of {}: {}", temporary, path, error.message()));
    VARVE_RETURN_IF_ERROR(file->Sync());
    return files->Rename(temporary, real.string());
  };
  if (absl::Status written = write(); !written.ok()) {
    std::filesystem::remove(temporary, error);
    return written;
  }
  return files->SyncDirectory(real.parent_path().string());
}

std::string ExampleConfig() {
  const ServerConfig defaults;
  std::string text =
      "# Varve's configuration: varve-server --config FILE. Every setting is listed with its "
      "default; the names are\n"
      "# those of the flags. A flag on the command line goes before a variable of the environment "
      "(VARVE_FOO_BAR for\n"
      "# foo-bar), and that before the file. `varve-server --config FILE --check-config` looks for "
      "mistakes without\n"
      "# starting. Settings marked \"live\" can be changed with CONFIG SET while the server "
      "runs.\n";
  for (const Setting& setting : AllSettings()) {
    text += fmt::format("\n# {}{}\n# {} = {}\n", setting.help,
                        setting.apply != nullptr ? " (live)" : "", setting.name,
                        TomlValue(setting, defaults));
  }
  return text;
}

}  // namespace varve
