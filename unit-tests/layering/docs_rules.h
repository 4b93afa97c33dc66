// The rules that hold for the pages of documentation, as functions from the root of a tree to what
// breaks them there.
//
//   words      a page of docs/ has at most kMaxWords words, apart from the tables of the protocol
//              and of the figures
//   links      a relative link leads to a file that exists, and its anchor to a heading there
//   paths      a path in backticks that begins with one of our folders exists
//   tests      a test that a page names by suite and name exists
//   records    a decision has a number, a date, a status and the four headings, and stands in the
//              index
//   glossary   defines at most kMaxHouseWords words
//   threads    docs/architecture.md lists every thread by the name that the system shows, and no
//              other
//   locks      it lists every lock of the engine and of the server by name and file, and no other;
//              a lock that is annotated as acquired before another one stands above it
//   messages   those that docs/troubleshooting.md lists of a server over HBase stand in a source
//              of db/ or server/; `...` is what a message leaves open
//
// Thread-safety: pure functions over the file system.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace varve {

inline constexpr size_t kMaxWords = 5000;
inline constexpr size_t kMaxHouseWords = 15;

// Returns what breaks the rules in the pages below `root`, one line each, with the page's path.
std::vector<std::string> FindDocsViolations(const std::string& root);

// Returns how many words `text` has, as wc counts them.
size_t CountWords(std::string_view text);

// Returns the anchor that a heading has on the pages: "What to do when" is "what-to-do-when".
std::string AnchorOf(std::string_view heading);

// Returns the cells of each row of the tables below the heading `heading` of `page`, without
// backticks and without the row that names the columns; nothing if there is no table.
std::vector<std::vector<std::string>> TableRows(std::string_view page, std::string_view heading);

}  // namespace varve
