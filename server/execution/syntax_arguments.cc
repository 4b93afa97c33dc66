#include "server/execution/syntax_arguments.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace varve {
namespace {

using SyntaxArguments = std::vector<SyntaxArgument>;

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
  for (const std::string_view number :
       {"count", "offset", "index", "increment", "decrement", "id"}) {
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

// A token before one argument or several becomes theirs: LIMIT offset count is a block with a
// token, as Redis describes it.
void GiveToken(SyntaxArguments* sequence) {
  const SyntaxArgument& first = sequence->front();
  if (sequence->size() < 2 || first.type != "pure-token" || first.optional || first.multiple)
    return;
  SyntaxArgument& second = (*sequence)[1];
  if (sequence->size() == 2 && (!second.token.empty() || second.optional)) return;
  SyntaxArgument whole;
  if (sequence->size() == 2) {
    whole = std::move(second);
  } else {
    whole.name = first.name;
    whole.type = "block";
    whole.arguments.assign(std::make_move_iterator(sequence->begin() + 1),
                           std::make_move_iterator(sequence->end()));
  }
  whole.token = first.token;
  sequence->clear();
  sequence->push_back(std::move(whole));
}

// One argument for a sequence.
SyntaxArgument Block(SyntaxArguments sequence) {
  if (!sequence.empty()) GiveToken(&sequence);
  if (sequence.size() == 1) return std::move(sequence.front());
  SyntaxArgument block;
  block.name = sequence.empty() ? "" : sequence.front().name;
  block.type = "block";
  block.arguments = std::move(sequence);
  return block;
}

SyntaxArgument OneOf(SyntaxArguments alternatives) {
  SyntaxArgument oneof;
  oneof.name = alternatives.front().name;
  oneof.type = "oneof";
  oneof.arguments = std::move(alternatives);
  return oneof;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  // Up to a closing bracket or the end. `*repeats`: the last alternative ended with "...".
  SyntaxArguments Alternatives(bool* repeats) {
    SyntaxArguments alternatives;
    SyntaxArguments sequence;
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
    SyntaxArguments single;
    single.push_back(OneOf(std::move(alternatives)));
    return single;
  }

 private:
  // A word, or several in a choice: ON|OFF.
  void Next(SyntaxArguments* sequence, bool* repeats) {
    const size_t end = std::min(text_.find_first_of(" []", position_), text_.size());
    std::string_view words = text_.substr(position_, end - position_);
    position_ = end;
    if (words == "...") {
      *repeats = true;
      return;
    }
    SyntaxArguments choice;
    for (size_t bar; (bar = words.find('|')) != std::string_view::npos;
         words.remove_prefix(bar + 1)) {
      choice.push_back(Word(words.substr(0, bar)));
    }
    choice.push_back(Word(words));
    sequence->push_back(choice.size() == 1 ? std::move(choice.front()) : OneOf(std::move(choice)));
  }

  void Optional(SyntaxArguments* sequence) {
    bool repeats = false;
    SyntaxArguments inside = Alternatives(&repeats);
    if (position_ < text_.size()) ++position_;  // the bracket
    if (repeats && EndsWith(*sequence, inside)) {
      // key [key ...]: the same once more
      SyntaxArguments repeated(sequence->end() - static_cast<ptrdiff_t>(inside.size()),
                               sequence->end());
      sequence->resize(sequence->size() - inside.size());
      sequence->push_back(Block(std::move(repeated)));
    } else {
      sequence->push_back(Block(std::move(inside)));
      sequence->back().optional = true;
    }
    sequence->back().multiple = repeats;
  }

  static bool EndsWith(const SyntaxArguments& sequence, const SyntaxArguments& end) {
    return !end.empty() && sequence.size() >= end.size() &&
           std::equal(
               end.rbegin(), end.rend(), sequence.rbegin(),
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
