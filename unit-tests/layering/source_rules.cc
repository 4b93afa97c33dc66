#include "unit-tests/layering/source_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "unit-tests/layering/source_shape.h"

namespace varve {
namespace {

namespace fs = std::filesystem;

using Folders = std::set<std::string, std::less<>>;

// Split, so that this file keeps its own rules.
const std::array<std::string, 6> kMachinePaths = {
    "/wo"
    "rk/",
    "/tm"
    "p/",
    "/ro"
    "ot/",
    "/ho"
    "me/",
    "/Use"
    "rs/",
    "/mn"
    "t/"};
const std::array<std::string, 2> kLeftovers = {
    "TO"
    "DO",
    "FIX"
    "ME"};

struct SourceFile {
  std::string path;  // relative to the root, with '/'
  std::vector<std::string> lines;
};

bool IsCode(const fs::path& path) { return path.extension() == ".h" || path.extension() == ".cc"; }

bool IsScanned(const fs::path& path) {
  static const Folders extensions = {".h",  ".cc",  ".cmake", ".txt", ".md",  ".json",
                                     ".sh", ".yml", ".py",    ".svg", ".conf"};
  static const Folders names = {"Makefile", "run", ".clang-format", ".clang-tidy", ".gitignore"};
  return extensions.contains(path.extension().string()) || names.contains(path.filename().string());
}

bool IsSkippedDirectory(const fs::path& path) {
  static const Folders names = {"build", "data", ".git", "shared", "__pycache__"};
  return names.contains(path.filename().string());
}

std::vector<fs::path> ScannedPaths(const std::string& root) {
  std::vector<fs::path> paths;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::end(entry); ++entry) {
    if (entry->is_directory() && IsSkippedDirectory(entry->path())) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file() && IsScanned(entry->path())) {
      paths.push_back(entry->path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

SourceFile Load(const std::string& root, const fs::path& path) {
  SourceFile file;
  file.path = fs::relative(path, root).generic_string();
  std::ifstream input(path);
  for (std::string line; std::getline(input, line);) file.lines.push_back(line);
  return file;
}

// Returns the path between the quotes of an #include "...", if that is what the line is.
std::optional<std::string> QuotedInclude(std::string_view line) {
  constexpr std::string_view kInclude = "#include \"";
  if (!line.starts_with(kInclude)) return std::nullopt;
  line.remove_prefix(kInclude.size());
  return std::string(line.substr(0, line.find('"')));
}

// Returns how many columns a line of UTF-8 takes.
size_t Columns(std::string_view line) {
  return static_cast<size_t>(
      std::count_if(line.begin(), line.end(), [](char byte) { return (byte & 0xc0) != 0x80; }));
}

bool IsProduction(std::string_view path) {
  static const Folders others = {"unit-tests", "benchmark", "examples", "cmake"};
  return !others.contains(path.substr(0, path.find('/')));
}

bool BeginsWithFragment(std::string_view comment) {
  static constexpr auto kFragments = std::to_array<std::string_view>(
      {"Of", "Those of", "The same", "Whether", "Where", "As of", "Who", "What"});
  return std::any_of(kFragments.begin(), kFragments.end(), [&](std::string_view words) {
    return comment.starts_with(words) && !std::isalnum(comment[words.size()]);
  });
}

// Returns what the comment in `line` says, and nothing if there is none.
std::optional<std::string_view> CommentIn(std::string_view line) {
  const size_t begin = line.find("// ");
  if (begin == std::string_view::npos) return std::nullopt;
  return line.substr(begin + 3);
}

// Returns the name of the class that begins in the line, outside of any other class.
std::optional<std::string> TypeDefinedIn(std::string_view line) {
  const bool is_type = line.starts_with("class ") || line.starts_with("struct ");
  if (!is_type || line.find('{') == std::string_view::npos) return std::nullopt;
  line.remove_prefix(line.find(' ') + 1);
  // The name stands behind what the type can do: "class ABSL_LOCKABLE SpinLock {".
  if (line.starts_with("ABSL_")) line.remove_prefix(line.find(' ') + 1);
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  const auto end = std::find_if_not(line.begin(), line.end(), is_part);
  const std::string_view behind = line.substr(static_cast<size_t>(end - line.begin()));
  if (behind.starts_with("::")) return std::nullopt;
  return std::string(line.begin(), end);
}

bool IsCommentLine(std::string_view line) {
  return line.substr(std::min(line.size(), line.find_first_not_of(' '))).starts_with("//");
}

// Collects what breaks the rules, file by file.
class Checker {
 public:
  Checker(const std::string& root, const Exceptions& exceptions)
      : root_(root), exceptions_(exceptions) {}

  void Check(const fs::path& path) {
    const SourceFile file = Load(root_, path);
    if (IsCode(path)) {
      CheckColumns(file);
      CheckLoops(file);
      CheckIncludes(file);
      CheckShape(file);
    }
    if (path.extension() == ".h") CheckHeader(file);
    if (path.extension() == ".h" && IsProduction(file.path)) {
      CheckSentences(file);
      CheckNames(file);
    }
    CheckWords(file, kMachinePaths, "names a directory of one machine");
    if (IsCode(path)) CheckWords(file, kLeftovers, "leaves work behind");
    if (IsOurs(FolderOf(file.path))) ++files_in_[std::string(FolderOf(file.path))];
  }

  // What can only be said when every file has been looked at.
  void Finish() {
    for (const auto& [folder, files] : files_in_) {
      if (files <= kMaxFiles) continue;
      violations_.push_back(fmt::format("{}: {} files, and {} are the limit: it is two rooms",
                                        folder, files, kMaxFiles));
    }
    if (fragments_.size() > exceptions_.fragments) {
      violations_.insert(violations_.end(), fragments_.begin(), fragments_.end());
    }
    for (const Arrow& arrow : exceptions_.arrows) {
      if (!needed_.contains(arrow)) ReportUnneeded(fmt::format("{} -> {}", arrow.from, arrow.to));
    }
    for (const std::string& name : exceptions_.long_functions) {
      if (!long_functions_.contains(name)) ReportUnneeded(name);
    }
    for (const std::string& name : exceptions_.large_classes) {
      if (!large_classes_.contains(name)) ReportUnneeded(name);
    }
    for (const auto& [name, reason] : exceptions_.tables) {
      if (!large_classes_.contains(name)) ReportUnneeded(name);
    }
  }

  std::vector<std::string> TakeViolations() { return std::move(violations_); }

 private:
  void Report(const SourceFile& file, size_t line, std::string_view what) {
    violations_.push_back(fmt::format("{}:{}: {}", file.path, line + 1, what));
  }

  void ReportUnneeded(std::string_view exception) {
    violations_.push_back(
        fmt::format("the exception {} is not needed any more: take it out", exception));
  }

  void CheckColumns(const SourceFile& file) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const size_t columns = Columns(file.lines[i]);
      if (columns <= kMaxColumns) continue;
      Report(file, i, fmt::format("{} columns, and {} are the limit", columns, kMaxColumns));
    }
  }

  void CheckLoops(const SourceFile& file) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string_view line = file.lines[i];
      const size_t begin = line.find("for (");
      const size_t range = line.find(" : ", begin);
      if (begin == line.npos || range == line.npos || line.find("()->", range) == line.npos)
        continue;
      if (line.substr(0, range).find(';', begin) == line.npos)
        Report(file, i, "a loop through what a temporary holds: name the pointer before it");
    }
  }

  void CheckIncludes(const SourceFile& file) {
    if (!IsRoom(FolderOf(file.path))) Report(file, 0, "the folder is no room (rooms.cc)");
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::optional<std::string> quoted = QuotedInclude(file.lines[i]);
      if (quoted.has_value()) CheckInclude(file, i, *quoted);
    }
  }

  void CheckInclude(const SourceFile& file, size_t line, const std::string& quoted) {
    const std::string path = IncludedPath(quoted);
    const Arrow arrow{std::string(FolderOf(file.path)), std::string(FolderOf(path))};
    if (arrow.to.empty() || quoted.starts_with('.') || quoted.starts_with("include/")) {
      Report(file, line,
             fmt::format("\"{}\" is not named from the root of the repository", quoted));
    } else if (!IsOurs(arrow.to)) {
      return;  // another project's header
    } else if (!fs::exists(fs::path(root_) / path)) {
      Report(file, line, fmt::format("\"{}\" does not exist", quoted));
    } else if (MayInclude(arrow.from, arrow.to)) {
      return;
    } else if (exceptions_.arrows.contains(arrow)) {
      needed_.insert(arrow);
    } else {
      Report(file, line,
             fmt::format("{} may not include \"{}\": arrows only point down", arrow.from, quoted));
    }
  }

  void CheckShape(const SourceFile& file) {
    const SourceShape shape = ShapeOf(file.lines);
    for (const FunctionShape& function : shape.functions) {
      if (function.lines <= kMaxFunctionLines) continue;
      long_functions_.insert(function.name);
      if (exceptions_.long_functions.contains(function.name)) continue;
      Report(file, function.line,
             fmt::format("{} has {} lines, and {} are the limit", function.name, function.lines,
                         kMaxFunctionLines));
    }
    for (const ClassShape& type : shape.classes) {
      if (type.members <= kMaxMembers && type.functions <= kMaxFunctions) continue;
      large_classes_.insert(type.name);
      if (exceptions_.large_classes.contains(type.name)) continue;
      if (exceptions_.tables.contains(type.name)) continue;
      Report(file, type.line,
             fmt::format("{} has {} data members and {} functions, and {} and {} are the limits",
                         type.name, type.members, type.functions, kMaxMembers, kMaxFunctions));
    }
  }

  // Types of one namespace alone: a type within another has that one's name in front.
  void CheckNames(const SourceFile& file) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::optional<std::string> name = TypeDefinedIn(file.lines[i]);
      if (!name) continue;
      const auto [first, is_new] = types_.try_emplace(*name, file.path);
      if (!is_new && first->second != file.path)
        Report(file, i, fmt::format("{} is the name of a type in {}, too", *name, first->second));
    }
  }

  // Every comment that stands behind code or is not the continuation of one.
  void CheckSentences(const SourceFile& file) {
    bool goes_on = false;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::optional<std::string_view> comment = CommentIn(file.lines[i]);
      const bool begins = !goes_on && comment.has_value();
      goes_on = IsCommentLine(file.lines[i]);
      if (begins && BeginsWithFragment(*comment)) {
        fragments_.push_back(fmt::format("{}:{}: the comment begins with a fragment: {}", file.path,
                                         i + 1, *comment));
      }
    }
  }

  void CheckHeader(const SourceFile& file) {
    if (file.lines.empty() || !file.lines[0].starts_with("// ")) {
      Report(file, 0, "a header opens with a comment that says what it is for");
    }
    if (std::find(file.lines.begin(), file.lines.end(), "#pragma once") == file.lines.end()) {
      Report(file, 0, "a header has #pragma once");
    }
  }

  template <size_t N>
  void CheckWords(const SourceFile& file, const std::array<std::string, N>& words,
                  std::string_view what) {
    for (size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& word : words) {
        if (file.lines[i].find(word) != std::string::npos)
          Report(file, i, fmt::format("{} {}", word, what));
      }
    }
  }

  const std::string root_;
  const Exceptions& exceptions_;
  std::set<Arrow> needed_;                    // the arrows that are exceptions
  std::map<std::string, size_t> files_in_;    // by folder
  std::map<std::string, std::string> types_;  // and the headers that define them
  std::set<std::string> long_functions_;
  std::set<std::string> large_classes_;
  std::vector<std::string> fragments_;  // as violations
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> FindViolations(const std::string& root, const Exceptions& exceptions) {
  Checker checker(root, exceptions);
  for (const fs::path& path : ScannedPaths(root)) checker.Check(path);
  checker.Finish();
  return checker.TakeViolations();
}

size_t CountScannedFiles(const std::string& root) { return ScannedPaths(root).size(); }

}  // namespace varve
