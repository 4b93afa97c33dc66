#include "client/cli/line_editor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <utility>

#include "fmt/format.h"

namespace varve {
namespace {

constexpr int kHistoryLines = 1000;

bool HoldsPassword(std::string_view line) {
  std::string lower(line);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  for (const std::string_view word : {"auth", "requirepass", "masterauth"}) {
    if (lower.find(word) != std::string::npos) return true;
  }
  return false;
}

// The second word, once a blank follows it.
std::string_view FinishedSubcommand(std::string_view typed) {
  const size_t first = typed.find(' ');
  const size_t second = first == std::string_view::npos ? first : typed.find(' ', first + 1);
  return second == std::string_view::npos ? std::string_view()
                                          : typed.substr(first + 1, second - first - 1);
}

}  // namespace

LineEditor::LineEditor(std::string history_path, const CommandDocs* docs)
    : history_path_(std::move(history_path)),
      docs_(docs),
      editor_(el_init("client_main", stdin, stdout, stderr)),
      history_(history_init()) {
  history(history_, &event_, H_SETSIZE, kHistoryLines);
  history(history_, &event_, H_SETUNIQUE, 1);
  if (!history_path_.empty()) history(history_, &event_, H_LOAD, history_path_.c_str());
  el_set(editor_, EL_CLIENTDATA, this);
  el_set(editor_, EL_PROMPT, &LineEditor::Prompt);
  el_set(editor_, EL_RPROMPT, &LineEditor::Hint);
  el_set(editor_, EL_EDITOR, "emacs");
  el_set(editor_, EL_SIGNAL, 1);
  el_set(editor_, EL_HIST, history, history_);
  el_set(editor_, EL_ADDFN, "varve-complete", "completes a command or shows its arguments",
         &LineEditor::OnTab);
  el_set(editor_, EL_ADDFN, "varve-blank", "ends a word and shows a hint", &LineEditor::OnBlank);
  el_set(editor_, EL_BIND, "^I", "varve-complete", nullptr);
  el_set(editor_, EL_BIND, " ", "varve-blank", nullptr);
  // While a line is typed Ctrl-C is a key; while a request is under way it is a signal, as in any
  // program.
  el_set(editor_, EL_SETTY, "-d", "-isig", nullptr);
  el_set(editor_, EL_ADDFN, "varve-interrupt", "begins the line anew", &LineEditor::OnInterrupt);
  el_set(editor_, EL_BIND, "^C", "varve-interrupt", nullptr);
  el_set(editor_, EL_ADDFN, "varve-suspend", "stops the program for a while",
         &LineEditor::OnSuspend);
  el_set(editor_, EL_BIND, "^Z", "varve-suspend", nullptr);
  el_set(editor_, EL_ADDFN, "varve-end", "ends the input", &LineEditor::OnEndTypedAhead);
  el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_source(editor_, nullptr);  // the user's own .editrc
}

LineEditor::~LineEditor() {
  history_end(history_);
  el_end(editor_);
}

LineEditor* LineEditor::Self(EditLine* editor) {
  void* self = nullptr;
  el_get(editor, EL_CLIENTDATA, &self);
  return static_cast<LineEditor*>(self);
}

char* LineEditor::Prompt(EditLine* editor) {
  return const_cast<char*>(Self(editor)->prompt_.c_str());
}

// The arguments of the command that is being typed, at the right edge.
char* LineEditor::Hint(EditLine* editor) {
  LineEditor* const self = Self(editor);
  const std::string_view typed = self->Typed();
  const size_t blank = typed.find(' ');
  const CommandDoc* const doc =
      blank == std::string_view::npos ? nullptr : self->docs_->Find(typed.substr(0, blank));
  self->hint_ = doc == nullptr ? std::string() : doc->SyntaxAfter(FinishedSubcommand(typed));
  return self->hint_.data();
}

std::string_view LineEditor::Typed() const {
  const LineInfo* const line = el_line(editor_);
  return {line->buffer, static_cast<size_t>(line->cursor - line->buffer)};
}

unsigned char LineEditor::OnBlank(EditLine* editor, int key) {
  // Inserting takes libedit's short way, which leaves the right prompt alone; this has it drawn
  // anew.
  return el_insertstr(editor, " ") == 0 ? CC_REFRESH : CC_ERROR;
}

unsigned char LineEditor::OnInterrupt(EditLine* editor, int key) {
  fmt::print("^C\n");
  const LineInfo* const line = el_line(editor);
  el_cursor(editor, static_cast<int>(line->lastchar - line->cursor));
  el_deletestr(editor, static_cast<int>(line->lastchar - line->buffer));
  return CC_REDISPLAY;
}

unsigned char LineEditor::OnSuspend(EditLine* editor, int key) {
  raise(SIGTSTP);
  return CC_REFRESH;
}

unsigned char LineEditor::OnEndTypedAhead(EditLine* editor, int key) {
  const LineInfo* const line = el_line(editor);
  return line->lastchar == line->buffer ? CC_EOF : CC_NORM;
}

unsigned char LineEditor::OnTab(EditLine* editor, int key) {
  LineEditor* const self = Self(editor);
  const std::string_view typed = self->Typed();
  const Completion completion = Complete(*self->docs_, typed);
  if (completion.matches.empty()) {
    const size_t blank = typed.find(' ');
    const CommandDoc* const doc =
        blank == std::string_view::npos ? nullptr : self->docs_->Find(typed.substr(0, blank));
    if (doc == nullptr) return CC_ERROR;
    fmt::print("\n{} {}\n{}\n", typed.substr(0, blank), doc->SyntaxAfter(FinishedSubcommand(typed)),
               doc->summary);
    return CC_REDISPLAY;
  }
  if (!completion.insertion.empty()) {
    return el_insertstr(editor, completion.insertion.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }
  fmt::print("\n");
  for (const std::string& match : completion.matches) fmt::print("{:<14}", match);
  fmt::print("\n");
  return CC_REDISPLAY;
}

std::optional<std::string> LineEditor::Read(std::string prompt) {
  prompt_ = std::move(prompt);
  int length = 0;
  // Of a Ctrl-D that was typed while a request was under way the terminal, which was gathering
  // lines, has made a zero byte. Typed now, Ctrl-Space makes one.
  pollfd ahead{STDIN_FILENO, POLLIN, 0};
  el_set(editor_, EL_BIND, "^@", poll(&ahead, 1, 0) == 1 ? "varve-end" : "em-set-mark", nullptr);
  // The prompt is shown a moment before Ctrl-C becomes a key.
  const auto before = std::signal(SIGINT, SIG_IGN);
  const char* const line = el_gets(editor_, &length);
  std::signal(SIGINT, before);
  if (line == nullptr || length <= 0) return std::nullopt;
  std::string text(line, static_cast<size_t>(length));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

void LineEditor::Remember(const std::string& line) {
  if (HoldsPassword(line)) return;
  history(history_, &event_, H_ENTER, line.c_str());
  if (history_path_.empty()) return;
  // Made here so that it never has another mode than 0600; one that was there is closed to others,
  // too.
  const int descriptor = open(history_path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return;
  fchmod(descriptor, 0600);
  close(descriptor);
  history(history_, &event_, H_SAVE, history_path_.c_str());
}

}  // namespace varve
