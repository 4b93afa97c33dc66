#include "client/program/backup_commands.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "client/console/interrupt.h"
#include "client/console/output.h"
#include "client/console/progress.h"
#include "client/console/text.h"
#include "client/copies/backup.h"
#include "client/program/backup_table.h"
#include "client/program/place_target.h"
#include "fmt/format.h"
#include "tools/backup/backup_place.h"
#include "tools/backup/backup_writer.h"
#include "tools/backup/keep_policy.h"
#include "util/base/status.h"

namespace varve {
namespace {

// How long a lost connection is tried again, so that the server is told to give up its files.
constexpr std::chrono::milliseconds kReconnectFor{1000};

absl::StatusOr<BackupResult> Copy(const CommandLine& line, Client* client, BackupWriter* writer,
                                  Progress* progress) {
  PlaceTarget target(writer, line.copies.incremental);
  const BackupCopyOptions options{.bytes_per_second =
                                      static_cast<uint64_t>(line.copies.bytes_per_second)};
  const Interrupt interrupt;
  return CopyBackup(client, options, &target, [&](uint64_t done, uint64_t total) {
    progress->UpdateBytes(done, total);
    return !interrupt.happened();
  });
}

// Removes what the policy does not keep. Returns the ids.
absl::StatusOr<std::vector<std::string>> RemoveOthers(const KeepPolicy& policy,
                                                      BackupPlace* place) {
  VARVE_ASSIGN_OR_RETURN(const BackupListing listing, place->List());
  std::vector<std::string> removed = policy.ToRemove(listing.backups);
  for (const std::string& id : removed) VARVE_RETURN_IF_ERROR(place->Remove(id));
  return removed;
}

void PrintBackup(const BackupDescription& backup, const std::vector<std::string>& removed,
                 OutputStyle style) {
  if (Output::ForStandardOutput(style).style == OutputStyle::kJson) {
    std::string line = JsonOf(backup);
    line.pop_back();
    line += ",\"verified\":true,\"removed\":[";
    for (const std::string& id : removed) {
      if (line.back() != '[') line += ',';
      AppendJsonString(id, &line);
    }
    return PrintOut(line + "]}\n");
  }
  PrintOut(fmt::format("{}: version {}, {} files, {} new, {} shared, verified\n", backup.id,
                       backup.version, backup.files.size(),
                       HumanBytes(static_cast<double>(backup.new_bytes)),
                       HumanBytes(static_cast<double>(backup.shared_bytes))));
  for (const std::string& id : removed) PrintOut(fmt::format("{}: removed\n", id));
}

}  // namespace

absl::Status BackupOf(const CommandLine& line) {
  std::optional<KeepPolicy> policy;
  if (!line.copies.keep.empty()) {
    VARVE_ASSIGN_OR_RETURN(policy, KeepPolicy::Parse(line.copies.keep));
  }
  ClientOptions connection = line.connection;
  if (!connection.namespace_name.empty()) {
    return absl::InvalidArgumentError(
        "a backup has all namespaces; restore takes --namespace, and export writes one alone");
  }
  connection.database = 0;
  connection.reconnect_for = kReconnectFor;
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(connection));
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<BackupPlace> place,
                         BackupPlace::Open(PosixFileSystem(), line.words[1]));
  Progress copying("backup", 0, line.progress);
  Progress verifying("verify", 0, line.progress);
  BackupWriter writer(place.get(), [&](uint64_t done, uint64_t total) {
    copying.Finish();
    verifying.UpdateBytes(done, total);
  });
  const absl::StatusOr<BackupResult> result = Copy(line, client.get(), &writer, &copying);
  copying.Finish();
  verifying.Finish();
  if (!result.ok()) return result.status();
  if (!result->released.ok()) {
    fmt::print(stderr, "{}: warning: {}\n", program_invocation_short_name,
               std::string(result->released.message()));
  }
  std::vector<std::string> removed;
  absl::Status kept;
  if (policy.has_value()) {
    absl::StatusOr<std::vector<std::string>> others = RemoveOthers(*policy, place.get());
    if (others.ok()) removed = *std::move(others);
    kept = others.status();
  }
  PrintBackup(writer.description(), removed, line.style);
  return kept;
}

absl::Status ListBackupsOf(const CommandLine& line) {
  VARVE_ASSIGN_OR_RETURN(const BackupListing listing,
                         ListBackups(PosixFileSystem(), line.words[1]));
  PrintBackups(listing.backups, Output::ForStandardOutput(line.style));
  if (listing.unreadable.empty()) return absl::OkStatus();
  // The last one is the status, which the caller prints.
  for (size_t i = 0; i + 1 < listing.unreadable.size(); ++i) Fail(listing.unreadable[i]);
  return listing.unreadable.back();
}

}  // namespace varve
