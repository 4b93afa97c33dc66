#include "unit-tests/layering/docs_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "unit-tests/layering/rooms.h"

namespace varve {
namespace {

namespace fs = std::filesystem;

struct Page {
  std::string path;  // relative to the root, with '/'
  std::string text;
};

std::string ReadAll(const fs::path& path) {
  std::ifstream input(path);
  return {std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
}

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream input{std::string(text)};
  for (std::string line; std::getline(input, line);) lines.push_back(line);
  return lines;
}

// Returns the text without its fenced blocks, in which neither links nor headings stand.
std::string WithoutCode(const std::string& text) {
  std::string kept;
  bool code = false;
  for (const std::string& line : Lines(text)) {
    const bool fence =
        line.substr(std::min(line.size(), line.find_first_not_of(' '))).starts_with("```");
    if (fence) code = !code;
    if (!fence && !code) kept += line + "\n";
  }
  return kept;
}

std::vector<Page> LoadPages(const std::string& root) {
  std::vector<Page> pages;
  const auto add = [&](const fs::path& path) {
    pages.push_back({fs::relative(path, root).generic_string(), ReadAll(path)});
  };
  for (const char* page : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmark/README.md"}) {
    if (fs::exists(fs::path(root) / page)) add(fs::path(root) / page);
  }
  if (fs::exists(fs::path(root) / "docs")) {
    for (const fs::directory_entry& entry :
         fs::recursive_directory_iterator(fs::path(root) / "docs")) {
      if (entry.path().extension() == ".md") add(entry.path());
    }
  }
  std::sort(pages.begin(), pages.end(),
            [](const Page& a, const Page& b) { return a.path < b.path; });
  return pages;
}

std::set<std::string> Anchors(const std::string& text) {
  std::set<std::string> anchors;
  for (const std::string& line : Lines(WithoutCode(text))) {
    const size_t level = line.find_first_not_of('#');
    if (level == 0 || level == std::string::npos || line[level] != ' ') continue;
    anchors.insert(AnchorOf(line.substr(level + 1)));
  }
  return anchors;
}

// Returns the source with literals that the compiler joins written as one, so that each message
// stands on one line.
std::string WithJoinedLiterals(std::string_view source) {
  std::string joined;
  for (size_t at = 0; at < source.size(); ++at) {
    const size_t next = source[at] == '"' ? source.find_first_not_of(" \n", at + 1) : at;
    const bool goes_on = next != std::string_view::npos && next > at + 1 && source[next] == '"';
    if (goes_on) {
      at = next;
    } else {
      joined += source[at];
    }
  }
  return joined;
}

// Returns whether the line has what stands between the `...` of the message, in its order.
bool HasMessage(std::string_view line, std::string_view message) {
  constexpr std::string_view kLeftOpen = "...";
  size_t at = 0;
  for (;;) {
    const size_t end = std::min(message.find(kLeftOpen), message.size());
    at = line.find(message.substr(0, end), at);
    if (at == std::string_view::npos) return false;
    if (end == message.size()) return true;
    at += end;
    message.remove_prefix(end + kLeftOpen.size());
  }
}

// Calls `found` with each match of `pattern` in `text`.
template <typename Found>
void ForEachMatch(const std::string& text, const std::regex& pattern, Found found) {
  for (std::sregex_iterator match(text.begin(), text.end(), pattern);
       match != std::sregex_iterator(); ++match) {
    found(*match);
  }
}

class DocsCheck {
 public:
  explicit DocsCheck(const std::string& root) : root_(root), pages_(LoadPages(root)) {}

  std::vector<std::string> Run() {
    LoadTests();
    for (const Page& page : pages_) {
      CheckWords(page);
      CheckLinks(page);
      CheckPaths(page);
      CheckTests(page);
      if (IsRecord(page.path)) CheckRecord(page);
      if (page.path == "docs/glossary.md") CheckGlossary(page);
      if (page.path == "docs/architecture.md") {
        CheckThreads(page);
        CheckLocks(page);
      }
      if (page.path == "docs/troubleshooting.md") CheckMessages(page);
    }
    return violations_;
  }

 private:
  static bool IsRecord(std::string_view path) {
    static const std::regex kRecord("docs/decisions/[0-9]{4}-[a-z0-9-]+\\.md");
    return std::regex_match(path.begin(), path.end(), kRecord);
  }

  void Report(const Page& page, const std::string& what) {
    violations_.push_back(page.path + ": " + what);
  }

  // The sources of the tests as one text, in which names are looked for.
  void LoadTests() {
    const fs::path folder = fs::path(root_) / "unit-tests";
    if (!fs::exists(folder)) return;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".cc") tests_ += ReadAll(entry.path());
    }
  }

  void CheckWords(const Page& page) {
    if (!page.path.starts_with("docs/")) return;
    if (page.path == "docs/protocol.md" || page.path == "docs/performance.md") return;
    const size_t words = CountWords(page.text);
    if (words > kMaxWords) Report(page, fmt::format("{} words, {} at most", words, kMaxWords));
  }

  void CheckLinks(const Page& page) {
    static const std::regex kLink("\\]\\(([^)\\s]+)\\)");
    ForEachMatch(WithoutCode(page.text), kLink, [&](const std::smatch& match) {
      const std::string link = match[1];
      if (link.find("://") != std::string::npos) return;
      const size_t hash = std::min(link.find('#'), link.size());
      const fs::path target =
          hash == 0 ? fs::path(root_) / page.path
                    : (fs::path(root_) / page.path).parent_path() / link.substr(0, hash);
      if (!fs::exists(target)) return Report(page, "links to " + link + ", which does not exist");
      if (hash < link.size() && !Anchors(ReadAll(target)).contains(link.substr(hash + 1))) {
        Report(page, "links to " + link + ", which is no heading there");
      }
    });
  }

  void CheckPaths(const Page& page) {
    static const std::regex kCode("`([A-Za-z0-9_-]+/[A-Za-z0-9_./-]*[A-Za-z0-9_-])/?`");
    if (IsRecord(page.path) && page.text.find("Status: Superseded") != std::string::npos) return;
    ForEachMatch(WithoutCode(page.text), kCode, [&](const std::smatch& match) {
      const std::string path = match[1];
      if (!IsOurs(FolderOf(path)) || fs::exists(fs::path(root_) / path)) return;
      Report(page, "names `" + path + "`, which does not exist");
    });
  }

  void CheckTests(const Page& page) {
    static const std::regex kTest("`([A-Z][A-Za-z0-9]*Test)\\.([A-Z][A-Za-z0-9]+)`");
    ForEachMatch(page.text, kTest, [&](const std::smatch& match) {
      const std::string name = fmt::format("({}, {})", match[1].str(), match[2].str());
      if (tests_.find(name) == std::string::npos)
        Report(page, "names a test that is not there: " + name);
    });
  }

  void CheckRecord(const Page& page) {
    const std::string name = fs::path(page.path).filename().string();
    const std::string number = name.substr(0, 4);
    static const std::regex kDate("\n\n20[0-9]{2}-[0-9]{2}-[0-9]{2}\\. Status: [A-Z]");
    if (!page.text.starts_with("# " + number + ": ")) Report(page, "has not its number as title");
    if (!std::regex_search(page.text, kDate)) Report(page, "has no date and status");
    for (const char* heading : {"Context", "Decision", "Consequence", "Figure and command"}) {
      if (page.text.find(fmt::format("\n## {}\n", heading)) == std::string::npos) {
        Report(page, fmt::format("has no heading {}", heading));
      }
    }
    if (ReadAll(fs::path(root_) / "docs/decisions/README.md").find("(" + name + ")") ==
        std::string::npos) {
      Report(page, "is not in the index");
    }
  }

  void CheckGlossary(const Page& page) {
    const size_t words = TableRows(page.text, "Glossary").size();
    if (words > kMaxHouseWords) {
      Report(page, fmt::format("defines {} words, {} at most", words, kMaxHouseWords));
    }
  }

  // Calls `use` with the path and each line of the sources that a server is made of.
  template <typename Use>
  void ForEachSourceLine(Use use) const {
    for (const char* folder : {"util", "structure", "db", "server"}) {
      if (!fs::exists(fs::path(root_) / folder)) continue;
      for (const fs::directory_entry& entry :
           fs::recursive_directory_iterator(fs::path(root_) / folder)) {
        if (entry.path().extension() != ".h" && entry.path().extension() != ".cc") continue;
        const std::string path = fs::relative(entry.path(), root_).generic_string();
        for (const std::string& line : Lines(ReadAll(entry.path()))) use(path, line);
      }
    }
  }

  void CheckThreads(const Page& page) {
    std::set<std::string> named;
    static const std::regex kLiteral("\"(varve-[a-z{}-]+)\"");
    ForEachSourceLine([&](const std::string&, const std::string& line) {
      ForEachMatch(line, kLiteral, [&](const std::smatch& match) {
        named.insert(std::regex_replace(match[1].str(), std::regex("\\{\\}"), "0"));
      });
    });
    std::set<std::string> listed;
    static const std::regex kName("varve-[a-z0-9-]+");
    for (const std::vector<std::string>& row : TableRows(page.text, "Threads")) {
      ForEachMatch(row.front(), kName,
                   [&](const std::smatch& match) { listed.insert(match[0].str()); });
    }
    Compare(page, "thread", named, listed);
  }

  void CheckLocks(const Page& page) {
    std::vector<std::string> listed;  // "name in path", in the page's order
    for (const std::vector<std::string>& row : TableRows(page.text, "Locks")) {
      if (row.size() > 1) listed.push_back(row[0] + " in " + row[1]);
    }
    const auto place = [&](const std::string& lock) {
      return std::find(listed.begin(), listed.end(), lock) - listed.begin();
    };
    std::set<std::string> declared;
    static const std::regex kLock(
        "^ +(?:mutable |alignas\\(64\\) )*(?:absl::Mutex|SpinLock|TurnMutex) "
        "(\\w+)(?:\\[\\w+\\])?[ ;]");
    static const std::regex kBefore("ABSL_ACQUIRED_BEFORE\\(([^)]*)\\)");
    static const std::regex kWord("\\w+");
    ForEachSourceLine([&](const std::string& path, const std::string& line) {
      ForEachMatch(line, kLock, [&](const std::smatch& match) {
        const std::string lock = match[1].str() + " in " + path;
        declared.insert(lock);
        ForEachMatch(line, kBefore, [&](const std::smatch& before) {
          ForEachMatch(before[1].str(), kWord, [&](const std::smatch& other) {
            const std::string later = other[0].str() + " in " + path;
            if (place(later) < place(lock)) Report(page, later + " stands above " + lock);
          });
        });
      });
    });
    Compare(page, "lock", declared, {listed.begin(), listed.end()});
  }

  void CheckMessages(const Page& page) {
    std::string source;
    ForEachSourceLine([&](const std::string& path, const std::string& line) {
      if (path.starts_with("db/") || path.starts_with("server/")) source += line + "\n";
    });
    const std::vector<std::string> lines = Lines(WithJoinedLiterals(source));
    const auto rows = TableRows(page.text, "A server over HBase");
    if (rows.empty()) Report(page, "has no messages of a server over HBase");
    for (const std::vector<std::string>& row : rows) {
      const std::string& message = row.front();
      const auto has_it = [&](const std::string& line) { return HasMessage(line, message); };
      if (std::none_of(lines.begin(), lines.end(), has_it))
        Report(page, "lists a message that no source has: " + message);
    }
  }

  void Compare(const Page& page, const std::string& what, const std::set<std::string>& there,
               const std::set<std::string>& listed) {
    for (const std::string& name : there) {
      if (!listed.contains(name)) Report(page, fmt::format("does not list the {} {}", what, name));
    }
    for (const std::string& name : listed) {
      if (!there.contains(name)) Report(page, fmt::format("lists a {} {}", what, name));
    }
  }

  const std::string root_;
  const std::vector<Page> pages_;
  std::string tests_;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> FindDocsViolations(const std::string& root) {
  return DocsCheck(root).Run();
}

size_t CountWords(std::string_view text) {
  std::istringstream input{std::string(text)};
  return static_cast<size_t>(std::distance(std::istream_iterator<std::string>(input),
                                           std::istream_iterator<std::string>()));
}

std::string AnchorOf(std::string_view heading) {
  std::string anchor;
  for (const char c : heading) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || (c & 0x80) != 0) {
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

std::vector<std::vector<std::string>> TableRows(std::string_view page, std::string_view heading) {
  std::vector<std::vector<std::string>> rows;
  bool below = false;
  for (std::string line : Lines(page)) {
    if (line.starts_with("#")) below = line.substr(line.find_first_not_of("# ")) == heading;
    if (!below || !line.starts_with("| ")) continue;
    if (line.starts_with("| ---")) {
      if (!rows.empty()) rows.pop_back();  // the names of the columns
      continue;
    }
    std::erase(line, '`');
    std::vector<std::string> cells;
    for (size_t at = 2; at < line.size();) {
      const size_t end = std::min(line.find(" |", at), line.size());
      cells.push_back(line.substr(at, end - at));
      at = end + 3;
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

}  // namespace varve
