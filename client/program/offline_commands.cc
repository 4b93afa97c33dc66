#include "client/program/offline_commands.h"

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/console/findings.h"
#include "client/console/output.h"
#include "client/console/progress.h"
#include "client/program/archive_commands.h"
#include "fmt/format.h"
#include "tools/backup/backup_check.h"
#include "tools/dump.h"
#include "tools/repair/repair.h"
#include "tools/verify.h"
#include "util/base/status.h"

namespace varve {
namespace {

void PrintLine(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
}

VerifyProgress Show(Progress* progress) {
  return [progress](uint64_t done, uint64_t total) { progress->UpdateBytes(done, total); };
}

std::string_view WordOf(StoreFinding::Kind kind) {
  switch (kind) {
    case StoreFinding::Kind::kDamage:
      return "damage";
    case StoreFinding::Kind::kTear:
      return "tear";
    case StoreFinding::Kind::kLeftover:
      return "leftover";
    case StoreFinding::Kind::kUnused:
      return "unused";
  }
  return "";
}

void PrintReport(const VerifyReport& report, const std::string& what, const Output& output,
                 std::vector<std::pair<std::string_view, uint64_t>> numbers) {
  std::vector<Finding> findings;
  for (const StoreFinding& found : report.findings) {
    findings.push_back({WordOf(found.kind), found.file, found.offset, found.what});
  }
  PrintFindings(findings, output);
  const uint64_t places = report.damaged_places;
  numbers.insert(numbers.begin(), {"damaged_places", places});
  PrintSummary(fmt::format("{}: {}", what,
                           places == 0   ? "all is well"
                           : places == 1 ? "1 damaged place"
                                         : fmt::format("{} damaged places", places)),
               numbers, output);
}

absl::Status VerifyStoreOf(const std::string& directory, const CommandLine& line) {
  Progress progress("verify", 0, line.progress);
  const absl::StatusOr<VerifyReport> report =
      VerifyStore(PosixFileSystem(), directory, Show(&progress));
  progress.Finish();
  if (!report.ok()) return report.status();
  PrintReport(
      *report,
      fmt::format("{}: {} files, {} bytes, {} records in segments, {} operations in the log",
                  directory, report->files, report->bytes, report->records, report->operations),
      Output::ForStandardOutput(line.style),
      {{"files", report->files},
       {"bytes", report->bytes},
       {"records", report->records},
       {"operations", report->operations}});
  if (report->damaged_places == 0) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("{0} is damaged; `{1} repair {0}` keeps what can be read, or restore a copy",
                  directory, program_invocation_short_name));
}

absl::Status VerifyBackupsOf(const std::string& directory, const CommandLine& line) {
  Progress progress("verify", 0, line.progress);
  const absl::StatusOr<BackupsReport> report =
      VerifyBackups(PosixFileSystem(), directory, Show(&progress));
  progress.Finish();
  if (!report.ok()) return report.status();
  const VerifyReport& all = report->report;
  PrintReport(all,
              fmt::format("{}: {}, {} files, {} bytes, {} records in segments", directory,
                          report->backups == 1 ? std::string("1 backup")
                                               : fmt::format("{} backups", report->backups),
                          all.files, all.bytes, all.records),
              Output::ForStandardOutput(line.style),
              {{"backups", report->backups},
               {"files", all.files},
               {"bytes", all.bytes},
               {"records", all.records}});
  if (all.damaged_places == 0) return absl::OkStatus();
  return absl::DataLossError(fmt::format(
      "{} is damaged: the backups named above cannot be relied upon; take a new one", directory));
}

}  // namespace

absl::Status DumpLogOf(const CommandLine& line) {
  return DumpLog(PosixFileSystem(), line.words[1], PrintLine);
}

absl::Status DumpSegmentOf(const CommandLine& line) {
  return DumpSegment(PosixFileSystem(), line.words[1], PrintLine);
}

absl::Status DumpManifestOf(const CommandLine& line) {
  return DumpManifest(PosixFileSystem(), line.words[1], PrintLine);
}

absl::Status VerifyOf(const CommandLine& line) {
  const std::string& directory = line.words[1];
  VARVE_ASSIGN_OR_RETURN(const DirectoryContent content, ContentOf(PosixFileSystem(), directory));
  switch (content) {
    case DirectoryContent::kBackup:
    case DirectoryContent::kBackups:
      return VerifyBackupsOf(directory, line);
    case DirectoryContent::kArchive:
      return VerifyArchiveOf(line);
    case DirectoryContent::kStore:
    case DirectoryContent::kNothing:
      break;
  }
  return VerifyStoreOf(directory, line);
}

absl::Status RepairOf(const CommandLine& line) {
  const std::string& directory = line.words[1];
  Progress progress("repair", 0, line.progress);
  const absl::StatusOr<RepairReport> report =
      RepairStore(PosixFileSystem(), directory, Show(&progress));
  progress.Finish();
  if (!report.ok()) return report.status();
  const Output output = Output::ForStandardOutput(line.style);
  std::vector<Finding> findings;
  for (const RepairReport::Entry& entry : report->lost) {
    findings.push_back({"damage", entry.file, entry.offset, entry.what});
  }
  for (const RepairReport::Entry& entry : report->saved) {
    findings.push_back({"saved", entry.file, entry.offset, entry.what});
  }
  for (const std::string& name : report->moved) {
    findings.push_back({"moved", name, 0, fmt::format("as it was, to {}/damaged", directory)});
  }
  PrintFindings(findings, output);
  std::string text = fmt::format("{}: repaired; the server opens it again", directory);
  if (report->continued)
    text += "; this was the end of a repair that was interrupted, which had listed what is lost";
  if (report->nothing_to_do())
    text = fmt::format("{}: nothing is damaged, nothing was changed", directory);
  PrintSummary(text,
               {{"damage", report->lost.size()},
                {"saved", report->saved.size()},
                {"moved", report->moved.size()}},
               output);
  return absl::OkStatus();
}

absl::StatusOr<std::string> DescribeStoreFiles(const std::string& directory) {
  std::string text;
  const absl::Status status = DumpManifest(
      PosixFileSystem(), directory, [&](std::string_view line) { text.append(line).append("\n"); });
  if (!status.ok()) return status;
  return text;
}

}  // namespace varve
