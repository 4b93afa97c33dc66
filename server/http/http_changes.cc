#include "server/http/http_changes.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "server/access/permissions.h"
#include "server/http/http_access.h"
#include "server/requests/past_point.h"
#include "util/base/assert.h"
#include "util/base/json_text.h"
#include "varve/history_status.h"

namespace varve {
namespace {

constexpr std::string_view kEvents = "text/event-stream; charset=utf-8";
constexpr std::string_view kJsonChanges = "application/json; charset=utf-8";
constexpr size_t kLookBytes = 1u << 20;
constexpr std::string_view kCommand = "changes";

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = Utf8CharacterSize(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

void AppendBase64(std::string_view bytes, std::string* json) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group <<= 8;
      if (i + j < bytes.size()) group |= static_cast<unsigned char>(bytes[i + j]);
    }
    for (size_t j = 0; j < 4; ++j)
      *json += i + j <= bytes.size() ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
}

void AppendBytes(std::string_view bytes, std::string* json) {
  if (IsUtf8(bytes)) return AppendJsonText(bytes, json);
  *json += "{\"base64\":\"";
  AppendBase64(bytes, json);
  *json += "\"}";
}

void AppendMember(std::string_view name, std::string_view bytes, bool is_there, std::string* json) {
  *json += fmt::format(",\"{}\":", name);
  is_there ? AppendBytes(bytes, json) : (void)(*json += "null");
}

std::string Event(std::string_view kind, std::string_view data) {
  return fmt::format("event: {}\ndata: {}\n\n", kind, data);
}

HttpReply Refuse(int status, std::string_view why, std::string_view headers = {}) {
  return {.status = status, .body = fmt::format("{}\n", why), .more_headers = headers};
}

HttpReply RefuseStatus(const ServerState& server, const absl::Status& status) {
  const bool never = absl::IsFailedPrecondition(status) && !server.store->capabilities().history;
  const int code = FirstOfTrimmed(status)       ? 410
                   : absl::IsOutOfRange(status) ? 400
                   : never                      ? 501
                                                : 503;
  return Refuse(code, CommandContext::ErrorText(ExplainNoChanges(*server.store, status)));
}

// Returns the last value that the query has for the name; null: none.
const std::string* Find(const HttpRequest& request, std::string_view name) {
  const std::string* found = nullptr;
  for (const auto& [given, value] : request.query) {
    if (given == name) found = &value;
  }
  return found;
}

// Finds the namespace that the query names, and whether the user may use it.
std::optional<HttpReply> FindSpace(ServerState* server, const User& user,
                                   const HttpRequest& request, std::optional<NamespaceId>* space) {
  const std::string* const name = Find(request, "namespace");
  *space = kDefaultNamespace;
  Place place;
  if (name != nullptr && *name == "ALL") {
    space->reset();
    return std::nullopt;
  }
  if (name != nullptr) {
    const absl::StatusOr<NamespaceList> list = server->store->Namespaces();
    if (!list.ok()) return RefuseStatus(*server, list.status());
    const std::optional<uint64_t> number = ParseCount(*name);
    const NamespaceDescription* const found = !number ? list->Find(*name)
                                              : *number < kFirstNamedNamespace
                                                  ? list->Find(static_cast<NamespaceId>(*number))
                                                  : nullptr;
    if (found == nullptr) return Refuse(404, "There is no such namespace.");
    *space = found->id;
    if (number) {
      place.database = found->id;
    } else {
      place.name = *name;
    }
  }
  if (MayUsePlace(user, place)) return std::nullopt;
  return Refuse(403, "This user may not use that namespace.");
}

// Reads where the stream begins. Nothing: it can.
std::optional<HttpReply> FindStart(ServerState* server, const HttpRequest& request,
                                   ChangeStart* start) {
  const absl::StatusOr<ChangePositions> positions = server->store->GetChangePositions();
  if (!positions.ok()) return RefuseStatus(*server, positions.status());
  const std::string* const given = Find(request, "since");
  const std::string since = !request.last_event_id.empty() ? request.last_event_id
                            : given != nullptr             ? *given
                                                           : "now";
  start->since = since == "now" ? positions->last : positions->first;
  if (since != "now" && since != "first") {
    const std::optional<uint64_t> version = ParseCount(since);
    if (!version) return Refuse(400, "since takes a version, first, or now.");
    start->since = *version;
  }
  const absl::Status status =
      server->store->NewChangeIterator(start->since, start->filter).status();
  if (!status.ok()) return RefuseStatus(*server, status);
  return std::nullopt;
}

}  // namespace

HttpReply ChangesReply(ServerState* server, UserPointer user, const HttpRequest& request,
                       std::function<void()> wake) {
  const std::string_view words[] = {kCommand, "stream"};
  if (user == nullptr) return Refuse(401, "Give the name and the password of a user.", kAskForUser);
  if (!MayExecute(server->clients.users, user.get(), words))
    return Refuse(403, "This user may not execute CHANGES.");
  const std::string* const feed = Find(request, "feed");
  const bool polls = feed != nullptr && *feed == "longpoll";
  if (feed != nullptr && !polls && *feed != "eventsource")
    return Refuse(400, "feed takes eventsource, or longpoll.");
  HttpChanges::Request wanted{.polls = polls};
  if (const std::string* const prefix = Find(request, "prefix"))
    wanted.range = PrefixRange(*prefix);
  wanted.start.filter.lower = wanted.range.lower;
  wanted.start.filter.upper = wanted.range.upper;
  if (auto refused = FindSpace(server, *user, request, &wanted.start.filter.space))
    return *std::move(refused);
  if (auto refused = FindStart(server, request, &wanted.start)) return *std::move(refused);
  return {.content_type = polls ? kJsonChanges : kEvents,
          .stream = std::make_shared<HttpChanges>(server, std::move(user), std::move(wanted),
                                                  std::move(wake))};
}

HttpChanges::HttpChanges(ServerState* server, UserPointer user, Request request,
                         std::function<void()> wake)
    : server_(*server),
      user_name_(user->name),
      request_(std::move(request)),
      wake_(wake),
      position_(request_.start.since),
      visible_(request_.range, &server->clients.users.catalog(), std::move(user),
               server->clients.users.catalog()
                   .entry(*server->clients.users.catalog().Find(kCommand))
                   .command,
               {std::string(kCommand), "stream"}) {
  mailbox_.Open(&server->live.message_limits, std::move(wake));
}

HttpChanges::~HttpChanges() { server_.clients.changes.Leave(&mailbox_); }

std::string HttpChanges::TakePiece(Time now) {
  absl::MutexLock lock(&mutex_);
  if (!piece_.empty()) {
    sent_at_ = now;
    if (last_) ended_.store(true);
    return std::exchange(piece_, std::string());
  }
  if (running_ || ended()) return "";
  const bool poll_is_over = request_.polls && now - began_ >= kLongestPoll;
  if (waits_ && word_ == server_.clients.changes.word() && !poll_is_over) {
    if (request_.polls || now - sent_at_ < kBetweenSigns) return "";
    sent_at_ = now;
    return ":\n\n";
  }
  running_ = server_.run_on_pool([self = shared_from_this()] { self->Read(); });
  return "";
}

bool HttpChanges::MayGoOn() {
  const UserTable& users = server_.clients.users;
  UserPointer user = users.Find(user_name_);
  if (user == visible_.user()) return true;
  const std::string_view words[] = {kCommand, "stream"};
  if (user == nullptr || !user->on || user->identity != visible_.user()->identity ||
      !MayExecute(users, user.get(), words))
    return false;
  visible_.Become(std::move(user));
  return true;
}

void HttpChanges::Read() {
  const uint64_t word = server_.clients.changes.word();
  std::string text;
  bool is_last = false;
  bool is_at_head = false;
  absl::StatusOr<bool> read = absl::PermissionDeniedError("the rights of this user have changed");
  if (MayGoOn()) read = Append(&text);
  if (read.ok()) {
    is_at_head = *read;
  } else {
    std::string why;
    AppendJsonText(CommandContext::ErrorText(read.status()), &why);
    text = request_.polls ? fmt::format("{{\"error\":{}}}\n", why) : Event("error", why);
    is_last = true;
  }
  const bool is_over = is_at_head && std::chrono::steady_clock::now() - began_ >= kLongestPoll;
  if (request_.polls && !is_last && (has_commit_ || is_over)) {
    text = Document(text);
    is_last = true;
  }
  if (!request_.polls && is_at_head && told_of_ != position_) {
    text += fmt::format("id: {}\n", position_) +
            Event("progress", fmt::format("{{\"version\":{},\"ms\":{}}}", position_,
                                          server_.store->NowMillis()));
    told_of_ = position_;
  }
  const bool has_text = !text.empty();
  {
    absl::MutexLock lock(&mutex_);
    running_ = false;
    piece_ = std::move(text);
    last_ = is_last;
    waits_ = is_at_head;
    word_ = word;
  }
  if (is_at_head && !is_last) server_.clients.changes.Wait(&mailbox_);
  if (has_text || !is_at_head || word != server_.clients.changes.word()) wake_();
}

absl::StatusOr<bool> HttpChanges::Append(std::string* text) {
  const absl::StatusOr<std::unique_ptr<ChangeIterator>> opened =
      server_.store->NewChangeIterator(position_, request_.start.filter);
  if (!opened.ok()) return opened.status();
  ChangeIterator& changes = **opened;
  while (text->size() < kPieceBytes) {
    const SequenceNumber before = changes.position();
    const absl::StatusOr<bool> next = changes.Next(kLookBytes);
    if (!next.ok()) {
      if (!text->empty()) return false;
      return next.status();
    }
    position_ = std::max(position_, changes.position());
    if (!*next) return changes.position() == before;
    const std::vector<ShownOperation> shown = visible_.Show(changes.change(), false);
    if (!shown.empty()) AppendCommit(changes.change(), shown, text);
  }
  return false;
}

void HttpChanges::AppendCommit(const Change& change, absl::Span<const ShownOperation> operations,
                               std::string* text) {
  if (!request_.polls) *text += fmt::format("id: {}\nevent: change\ndata: ", change.version);
  if (request_.polls && has_commit_) *text += ',';
  has_commit_ = true;
  *text += fmt::format("{{\"version\":{},\"ms\":{},\"ops\":[", change.version, change.instant_ms);
  bool is_first = true;
  for (const ShownOperation& shown : operations) {
    const ChangeOperation& operation = *shown.operation;
    *text += fmt::format("{}{{\"op\":\"{}\"", is_first ? "" : ",", ChangeWord(operation.kind));
    is_first = false;
    AppendMember("namespace", SpaceText(operation.space, operation.name), true, text);
    AppendMember("key", shown.key, shown.has_key, text);
    AppendMember("value", shown.value, shown.has_value, text);
    *text += fmt::format(",\"expires_ms\":{}}}", operation.expiry_ms);
  }
  *text += request_.polls ? "]}" : "]}\n\n";
}

std::string HttpChanges::Document(const std::string& commits) const {
  const absl::StatusOr<ChangePositions> positions = server_.store->GetChangePositions();
  return fmt::format("{{\"history_id\":{},\"next\":{},\"first\":{},\"commits\":[{}]}}\n",
                     positions.ok() ? positions->history_id : 0, position_,
                     positions.ok() ? positions->first : 0, commits);
}

}  // namespace varve
