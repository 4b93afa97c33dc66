// The command `tree` of client_main: draws the names below a prefix as a tree of paths.
//
// Thread-safety: the functions are pure, but for RunTree().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "client/client.h"
#include "client/console/command_line.h"
#include "client/console/output.h"
#include "type/reply.h"

namespace varve {

// How a tree is drawn.
struct TreeStyle {
  bool ascii = false;  // without the line characters of UTF-8
  bool sizes = false;  // with keys and bytes behind each name
  size_t depth = 32;   // of the deepest names; what lies below them is not in the reply
  int64_t limit = -1;  // of the names, as in TREE: the reply may end here
};

// Returns the reply to TREE ... WITHSIZES as lines, beneath the line `root`, and how many
// directories and keys it shows as the last line. A directory that is a key, too, counts as both.
// Where the reply is none of TREE's, returns what could be read of it.
std::string DrawTree(const Reply& tree, std::string_view root, const TreeStyle& style,
                     std::string_view delimiter, const Output& output);

// Asks for the tree that the line names and prints it; the exit code.
int RunTree(Client& client, const CommandLine& line, const Output& output);

}  // namespace varve
