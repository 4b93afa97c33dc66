// The lineage of a state is the chain of generations in which its records lie: that of its
// namespace, then those that it was cloned from, each as of a sequence. Two states of one family
// share the end of their lineages, and what they share need not be compared.
//
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "db/format/namespace_forks.h"
#include "type/tree_key.h"
#include "varve/types.h"

namespace varve {

struct LineageLevel {
  NamespaceGeneration generation = kNoGeneration;
  SequenceNumber up_to = kNoSequence;  // the state sees nothing newer of the generation
};

// Returns the lineage of the state of `generation` at `at`, the youngest level first.
// Requires: the forks of all its ancestors are among `forks`.
std::vector<LineageLevel> LineageOf(NamespaceGeneration generation, SequenceNumber at,
                                    const NamespaceForks& forks);

// The records of a generation in which two states may differ: those that are newer than `above`.
struct DifferingLevel {
  NamespaceGeneration generation = kNoGeneration;
  SequenceNumber above = kNoSequence;
};

// A meeting says what two lineages share.
struct Meeting {
  bool related = false;                        // false: they share nothing
  NamespaceGeneration shared = kNoGeneration;  // the youngest generation of both
  std::vector<DifferingLevel> levels;          // of both, down to the shared one, if related
};
Meeting MeetingOf(const std::vector<LineageLevel>& a, const std::vector<LineageLevel>& b);

}  // namespace varve
