// The findings of a tool that looked through the files of a store, printed as lines of a table, of
// text or of JSON.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/console/output.h"

namespace varve {

// A finding at one place of a file. `kind` is one word.
struct Finding {
  std::string_view kind;
  std::string file;
  uint64_t offset = 0;
  std::string what;
};

// A line for each; raw: kind, file, offset and what, with tabs between them.
void PrintFindings(const std::vector<Finding>& findings, const Output& output);

// The line at the end: `text` for people, as JSON the numbers that stand in it.
void PrintSummary(std::string_view text,
                  const std::vector<std::pair<std::string_view, uint64_t>>& numbers,
                  const Output& output);

}  // namespace varve
