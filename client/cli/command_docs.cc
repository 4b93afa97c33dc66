#include "client/cli/command_docs.h"

#include <algorithm>

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

// One of Redis' argument descriptions: a name with a type, an optional token, flags and, for groups, arguments inside.
std::string SyntaxOfArgument(const Reply& argument) {
  const std::string type = TextOf(argument, "type");
  const std::string token = TextOf(argument, "token");
  const Reply* const inner = Member(argument, "arguments");
  const Reply* const flags = Member(argument, "flags");
  const auto has_flag = [flags](std::string_view flag) {
    return flags != nullptr && std::any_of(flags->elements.begin(), flags->elements.end(),
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
  }
  return docs;
}

const CommandDoc* CommandDocs::Find(std::string_view name) const {
  const auto found = docs_.find(Lower(name));
  return found == docs_.end() ? nullptr : &found->second;
}

std::vector<std::string> CommandDocs::StartingWith(std::string_view prefix) const {
  const std::string lower = Lower(prefix);
  std::vector<std::string> names;
  for (auto doc = docs_.lower_bound(lower); doc != docs_.end() && doc->first.starts_with(lower); ++doc) {
    names.push_back(doc->first);
  }
  return names;
}

Completion Complete(const CommandDocs& docs, std::string_view begun) {
  Completion completion;
  completion.matches = docs.StartingWith(begun);
  if (completion.matches.empty()) return completion;
  std::string common = completion.matches.front();
  for (const std::string& match : completion.matches) {
    const auto [end, ignored] = std::mismatch(common.begin(), common.end(), match.begin(), match.end());
    common.erase(end, common.end());
  }
  completion.insertion = common.substr(begun.size());
  const bool is_upper = !begun.empty() && begun.back() >= 'A' && begun.back() <= 'Z';
  if (is_upper) {
    for (char& c : completion.insertion) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 0x20) : c;
  }
  if (completion.matches.size() == 1) completion.insertion += ' ';
  return completion;
}

}  // namespace varve
