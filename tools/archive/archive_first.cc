#include "tools/archive/archive_first.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tools/archive/archive_file.h"
#include "tools/backup/backup_list.h"
#include "util/base/hash.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::string_view kArchiveFirstWord = "varve-archive-first ";
constexpr std::string_view kArchiveFirstLine = "varve-archive-first 1\n";
constexpr std::string_view kNumber = "number ";
constexpr std::string_view kGone = "gone ";

// Reads what it can; the caller looks whether that was all.
ArchiveFirst Scan(std::string_view text) {
  ArchiveFirst first;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    const std::string_view entry(line.data(), line.size());
    if (entry.starts_with(kNumber)) {
      if (!absl::SimpleAtoi(line.substr(kNumber.size()), &first.number)) first.number = 0;
    } else if (entry.starts_with(kGone)) {
      first.gone.emplace_back(entry.substr(kGone.size()));
    }
  }
  return first;
}

}  // namespace

bool ArchiveFirst::IsGone(std::string_view base) const {
  return std::find(gone.begin(), gone.end(), base) != gone.end();
}

std::string EncodeArchiveFirst(const ArchiveFirst& first) {
  std::string text = fmt::format("{}{}{}\n", kArchiveFirstLine, kNumber, first.number);
  for (const std::string& base : first.gone) text += fmt::format("{}{}\n", kGone, base);
  const uint64_t checksum = HashKey(text);
  return text + fmt::format("checksum {:016x}\n", checksum);
}

absl::StatusOr<ArchiveFirst> DecodeArchiveFirst(std::string_view text, const std::string& path) {
  if (text.starts_with(kArchiveFirstWord) && !text.starts_with(kArchiveFirstLine)) {
    return absl::FailedPreconditionError(
        fmt::format("{}: a later version of Varve has written it, or it is damaged", path));
  }
  ArchiveFirst first = Scan(text);
  const bool is_whole = first.number != 0 && EncodeArchiveFirst(first) == text &&
                        std::all_of(first.gone.begin(), first.gone.end(), IsBackupId);
  if (!is_whole) return Corruption(path, 0, "the beginning of the archive is damaged");
  return first;
}

absl::StatusOr<ArchiveFirst> ReadArchiveFirst(FileSystem* file_system,
                                              const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kArchiveFirstName);
  const absl::StatusOr<std::string> text = ReadWholeFile(file_system, path);
  if (absl::IsNotFound(text.status())) return ArchiveFirst();
  VARVE_RETURN_IF_ERROR(text.status());
  return DecodeArchiveFirst(*text, path);
}

}  // namespace varve
