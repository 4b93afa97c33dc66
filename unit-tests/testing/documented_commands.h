// Reads the table "Every command of Redis 7" of docs/protocol.md.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>

#include "util/base/letter_case.h"

namespace varve::testing {

// Returns the names of commands, as "client|list", by what the table's second column says of them.
inline std::map<std::string, std::set<std::string>> DocumentedCommands() {
  std::ifstream file(VARVE_SOURCE_DIR "/docs/protocol.md");
  std::map<std::string, std::set<std::string>> commands;
  std::set<std::string> seen;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) inside = line == "## Every command of Redis 7";
    if (!inside || !line.starts_with("| `")) continue;
    const size_t second = line.find('|', 1);
    const size_t third = line.find('|', second + 1);
    const std::string how = line.substr(second + 2, third - second - 3);
    for (size_t at = line.find('`'); at < second; at = line.find('`', line.find('`', at + 1) + 1)) {
      std::string name = LowerCase(line.substr(at + 1, line.find('`', at + 1) - at - 1));
      if (const size_t blank = name.find(' '); blank != std::string::npos) name[blank] = '|';
      EXPECT_TRUE(seen.insert(name).second) << name << " is listed twice";
      commands[how].insert(name);
    }
  }
  return commands;
}

}  // namespace varve::testing
