#include "db/version/store_files.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "db/format/file_names.h"
#include "db/format/log_format.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {

absl::StatusOr<std::vector<StoreFile>> ListStoreFiles(FileSystem* file_system,
                                                      const std::string& directory) {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system->List(directory));
  std::vector<StoreFile> files;
  for (const std::string& name : names) {
    if (!name.starts_with("MANIFEST") && name != "REPAIR" && !ParseLogFileName(name) &&
        !ParseLogTemporaryName(name) && !ParseSegmentName(name) && !ParseValueFileName(name) &&
        !ParseTimeFileName(name) && !ParseChangeFileName(name) && !IsSpareName(name)) {
      continue;
    }
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                           file_system->OpenForRead(directory + "/" + name));
    VARVE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
    files.push_back({name, size});
  }
  if (files.empty()) return absl::NotFoundError(fmt::format("{}: no store here", directory));
  return files;
}

absl::StatusOr<std::unique_ptr<FileLock>> LockForReading(FileSystem* file_system,
                                                         const std::string& directory) {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system->List(directory));
  if (std::find(names.begin(), names.end(), "LOCK") == names.end())
    return std::unique_ptr<FileLock>();
  absl::StatusOr<std::unique_ptr<FileLock>> lock = file_system->Lock(directory + "/LOCK");
  if (absl::IsPermissionDenied(lock.status())) return std::unique_ptr<FileLock>();
  return lock;
}

DamagedPlace PlaceOf(const absl::Status& status) {
  constexpr std::string_view kAt = " is damaged at offset ";
  const std::string_view message(status.message().data(), status.message().size());
  DamagedPlace place;
  place.what = message;
  const size_t at = message.find(kAt);
  if (at == std::string_view::npos) return place;
  const std::string_view path = message.substr(0, at);
  place.file = path.substr(path.find_last_of('/') + 1);
  const std::string_view rest = message.substr(at + kAt.size());
  const char* const end = rest.data() + rest.size();
  const auto [behind, error] = std::from_chars(rest.data(), end, place.offset);
  if (error == std::errc())
    place.what = std::string_view(behind, static_cast<size_t>(end - behind)).substr(2);
  return place;
}

}  // namespace varve
