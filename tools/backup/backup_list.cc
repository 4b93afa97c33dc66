#include "tools/backup/backup_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "db/format/file_names.h"
#include "util/base/hash.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::string_view kFormat = "varve-backup";
constexpr uint64_t kFormatVersion = 1;
// A list of more bytes is none: a file takes some 50.
constexpr uint64_t kMostBytes = uint64_t{1} << 30;

std::optional<uint64_t> ParseNumber(std::string_view text, int base) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string_view Until(std::string_view* rest, char end) {
  const size_t at = rest->find(end);
  const std::string_view part = rest->substr(0, at);
  rest->remove_prefix(at == std::string_view::npos ? rest->size() : at + 1);
  return part;
}

bool AreDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Reads the text line by line.
class Decoder {
 public:
  Decoder(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  absl::StatusOr<BackupDescription> Run() {
    VARVE_RETURN_IF_ERROR(CheckFormat());
    VARVE_ASSIGN_OR_RETURN(backup_.id, Take("id"));
    if (!IsBackupId(backup_.id)) return Damaged("no id of a backup");
    VARVE_ASSIGN_OR_RETURN(backup_.store_id, TakeNumber("store", 16));
    VARVE_ASSIGN_OR_RETURN(backup_.history_id, TakeNumber("history", 16));
    VARVE_ASSIGN_OR_RETURN(backup_.version, TakeNumber("version"));
    VARVE_ASSIGN_OR_RETURN(backup_.instant_ms, TakeNumber("instant_ms"));
    VARVE_ASSIGN_OR_RETURN(backup_.sealed_ms, TakeNumber("sealed_ms"));
    VARVE_ASSIGN_OR_RETURN(backup_.new_bytes, TakeNumber("new_bytes"));
    VARVE_ASSIGN_OR_RETURN(backup_.shared_bytes, TakeNumber("shared_bytes"));
    while (text_.substr(next_).starts_with("file ")) VARVE_RETURN_IF_ERROR(TakeFile());
    if (backup_.Find("MANIFEST") == nullptr) return Damaged("the files have no MANIFEST");
    const uint64_t checksum = HashKey(text_.substr(0, next_));
    VARVE_ASSIGN_OR_RETURN(const uint64_t stored, TakeNumber("checksum", 16));
    if (stored != checksum) {
      return Damaged(
          fmt::format("checksum {:016x}, but the lines before it give {:016x}", stored, checksum));
    }
    if (next_ != text_.size()) {
      NextLine();
      return Damaged("nothing follows the checksum");
    }
    // Zeros ahead of a number, and what else means the same, are not what the writer wrote.
    if (EncodeBackupList(backup_) != text_) return Damaged("not written as Varve writes it");
    return std::move(backup_);
  }

 private:
  absl::Status Damaged(std::string_view what) const {
    return Corruption(path_, line_begin_,
                      fmt::format("list of a backup, line {}: {}", line_, what));
  }
  std::string_view NextLine() {
    line_begin_ = next_;
    ++line_;
    const size_t end = std::min(text_.find('\n', next_), text_.size());
    const std::string_view line = text_.substr(next_, end - next_);
    next_ = std::min(end + 1, text_.size());
    return line;
  }
  absl::StatusOr<std::string> Take(std::string_view name) {
    std::string_view line = NextLine();
    if (Until(&line, ' ') != name) return Damaged(fmt::format("it does not begin with {}", name));
    return std::string(line);
  }
  absl::StatusOr<uint64_t> TakeNumber(std::string_view name, int base = 10) {
    VARVE_ASSIGN_OR_RETURN(const std::string text, Take(name));
    const std::optional<uint64_t> number = ParseNumber(text, base);
    if (!number) return Damaged(fmt::format("no number follows {}", name));
    return *number;
  }

  // The list of a later version is told from a damaged one by the checksum, which stays.
  absl::Status CheckFormat() {
    VARVE_ASSIGN_OR_RETURN(const uint64_t version, TakeNumber(kFormat));
    if (version == kFormatVersion) return absl::OkStatus();
    const size_t end = text_.rfind("checksum ");
    std::string_view stored = end == std::string_view::npos ? "" : text_.substr(end + 9);
    if (version < kFormatVersion ||
        ParseNumber(Until(&stored, '\n'), 16) != HashKey(text_.substr(0, end))) {
      return Damaged(fmt::format("format version {} is unknown", version));
    }
    return absl::FailedPreconditionError(
        fmt::format("{}: a later version of Varve has written this backup, in format {}; this "
                    "program reads format {}: use the later version",
                    path_, version, kFormatVersion));
  }

  absl::Status TakeFile() {
    VARVE_ASSIGN_OR_RETURN(const std::string line, Take("file"));
    std::string_view rest = line;
    const std::string_view name = Until(&rest, ' ');
    const std::optional<uint64_t> size = ParseNumber(Until(&rest, ' '), 10);
    const std::optional<uint64_t> checksum = ParseNumber(rest, 16);
    if (!IsBackupFileName(name)) return Damaged("no name of a backup's file");
    if (!size || !checksum) return Damaged("a size and a checksum do not follow the name");
    if (!backup_.files.empty() && backup_.files.back().name >= name)
      return Damaged("the files do not ascend by name");
    backup_.files.push_back({std::string(name), *size, *checksum});
    return absl::OkStatus();
  }

  const std::string_view text_;
  const std::string& path_;
  BackupDescription backup_;
  size_t next_ = 0;
  size_t line_begin_ = 0;
  int line_ = 0;
};

}  // namespace

const BackupFile* BackupDescription::Find(std::string_view name) const {
  const auto file = std::lower_bound(
      files.begin(), files.end(), name,
      [](const BackupFile& each, std::string_view wanted) { return each.name < wanted; });
  return file == files.end() || file->name != name ? nullptr : &*file;
}

std::string BackupIdOf(uint64_t sealed_ms, SequenceNumber version) {
  const absl::Time time = absl::FromUnixMillis(static_cast<int64_t>(sealed_ms));
  return fmt::format("{}-{}", absl::FormatTime("%Y%m%dT%H%M%SZ", time, absl::UTCTimeZone()),
                     version);
}

bool IsBackupId(std::string_view id) {
  if (id.size() > 80) return false;
  const std::string_view day = Until(&id, 'T');
  const std::string_view second = Until(&id, 'Z');
  if (day.size() != 8 || !AreDigits(day) || second.size() != 6 || !AreDigits(second)) return false;
  if (!id.starts_with('-')) return false;
  id.remove_prefix(1);
  if (!AreDigits(Until(&id, '-'))) return false;
  return id.empty() || AreDigits(id);
}

bool IsBackupFileName(std::string_view name) {
  if (name == "MANIFEST") return true;
  // Each number has one name alone.
  const auto is = [name](const std::string& path) {
    return std::string_view(path).substr(1) == name;
  };
  if (const auto number = ParseSegmentName(name)) return is(SegmentPath("", *number));
  if (const auto number = ParseValueFileName(name)) return is(ValueFilePath("", *number));
  if (const auto number = ParseTimeFileName(name)) return is(TimeFilePath("", *number));
  if (const auto number = ParseChangeFileName(name)) return is(ChangeFilePath("", *number));
  return false;
}

std::string EncodeBackupList(const BackupDescription& backup) {
  std::string text = fmt::format(
      "{} {}\nid {}\nstore {:016x}\nhistory {:016x}\nversion {}\ninstant_ms {}\nsealed_ms {}\n"
      "new_bytes {}\nshared_bytes {}\n",
      kFormat, kFormatVersion, backup.id, backup.store_id, backup.history_id, backup.version,
      backup.instant_ms, backup.sealed_ms, backup.new_bytes, backup.shared_bytes);
  for (const BackupFile& file : backup.files)
    text += fmt::format("file {} {} {:016x}\n", file.name, file.size, file.checksum);
  text += fmt::format("checksum {:016x}\n", HashKey(text));
  return text;
}

absl::StatusOr<BackupDescription> DecodeBackupList(std::string_view text, const std::string& path) {
  return Decoder(text, path).Run();
}

absl::StatusOr<BackupDescription> ReadBackupList(FileSystem* file_system,
                                                 const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kBackupListName);
  absl::StatusOr<std::unique_ptr<File>> file = file_system->OpenForRead(path);
  if (absl::IsNotFound(file.status())) {
    return absl::NotFoundError(fmt::format("{}: no backup is here; it would have the file {}",
                                           directory, kBackupListName));
  }
  VARVE_RETURN_IF_ERROR(file.status());
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, (*file)->Size());
  if (size > kMostBytes)
    return Corruption(path, kMostBytes, "list of a backup: no backup has so many files");
  std::string text(size, '\0');
  VARVE_ASSIGN_OR_RETURN(const size_t read, (*file)->Read(0, text.size(), text.data()));
  text.resize(read);
  return DecodeBackupList(text, path);
}

}  // namespace varve
