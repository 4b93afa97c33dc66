#include "server/following/redis_session.h"

#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "server/following/rdb_load.h"
#include "spdlog/spdlog.h"
#include "util/base/status.h"
#include "util/base/whole_number.h"
#include "util/resp/resp_reply.h"

namespace varve {
namespace {

constexpr std::chrono::milliseconds kConnectTimeout{3000};
constexpr size_t kMarkSize = 40;
constexpr std::string_view kMarkWord = "EOF:";
constexpr uint64_t kItemsBetweenReports = 4096;

std::string RequestText(std::initializer_list<std::string_view> words) {
  ByteBuffer bytes;
  AppendRequest(std::vector<std::string_view>(words), &bytes);
  return std::string(bytes.view());
}

absl::Status Refused(const RedisConnection& connection, std::string_view request,
                     std::string_view reply) {
  return absl::FailedPreconditionError(
      fmt::format("{} answers to {}: {}", connection.address(), request, reply));
}

}  // namespace

absl::Status RedisSession::Run() {
  VARVE_RETURN_IF_ERROR(Connect());
  VARVE_RETURN_IF_ERROR(Greet());
  VARVE_ASSIGN_OR_RETURN(const bool takes_copy, BeginSync());
  if (takes_copy) VARVE_RETURN_IF_ERROR(TakeCopy());
  return FollowStream();
}

absl::Status RedisSession::Connect() {
  ClientOptions options;
  options.host = parts_.primary->host;
  options.port = parts_.primary->port;
  options.tls = parts_.primary->tls;
  options.connect_timeout = kConnectTimeout;
  VARVE_ASSIGN_OR_RETURN(connection_, RedisConnection::Open(options, parts_.stop));
  parts_.stream->BeginConnection();
  return absl::OkStatus();
}

void RedisSession::Tell() {
  parts_.report->Update([&](RedisLinkStatus& status) { status.last_io = connection_->last_io(); });
  if (parts_.tell) parts_.tell();
}

// --- The greeting --------------------------------------------------------------------------------

absl::Status RedisSession::Ask(std::initializer_list<std::string_view> words) {
  VARVE_RETURN_IF_ERROR(connection_->Send(RequestText(words)));
  return connection_->ReadLine(&answer_);
}

absl::Status RedisSession::Greet() {
  VARVE_RETURN_IF_ERROR(Ask({"PING"}));
  // Who has not logged in, or may not PING, may still replicate.
  if (!answer_.starts_with('+') && !answer_.starts_with("-NOAUTH") &&
      !answer_.starts_with("-NOPERM"))
    return Refused(*connection_, "PING", answer_);
  const RedisPrimary& primary = *parts_.primary;
  if (!primary.password.empty()) {
    VARVE_RETURN_IF_ERROR(primary.user.empty() ? Ask({"AUTH", primary.password})
                                               : Ask({"AUTH", primary.user, primary.password}));
    if (!answer_.starts_with('+')) return Refused(*connection_, "AUTH", answer_);
  }
  // A Redis that does not know one of these does without.
  if (primary.own_port != 0)
    VARVE_RETURN_IF_ERROR(Ask({"REPLCONF", "listening-port", fmt::to_string(primary.own_port)}));
  return Ask({"REPLCONF", "capa", "eof", "capa", "psync2"});
}

absl::StatusOr<bool> RedisSession::BeginSync() {
  const bool goes_on = !parts_.position->replid.empty();
  const std::string next = goes_on ? fmt::to_string(parts_.position->offset + 1) : "-1";
  const std::string_view id = goes_on ? std::string_view(parts_.position->replid) : "?";
  VARVE_RETURN_IF_ERROR(Ask({"PSYNC", id, next}));
  const std::vector<std::string> words =
      absl::StrSplit(absl::string_view(answer_.data(), answer_.size()), ' ', absl::SkipEmpty());
  const std::string_view verdict = words.empty() ? std::string_view() : words[0];
  if (verdict == "+CONTINUE" && goes_on) {
    if (words.size() > 1) parts_.position->replid = words[1];
    received_ = parts_.position->offset;
    parts_.report->Update([&](RedisLinkStatus& status) {
      ++status.partial_syncs;
      status.replid = parts_.position->replid;
    });
    spdlog::info("Redis at {} goes on at offset {}", connection_->address(),
                 parts_.position->offset + 1);
    return false;
  }
  copy_position_ = {};
  if (verdict != "+FULLRESYNC" || words.size() < 3 ||
      !ParseWholeNumber(words[2], &copy_position_.offset))
    return Refused(*connection_, "PSYNC", answer_);
  copy_position_.replid = words[1];
  return true;
}

// --- The copy ------------------------------------------------------------------------------------

absl::Status RedisSession::TakeCopy() {
  parts_.report->Update([](RedisLinkStatus& status) {
    status.syncing = true;
    status.keys_done = status.keys_total = status.bytes_done = status.bytes_total = 0;
  });
  Tell();
  // A line without anything is a sign of life that Redis takes while it copies.
  connection_->set_beat([this] {
    Tell();
    return connection_->Send("\n");
  });
  VARVE_RETURN_IF_ERROR(connection_->ReadLine(&answer_));
  std::string_view size_text = answer_;
  if (!size_text.starts_with('$')) return Refused(*connection_, "PSYNC", answer_);
  size_text.remove_prefix(1);
  uint64_t size = 0;
  std::string_view mark;
  if (size_text.starts_with(kMarkWord) && size_text.size() == kMarkWord.size() + kMarkSize) {
    mark = size_text.substr(kMarkWord.size());
  } else if (!ParseWholeNumber(size_text, &size)) {
    return Refused(*connection_, "PSYNC", answer_);
  }
  spdlog::info("Redis at {} sends a copy{}", connection_->address(),
               mark.empty() ? fmt::format(" of {} bytes", size) : std::string());
  VARVE_RETURN_IF_ERROR(ReadCopy(size, mark));
  parts_.stream->BeginAfterCopy();
  *parts_.position = copy_position_;
  received_ = parts_.position->offset;
  const RedisLinkStatus copied = parts_.report->Get();
  spdlog::info("The copy of Redis at {} is complete: {} keys, {} bytes", connection_->address(),
               copied.keys_done, copied.bytes_done);
  return absl::OkStatus();
}

absl::Status RedisSession::ReadCopy(uint64_t size, std::string_view mark) {
  const uint64_t begin = connection_->offset();
  parts_.skipped->Clear();
  RdbReader reader(connection_.get());
  RdbLoad load(parts_.server, parts_.skipped);
  const auto report = [&] {
    parts_.report->Update([&](RedisLinkStatus& status) {
      status.keys_done = load.keys();
      status.keys_total = reader.announced_keys();
      status.bytes_done = connection_->offset() - begin;
      status.bytes_total = size;
    });
  };
  RdbItem item;
  for (uint64_t items = 0;; ++items) {
    VARVE_ASSIGN_OR_RETURN(const bool found, reader.Next(&item));
    if (!found) break;
    if (const absl::Status added = load.Add(item); !added.ok())
      return absl::AbortedError(added.message());
    if (items % kItemsBetweenReports == 0) report();
  }
  if (mark.empty() && connection_->offset() - begin != size)
    return connection_->Damaged(fmt::format("the copy does not end after {} bytes", size));
  if (!mark.empty()) {
    VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, connection_->Peek(kMarkSize));
    if (bytes.substr(0, kMarkSize) != mark)
      return connection_->Damaged("the copy does not end with its mark");
    connection_->Consume(kMarkSize);
  }
  *parts_.position = {};  // until the new one is known
  if (const absl::Status finished = load.Finish(); !finished.ok())
    return absl::AbortedError(finished.message());
  report();
  return absl::OkStatus();
}

// --- The stream ----------------------------------------------------------------------------------

absl::Status RedisSession::FollowStream() {
  parts_.report->Update([&](RedisLinkStatus& status) {
    if (status.syncing) ++status.full_syncs;
    status.up = true;
    status.syncing = false;
    status.replid = parts_.position->replid;
    status.offset = parts_.position->offset;
    status.error.clear();
  });
  was_up_ = true;
  Tell();
  connection_->set_beat([this] {
    Tell();
    return Acknowledge();
  });
  // A Redis that sent its copy without a file sends nothing more before it has this.
  VARVE_RETURN_IF_ERROR(Acknowledge());
  while (true) {
    VARVE_ASSIGN_OR_RETURN(const CommandStream::Taken taken,
                           parts_.stream->Execute(connection_->buffer()));
    if (taken.bytes == 0) {
      VARVE_RETURN_IF_ERROR(connection_->Receive());
      continue;
    }
    connection_->Consume(taken.bytes);
    if (taken.settled > 0)
      parts_.position->offset = received_ + static_cast<int64_t>(taken.settled);
    received_ += static_cast<int64_t>(taken.bytes);
    parts_.report->Update(
        [&](RedisLinkStatus& status) { status.offset = parts_.position->offset; });
    if (taken.wants_ack) VARVE_RETURN_IF_ERROR(Acknowledge());
    if (parts_.stop->load()) return absl::CancelledError("the link stops");
    VARVE_RETURN_IF_ERROR(connection_->ReceiveWhatIsThere());
  }
}

absl::Status RedisSession::Acknowledge() {
  VARVE_RETURN_IF_ERROR(parts_.stream->WaitUntilDurable());
  const std::string offset = fmt::to_string(parts_.position->offset);
  return connection_->Send(RequestText({"REPLCONF", "ACK", offset}));
}

}  // namespace varve
