#include "client/program/backup_table.h"

#include <algorithm>
#include <array>

#include "client/console/text.h"
#include "client/console/time_text.h"
#include "fmt/format.h"

namespace varve {
namespace {

constexpr size_t kColumns = 6;
using Row = std::array<std::string, kColumns>;

const Row kTitles = {"id", "version", "time", "files", "new", "shared"};

Row RowOf(const BackupDescription& backup) {
  return {backup.id,
          fmt::to_string(backup.version),
          TimeText(backup.sealed_ms),
          fmt::to_string(backup.files.size()),
          HumanBytes(static_cast<double>(backup.new_bytes)),
          HumanBytes(static_cast<double>(backup.shared_bytes))};
}

void PrintTable(const std::vector<BackupDescription>& backups, const Output& output) {
  std::vector<Row> rows = {kTitles};
  for (const BackupDescription& backup : backups) rows.push_back(RowOf(backup));
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const std::string line = fmt::format("{:<{}}  {:>{}}  {:<{}}  {:>{}}  {:>{}}  {:>{}}", row[0],
                                         widths[0], row[1], widths[1], row[2], widths[2], row[3],
                                         widths[3], row[4], widths[4], row[5], widths[5]);
    PrintOut((i == 0 ? output.Coloured(line, "1") : line) + "\n");
  }
}

}  // namespace

std::string JsonTime(uint64_t ms) { return ms == 0 ? "null" : fmt::format("\"{}\"", TimeText(ms)); }

std::string JsonOf(const BackupDescription& backup) {
  std::string json = "{\"id\":";
  AppendJsonString(backup.id, &json);
  return json + fmt::format(
                    ",\"version\":{},\"time\":{},\"last_write\":{},\"files\":{},"
                    "\"new_bytes\":{},\"shared_bytes\":{}}}",
                    backup.version, JsonTime(backup.sealed_ms), JsonTime(backup.instant_ms),
                    backup.files.size(), backup.new_bytes, backup.shared_bytes);
}

void PrintBackups(const std::vector<BackupDescription>& backups, const Output& output) {
  if (output.style == OutputStyle::kTable) return PrintTable(backups, output);
  for (const BackupDescription& backup : backups) {
    if (output.style == OutputStyle::kJson) {
      PrintOut(JsonOf(backup) + "\n");
    } else {
      PrintOut(fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", backup.id, backup.version,
                           TimeText(backup.sealed_ms), backup.files.size(), backup.new_bytes,
                           backup.shared_bytes));
    }
  }
}

}  // namespace varve
