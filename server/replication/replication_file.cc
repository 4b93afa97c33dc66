#include "server/replication/replication_file.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "fmt/format.h"
#include "util/base/hash.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::string_view kFirstLine = "varve-replication 1";
constexpr uint64_t kLargestFile = uint64_t{1} << 20;

template <typename Number>
bool Parse(std::string_view text, Number* number, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number, base);
  return error == std::errc() && end == text.data() + text.size();
}

absl::Status Damaged(const std::string& path) {
  return absl::DataLossError(fmt::format(
      "{} is damaged: remove it, and say REPLICAOF again, or REPLICAOF NO ONE, once the "
      "server is up",
      path));
}

bool ParsePrimary(absl::Span<const std::string_view> words, ReplicationRecord* record) {
  record->primary.emplace();
  if (words.size() == 2) return words[1] == "none";
  record->primary->host = words[1];
  return words.size() == 3 && Parse(words[2], &record->primary->port, 10);
}

bool ParseLine(std::string_view line, ReplicationRecord* record) {
  const std::vector<std::string_view> words = [&] {
    std::vector<std::string_view> split;
    while (!line.empty()) {
      const size_t end = std::min(line.find(' '), line.size());
      split.push_back(line.substr(0, end));
      line.remove_prefix(std::min(end + 1, line.size()));
    }
    return split;
  }();
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
  if (words[0] == "diverged") return Parse(words[1], &record->diverged, 10);
  if (words[0] == "current") return Parse(words[1], &record->lineage.current, 16);
  if (words[0] != "history" || words.size() != 3) return false;
  HistoryEnd& past = record->lineage.past.emplace_back();
  return Parse(words[1], &past.id, 16) && Parse(words[2], &past.end, 10);
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
  if (size > kLargestFile) return Damaged(path);
  std::string text(size, '\0');
  VARVE_ASSIGN_OR_RETURN(const size_t read, (*file)->Read(0, text.size(), text.data()));
  text.resize(read);
  std::string_view rest = text;
  for (bool is_first = true; !rest.empty(); is_first = false) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return Damaged(path);
    const std::string_view line = rest.substr(0, end);
    const size_t before = static_cast<size_t>(rest.data() - text.data());
    rest.remove_prefix(end + 1);
    constexpr std::string_view kChecksum = "checksum ";
    if (is_first) {
      if (line != kFirstLine) return Damaged(path);
    } else if (line.substr(0, kChecksum.size()) == kChecksum) {
      uint64_t checksum = 0;
      const bool is_good = Parse(line.substr(kChecksum.size()), &checksum, 16) && rest.empty() &&
                           checksum == HashKey(std::string_view(text).substr(0, before));
      if (!is_good) return Damaged(path);
      return record;
    } else if (!ParseLine(line, &record)) {
      return Damaged(path);
    }
  }
  return Damaged(path);
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
