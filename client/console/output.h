// The output of client_main shows keys, values and replies as they are (for scripts), for people on
// a terminal, or as JSON.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "type/reply.h"

namespace varve {

enum class OutputStyle {
  kAuto,   // kTable on a terminal, else kRaw
  kRaw,    // bytes as they are; key, tab, value, line end
  kTable,  // columns, escaped
  kJson,   // one JSON value a line
};

struct Output {
  OutputStyle style = OutputStyle::kRaw;  // never kAuto
  bool colours = false;
  size_t width = 80;  // columns of the terminal

  // Returns the output that suits standard output. It has colours only on a terminal, and not if
  // NO_COLOR is set.
  static Output ForStandardOutput(OutputStyle wanted);
  // `text` in the colour, if colours are on. Codes are those of SGR, such as "36" for cyan.
  std::string Coloured(std::string_view text, std::string_view code) const;
};

// Prints pairs one by one, as they arrive. A table learns its widths from the first rows, so those
// are held back.
class PairPrinter {
 public:
  PairPrinter(const Output& output, bool keys_only) : output_(output), keys_only_(keys_only) {}

  void Add(std::string_view key, std::string_view value);
  void Finish();  // prints what was held back

 private:
  void PrintRow(std::string_view key, std::string_view value);
  void PrintHeldBack();

  const Output output_;
  const bool keys_only_;
  bool measured_ = false;
  size_t key_width_ = 0;
  std::vector<std::pair<std::string, std::string>> held_back_;  // escaped
  uint64_t rows_ = 0;
};

// A reply as the prompt shows it, with a line end. Raw: strings as they are, elements one to a
// line.
std::string RenderReply(const Reply& reply, const Output& output);
// One JSON value, without a line end.
std::string JsonOf(const Reply& reply);

void PrintOut(std::string_view bytes);

// Nothing where the descriptor is no terminal, or one that does not tell its width.
std::optional<size_t> TerminalWidth(int descriptor);

}  // namespace varve
