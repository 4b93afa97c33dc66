#include "client/cli/command_docs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fmt/format.h"

namespace varve {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return lower;
}

// The member of a map, which RESP2 gives as a flat array. Null: there is none.
const Reply* Member(const Reply& map, std::string_view name) {
  for (size_t i = 0; i + 1 < map.elements.size(); i += 2) {
    if (map.elements[i].text == name) return &map.elements[i + 1];
  }
  return nullptr;
}

std::string TextOf(const Reply& map, std::string_view name) {
  const Reply* member = Member(map, name);
  return member == nullptr ? std::string() : member->text;
}

std::string SyntaxOf(const Reply& arguments, std::string_view separator);

// One of Redis' argument descriptions: a name with a type, an optional token, flags and, for
// groups, arguments inside.
std::string SyntaxOfArgument(const Reply& argument) {
  const std::string type = TextOf(argument, "type");
  const std::string token = TextOf(argument, "token");
  const Reply* const inner = Member(argument, "arguments");
  const Reply* const flags = Member(argument, "flags");
  const auto has_flag = [flags](std::string_view flag) {
    return flags != nullptr &&
           std::any_of(flags->elements.begin(), flags->elements.end(),
                       [flag](const Reply& element) { return element.text == flag; });
  };
  std::string text;
  if (inner != nullptr && (type == "oneof" || type == "block")) {
    text = SyntaxOf(*inner, type == "oneof" ? " | " : " ");
  } else if (type != "pure-token") {
    text = TextOf(argument, "name");
  }
  if (has_flag("multiple")) text = fmt::format("{} [{} ...]", text, text);
  if (!token.empty()) text = text.empty() ? token : fmt::format("{} {}", token, text);
  return has_flag("optional") ? fmt::format("[{}]", text) : text;
}

std::string SyntaxOf(const Reply& arguments, std::string_view separator) {
  std::string syntax;
  for (const Reply& argument : arguments.elements) {
    if (!syntax.empty()) syntax += separator;
    syntax += SyntaxOfArgument(argument);
  }
  return syntax;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 0x20) : c;
  return upper;
}

bool IsKeyword(std::string_view word) {
  return word.size() >= 2 && word[0] >= 'A' && word[0] <= 'Z' &&
         std::all_of(word.begin(), word.end(), [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
         });
}

// The words in capitals of a syntax such as "key value [NX | XX] [GET]", each once.
std::vector<std::string> KeywordsOf(std::string_view syntax) {
  std::set<std::string> words;
  constexpr std::string_view kBetween = " []|.";
  for (size_t begin = 0; begin < syntax.size();) {
    const size_t end = std::min(syntax.find_first_of(kBetween, begin), syntax.size());
    const std::string_view word = syntax.substr(begin, end - begin);
    if (IsKeyword(word)) words.emplace(word);
    begin = end + 1;
  }
  return {words.begin(), words.end()};
}

// The alternatives of "GET pattern | SET name value | [ ... ]", if each begins with a keyword; also
// where all are in brackets.
std::vector<CommandDoc::Subcommand> SubcommandsOf(std::string_view syntax) {
  std::vector<CommandDoc::Subcommand> subcommands;
  if (syntax.starts_with('[') && syntax.find(']') == syntax.size() - 1)
    syntax = syntax.substr(1, syntax.size() - 2);
  constexpr std::string_view kOr = " | ";
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= syntax.size(); ++i) {
    if (i < syntax.size()) depth += (syntax[i] == '[') - (syntax[i] == ']');
    const bool ends = i == syntax.size() || (depth == 0 && syntax.substr(i, kOr.size()) == kOr);
    if (!ends) continue;
    const std::string_view alternative = syntax.substr(begin, i - begin);
    const std::string_view name = alternative.substr(0, alternative.find(' '));
    if (!IsKeyword(name)) return {};
    subcommands.push_back({std::string(name), std::string(alternative)});
    begin = i + kOr.size();
  }
  return subcommands;
}

// Redis names them "client|kill", each with its arguments.
std::vector<CommandDoc::Subcommand> SubcommandsOf(const Reply& members) {
  std::vector<CommandDoc::Subcommand> subcommands;
  for (size_t i = 0; i + 1 < members.elements.size(); i += 2) {
    const std::string& full = members.elements[i].text;
    std::string name = Upper(std::string_view(full).substr(full.find('|') + 1));
    const Reply* const arguments = Member(members.elements[i + 1], "arguments");
    std::string syntax =
        arguments == nullptr ? name : fmt::format("{} {}", name, SyntaxOf(*arguments, " "));
    subcommands.push_back({std::move(name), std::move(syntax)});
  }
  return subcommands;
}

// What the last word of the line may be, in capitals.
std::vector<std::string> WordsAfter(const CommandDoc& doc, std::string_view line, bool is_begun) {
  const size_t second = line.find(' ') + 1;
  const size_t end = line.find(' ', second);
  const bool is_second = end == std::string_view::npos;
  if (doc.subcommands.empty() || !is_second) {
    if (!is_begun) return {};
    return KeywordsOf(is_second ? doc.syntax : doc.SyntaxAfter(line.substr(second, end - second)));
  }
  std::set<std::string> names;
  for (const CommandDoc::Subcommand& subcommand : doc.subcommands) names.insert(subcommand.name);
  return {names.begin(), names.end()};
}

}  // namespace

CommandDocs CommandDocs::FromReply(const Reply& reply) {
  CommandDocs docs;
  for (size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
    const Reply& about = reply.elements[i + 1];
    CommandDoc& doc = docs.docs_[Lower(reply.elements[i].text)];
    doc.summary = TextOf(about, "summary");
    doc.group = TextOf(about, "group");
    doc.syntax = TextOf(about, "syntax");
    const Reply* const arguments = Member(about, "arguments");
    if (doc.syntax.empty() && arguments != nullptr) doc.syntax = SyntaxOf(*arguments, " ");
    const Reply* const subcommands = Member(about, "subcommands");
    doc.subcommands =
        subcommands != nullptr ? SubcommandsOf(*subcommands) : SubcommandsOf(doc.syntax);
    if (doc.syntax.empty()) doc.syntax = doc.SyntaxAfter("");
  }
  return docs;
}

std::string CommandDoc::SyntaxAfter(std::string_view subcommand) const {
  const std::string upper = Upper(subcommand);
  std::string found;
  for (const Subcommand& each : subcommands) {
    if (!upper.empty() && each.name != upper) continue;
    if (!found.empty()) found += " | ";
    found += each.syntax;
  }
  return found.empty() ? syntax : found;
}

const CommandDoc* CommandDocs::Find(std::string_view name) const {
  const auto found = docs_.find(Lower(name));
  return found == docs_.end() ? nullptr : &found->second;
}

std::vector<std::string> CommandDocs::StartingWith(std::string_view prefix) const {
  const std::string lower = Lower(prefix);
  std::vector<std::string> names;
  for (auto doc = docs_.lower_bound(lower); doc != docs_.end() && doc->first.starts_with(lower);
       ++doc) {
    names.push_back(doc->first);
  }
  return names;
}

Completion Complete(const CommandDocs& docs, std::string_view line) {
  Completion completion;
  const size_t last_blank = line.rfind(' ');
  const std::string_view begun = line.substr(last_blank + 1);  // npos + 1 is 0
  if (last_blank == std::string_view::npos) {
    completion.matches = docs.StartingWith(begun);
  } else if (const CommandDoc* const doc = docs.Find(line.substr(0, line.find(' ')));
             doc != nullptr) {
    const std::string upper = Upper(begun);
    for (const std::string& word : WordsAfter(*doc, line, !begun.empty())) {
      if (word.starts_with(upper)) completion.matches.push_back(word);
    }
  }
  if (completion.matches.empty()) return completion;
  std::string common = completion.matches.front();
  for (const std::string& match : completion.matches) {
    const auto [end, ignored] =
        std::mismatch(common.begin(), common.end(), match.begin(), match.end());
    common.erase(end, common.end());
  }
  completion.insertion = common.substr(begun.size());
  const size_t letter = line.find_last_not_of(" -0123456789");
  const bool is_upper =
      letter != std::string_view::npos && line[letter] >= 'A' && line[letter] <= 'Z';
  completion.insertion = is_upper ? Upper(completion.insertion) : Lower(completion.insertion);
  if (completion.matches.size() == 1) completion.insertion += ' ';
  return completion;
}

}  // namespace varve
