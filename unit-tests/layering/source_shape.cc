#include "unit-tests/layering/source_shape.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

namespace varve {
namespace {

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return text;
}

// The word at the end of `text`, qualified names whole; empty where another character stands there.
std::string_view LastWord(std::string_view text) {
  text = Trimmed(text);
  size_t begin = text.size();
  while (begin > 0 &&
         (IsWord(text[begin - 1]) || text[begin - 1] == ':' || text[begin - 1] == '~')) {
    --begin;
  }
  return text.substr(begin);
}

bool IsMacro(std::string_view word) {
  return word.size() > 3 && std::all_of(word.begin(), word.end(), [](char c) {
           return std::isupper(static_cast<unsigned char>(c)) != 0 || c == '_' ||
                  std::isdigit(static_cast<unsigned char>(c)) != 0;
         });
}

bool BeginsWithWord(std::string_view text, std::string_view word) {
  return text.starts_with(word) && (text.size() == word.size() || !IsWord(text[word.size()]));
}

// Removes what is no code, character by character, and keeps the ends of lines.
class Stripper {
 public:
  std::string Strip(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      StripLine(line);
      code_ += '\n';
    }
    return std::move(code_);
  }

 private:
  void StripLine(std::string_view line) {
    if (!raw_end_.empty()) {
      const size_t end = line.find(raw_end_);
      if (end == std::string_view::npos) return;
      line.remove_prefix(end + raw_end_.size());
      raw_end_.clear();
    }
    const bool directive = in_directive_ || Trimmed(line).starts_with('#');
    in_directive_ = directive && line.ends_with('\\');
    if (directive) return;
    for (size_t i = 0; i < line.size(); ++i) {
      if (in_comment_) {
        if (line.substr(i).starts_with("*/")) in_comment_ = false, ++i;
      } else if (line.substr(i).starts_with("//")) {
        return;
      } else if (line.substr(i).starts_with("/*")) {
        in_comment_ = true;
        ++i;
      } else if (line.substr(i).starts_with("R\"")) {
        const size_t open = line.find('(', i);
        raw_end_ = ")" + std::string(line.substr(i + 2, open - i - 2)) + "\"";
        code_ += "\"\"";
        const size_t end = line.find(raw_end_, open);
        if (end == std::string_view::npos) return;
        i = end + raw_end_.size() - 1;
        raw_end_.clear();
      } else if (line[i] == '"' || IsCharacter(line, i)) {
        i = EndOfLiteral(line, i);
        code_ += "\"\"";
      } else {
        code_ += line[i];
      }
    }
  }

  // Returns whether a character literal begins at `at`, and no digit separator stands there.
  static bool IsCharacter(std::string_view line, size_t at) {
    return line[at] == '\'' && (at == 0 || !IsWord(line[at - 1]));
  }

  static size_t EndOfLiteral(std::string_view line, size_t begin) {
    size_t i = begin + 1;
    while (i < line.size() && line[i] != line[begin]) i += line[i] == '\\' ? 2 : 1;
    return i;
  }

  std::string code_;
  std::string raw_end_;  // what ends the raw string that the line before left open
  bool in_comment_ = false;
  bool in_directive_ = false;
};

// What is left of a declaration without the arguments of its templates, without annotations such as
// ABSL_GUARDED_BY(mutex_), and without its initializer.
std::string Skeleton(std::string_view text) {
  std::string skeleton;
  int angles = 0;
  int parentheses = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<' && i > 0 && (IsWord(text[i - 1]) || text[i - 1] == ' ') &&
        !skeleton.ends_with("operator") && parentheses == 0) {
      ++angles;
    } else if (c == '>' && angles > 0 && text[i - 1] != '-') {
      --angles;
    } else if (angles > 0) {
      continue;
    } else if (c == '(') {
      const std::string_view word = LastWord(skeleton);
      const bool annotation = IsMacro(word) && word != Trimmed(skeleton);
      if (parentheses++ == 0) skeleton += annotation ? ' ' : c;
    } else if (c == ')') {
      if (--parentheses == 0) skeleton += c;
    } else if (parentheses > 0) {
      continue;
    } else if (c == '=' && skeleton.find("operator") == std::string::npos) {
      break;
    } else {
      skeleton += c;
    }
  }
  return skeleton;
}

// Follows the braces of one file.
class Scanner {
 public:
  explicit Scanner(std::string code) : code_(std::move(code)) {}

  SourceShape Scan() {
    for (const char c : code_) Take(c);
    return std::move(shape_);
  }

 private:
  enum class Kind { kNamespace, kClass, kFunction, kOther };

  struct Scope {
    Kind kind;
    std::string head;  // what stood before its brace, where it goes on behind the closing one
    size_t head_line = 0;
    size_t shape = 0;  // its index among the classes or the functions
  };

  Kind Inside() const { return scopes_.empty() ? Kind::kNamespace : scopes_.back().kind; }

  // Within a function, and within an initializer, only braces are followed.
  bool IsOpaque() const { return Inside() == Kind::kFunction || Inside() == Kind::kOther; }

  void Take(char c) {
    if (c == '\n') ++line_;
    if (c == '{') {
      Open();
    } else if (c == '}') {
      Close();
    } else if (IsOpaque()) {
      return;
    } else if (c == ';' && !InParentheses()) {
      EndStatement();
      head_.clear();
    } else if (c == ':' && IsAccess(Trimmed(head_))) {
      head_.clear();
    } else {
      if (Trimmed(head_).empty()) head_line_ = line_;
      head_ += c;
    }
  }

  static bool IsAccess(std::string_view head) {
    return head == "public" || head == "private" || head == "protected";
  }

  bool InParentheses() const {
    return std::count(head_.begin(), head_.end(), '(') >
           std::count(head_.begin(), head_.end(), ')');
  }

  void Open() {
    Scope scope{IsOpaque() || InParentheses() ? Kind::kOther : KindOf(head_), "", head_line_, 0};
    if (scope.kind == Kind::kOther && !IsOpaque()) scope.head = std::move(head_);
    if (scope.kind == Kind::kClass) {
      scope.shape = shape_.classes.size();
      shape_.classes.push_back({ClassName(head_), head_line_, 0, 0});
    } else if (scope.kind == Kind::kFunction) {
      scope.shape = shape_.functions.size();
      shape_.functions.push_back({FunctionName(head_), head_line_, 0});
      if (Inside() == Kind::kClass) CountFunction();
    }
    scopes_.push_back(std::move(scope));
    head_.clear();
  }

  void Close() {
    if (scopes_.empty()) return;
    Scope scope = std::move(scopes_.back());
    scopes_.pop_back();
    if (scope.kind == Kind::kFunction) {
      FunctionShape& function = shape_.functions[scope.shape];
      function.lines = line_ - function.line + 1;
    }
    head_ = std::move(scope.head);
    if (!head_.empty()) head_ += "}", head_line_ = scope.head_line;
  }

  static std::string_view WithoutTemplate(std::string_view head) {
    head = Trimmed(head);
    while (BeginsWithWord(head, "template")) {
      size_t i = head.find('<');
      if (i == std::string_view::npos) return head;
      int depth = 0;
      do {
        depth += head[i] == '<' ? 1 : head[i] == '>' ? -1 : 0;
      } while (++i < head.size() && depth > 0);
      head = Trimmed(head.substr(i));
    }
    return head;
  }

  static bool IsClassHead(std::string_view head) {
    return BeginsWithWord(head, "class") || BeginsWithWord(head, "struct") ||
           BeginsWithWord(head, "union");
  }

  static Kind KindOf(std::string_view text) {
    const std::string_view head = WithoutTemplate(text);
    if (BeginsWithWord(head, "namespace") || BeginsWithWord(head, "extern") ||
        BeginsWithWord(head, "inline namespace")) {
      return Kind::kNamespace;
    }
    const std::string skeleton = Skeleton(head);
    if (IsClassHead(head) && skeleton.find('(') == std::string::npos) return Kind::kClass;
    const std::string_view end = Trimmed(skeleton);
    if (end.find('(') == std::string_view::npos || head.ends_with('=')) return Kind::kOther;
    static constexpr std::array<std::string_view, 5> kBeforeBody = {"const", "override", "final",
                                                                    "noexcept", "mutable"};
    const std::string_view last = LastWord(end);
    const bool body = end.ends_with(')') || end.ends_with('}') || end.ends_with('&') ||
                      end.find("->") != std::string_view::npos || IsMacro(last) ||
                      std::find(kBeforeBody.begin(), kBeforeBody.end(), last) != kBeforeBody.end();
    return body ? Kind::kFunction : Kind::kOther;
  }

  std::string ClassName(std::string_view text) const {
    std::string skeleton = Skeleton(WithoutTemplate(text));
    // What is derived from is behind a colon of its own.
    for (size_t i = skeleton.find(':'); i != std::string::npos; i = skeleton.find(':', i + 2)) {
      if (skeleton.compare(i, 2, "::") == 0) continue;
      skeleton.resize(i);
      break;
    }
    std::string_view name = LastWord(skeleton);
    if (name == "final")
      name = LastWord(std::string_view(skeleton).substr(0, skeleton.rfind(name)));
    if (Inside() != Kind::kClass) return std::string(name);
    return shape_.classes[scopes_.back().shape].name + "::" + std::string(name);
  }

  std::string FunctionName(std::string_view text) const {
    const std::string_view head = WithoutTemplate(text);
    if (head.starts_with("TEST")) {
      std::string name(head.substr(0, head.find(')') + 1));
      name.erase(std::remove(name.begin(), name.end(), '\n'), name.end());
      return name;
    }
    const std::string skeleton = Skeleton(head);
    std::string name(LastWord(std::string_view(skeleton).substr(0, skeleton.find('('))));
    if (Inside() != Kind::kClass) return name;
    return shape_.classes[scopes_.back().shape].name + "::" + name;
  }

  // Counts the function whose head has been read, unless it is a constructor or a destructor.
  void CountFunction() {
    ClassShape& shape = shape_.classes[scopes_.back().shape];
    const std::string skeleton = Skeleton(WithoutTemplate(head_));
    const std::string_view name =
        LastWord(std::string_view(skeleton).substr(0, skeleton.find('(')));
    const size_t colon = shape.name.rfind(':');
    const std::string_view own =
        std::string_view(shape.name).substr(colon == std::string::npos ? 0 : colon + 1);
    if (name != own && !name.starts_with('~')) ++shape.functions;
  }

  void EndStatement() {
    if (Inside() != Kind::kClass) return;
    const std::string_view head = WithoutTemplate(head_);
    static constexpr std::array<std::string_view, 7> kOthers = {
        "using", "typedef", "friend", "static_assert", "enum", "class", "struct"};
    if (head.empty() || std::any_of(kOthers.begin(), kOthers.end(), [&](std::string_view word) {
          return BeginsWithWord(head, word);
        })) {
      return;
    }
    const std::string skeleton = Skeleton(head);
    if (skeleton.find('(') != std::string::npos) {
      if (!head.ends_with("delete")) CountFunction();
    } else if (!BeginsWithWord(head, "static") && !BeginsWithWord(head, "inline static") &&
               !BeginsWithWord(head, "constexpr")) {
      const auto commas = std::count(skeleton.begin(), skeleton.end(), ',');
      shape_.classes[scopes_.back().shape].members += static_cast<size_t>(commas) + 1;
    }
  }

  const std::string code_;
  SourceShape shape_;
  std::vector<Scope> scopes_;
  std::string head_;  // of the declaration that is being read
  size_t head_line_ = 0;
  size_t line_ = 0;
};

}  // namespace

SourceShape ShapeOf(const std::vector<std::string>& lines) { return Scanner(CodeOf(lines)).Scan(); }

std::string CodeOf(const std::vector<std::string>& lines) { return Stripper().Strip(lines); }

}  // namespace varve
