// The syntax of a command, as the command table writes it, read into the arguments that COMMAND
// DOCS describes one by one: what redis-cli and libraries make their hints from.
//
// Thread-safety: a pure function.
//
//   key [key ...] [NX | XX] [LIMIT offset count] ON|OFF
//
// Capitals are tokens, other words are names of arguments; [] is optional, ... repeats. A | between
// blanks separates what stands in brackets (or the whole) into alternatives, one without blanks the
// words beside it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace varve {

struct SyntaxArgument {
  std::string name;  // lower case
  std::string type;  // as in Redis: key, string, integer, pattern, pure-token, oneof, block
  std::string token;
  bool optional = false;
  bool multiple = false;
  std::vector<SyntaxArgument> arguments;  // of oneof and block
};

std::vector<SyntaxArgument> ParseSyntax(std::string_view syntax);

}  // namespace varve
