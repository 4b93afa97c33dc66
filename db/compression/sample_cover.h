// A sample cover is a text of limited size that has much in common with many of a merge's values:
// the content of a dictionary (db/compression/dictionary_training.h).
//
// It is found in two passes. The first one chooses pieces of the samples: it divides them into
// parts, and takes from one part after the other the piece whose windows of eight bytes are in most
// samples, where windows that were taken before count no more (the COVER algorithm of Liao, Petri,
// Moffat and Wirth, which zstd has too). It counts by hash, so that it reads each byte twice and
// looks at no table larger than a core's cache. The second pass counts exactly, and cuts out of the
// pieces what too few samples share.
//
// Thread-safety: stateless functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace varve {

// Samples of different keys' values, back to back.
struct SampleText {
  std::string bytes;
  std::vector<size_t> sizes;
};

// Each byte of a cover belongs to so many neighbouring ones that so many samples share.
inline constexpr size_t kSharedWindow = 8;
inline constexpr uint32_t kFewestSharing = 3;

// Returns a cover of at most `most_bytes`, what most samples share at its end; empty if the samples
// share too little.
std::string CoverOf(const SampleText& samples, size_t most_bytes);

// Returns `text` without the bytes that too few of the samples share.
std::string SharedPartOf(std::string_view text, const SampleText& samples);

}  // namespace varve
