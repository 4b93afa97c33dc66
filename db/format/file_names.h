// This header names the files in a store's directory. Logs, segments, value, time and change files
// share one count of numbers, so that no name is used twice.
//
// Thread-safety: stateless functions.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "fmt/format.h"
#include "util/os/spare_name.h"

namespace varve {

// Returns the number in front of the suffix; nothing for other names.
inline std::optional<uint64_t> ParseNumberBefore(std::string_view name, std::string_view suffix) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || name.substr(static_cast<size_t>(end - name.data())) != suffix)
    return std::nullopt;
  return number;
}

inline std::string SegmentPath(const std::string& directory, uint64_t number) {
  return fmt::format("{}/{:06}.seg", directory, number);
}

// Returns the number of "000007.seg"; nothing for other names.
inline std::optional<uint64_t> ParseSegmentName(std::string_view name) {
  return ParseNumberBefore(name, ".seg");
}

// Returns the path of a file with values that segments point to (db/values/value_file.h).
inline std::string ValueFilePath(const std::string& directory, uint64_t number) {
  return fmt::format("{}/{:06}.val", directory, number);
}

// Returns the number of "000007.val"; nothing for other names.
inline std::optional<uint64_t> ParseValueFileName(std::string_view name) {
  return ParseNumberBefore(name, ".val");
}

// Returns the path of a file with marks of the time map (db/history/time_file.h).
inline std::string TimeFilePath(const std::string& directory, uint64_t number) {
  return fmt::format("{}/{:06}.tim", directory, number);
}

// Returns the number of "000007.tim"; nothing for other names.
inline std::optional<uint64_t> ParseTimeFileName(std::string_view name) {
  return ParseNumberBefore(name, ".tim");
}

// Returns the path of a file with retained changes (db/changes/change_file.h).
inline std::string ChangeFilePath(const std::string& directory, uint64_t number) {
  return fmt::format("{}/{:06}.chg", directory, number);
}

// Returns the number of "000007.chg"; nothing for other names.
inline std::optional<uint64_t> ParseChangeFileName(std::string_view name) {
  return ParseNumberBefore(name, ".chg");
}

// Returns whether `name` is that of a file which is out of use and kept to be written over
// ("000007.seg.spare", util/os/spare_files.h). Opening a store removes such files.
inline bool IsSpareName(std::string_view name) {
  if (!name.ends_with(kSpareSuffix)) return false;
  name.remove_suffix(kSpareSuffix.size());
  return ParseSegmentName(name) || ParseValueFileName(name) || ParseChangeFileName(name);
}

inline std::string ManifestPath(const std::string& directory) { return directory + "/MANIFEST"; }
// Returns the path of the copy of the manifest, which repairs read (db/version/manifest.h).
inline std::string ManifestCopyPath(const std::string& directory) {
  return directory + "/MANIFEST.copy";
}
// Returns the path of the plan of a repair. The file is there until the repair has come to its end
// (tools/repair/repair.h).
inline std::string RepairPlanPath(const std::string& directory) { return directory + "/REPAIR"; }

// Returns the path of the mark that is there while a repair rebuilds the tree. The file holds a
// number: the segments from that number on are those that the repair writes.
inline std::string RebuildMarkPath(const std::string& directory) {
  return directory + "/REPAIR.begun";
}

}  // namespace varve
