// The sections of a manifest hold what came with history: each has a tag and a size of its own.
//
// Thread-safety: stateless functions.
#pragma once

#include <string>
#include <string_view>

#include "db/format/manifest_contents.h"
#include "util/base/coding.h"

namespace varve {

// Appends the count of the sections and each of them. Requires: manifest.has_history.
void EncodeSections(const Manifest& manifest, std::string* bytes);

// Takes the sections off the reader. Returns what is damaged; empty: nothing is.
std::string DecodeSections(ByteReader* reader, Manifest* manifest);

}  // namespace varve
