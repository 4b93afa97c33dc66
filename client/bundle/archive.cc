#include "client/bundle/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string_view>

#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

struct Suffix {
  std::string_view text;
  int filter;  // libarchive's
};
constexpr Suffix kSuffixes[] = {{".tar.gz", ARCHIVE_FILTER_GZIP},
                                {".tgz", ARCHIVE_FILTER_GZIP},
                                {".tar.zst", ARCHIVE_FILTER_ZSTD},
                                {".tar", ARCHIVE_FILTER_NONE}};

const Suffix* SuffixOf(std::string_view path) {
  for (const Suffix& suffix : kSuffixes) {
    if (path.ends_with(suffix.text)) return &suffix;
  }
  return nullptr;
}

std::string ErrorOf(archive* failed) {
  const char* const words = archive_error_string(failed);
  return words != nullptr ? words : "the archive can't be written";
}

struct FreeArchive {
  void operator()(archive* opened) const { archive_write_free(opened); }
};
using ArchivePointer = std::unique_ptr<archive, FreeArchive>;

struct FreeEntry {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};

absl::Status AddFile(archive* out, const std::string& name, const std::string& content) {
  const std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_size(entry.get(), static_cast<int64_t>(content.size()));
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0600);
  archive_entry_set_mtime(entry.get(), std::time(nullptr), 0);
  const bool written =
      archive_write_header(out, entry.get()) == ARCHIVE_OK &&
      archive_write_data(out, content.data(), content.size()) == std::ssize(content);
  return written ? absl::OkStatus() : absl::InternalError(ErrorOf(out));
}

absl::Status WriteTo(int descriptor, int filter, const std::string& folder,
                     const std::vector<ArchivedFile>& files) {
  const ArchivePointer out(archive_write_new());
  if (out == nullptr) return absl::ResourceExhaustedError("out of memory");
  const bool opened = archive_write_set_format_pax_restricted(out.get()) == ARCHIVE_OK &&
                      archive_write_add_filter(out.get(), filter) == ARCHIVE_OK &&
                      archive_write_open_fd(out.get(), descriptor) == ARCHIVE_OK;
  if (!opened) return absl::InternalError(ErrorOf(out.get()));
  for (const ArchivedFile& file : files)
    VARVE_RETURN_IF_ERROR(AddFile(out.get(), folder + "/" + file.name, file.content));
  if (archive_write_close(out.get()) != ARCHIVE_OK) return absl::InternalError(ErrorOf(out.get()));
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteArchive(const std::string& path, const std::vector<ArchivedFile>& files) {
  const Suffix* const suffix = SuffixOf(path);
  if (suffix == nullptr)
    return absl::InvalidArgumentError(
        fmt::format("{}: the name ends in .tar.gz, .tgz, .tar.zst or .tar", path));
  std::error_code error;
  if (std::filesystem::exists(path, error))
    return absl::AlreadyExistsError(fmt::format("{} is there already", path));
  const std::string temporary = path + ".tmp";
  const int descriptor =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0)
    return absl::InternalError(fmt::format("{}: {}", temporary, std::strerror(errno)));
  const std::string name = std::filesystem::path(path).filename();
  const absl::Status written =
      WriteTo(descriptor, suffix->filter, name.substr(0, name.size() - suffix->text.size()), files);
  if (::close(descriptor) == 0 && written.ok() &&
      std::rename(temporary.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  const std::string why = written.ok() ? std::strerror(errno) : std::string(written.message());
  ::unlink(temporary.c_str());
  return absl::InternalError(fmt::format("{} could not be written: {}", path, why));
}

}  // namespace varve
