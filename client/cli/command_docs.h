// The descriptions of commands that the server gives (COMMAND DOCS); completion, hints and help
// come from them.
//
// Thread-safety: Several threads may read an object while none changes it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "type/reply.h"

namespace varve {

struct CommandDoc {
  std::string summary;
  std::string syntax;  // its arguments, such as "key value [NX | XX] [GET]"
  std::string group;

  // "KILL address" where the syntax of CLIENT goes on with its subcommands; empty for commands
  // without any.
  struct Subcommand {
    std::string name;    // upper case
    std::string syntax;  // with the name
  };
  std::vector<Subcommand> subcommands;

  // Returns the syntax of what may follow the command, or this subcommand of it (in any case).
  std::string SyntaxAfter(std::string_view subcommand) const;
};

class CommandDocs {
 public:
  // From the reply of COMMAND DOCS: RESP2 or RESP3, with a "syntax" or with Redis' "arguments".
  // Empty if it is none of these.
  static CommandDocs FromReply(const Reply& reply);

  // Names are compared without regard to case. Null: there is no such command.
  const CommandDoc* Find(std::string_view name) const;
  // Names that begin with `prefix`, in order, in lower case.
  std::vector<std::string> StartingWith(std::string_view prefix) const;
  bool empty() const { return docs_.empty(); }

 private:
  std::map<std::string, CommandDoc> docs_;
};

// How the last word of a line can go on: a command, a subcommand, or a keyword of the command's
// syntax.
struct Completion {
  // To be typed for the user, in the case of what is there; ends with a blank if nothing else fits.
  std::string insertion;
  std::vector<std::string> matches;  // more than one: what it may become
};
Completion Complete(const CommandDocs& docs, std::string_view line);

}  // namespace varve
