#include "client/copies/backup_session.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "client/reply_status.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::string_view kManifest = "MANIFEST";

absl::Status Senseless(std::string_view command) {
  return absl::DataLossError(
      fmt::format("the server's reply to BACKUP {} makes no sense; `{} call BACKUP {}` shows it",
                  command, program_invocation_short_name, command));
}

// A name that stays within the directory of a backup, and is none of the files that the client
// writes there.
bool IsFileName(const std::string& name) {
  return !name.empty() && name[0] != '.' && name != "BACKUP" &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

absl::Status Explained(const absl::Status& status, std::string_view why) {
  return absl::Status(status.code(), fmt::format("{}{}", std::string(status.message()), why));
}

absl::Status ExplainStart(const absl::Status& status) {
  const std::string_view program = program_invocation_short_name;
  if (absl::StrContains(status.message(), "already in progress")) {
    return Explained(
        status, fmt::format("; `{0} call BACKUP STATUS` shows it, and `{0} call BACKUP CLEANUP` "
                            "ends it, after `{0} call BACKUP ABORT` if it is not sealed",
                            program));
  }
  if (absl::IsPermissionDenied(status)) {
    return Explained(status,
                     "; a backup needs a user who may use BACKUP and has rights to all keys");
  }
  if (absl::IsUnknown(status)) {
    return Explained(status,
                     "; the server may have begun the backup, which BACKUP STATUS tells, and then "
                     "holds its files until BACKUP CLEANUP, or until backup-sealed-ttl is over");
  }
  return status;
}

absl::Status ExplainLoss(const absl::Status& status) {
  if (absl::IsUnavailable(status) || absl::IsUnknown(status) || absl::IsDeadlineExceeded(status)) {
    return absl::Status(status.code(),
                        fmt::format("the backup is incomplete and goes, as the connection to the "
                                    "server was lost: {}; run it again",
                                    std::string(status.message())));
  }
  return status;
}

// The fields of BACKUP STATUS, as strings.
class StatusFields {
 public:
  explicit StatusFields(const Reply& reply) {
    for (size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
      fields_[reply.elements[i].text] = reply.elements[i + 1].text;
    }
  }

  std::string Text(const std::string& name) const {
    const auto found = fields_.find(name);
    return found == fields_.end() ? std::string() : found->second;
  }
  // False: there is no such field, or it is no number.
  bool Number(const std::string& name, uint64_t* number) const {
    return absl::SimpleAtoi(Text(name), number);
  }
  bool Hex(const std::string& name, uint64_t* number) const {
    return absl::SimpleHexAtoi(Text(name), number);
  }

 private:
  std::map<std::string, std::string> fields_;
};

}  // namespace

absl::Status EndBackupOfKilled(Client* client, uint64_t began_s) {
  constexpr uint64_t kTolerance = 2;
  VARVE_ASSIGN_OR_RETURN(const Reply reply, client->Call({"BACKUP", "STATUS"}, WhenLost::kReport));
  const StatusFields fields(reply);
  uint64_t start_s = 0;
  if (fields.Text("state") == "idle" || !fields.Number("start_time", &start_s) ||
      start_s < began_s || start_s > began_s + kTolerance)
    return absl::OkStatus();
  // One that is sealed or failed needs no abort.
  client->Call({"BACKUP", "ABORT"}, WhenLost::kReport).status().IgnoreError();
  return client->Call({"BACKUP", "CLEANUP"}, WhenLost::kReport).status();
}

absl::StatusOr<Reply> BackupSession::Ask(absl::Span<const std::string_view> words) {
  return client_.Call(words, WhenLost::kReport);
}

absl::Status BackupSession::Start() {
  const absl::StatusOr<Reply> started = Ask({"BACKUP", "START"});
  if (!started.ok()) return ExplainStart(started.status());
  began_ = true;
  const absl::StatusOr<Reply> status = Ask({"BACKUP", "STATUS"});
  if (!status.ok()) return ExplainLoss(status.status());
  start_time_ = StatusFields(*status).Text("start_time");
  if (start_time_.empty()) return Senseless("STATUS");
  return ExplainLoss(Ask({"BACKUP", "SEAL"}).status());
}

absl::StatusOr<BackupSource> BackupSession::Source() {
  const absl::StatusOr<Reply> reply = Ask({"BACKUP", "STATUS"});
  if (!reply.ok()) return ExplainLoss(reply.status());
  const StatusFields fields(*reply);
  if (fields.Text("state") != "sealed" || fields.Text("start_time") != start_time_) {
    return absl::FailedPreconditionError(fmt::format(
        "the server holds no sealed backup: its state is `{}`{}{}", fields.Text("state"),
        fields.Text("error").empty() ? "" : ", ", fields.Text("error")));
  }
  constexpr uint64_t kMillisASecond = 1000;
  BackupSource source;
  uint64_t end_time = 0;
  if (!fields.Number("version", &source.version) ||
      !fields.Number("instant_ms", &source.instant_ms) || !fields.Number("end_time", &end_time) ||
      !fields.Hex("store_id", &source.store_id) || !fields.Hex("history_id", &source.history_id)) {
    return Senseless("STATUS");
  }
  // The server tells the second of the seal, and what it has may be younger than its beginning.
  source.sealed_ms = std::max(end_time * kMillisASecond, source.instant_ms);
  version_ = fields.Text("version");
  return source;
}

absl::StatusOr<std::vector<SealedFile>> BackupSession::Files() {
  const absl::StatusOr<Reply> reply = Ask({"BACKUP", "LIST", "SIZES"});
  if (!reply.ok()) return ExplainLoss(reply.status());
  std::vector<SealedFile> files;
  std::set<std::string> names;
  for (const Reply& pair : reply->elements) {
    if (pair.elements.size() != 2 || pair.elements[1].type != Reply::Type::kInteger ||
        pair.elements[1].integer < 0) {
      return Senseless("LIST SIZES");
    }
    const std::string& name = pair.elements[0].text;
    if (!IsFileName(name) || !names.insert(name).second) return Senseless("LIST SIZES");
    files.push_back({name, static_cast<uint64_t>(pair.elements[1].integer)});
  }
  if (files.empty() || files.back().name != kManifest) return Senseless("LIST SIZES");
  return files;
}

void BackupSession::Request(const SealedFile& file, uint64_t offset, uint64_t length) {
  client_.pipeline().Send(
      {"BACKUP", "FETCH", file.name, fmt::to_string(offset), fmt::to_string(length)},
      WhenLost::kReport);
}

absl::StatusOr<std::string> BackupSession::Receive(const SealedFile& file, uint64_t offset,
                                                   uint64_t length) {
  absl::StatusOr<Reply> reply = client_.Receive();
  if (!reply.ok()) return ExplainLoss(reply.status());
  if (reply->is_error()) {
    return Explained(StatusOfError(*reply),
                     fmt::format(" (at offset {} of {}); the server gave the backup up, as its "
                                 "log says",
                                 offset, file.name));
  }
  if (reply->type != Reply::Type::kBulk || reply->text.size() != length) {
    return absl::DataLossError(
        fmt::format("{}: the server sent {} bytes at offset {}, and {} were asked for; its disk "
                    "or its file is damaged",
                    file.name, reply->text.size(), offset, length));
  }
  return std::move(reply->text);
}

absl::Status BackupSession::Release() {
  const absl::Status status = Ask({"BACKUP", "CLEANUP"}).status();
  if (status.ok()) {
    began_ = false;
    return status;
  }
  return Explained(
      status, fmt::format("; the server holds its files until `{} call BACKUP CLEANUP`, or until "
                          "backup-sealed-ttl is over",
                          program_invocation_short_name));
}

absl::StatusOr<bool> BackupSession::IsThere() {
  VARVE_ASSIGN_OR_RETURN(const Reply reply, Ask({"BACKUP", "STATUS"}));
  const StatusFields fields(reply);
  return fields.Text("state") != "idle" &&
         (start_time_.empty() || fields.Text("start_time") == start_time_) &&
         (version_.empty() || fields.Text("version") == version_);
}

absl::Status BackupSession::Abandon() {
  VARVE_ASSIGN_OR_RETURN(const bool is_there, IsThere());
  if (!is_there) return absl::OkStatus();
  Ask({"BACKUP", "ABORT"}).IgnoreError();  // of one that is neither sealed nor failed
  return Ask({"BACKUP", "CLEANUP"}).status();
}

absl::Status BackupSession::GiveUp(const absl::Status& why) {
  while (client_.pipeline().outstanding() > 0) client_.Receive().IgnoreError();
  if (!began_) return why;
  began_ = false;
  if (Abandon().ok()) return why;
  return Explained(why,
                   "; the server may hold the files of this backup until BACKUP CLEANUP, or "
                   "until backup-sealed-ttl is over");
}

}  // namespace varve
