#include "server/replication/replication_file.h"

#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "fmt/format.h"
#include "util/base/hash.h"
#include "util/base/status.h"
#include "util/base/whole_number.h"

namespace varve {
namespace {

constexpr std::string_view kFirstLine = "varve-replication 1";
constexpr uint64_t kLargestFile = uint64_t{1} << 20;

absl::Status Damaged(const std::string& path, std::string_view what) {
  return absl::DataLossError(fmt::format(
      "{} is damaged: {}. Put the file back from a copy of the directory that was made after the "
      "last REPLICAOF and the last failover: that keeps the lineage of the store's histories. Or "
      "remove the file: the server then starts as a primary of its own (or follows whom the "
      "setting replicaof names) and has forgotten its past histories. Its followers take a full "
      "copy then, and one that is still in a past history does not follow until it is emptied",
      path, what));
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (const absl::string_view piece :
       absl::StrSplit(absl::string_view(text.data(), text.size()), separator))
    pieces.emplace_back(piece.data(), piece.size());
  return pieces;
}

bool ParsePrimary(absl::Span<const std::string_view> words, ReplicationRecord* record) {
  record->primary.emplace();
  if (words.size() == 2) return words[1] == "none";
  record->primary->host = words[1];
  return words.size() == 3 && ParseWholeNumber(words[2], &record->primary->port);
}

bool ParseLine(std::string_view line, ReplicationRecord* record) {
  const std::vector<std::string_view> words = Split(line, ' ');
  if (words.size() < 2) return false;
  if (words[0] == "id") {
    record->id = words[1];
    return words.size() == 2;
  }
  if (words[0] == "primary") return ParsePrimary(words, record);
  if (words[0] == "retains") {
    record->retains = words[1] == "1";
    return words.size() == 2;
  }
  if (words[0] == "diverged") return ParseWholeNumber(words[1], &record->diverged);
  if (words[0] == "current") return ParseWholeNumber(words[1], &record->lineage.current, 16);
  if (words[0] != "history" || words.size() != 3) return false;
  HistoryEnd& past = record->lineage.past.emplace_back();
  return ParseWholeNumber(words[1], &past.id, 16) && ParseWholeNumber(words[2], &past.end);
}

// Reads what the file holds. Returns what is wrong with it; empty: nothing is.
std::string ParseText(std::string_view text, ReplicationRecord* record) {
  constexpr std::string_view kChecksum = "checksum ";
  const std::vector<std::string_view> lines = Split(text, '\n');
  if (lines[0] != kFirstLine) return fmt::format("line 1 is not \"{}\"", kFirstLine);
  // Behind the last end of a line there is nothing.
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    const std::string_view line = lines[i];
    if (!line.starts_with(kChecksum)) {
      if (!ParseLine(line, record)) return fmt::format("line {} makes no sense", i + 1);
      continue;
    }
    uint64_t checksum = 0;
    const size_t before = static_cast<size_t>(line.data() - text.data());
    if (!ParseWholeNumber(line.substr(kChecksum.size()), &checksum, 16) ||
        checksum != HashKey(text.substr(0, before)))
      return fmt::format("line {} is not the checksum of the lines before it", i + 1);
    if (before + line.size() + 1 < text.size())
      return fmt::format("line {} follows the checksum", i + 2);
    return "";
  }
  return fmt::format("it ends in line {} without a checksum", lines.size());
}

std::string Encode(const ReplicationRecord& record) {
  std::string text = fmt::format("{}\n", kFirstLine);
  if (!record.id.empty()) text += fmt::format("id {}\n", record.id);
  if (record.primary) {
    text += record.primary->named()
                ? fmt::format("primary {} {}\n", record.primary->host, record.primary->port)
                : "primary none\n";
  }
  text += fmt::format("retains {}\n", record.retains ? 1 : 0);
  text += fmt::format("diverged {}\n", record.diverged);
  for (const HistoryEnd& past : record.lineage.past)
    text += fmt::format("history {:016x} {}\n", past.id, past.end);
  text += fmt::format("current {:016x}\n", record.lineage.current);
  text += fmt::format("checksum {:016x}\n", HashKey(text));
  return text;
}

}  // namespace

absl::StatusOr<ReplicationRecord> ReadReplicationFile(FileSystem* file_system,
                                                      const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kReplicationFile);
  const absl::StatusOr<std::unique_ptr<File>> file = file_system->OpenForRead(path);
  ReplicationRecord record;
  if (absl::IsNotFound(file.status())) return record;
  VARVE_RETURN_IF_ERROR(file.status());
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, (*file)->Size());
  if (size > kLargestFile)
    return Damaged(path, fmt::format("it has more than {} bytes", kLargestFile));
  std::string text(size, '\0');
  VARVE_ASSIGN_OR_RETURN(const size_t read, (*file)->Read(0, text.size(), text.data()));
  text.resize(read);
  if (const std::string wrong = ParseText(text, &record); !wrong.empty())
    return Damaged(path, wrong);
  return record;
}

absl::Status WriteReplicationFile(FileSystem* file_system, const std::string& directory,
                                  const ReplicationRecord& record) {
  const std::string path = fmt::format("{}/{}", directory, kReplicationFile);
  const std::string temporary = path + ".tmp";
  {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                           file_system->OpenForWrite(temporary, /*create=*/true));
    VARVE_RETURN_IF_ERROR(file->Write(0, Encode(record)));
    VARVE_RETURN_IF_ERROR(file->Sync());
  }
  VARVE_RETURN_IF_ERROR(file_system->Rename(temporary, path));
  return file_system->SyncDirectory(directory);
}

}  // namespace varve
