#include "server/syntax_arguments.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace varve {
namespace {

using Arguments = std::vector<SyntaxArgument>;

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return lower;
}

bool IsToken(std::string_view word) {
  return std::none_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

std::string TypeOf(std::string_view name) {
  if (name == "key" || name == "source" || name == "destination" || name == "newkey") return "key";
  if (name == "pattern") return "pattern";
  for (const std::string_view number : {"count", "offset", "index", "increment", "decrement", "id"}) {
    if (name == number) return "integer";
  }
  return "string";
}

SyntaxArgument Word(std::string_view word) {
  SyntaxArgument argument;
  argument.name = LowerCase(word);
  argument.type = IsToken(word) ? "pure-token" : TypeOf(word);
  if (IsToken(word)) argument.token = std::string(word);
  return argument;
}

// One argument for a sequence.
SyntaxArgument Block(Arguments sequence) {
  if (sequence.size() == 1) return std::move(sequence.front());
  SyntaxArgument block;
  block.name = sequence.empty() ? "" : sequence.front().name;
  block.type = "block";
  block.arguments = std::move(sequence);
  return block;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  // Up to a closing bracket or the end. `*repeats`: the last alternative ended with "...".
  Arguments Alternatives(bool* repeats) {
    Arguments alternatives;
    Arguments sequence;
    *repeats = false;
    bool several = false;
    for (; position_ < text_.size() && text_[position_] != ']';) {
      if (text_[position_] == ' ') {
        ++position_;
      } else if (text_[position_] == '|') {
        ++position_;
        several = true;
        alternatives.push_back(Block(std::exchange(sequence, {})));
      } else if (text_[position_] == '[') {
        ++position_;
        Optional(&sequence);
      } else {
        Next(&sequence, repeats);
      }
    }
    if (!several) return sequence;
    alternatives.push_back(Block(std::move(sequence)));
    SyntaxArgument oneof;
    oneof.name = alternatives.front().name;
    oneof.type = "oneof";
    oneof.arguments = std::move(alternatives);
    Arguments single;
    single.push_back(std::move(oneof));
    return single;
  }

 private:
  void Next(Arguments* sequence, bool* repeats) {
    const size_t end = std::min(text_.find_first_of(" []|", position_), text_.size());
    const std::string_view word = text_.substr(position_, end - position_);
    position_ = end;
    if (word == "...") {
      *repeats = true;
    } else {
      sequence->push_back(Word(word));
    }
  }

  void Optional(Arguments* sequence) {
    bool repeats = false;
    Arguments inside = Alternatives(&repeats);
    if (position_ < text_.size()) ++position_;  // the bracket
    if (repeats && EndsWith(*sequence, inside)) {
      // key [key ...]: the same once more
      Arguments repeated(sequence->end() - static_cast<ptrdiff_t>(inside.size()), sequence->end());
      sequence->resize(sequence->size() - inside.size());
      sequence->push_back(Block(std::move(repeated)));
    } else {
      sequence->push_back(Block(std::move(inside)));
      sequence->back().optional = true;
    }
    sequence->back().multiple = repeats;
  }

  static bool EndsWith(const Arguments& sequence, const Arguments& end) {
    return !end.empty() && sequence.size() >= end.size() &&
           std::equal(end.rbegin(), end.rend(), sequence.rbegin(),
                      [](const SyntaxArgument& a, const SyntaxArgument& b) { return a.name == b.name; });
  }

  const std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

std::vector<SyntaxArgument> ParseSyntax(std::string_view syntax) {
  bool repeats = false;
  return Parser(syntax).Alternatives(&repeats);
}

}  // namespace varve
