#include "server/tls/hashed_directory.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

absl::Status Unreadable(int error) {
  return absl::InvalidArgumentError(error == ENOTDIR ? "it is no directory" : std::strerror(error));
}

// Returns whether OpenSSL looks for files of such a name.
bool IsHashedName(std::string_view name) {
  constexpr size_t kDigits = 8;
  constexpr std::string_view kDecimal = "0123456789";
  if (name.size() <= kDigits || name[kDigits] != '.') return false;
  if (name.find_first_not_of("0123456789abcdef") != kDigits) return false;
  name.remove_prefix(kDigits + 1);
  if (name.starts_with('r')) name.remove_prefix(1);
  return !name.empty() && name.find_first_not_of(kDecimal) == std::string_view::npos;
}

absl::StatusOr<std::vector<std::string>> ListHashedNames(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (directory == nullptr) return Unreadable(errno);
  std::vector<std::string> names;
  size_t entries = 0;
  errno = 0;
  while (const dirent* const entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && ++entries > kMaxHashedEntries) {
      return absl::InvalidArgumentError(
          fmt::format("it has more than {} entries", kMaxHashedEntries));
    }
    if (IsHashedName(name)) names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return Unreadable(errno);
  std::sort(names.begin(), names.end());
  return names;
}

int64_t Nanoseconds(const timespec& time) {
  constexpr int64_t kSecond = 1'000'000'000;
  return int64_t{time.tv_sec} * kSecond + time.tv_nsec;
}

}  // namespace

absl::StatusOr<std::string> DescribeHashedFiles(const std::string& path) {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListHashedNames(path));
  std::string text;
  for (const std::string& name : names) {
    struct stat there {};
    if (::stat(fmt::format("{}/{}", path, name).c_str(), &there) != 0) {
      text += fmt::format("{}: {}\n", name, std::strerror(errno));
      continue;
    }
    // The second time changes with the contents even if the first one was set back, and with the
    // rights to the file.
    text += fmt::format("{}: {} {} {} {} {}\n", name, there.st_dev, there.st_ino, there.st_size,
                        Nanoseconds(there.st_mtim), Nanoseconds(there.st_ctim));
  }
  return text;
}

}  // namespace varve
