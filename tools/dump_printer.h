// A dump printer prints the lines of a dump, each with the offset in the file that it is about, and
// counts the damaged places among them.
//
// Thread-safety: a printer belongs to one thread.
// Requires: the function that takes the lines outlives the printer.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tools/dump.h"

namespace varve {

class DumpPrinter {
 public:
  explicit DumpPrinter(const DumpLine& print) : print_(print) {}

  // Prints a line that is about the whole file.
  void Title(std::string_view text) { print_(text); }
  // Prints a line about what lies at `offset`.
  void Line(uint64_t offset, std::string_view text) {
    print_(fmt::format("{:>10}  {}", offset, text));
  }
  // Prints that what lies at `offset` is damaged, and counts the place.
  void Damage(uint64_t offset, std::string_view what) {
    ++damaged_;
    Line(offset, fmt::format("DAMAGED: {}", what));
  }
  // Returns how many damaged places were printed.
  size_t damaged() const { return damaged_; }

 private:
  const DumpLine& print_;
  size_t damaged_ = 0;
};

}  // namespace varve
