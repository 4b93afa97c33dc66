#include "client/copies/archiver.h"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "client/copies/backup_session.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{50};
constexpr milliseconds kLongestPause{5000};
// A base that is given up is to be told to the server, too, so that it keeps no files for it.
constexpr milliseconds kReconnectFor{1000};
// A server that is gone without a word is given up; one that seals a base may take long.
constexpr milliseconds kLongestWait{120'000};
constexpr milliseconds kStep{20};  // between two looks at whether the archiver is stopped
constexpr milliseconds kLongestBlock{500};
constexpr size_t kFileBytes = size_t{16} << 20;
constexpr size_t kManyBytes = size_t{256} << 10;  // after so many, the next request goes at once
constexpr uint64_t kNoteMs = 1000;
// A target that is full: each attempt at a base costs the server something.
constexpr milliseconds kFirstFullPause{250};
constexpr milliseconds kLongestFullPause{30'000};
constexpr uint64_t kBasePauseMs = 60'000;  // behind a base that failed
// A commit is delivered once it is as durable as its writer asked, which with a sync each second is
// up to a second later, and more where the disk is slow.
constexpr uint64_t kBehindMs = 2000;

bool IsAtAnother(const absl::Status& status) {
  return absl::StrContains(status.message(), "already in progress");
}

// Another attempt may mend it.
bool IsLost(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsUnknown(status) ||
         absl::IsDeadlineExceeded(status) || absl::StartsWith(status.message(), "LOADING") ||
         IsAtAnother(status);
}

bool IsGap(const absl::Status& status) { return absl::StartsWith(status.message(), "TRIMMED"); }

size_t BytesOf(const Change& commit) {
  size_t bytes = 32;
  for (const ChangeOperation& operation : commit.operations)
    bytes += 32 + operation.key.size() + operation.value.size() + operation.metadata.size();
  return bytes;
}

std::string OtherHistory(uint64_t of_server, uint64_t of_archive) {
  return fmt::format("the server has history {:016x}, and the archive {:016x}", of_server,
                     of_archive);
}

// Returns the field of a map that comes as a flat array.
const Reply* FieldOf(const Reply& map, std::string_view name) {
  for (size_t i = 0; i + 1 < map.elements.size(); i += 2)
    if (map.elements[i].text == name) return &map.elements[i + 1];
  return nullptr;
}

ClientOptions OfArchiver(ClientOptions connection) {
  connection.database = 0;
  connection.reconnect_for = kReconnectFor;
  if (connection.timeout.count() == 0) connection.timeout = kLongestWait;
  connection.protocol = 2;
  return connection;
}

}  // namespace

Archiver::Archiver(ClientOptions connection, const ArchiverOptions& options, ArchiveTarget* target,
                   Stopped stopped, Say say)
    : connection_(OfArchiver(std::move(connection))),
      options_(options),
      target_(*target),
      stopped_(std::move(stopped)),
      say_(std::move(say)),
      backoff_(kFirstPause, kLongestPause),
      full_backoff_(kFirstFullPause, kLongestFullPause),
      base_thread_(connection_, target) {}

absl::Status Archiver::Run() {
  for (;;) {
    const absl::Status status = Work();
    if (absl::IsCancelled(status) && stopped_()) return absl::OkStatus();
    const bool is_full = absl::IsResourceExhausted(status);
    if (!IsLost(status) && !is_full) return status;
    // What was read and not written comes again.
    ForgetRead();
    client_.reset();
    if (stopped_()) return absl::OkStatus();
    if (options_.once) return status;
    SayOnce(fmt::format("{}; trying again", std::string(status.message())));
    Pause(is_full ? full_backoff_.Next() : backoff_.Next());
  }
}

absl::Status Archiver::Work() {
  VARVE_RETURN_IF_ERROR(Connect());
  VARVE_RETURN_IF_ERROR(EnsureFeed());
  VARVE_RETURN_IF_ERROR(CheckHistory());
  for (;;) {
    if (stopped_()) return WriteOut();
    VARVE_RETURN_IF_ERROR(EnsureBase());
    const absl::StatusOr<bool> nothing = ReadOn();
    if (IsGap(nothing.status())) {
      VARVE_RETURN_IF_ERROR(WriteOut());
      target_.NeedBase(fmt::format("there is a gap: {}", std::string(nothing.status().message())));
      VARVE_RETURN_IF_ERROR(EnsureFeed());
      continue;
    }
    VARVE_RETURN_IF_ERROR(nothing.status());
    if (!said_.empty()) SayOnce("the server answers; going on");
    said_.clear();
    backoff_.Reset();
    if (!target_.position()) continue;  // it has another history
    const bool must = IsDue() || !why_base_.empty() || (options_.once && *nothing);
    if (must) VARVE_RETURN_IF_ERROR(WriteOut());
    if (!why_base_.empty()) target_.NeedBase(std::exchange(why_base_, ""));
    VARVE_RETURN_IF_ERROR(TendBase());
    if (options_.once && HasEverything(*nothing)) return absl::OkStatus();
  }
}

bool Archiver::HasEverything(bool nothing) const {
  return nothing && target_.position().has_value() && !IsBaseUnderWay();
}

absl::Status Archiver::Connect() {
  if (client_ != nullptr) return absl::OkStatus();
  VARVE_ASSIGN_OR_RETURN(client_, Client::Connect(connection_));
  return absl::OkStatus();
}

absl::StatusOr<Reply> Archiver::Call(std::initializer_list<std::string_view> words) {
  return client_->Call(absl::MakeConstSpan(words.begin(), words.size()));
}

absl::Status Archiver::EnsureFeed() {
  const std::string name = target_.FeedName();
  const absl::StatusOr<Reply> info = Call({"FEED", "INFO", name});
  const std::optional<ArchiveTarget::Position> position = target_.position();
  const std::string from = position ? fmt::to_string(position->version) : "NOW";
  if (!info.ok()) {
    if (IsLost(info.status()) || absl::IsPermissionDenied(info.status())) return info.status();
    const absl::Status created = CreateFeed(from);
    if (created.ok() || IsLost(created) || !position) return created;
    return CreateFeed("NOW");  // reading on tells whether there is a gap
  }
  const Reply* const lost = FieldOf(*info, "lost");
  if (lost == nullptr || lost->integer == 0) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(Call({"FEED", "DROP", name}).status());
  const absl::Status created = CreateFeed(from);
  if (created.ok() || IsLost(created) || !position) return created;
  return CreateFeed("NOW");
}

absl::Status Archiver::CreateFeed(const std::string& from) {
  const std::string bytes = fmt::to_string(options_.feed_bytes);
  const std::string age = fmt::format("{}ms", options_.feed_age.count());
  return Call(
             {"FEED", "CREATE", target_.FeedName(), "FROM", from, "MAXBYTES", bytes, "MAXAGE", age})
      .status();
}

absl::Status Archiver::CheckHistory() {
  ForgetRead();
  const std::optional<ArchiveTarget::Position> position = target_.position();
  if (!position) return absl::OkStatus();
  cursor_ = position->version;
  VARVE_ASSIGN_OR_RETURN(Reply reply, Call({"CHANGES", "NOW"}));
  VARVE_ASSIGN_OR_RETURN(const ChangeReply now, ParseChangeReply(std::move(reply)));
  if (now.history_id != position->history_id)
    target_.NeedBase(OtherHistory(now.history_id, position->history_id));
  return absl::OkStatus();
}

absl::Status Archiver::EnsureBase() {
  if (target_.position()) return absl::OkStatus();
  base_thread_.Cancel();
  target_.ForgetCopiedBase();
  if (const std::string why = target_.why_base(); why != said_why_base_) {
    say_(fmt::format("taking a base: {}", why));
    said_why_base_ = why;
  }
  ForgetRead();
  if (const std::optional<uint64_t> began_s = target_.base_began_s())
    VARVE_RETURN_IF_ERROR(EndBackupOfKilled(client_.get(), *began_s));
  VARVE_ASSIGN_OR_RETURN(const uint64_t server_ms, ServerMillis());
  VARVE_RETURN_IF_ERROR(target_.NoteBaseBegins(server_ms / 1000));
  const absl::Status taken = target_.TakeBase(client_.get());
  // What the server is at belongs to somebody else, also for the run that comes next.
  if (IsAtAnother(taken)) VARVE_RETURN_IF_ERROR(target_.ForgetBaseBegun());
  VARVE_RETURN_IF_ERROR(taken);
  const std::optional<ArchiveTarget::Position> position = target_.position();
  if (!position)
    return absl::InternalError("the base was taken, and the archive needs another one");
  cursor_ = position->version;
  said_why_base_.clear();
  say_(fmt::format("the base has version {}", position->version));
  return absl::OkStatus();
}

bool Archiver::IsBaseUnderWay() const {
  return base_thread_.is_running() || target_.copied_base().has_value();
}

absl::Status Archiver::TendBase() {
  const std::optional<ArchiveTarget::Position> position = target_.position();
  if (!position) return absl::OkStatus();
  if (base_thread_.is_running()) {
    if (!base_thread_.is_done()) {
      if (options_.once) Pause(kStep);
      return absl::OkStatus();
    }
    VARVE_RETURN_IF_ERROR(EndBase());
  }
  if (const std::optional<ArchiveTarget::Position> base = target_.copied_base()) {
    if (base->history_id != position->history_id) {
      target_.ForgetCopiedBase();
      return absl::OkStatus();
    }
    if (cursor_ < base->version) return absl::OkStatus();
    VARVE_RETURN_IF_ERROR(WriteOut());
    VARVE_RETURN_IF_ERROR(target_.JoinBase());
    say_(fmt::format("another base has version {}", base->version));
    return absl::OkStatus();
  }
  const bool is_due =
      server_ms_ != 0 && NowMillis() >= next_base_ms_ && target_.IsBaseDue(server_ms_);
  return is_due ? BeginBase() : absl::OkStatus();
}

absl::Status Archiver::BeginBase() {
  if (const std::optional<uint64_t> began_s = target_.base_began_s())
    VARVE_RETURN_IF_ERROR(EndBackupOfKilled(client_.get(), *began_s));
  VARVE_RETURN_IF_ERROR(target_.NoteBaseBegins(server_ms_ / 1000));
  base_thread_.Start();
  return absl::OkStatus();
}

absl::Status Archiver::EndBase() {
  const absl::Status copied = base_thread_.Finish();
  if (copied.ok()) return absl::OkStatus();
  if (IsAtAnother(copied)) VARVE_RETURN_IF_ERROR(target_.ForgetBaseBegun());
  if (options_.once) return copied;
  next_base_ms_ = NowMillis() + kBasePauseMs;
  say_(
      fmt::format("no other base could be taken: {}; the archive goes on without it, and another "
                  "one is tried in a minute",
                  std::string(copied.message())));
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Archiver::ServerMillis() {
  VARVE_ASSIGN_OR_RETURN(const Reply reply, Call({"TIME"}));
  uint64_t seconds = 0, micros = 0;
  if (reply.elements.size() != 2 || !absl::SimpleAtoi(reply.elements[0].text, &seconds) ||
      !absl::SimpleAtoi(reply.elements[1].text, &micros))
    return absl::DataLossError("the server's reply to TIME makes no sense");
  return seconds * 1000 + micros / 1000;
}

absl::StatusOr<bool> Archiver::ReadOn() {
  const bool notes = read_.empty() && (options_.once || NowMillis() - noted_ms_ >= kNoteMs);
  uint64_t server_ms = 0;
  if (notes) {
    VARVE_ASSIGN_OR_RETURN(server_ms, ServerMillis());
    server_ms_ = server_ms;
  }
  const std::string since = fmt::to_string(cursor_);
  const std::string block =
      fmt::to_string(std::max(std::min(options_.interval / 4, kLongestBlock), kStep).count());
  absl::StatusOr<Reply> reply =
      notes ? Call({"CHANGES", "SINCE", since, "NAMESPACE", "ALL", "FULL"})
            : Call({"CHANGES", "SINCE", since, "NAMESPACE", "ALL", "FULL", "BLOCK", block});
  VARVE_RETURN_IF_ERROR(reply.status());
  VARVE_ASSIGN_OR_RETURN(ChangeReply changes, ParseChangeReply(*std::move(reply)));
  // The client may have made a lost connection again, to a server of another store.
  if (changes.history_id != target_.position()->history_id) {
    target_.NeedBase(OtherHistory(changes.history_id, target_.position()->history_id));
    return false;
  }
  const bool nothing = changes.commits.empty();
  if (notes) noted_ms_ = NowMillis();
  if (notes && nothing && server_ms > kBehindMs)
    VARVE_RETURN_IF_ERROR(target_.NoteCurrent(server_ms - kBehindMs));
  const size_t before = read_bytes_;
  Take(std::move(changes));
  const bool was_little = !nothing && read_bytes_ - before < kManyBytes;
  // Commits gather, so that not each of them takes a request.
  if (was_little && !options_.once) Pause(std::min(options_.interval / 8, milliseconds(100)));
  return nothing;
}

void Archiver::Take(ChangeReply reply) {
  cursor_ = std::max(cursor_, reply.next);
  for (Change& commit : reply.commits) {
    const SequenceNumber before =
        read_.empty() ? target_.position()->version : read_.back().version;
    if (commit.version <= before) continue;
    if (std::string why = target_.WhyNotReplayed(commit); !why.empty()) {
      why_base_ = std::move(why);
      return;
    }
    if (read_.empty()) read_since_ms_ = NowMillis();
    read_bytes_ += BytesOf(commit);
    read_.push_back(std::move(commit));
  }
}

bool Archiver::IsDue() const {
  if (read_.empty()) return false;
  const uint64_t half = static_cast<uint64_t>(options_.interval.count()) / 2;
  return read_bytes_ >= kFileBytes || NowMillis() - read_since_ms_ >= half;
}

absl::Status Archiver::WriteOut() {
  if (read_.empty()) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(target_.Append(read_));
  const std::string version = fmt::to_string(read_.back().version);
  read_.clear();
  read_bytes_ = 0;
  full_backoff_.Reset();
  const absl::Status told = Call({"FEED", "ACK", target_.FeedName(), version}).status();
  if (told.ok() || IsLost(told) || absl::IsPermissionDenied(told)) return told;
  // The feed was dropped, or lost its place. Reading on tells whether something was missed.
  return EnsureFeed();
}

void Archiver::ForgetRead() {
  read_.clear();
  read_bytes_ = 0;
  why_base_.clear();
}

void Archiver::Pause(milliseconds pause) const {
  while (pause.count() > 0 && !stopped_()) {
    const milliseconds step = std::min(pause, kStep);
    std::this_thread::sleep_for(step);
    pause -= step;
  }
}

void Archiver::SayOnce(const std::string& line) {
  if (line == said_) return;
  said_ = line;
  say_(line);
}

}  // namespace varve
