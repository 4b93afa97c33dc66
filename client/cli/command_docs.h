// What the server says about its commands (COMMAND DOCS): the source of completion, hints and help. Thread-compatible.
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
};

class CommandDocs {
 public:
  // From the reply of COMMAND DOCS: RESP2 or RESP3, with a "syntax" or with Redis' "arguments". Empty if it is none of these.
  static CommandDocs FromReply(const Reply& reply);

  // Names are compared without regard to case. Null: there is no such command.
  const CommandDoc* Find(std::string_view name) const;
  // Names that begin with `prefix`, in order, in lower case.
  std::vector<std::string> StartingWith(std::string_view prefix) const;
  bool empty() const { return docs_.empty(); }

 private:
  std::map<std::string, CommandDoc> docs_;
};

// How a word that was begun can go on.
struct Completion {
  std::string
      insertion;  // to be typed for the user, in the case of what is there; ends with a blank if nothing else fits
  std::vector<std::string> matches;  // more than one: what it may become
};
Completion Complete(const CommandDocs& docs, std::string_view begun);

}  // namespace varve
