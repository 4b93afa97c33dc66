// Functions for the --help of the benchmark programs: each lists its own rows or experiments and
// its own flags, besides which google-benchmark's work.
//
// Thread-safety: stateless functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace varve::bench {

// What a program measures, in its help.
struct HelpList {
  std::string heading;
  std::vector<std::pair<std::string, std::string>> lines;  // a name and what it stands for
};

// Prints the help of a program and ends it, if its arguments ask for that. `file` is the end of the
// path of the source file that has the program's flags.
// Requires: the caller calls this before google-benchmark sees the arguments, which has a help of
// its own.
void HelpIfAsked(int argc, char** argv, std::string_view file, const std::string& purpose,
                 const std::vector<HelpList>& lists, bool has_google_benchmark = true);

}  // namespace varve::bench
