#include "client/bundle/local_facts.h"

#include <sys/statvfs.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "fmt/format.h"

namespace varve {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return file.is_open() ? std::move(text).str() : "(can't be read)\n";
}

// The line of mountinfo whose mount point is the longest beginning of `directory`.
std::string MountOf(const std::string& process, const std::string& directory) {
  std::istringstream mounts(ReadAll(process + "/mountinfo"));
  std::string found;
  size_t longest = 0;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, point;
    words >> id >> parent >> device >> root >> point;
    const bool holds = point == "/" || directory == point || directory.starts_with(point + "/");
    if (holds && point.size() >= longest) {
      longest = point.size();
      found = line + "\n";
    }
  }
  return found;
}

std::string SpaceOf(const std::string& directory) {
  struct statvfs space {};
  if (statvfs(directory.c_str(), &space) != 0) return "(can't be read)\n";
  return fmt::format("{} of {} bytes and {} of {} files are free\n",
                     space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize,
                     space.f_favail, space.f_files);
}

}  // namespace

absl::StatusOr<std::string> LocalDataDirectory(std::string_view id, std::string_view executable,
                                               const std::string& directory) {
  const std::string process = fmt::format("/proc/{}", id);
  std::error_code error;
  const std::filesystem::path running = std::filesystem::read_symlink(process + "/exe", error);
  if (error || executable.empty() || running != executable) {
    return absl::UnavailableError(
        "the server does not run on this machine, or its process may not be looked at");
  }
  if (std::filesystem::path(directory).is_absolute()) return directory;
  const std::filesystem::path current = std::filesystem::read_symlink(process + "/cwd", error);
  if (error) return absl::UnavailableError("the server's working directory may not be looked at");
  return (current / directory).string();
}

std::string MachineFacts(std::string_view id, const std::string& directory) {
  const std::string process = fmt::format("/proc/{}", id);
  std::string facts;
  for (const std::string& path :
       {std::string("/proc/version"), std::string("/proc/loadavg"), std::string("/proc/meminfo"),
        std::string("/proc/pressure/cpu"), std::string("/proc/pressure/io"),
        std::string("/proc/pressure/memory"), process + "/limits", process + "/status",
        process + "/io"}) {
    facts += fmt::format("== {}\n{}\n", path, ReadAll(path));
  }
  facts += fmt::format("== mount of {}\n{}\n", directory, MountOf(process, directory));
  facts += fmt::format("== space of {}\n{}", directory, SpaceOf(directory));
  return facts;
}

}  // namespace varve
