// How often tests repeat what they try at random.
#pragma once

namespace varve::testing {

// Returns `rounds`, or a quarter of them in a build for AddressSanitizer or ThreadSanitizer, which
// runs a test several times slower: each round is looked at more closely there, and other builds do
// them all.
constexpr int Rounds(int rounds) {
#if defined(VARVE_WATCHED_MEMORY)
  return (rounds + 3) / 4;
#else
  return rounds;
#endif
}

}  // namespace varve::testing
