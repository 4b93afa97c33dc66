// Functions by which an experiment measures a part of its work in a process of its own, in a memory
// cgroup, so that memory and pages of other work count in no figure.
//
// Thread-safety: one thread at a time calls these functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace varve::bench {

struct Figure {
  std::string name;  // no bar in it
  double y = 0;
};

// Starts this program with `--experiment=EXPERIMENT --apart=PART` in a cgroup of `memory` bytes,
// page cache included, and returns the figures that it prints. A process that fails gets a line on
// standard error, and the figures that it has printed before are returned. Returns nothing, and
// says so on standard error, if no cgroup can be made.
std::optional<std::vector<Figure>> MeasureApart(const std::string& experiment,
                                                const std::string& part, uint64_t memory);

// Prints a figure of the part that this process does.
void PrintFigure(const Figure& figure);

}  // namespace varve::bench
