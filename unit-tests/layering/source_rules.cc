#include "unit-tests/layering/source_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>

namespace varve {
namespace {

namespace fs = std::filesystem;

using Folders = std::set<std::string, std::less<>>;

// What each folder of the tree may include.
const std::map<std::string, Folders, std::less<>>& Arrows() {
  static const auto* const arrows = new std::map<std::string, Folders, std::less<>>{
      {"type", {"type"}},
      {"util", {"type", "util"}},
      {"structure", {"type", "util", "structure"}},
      {"db", {"type", "util", "structure", "db"}},
      {"server", {"type", "util", "structure", "db", "server"}},
      {"client", {"type", "util", "client"}},
      {"examples", {"type", "client"}},
      {"crash", {"type", "util", "structure", "db"}},
      {"corruption", {"type", "util", "structure", "db"}},
      {"differential", {"type", "util", "db", "server"}},
      {"fuzz", {"type", "util", "structure", "db", "server", "client"}},
      {"memory", {"type", "util", "structure", "db", "server", "client"}},
      {"prove", {"type", "util", "client"}},
      {"benchmark", {"type", "util", "structure", "db", "server", "client", "benchmark"}},
  };
  return *arrows;
}

// The client's program may look into the engine's files; the client's library may not.
constexpr std::string_view kClientProgram = "client/client_main.cc";
constexpr std::string_view kTopOfTheTree = "benchmark";

constexpr std::string_view kTests = "unit-tests";

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

// "db" for include/varve/store.h, "unit-tests/db" for unit-tests/db/store_test.cc, "" for a file in
// the root.
std::string_view FolderOf(std::string_view path) {
  size_t end = path.find('/');
  if (end == std::string_view::npos) return "";
  if (path.substr(0, end) == kTests) end = path.find('/', end + 1);
  return end == std::string_view::npos ? kTests : path.substr(0, end);
}

// The path between the quotes of an #include "...", if that is what the line is.
std::optional<std::string> QuotedInclude(std::string_view line) {
  constexpr std::string_view kInclude = "#include \"";
  if (!line.starts_with(kInclude)) return std::nullopt;
  line.remove_prefix(kInclude.size());
  return std::string(line.substr(0, line.find('"')));
}

bool IsOurs(std::string_view folder) {
  return Arrows().contains(folder) || folder.starts_with(kTests);
}

class Checker {
 public:
  explicit Checker(const std::string& root) : root_(root) {}

  void Check(const fs::path& path) {
    const SourceFile file = Load(root_, path);
    if (IsCode(path)) {
      CheckLength(file);
      CheckIncludes(file);
    }
    if (path.extension() == ".h") CheckHeader(file);
    CheckWords(file, kMachinePaths, "names a directory of one machine");
    if (IsCode(path)) CheckWords(file, kLeftovers, "leaves work behind");
  }

  std::vector<std::string> TakeViolations() { return std::move(violations_); }

 private:
  void Report(const SourceFile& file, size_t line, std::string_view what) {
    violations_.push_back(fmt::format("{}:{}: {}", file.path, line + 1, what));
  }

  void CheckLength(const SourceFile& file) {
    if (file.lines.size() <= static_cast<size_t>(kMaxLines)) return;
    Report(file, file.lines.size() - 1,
           fmt::format("{} lines, and {} is the limit", file.lines.size(), kMaxLines));
  }

  void CheckIncludes(const SourceFile& file) {
    const std::string_view from = FolderOf(file.path);
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::optional<std::string> include = QuotedInclude(file.lines[i]);
      if (!include.has_value()) continue;
      const std::string_view to = FolderOf(*include);
      if (to.empty() || include->starts_with('.')) {
        Report(file, i,
               fmt::format("\"{}\" is not named from the root of the repository", *include));
      } else if (!IsOurs(to)) {
        continue;  // another project's header
      } else if (!fs::exists(fs::path(root_) / *include)) {
        Report(file, i, fmt::format("\"{}\" does not exist", *include));
      } else if (!MayInclude(file.path == kClientProgram ? kTopOfTheTree : from, to)) {
        Report(file, i,
               fmt::format("{} may not include \"{}\": arrows only point down", from, *include));
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
  std::vector<std::string> violations_;
};

}  // namespace

bool MayInclude(std::string_view from, std::string_view to) {
  if (from.starts_with(kTests)) {
    if (to.starts_with(kTests)) return to == from || to == "unit-tests/testing";
    from.remove_prefix(std::min(from.size(), kTests.size() + 1));
    if (from == "testing") from = "db";
    if (from == "layering") from = "util";
    // Who speaks to a server under test may use the client.
    if (from == "server" && to == "client") return true;
  }
  const auto allowed = Arrows().find(from);
  return allowed != Arrows().end() && allowed->second.contains(to);
}

std::vector<std::string> FindViolations(const std::string& root) {
  Checker checker(root);
  for (const fs::path& path : ScannedPaths(root)) checker.Check(path);
  return checker.TakeViolations();
}

size_t CountScannedFiles(const std::string& root) { return ScannedPaths(root).size(); }

}  // namespace varve
