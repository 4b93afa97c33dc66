// The line editor reads one line from a person. It offers editing, a history in a file of its own,
// completion of the first word and hints of arguments; libedit does the work. Ctrl-C empties the
// line; Ctrl-D on an empty line ends the input, also when it was typed while nobody read. A process
// has one line editor.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <histedit.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/cli/command_docs.h"

namespace varve {

class LineEditor {
 public:
  // `history_path` may be empty: then history ends with the process. The file has mode 0600. `docs`
  // outlives the editor.
  LineEditor(std::string history_path, const CommandDocs* docs);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // The next line, without its end, asked for with `prompt`; nothing at the end of the input.
  std::optional<std::string> Read(std::string prompt);
  // Puts the line into the history, unless it holds a password.
  void Remember(const std::string& line);

 private:
  static char* Prompt(EditLine* editor);
  static char* Hint(EditLine* editor);
  static unsigned char OnEndTypedAhead(EditLine* editor, int key);
  static unsigned char OnTab(EditLine* editor, int key);
  static unsigned char OnBlank(EditLine* editor, int key);
  static unsigned char OnInterrupt(EditLine* editor, int key);
  static unsigned char OnSuspend(EditLine* editor, int key);
  static LineEditor* Self(EditLine* editor);

  // Returns the text that is typed so far, up to the cursor.
  std::string_view Typed() const;

  std::string prompt_;
  const std::string history_path_;
  const CommandDocs* const docs_;
  std::string hint_;
  EditLine* editor_;
  History* history_;
  HistEvent event_;
};

}  // namespace varve
