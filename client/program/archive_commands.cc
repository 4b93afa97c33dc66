#include "client/program/archive_commands.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "client/client.h"
#include "client/console/findings.h"
#include "client/console/interrupt.h"
#include "client/console/output.h"
#include "client/console/progress.h"
#include "client/console/text.h"
#include "client/console/time_text.h"
#include "client/copies/archiver.h"
#include "client/program/archive_target.h"
#include "client/program/backup_table.h"
#include "client/program/command_sender.h"
#include "fmt/format.h"
#include "tools/archive/archive_chain.h"
#include "tools/archive/archive_place.h"
#include "tools/archive/archive_restore.h"
#include "util/base/size_text.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::chrono::milliseconds kServerWait{3000};

// What a server that is reached says of an archive.
struct Lag {
  std::string unknown;  // why it is not known; empty: it is
  SequenceNumber versions = 0;
  // The server does not have what comes next any more: what it says. Empty: there is no such gap.
  std::string gap;
};

std::string_view WordOfFinding(StoreFinding::Kind kind) {
  return kind == StoreFinding::Kind::kDamage ? "damage" : "leftover";
}

void PrintFindingsOf(const ArchiveContents& contents, const Output& output) {
  std::vector<Finding> findings;
  for (const StoreFinding& found : contents.findings)
    findings.push_back({WordOfFinding(found.kind), found.file, found.offset, found.what});
  PrintFindings(findings, output);
}

// Asks the server how many versions it has behind the position.
Lag AskServer(const CommandLine& line, const ArchivePosition& position) {
  ClientOptions connection = line.connection;
  connection.database = 0;
  connection.namespace_name.clear();
  connection.reconnect_for = std::chrono::milliseconds(0);
  connection.connect_timeout = kServerWait;
  if (connection.timeout.count() == 0) connection.timeout = kServerWait;
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(connection);
  if (!client.ok()) return {.unknown = std::string(client.status().message())};
  const std::string since = fmt::to_string(position.version);
  absl::StatusOr<Reply> reply = (*client)->Call(
      {"CHANGES", "SINCE", since, "NAMESPACE", "ALL", "KEYS", "FULL", "COUNT", "1"});
  // Without the archive's feed, a server may keep no changes at all.
  const absl::string_view words = reply.status().message();
  if (absl::StartsWith(words, "TRIMMED") || absl::StrContains(words, "retains no changes"))
    return {.unknown = "there is a gap", .gap = std::string(reply.status().message())};
  if (!reply.ok()) return {.unknown = std::string(reply.status().message())};
  const absl::StatusOr<ChangeReply> behind = ParseChangeReply(*std::move(reply));
  if (!behind.ok()) return {.unknown = std::string(behind.status().message())};
  if (behind->history_id != position.history_id)
    return {.unknown = "the server that answers has another history"};
  if (behind->commits.empty()) return {};
  reply = (*client)->Call({"CHANGES", "NOW"});
  if (!reply.ok()) return {.unknown = std::string(reply.status().message())};
  const absl::StatusOr<ChangeReply> now = ParseChangeReply(*std::move(reply));
  if (!now.ok()) return {.unknown = std::string(now.status().message())};
  return {.versions = now->next - std::min(now->next, position.version)};
}

std::string RangeLine(const ArchiveContents& contents, const ArchiveChain& chain) {
  return fmt::format("from {} (version {}) to {} (version {}): base {}, {} change files{}\n",
                     TimeText(chain.base.instant_ms), chain.base.version,
                     TimeText(contents.ReachOf(chain)), chain.last(), chain.base.id,
                     chain.files.size(),
                     chain.broken_at.empty() ? "" : "; then " + chain.broken_at + " is lost");
}

// Returns whether there are changes in front of the chain that no other one has.
bool IsBehindGap(const ArchiveContents& contents, size_t chain) {
  const ArchiveChain& at = contents.chains[chain];
  for (size_t i = 0; i < chain; ++i) {
    const ArchiveChain& other = contents.chains[i];
    // A base that joined the newest changes may have a version that none of them has.
    const bool is_joined = at.is_newest && other.is_newest;
    if (is_joined || other.Holds(at.base.history_id, at.base.version)) return false;
  }
  return chain != 0;
}

void PrintRanges(const ArchiveContents& contents) {
  for (size_t i = 0; i < contents.chains.size(); ++i) {
    if (IsBehindGap(contents, i)) PrintOut("a gap, which the next base heals:\n");
    PrintOut(RangeLine(contents, contents.chains[i]));
  }
}

std::string JsonOf(const ArchiveContents& contents, const Lag* lag) {
  std::string json = "{\"archive\":";
  AppendJsonString(contents.id, &json);
  json += ",\"ranges\":[";
  uint64_t gaps = 0;
  for (size_t i = 0; i < contents.chains.size(); ++i) {
    const ArchiveChain& chain = contents.chains[i];
    if (IsBehindGap(contents, i)) ++gaps;
    if (json.back() != '[') json += ',';
    json += "{\"base\":";
    AppendJsonString(chain.base.id, &json);
    json += fmt::format(
        ",\"first_version\":{},\"from\":{},\"last_version\":{},\"to\":{},\"change_files\":{}}}",
        chain.base.version, JsonTime(chain.base.instant_ms), chain.last(),
        JsonTime(contents.ReachOf(chain)), chain.files.size());
  }
  json += fmt::format("],\"healed_gaps\":{},\"gap\":{},\"damaged\":{}", gaps,
                      lag != nullptr && !lag->gap.empty(), contents.is_damaged());
  if (contents.position)
    json += fmt::format(",\"current\":{}", JsonTime(contents.position->current_ms));
  if (lag != nullptr && lag->unknown.empty())
    json += fmt::format(",\"versions_behind\":{}", lag->versions);
  return json + "}\n";
}

// Says how much would be lost if the machine of the server went now.
void PrintLoss(const ArchiveContents& contents, const Lag* lag) {
  if (!contents.position) return;
  const ArchivePosition& position = *contents.position;
  const uint64_t now = RealClock().WallMillis();
  const uint64_t age = now - std::min(now, position.instant_ms);
  PrintOut(fmt::format("the last archived change is {} s old; nothing else had come until {}\n",
                       age / 1000, TimeText(position.current_ms)));
  if (lag == nullptr) return;
  if (!lag->unknown.empty()) {
    PrintOut(fmt::format("how far behind the server it is is not known: {}\n", lag->unknown));
  } else {
    PrintOut(fmt::format("versions that would be lost now: {}\n", lag->versions));
  }
}

absl::Status Check(const CommandLine& line, bool asks_server) {
  const std::string& directory = line.words[1];
  Progress progress(line.words[0], 0, line.progress);
  const absl::StatusOr<ArchiveContents> contents = CheckArchive(
      PosixFileSystem(), directory,
      [&progress](uint64_t done, uint64_t total) { progress.UpdateBytes(done, total); });
  progress.Finish();
  if (!contents.ok()) return contents.status();
  Lag lag;
  if (asks_server && contents->position) lag = AskServer(line, *contents->position);
  const Lag* const shown = asks_server ? &lag : nullptr;
  const Output output = Output::ForStandardOutput(line.style);
  PrintFindingsOf(*contents, output);
  if (output.style == OutputStyle::kJson) {
    PrintOut(JsonOf(*contents, shown));
  } else {
    PrintRanges(*contents);
    PrintLoss(*contents, shown);
  }
  if (contents->is_damaged()) {
    return absl::DataLossError(fmt::format(
        "{} is damaged: what is named above is missing or damaged; the archiver heals the end of "
        "it with a new base when it starts",
        directory));
  }
  if (!lag.gap.empty()) {
    return absl::DataLossError(
        fmt::format("{}: there is a gap: {}; the archiver heals it with a new base when it runs",
                    directory, lag.gap));
  }
  if (output.style != OutputStyle::kJson) PrintOut(fmt::format("{}: all is well\n", directory));
  return absl::OkStatus();
}

std::string JsonOf(const ArchiveRestoreReport& report, bool dry_run) {
  std::string json = "{\"base\":";
  AppendJsonString(report.base, &json);
  json += fmt::format(
      ",\"version\":{},\"time\":{},\"commits\":{},\"change_files\":{},\"first_new_version\":{},"
      "\"dry_run\":{}",
      report.version, JsonTime(report.instant_ms), report.commits, report.change_files,
      report.first_new_version, dry_run);
  if (report.next_version != kNoSequence) {
    json += fmt::format(",\"next_version\":{},\"next_time\":{}", report.next_version,
                        JsonTime(report.next_instant_ms));
  }
  json += ",\"without_options\":[";
  for (const std::string& name : report.without_options) {
    if (json.back() != '[') json += ',';
    AppendJsonString(name, &json);
  }
  return json + "]}\n";
}

void PrintReport(const ArchiveRestoreReport& report, const CommandLine& line) {
  const bool dry_run = line.copies.dry_run;
  if (Output::ForStandardOutput(line.style).style == OutputStyle::kJson)
    return PrintOut(JsonOf(report, dry_run));
  if (dry_run) {
    return PrintOut(fmt::format("{}: would be restored to {}, and the changes behind it applied\n",
                                report.base, line.words[2]));
  }
  PrintOut(fmt::format(
      "{}: restored to {}, with {} commits of {} change files, as of version {} of {}; new "
      "versions begin at {}\n",
      report.base, line.words[2], report.commits, report.change_files, report.version,
      TimeText(report.instant_ms), report.first_new_version));
  PrintOut(report.next_version == kNoSequence
               ? "nothing followed in the archive\n"
               : fmt::format("what followed: version {} of {}\n", report.next_version,
                             TimeText(report.next_instant_ms)));
  for (const std::string& name : report.without_options) {
    PrintOut(fmt::format(
        "namespace {} came behind the base: give it its options again (NAMESPACE ALTER)\n",
        Escaped(name)));
  }
  for (const std::string& name : report.without_names) {
    PrintOut(fmt::format(
        "{} stands for the name of a namespace that the changes up to here do not tell\n",
        Escaped(name)));
  }
}

// Returns for how long the archive keeps what lies behind it, in milliseconds; 0: for good.
absl::StatusOr<uint64_t> CheckedKeep(const CommandLine& line) {
  const CopyOptions& options = line.copies;
  if (!line.connection.namespace_name.empty())
    return absl::InvalidArgumentError("an archive has all namespaces");
  if (!options.exec.empty() && !IsSenderCommand(options.exec)) {
    return absl::InvalidArgumentError(
        "--exec: the command needs {} where the name of the file goes, as in 'rclone rcat "
        "remote:{}'");
  }
  if (options.keep.empty()) return 0;
  if (!options.exec.empty()) {
    return absl::InvalidArgumentError(
        "--keep: what a command has taken elsewhere goes there, by that place's own rules");
  }
  const absl::StatusOr<std::chrono::nanoseconds> keep = ParseDuration(options.keep);
  if (!keep.ok() || keep->count() <= 0)
    return absl::InvalidArgumentError("--keep of an archive is a time, such as 7d");
  return std::chrono::duration_cast<std::chrono::milliseconds>(*keep).count();
}

}  // namespace

absl::Status ArchiveOf(const CommandLine& line) {
  const CopyOptions& options = line.copies;
  VARVE_ASSIGN_OR_RETURN(const uint64_t keep_ms, CheckedKeep(line));
  const Interrupt interrupt(Interrupt::Signals::kInterruptAndTerminate);
  const auto stopped = [&interrupt] { return interrupt.happened(); };
  const auto say = [](const std::string& text) {
    fmt::print(stderr, "{}: {}\n", program_invocation_short_name, text);
  };
  std::optional<CommandSender> sender;
  if (!options.exec.empty()) sender.emplace(options.exec, options.once, stopped, say);
  VARVE_ASSIGN_OR_RETURN(
      const std::unique_ptr<ArchivePlace> place,
      ArchivePlace::Open(PosixFileSystem(), line.words[1], sender ? &*sender : nullptr));
  ArchivePlaceTarget target(place.get(),
                            {.base_every_ms = static_cast<uint64_t>(options.base_every_ms),
                             .keep_ms = keep_ms,
                             .incremental = !sender,
                             .bytes_per_second = static_cast<uint64_t>(options.bytes_per_second)},
                            stopped);
  VARVE_RETURN_IF_ERROR(target.Prune());
  Archiver archiver(line.connection,
                    {.interval = std::chrono::milliseconds(options.interval_ms),
                     .once = options.once,
                     .feed_bytes = static_cast<uint64_t>(options.feed_bytes)},
                    &target, stopped, say);
  VARVE_RETURN_IF_ERROR(archiver.Run());
  if (!place->position()) return absl::OkStatus();  // it was stopped before
  PrintOut(fmt::format("{}: version {} of {}, {} change files\n", line.words[1],
                       place->position()->version, TimeText(place->position()->instant_ms),
                       place->position()->number));
  return absl::OkStatus();
}

absl::Status CheckArchiveOf(const CommandLine& line) { return Check(line, /*asks_server=*/true); }

absl::Status VerifyArchiveOf(const CommandLine& line) { return Check(line, /*asks_server=*/false); }

absl::Status RestoreArchiveOf(const CommandLine& line, const RestoreTarget& target) {
  if (target.name_space || !line.copies.backup.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "an archive is restored whole; for one namespace or one backup alone, restore {}/{}",
        line.words[1], kArchiveBases));
  }
  Progress progress("restore", 0, line.progress);
  const absl::StatusOr<ArchiveRestoreReport> report = RestoreArchive(
      PosixFileSystem(), line.words[1], line.words[2],
      {.at_version = target.at_version, .at_time_ms = target.at_time_ms}, line.copies.dry_run,
      [&progress](uint64_t done, uint64_t total) { progress.UpdateBytes(done, total); });
  progress.Finish();
  if (!report.ok()) return report.status();
  PrintReport(*report, line);
  return absl::OkStatus();
}

}  // namespace varve
