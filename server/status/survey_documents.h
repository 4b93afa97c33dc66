// The survey documents say how the store lies in memory and on disk: the strata of its tree, and
// the bytes that groups of keys take. They name keys, so they are for users who may read all keys.
//
// Thread-safety: all threads may call the functions. They take no lock that is held across I/O and
// read nothing from disk.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "server/status/status_value.h"
#include "varve/store_survey.h"

namespace varve {

// Segments and groups of keys that the documents show at most.
inline constexpr size_t kMostShownSegments = 1000;
inline constexpr size_t kMostShownGroups = 150;

// `names_keys`: the document says which keys a segment begins and ends with.
StatusValue TreeDocument(const TreeSurvey& survey, bool names_keys);

// `names_keys`: the document has the groups of keys, and not the namespaces alone.
StatusValue KeysDocument(const KeyMap& map, bool names_keys);

// Returns the key as people see it: UTF-8 as it is, other bytes and control characters as \xNN, a
// backslash doubled. What is longer than 200 bytes ends with three dots.
std::string ShownKey(std::string_view key);

}  // namespace varve
