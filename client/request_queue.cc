#include "client/request_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "client/reply_status.h"
#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/resp/resp_parser.h"
#include "util/resp/resp_reply.h"

namespace varve {
namespace {

// Commands that change nothing, neither data nor the connection: asking twice is as good as once.
// Sorted.
constexpr std::string_view kReads[] = {
    "BITCOUNT", "BITFIELD_RO", "BITPOS", "CHILDREN",  "COMMAND", "COUNT", "DBSIZE",
    "DIGEST",   "DUMP",        "ECHO",   "EXISTS",    "EXPLAIN", "GET",   "GETBIT",
    "GETRANGE", "INFO",        "KEYS",   "LASTSAVE",  "LCS",     "MGET",  "OBJECT",
    "PING",     "PREFIX",      "PTTL",   "RANDOMKEY", "RANGE",   "SCAN",  "STRLEN",
    "SUBSTR",   "TIME",        "TREE",   "TTL",       "TYPE"};

static_assert(std::is_sorted(std::begin(kReads), std::end(kReads)));

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 0x20) : c;
  return upper;
}

struct SubscriptionKind {
  std::string_view subscribe;
  std::string_view unsubscribe;
};

constexpr SubscriptionKind kSubscriptionKinds[] = {
    {"SUBSCRIBE", "UNSUBSCRIBE"}, {"PSUBSCRIBE", "PUNSUBSCRIBE"}, {"SSUBSCRIBE", "SUNSUBSCRIBE"}};

static_assert(std::size(kSubscriptionKinds) == 3, "one for each set of subscriptions");

// The request, where it chooses the database or namespace for those that follow it.
std::vector<std::string> SelectionOf(std::string_view command,
                                     absl::Span<const std::string_view> arguments) {
  const bool selects = command == "SELECT" && arguments.size() == 2;
  const bool uses = command == "NAMESPACE" && arguments.size() == 3 && Upper(arguments[1]) == "USE";
  if (!selects && !uses) return {};
  return {arguments.begin(), arguments.end()};
}

absl::Status LostTransaction(std::string_view command) {
  return absl::AbortedError(
      fmt::format("{}: the connection was lost, and with it the transaction (MULTI, WATCH) that "
                  "this belongs to: begin it anew",
                  command));
}

// How many push messages answer a (un)subscribing command; 0 for all others.
size_t Confirmations(std::string_view command, size_t arguments) {
  for (const auto& [subscribe, unsubscribe] : kSubscriptionKinds) {
    if (command == subscribe || command == unsubscribe) return std::max<size_t>(arguments - 1, 1);
  }
  return 0;
}

// Why a request can't be sent: nobody could tell afterwards what is a reply to what. Empty: it can.
std::string_view Refusal(std::string_view command, absl::Span<const std::string_view> arguments,
                         int protocol) {
  if (arguments.empty()) return "a request without a command";
  if (command == "HELLO" && arguments.size() > 1 && arguments[1] == "2" && protocol >= 3) {
    return "HELLO 2 is not sent: this client speaks RESP3 on all of its connections";
  }
  if (command == "CLIENT" && arguments.size() == 3 && Upper(arguments[1]) == "REPLY") {
    const std::string mode = Upper(arguments[2]);
    if (mode == "OFF" || mode == "SKIP")
      return "CLIENT REPLY OFF and SKIP are not sent: this client waits for each reply";
  }
  return {};
}

// A line such as `1700000000.123456 [0 127.0.0.1:50000] "get" "a"`.
bool IsMonitorLine(const Reply& reply) {
  if (reply.type != Reply::Type::kSimple || reply.text.empty()) return false;
  return reply.text[0] >= '0' && reply.text[0] <= '9' && reply.text.find(" [") != std::string::npos;
}

bool BeginsWatch(std::string_view command) {
  return command == "WATCH" || command == "WATCHPREFIX" || command == "WATCHRANGE";
}

}  // namespace

RequestQueue::Selection RequestQueue::InitialSelection(const ClientOptions& options) {
  if (!options.namespace_name.empty()) return {"NAMESPACE", "USE", options.namespace_name};
  if (options.database != 0) return {"SELECT", fmt::to_string(options.database)};
  return {};
}

void RequestQueue::Add(absl::Span<const std::string_view> arguments, WhenLost when_lost,
                       std::unique_ptr<ReplySink> sink) {
  Entry& entry = entries_.emplace_back();
  if (!arguments.empty()) entry.command = Upper(arguments[0]);
  if (const std::string_view refusal = Refusal(entry.command, arguments, options_.protocol);
      !refusal.empty()) {
    entry.outcome = absl::InvalidArgumentError(fmt::to_string(refusal));
    return;
  }
  if (BelongsToLost(entry.command)) {
    entry.outcome = LostTransaction(entry.command);
    return;
  }
  entry.reads =
      std::binary_search(std::begin(kReads), std::end(kReads), std::string_view(entry.command));
  entry.selection = SelectionOf(entry.command, arguments);
  entry.resend = when_lost == WhenLost::kResend ||
                 (when_lost == WhenLost::kByCommand && (entry.reads || !entry.selection.empty()));
  entry.confirmations = options_.protocol >= 3 ? Confirmations(entry.command, arguments.size()) : 0;
  entry.sink = std::move(sink);
  if (entry.command == "AUTH" && (arguments.size() == 2 || arguments.size() == 3)) {
    entry.credentials = std::make_unique<Credentials>();
    if (arguments.size() == 3) entry.credentials->user = arguments[1];
    entry.credentials->password = arguments.back();
  }
  const size_t before = bytes_.size();
  AppendRequest(arguments, &bytes_);
  entry.size = bytes_.size() - before;
}

void RequestQueue::AppendHandshake(absl::Span<const std::string_view> arguments, bool has_reply) {
  AppendRequest(arguments, &handshake_);
  if (has_reply) ++handshake_replies_;
}

void RequestQueue::BeginConnection() {
  bound_ = Bound::kNot;
  queued_ = 0;
  queued_selections_.clear();
  in_.Clear();
  wanted_ = 1;
  sent_ = 0;
  broken_ = absl::OkStatus();
  handshake_.Clear();
  handshake_sent_ = 0;
  handshake_replies_ = 0;
  const std::string& password = credentials_.password;
  const std::string_view user =
      credentials_.user.empty() ? std::string_view("default") : credentials_.user;
  if (options_.protocol >= 3) {
    std::vector<std::string_view> hello = {"HELLO", "3"};
    if (!password.empty()) hello.insert(hello.end(), {"AUTH", user, password});
    if (!options_.name.empty()) hello.insert(hello.end(), {"SETNAME", options_.name});
    AppendHandshake(hello, true);
  } else {
    if (!password.empty() && credentials_.user.empty()) AppendHandshake({"AUTH", password}, true);
    if (!password.empty() && !credentials_.user.empty())
      AppendHandshake({"AUTH", user, password}, true);
    if (!options_.name.empty()) AppendHandshake({"CLIENT", "SETNAME", options_.name}, true);
  }
  if (!selection_.empty()) {
    const std::vector<std::string_view> words(selection_.begin(), selection_.end());
    AppendHandshake(words, true);
  }
  // Confirmed by push messages, which are no replies.
  for (size_t i = 0; i < subscribed_.size(); ++i) {
    for (const std::string& channel : subscribed_[i])
      AppendHandshake({kSubscriptionKinds[i].subscribe, channel}, false);
  }
  if (monitors_) AppendHandshake({"MONITOR"}, true);
  probes_ = options_.tls.enabled && handshake_replies_ == 0;
  if (probes_) AppendHandshake({"PING"}, true);
}

std::string_view RequestQueue::Unsent() const {
  if (handshake_sent_ < handshake_.size()) return handshake_.view().substr(handshake_sent_);
  return handshake_replies_ > 0 ? std::string_view() : bytes_.view().substr(sent_);
}

void RequestQueue::MarkSent(size_t bytes) {
  if (handshake_sent_ < handshake_.size()) {
    handshake_sent_ += bytes;
  } else {
    sent_ += bytes;
  }
}

RequestQueue::Taken RequestQueue::Break(absl::Status why) {
  broken_ = std::move(why);
  return Taken::kBroken;
}

RequestQueue::Taken RequestQueue::Finish(absl::StatusOr<Reply>* reply,
                                         absl::StatusOr<Reply> result) {
  VARVE_ASSERT(!entries_.empty());
  const size_t size = entries_.front().size;
  VARVE_ASSERT(size <= bytes_.size());
  bytes_.Consume(size);
  sent_ -= size;
  entries_.pop_front();
  *reply = std::move(result);
  return Taken::kReply;
}

RequestQueue::Taken RequestQueue::TakeHandshakeReply(const Reply& reply) {
  VARVE_ASSERT(handshake_replies_ > 0);
  --handshake_replies_;
  // Any reply shows that the server took the connection.
  if (!reply.is_error() || probes_) return Taken::kNothing;
  absl::Status refused = StatusOfError(reply);
  if (absl::IsUnauthenticated(refused) || absl::IsPermissionDenied(refused))
    return Break(std::move(refused));
  return Break(absl::FailedPreconditionError(
      fmt::format("the server refused the connection: {}", reply.text)));
}

bool RequestQueue::Parse(Reply* reply, Taken* taken) {
  *taken = Taken::kNothing;
  // What the server sends ends with a line end wherever it pauses; a long reply that doesn't is not
  // parsed over and over.
  if (in_.empty() || (in_.size() < wanted_ && !in_.view().ends_with("\r\n"))) return false;
  size_t consumed = 0;
  switch (ParseReply(in_.view(), reply, &consumed)) {
    case ReplyResult::kReply:
      in_.Consume(consumed);
      wanted_ = 1;
      return true;
    case ReplyResult::kNeedMore:
      wanted_ = in_.size() * 2 + 1;
      return false;
    case ReplyResult::kError:
      *taken = Break(absl::InternalError("the server does not speak RESP"));
      return false;
  }
  return false;
}

bool RequestQueue::ParseArrayHeader(size_t* elements, Taken* taken) {
  *taken = Taken::kNothing;
  const size_t end = in_.view().find("\r\n");
  if (end == std::string_view::npos) return false;
  int64_t count = 0;
  if (!ParseRespInteger(in_.view().substr(1, end - 1), &count) || count < 0) {
    *taken = Break(absl::InternalError("the server does not speak RESP"));
    return false;
  }
  in_.Consume(end + 2);
  *elements = static_cast<size_t>(count);
  return true;
}

RequestQueue::Taken RequestQueue::FeedSink(Entry* entry, absl::StatusOr<Reply>* reply) {
  Taken taken = Taken::kNothing;
  if (!entry->begun) {
    if (!ParseArrayHeader(&entry->remaining, &taken)) return taken;
    entry->begun = true;
    entry->resend = false;
    if (entry->sink->begin) entry->sink->begin(entry->remaining);
  }
  Reply element;
  while (entry->remaining > 0) {
    if (!Parse(&element, &taken)) return taken;
    --entry->remaining;
    if (!entry->sink->element(std::move(element))) {
      return Break(absl::CancelledError("the reply was not wanted to its end"));
    }
  }
  Reply done;
  done.type = Reply::Type::kArray;
  return Finish(reply, std::move(done));
}

RequestQueue::Taken RequestQueue::Take(absl::StatusOr<Reply>* reply) {
  while (true) {
    Entry* const front = entries_.empty() ? nullptr : &entries_.front();
    if (front != nullptr && !front->outcome.ok()) return Finish(reply, front->outcome);
    if (in_.empty()) return Taken::kNothing;
    if (handshaken() && front != nullptr && front->sink != nullptr &&
        (front->begun || in_.view()[0] == '*')) {
      return FeedSink(front, reply);
    }
    Reply parsed;
    Taken taken = Taken::kNothing;
    if (!Parse(&parsed, &taken)) return taken;
    if (parsed.type == Reply::Type::kPush) {
      HandlePush(parsed);
      const bool confirms = handshaken() && front != nullptr && front->confirmations > 0 &&
                            !parsed.elements.empty() &&
                            Upper(parsed.elements[0].text) == front->command;
      if (confirms && --front->confirmations == 0) return Finish(reply, std::move(parsed));
    } else if (monitors_ && IsMonitorLine(parsed)) {
      HandlePush(parsed);
    } else if (handshake_replies_ > 0) {
      if (TakeHandshakeReply(parsed) == Taken::kBroken) return Taken::kBroken;
    } else if (front == nullptr || sent_ == 0) {
      return Break(absl::UnavailableError(
          parsed.is_error() ? parsed.text
                            : std::string("the server sent a reply that nobody had asked for")));
    } else {
      NoteReply(front, parsed);
      return Finish(reply, std::move(parsed));
    }
  }
}

// What MULTI makes wait selects nothing before EXEC, which answers for each of those requests.
void RequestQueue::NoteTransaction(Entry* entry, const Reply& reply) {
  if (reply.type == Reply::Type::kSimple && reply.text == "QUEUED") {
    if (!entry->selection.empty())
      queued_selections_.emplace_back(queued_, std::exchange(entry->selection, {}));
    ++queued_;
    return;
  }
  const bool executed = entry->command == "EXEC";
  if (!reply.is_error() || (executed && bound_ == Bound::kByMulti))
    bound_ = Next(bound_, entry->command);
  if (!executed && entry->command != "DISCARD" && entry->command != "RESET") return;
  for (auto& [place, selection] : std::exchange(queued_selections_, {})) {
    if (executed && place < reply.elements.size() && !reply.elements[place].is_error()) {
      selection_ = std::move(selection);
    }
  }
  queued_ = 0;
}

void RequestQueue::NoteReply(Entry* entry, const Reply& reply) {
  NoteTransaction(entry, reply);
  if (reply.is_error()) return;
  if (entry->credentials != nullptr) credentials_ = std::move(*entry->credentials);
  if (entry->command == "MONITOR") monitors_ = true;
  if (!entry->selection.empty()) selection_ = std::move(entry->selection);
  if (entry->command == "RESET") {
    StopListening();
    selection_.clear();
  }
}

bool RequestQueue::listens() const {
  return monitors_ || std::any_of(subscribed_.begin(), subscribed_.end(),
                                  [](const auto& some) { return !some.empty(); });
}

void RequestQueue::StopListening() {
  subscribed_ = {};
  monitors_ = false;
}

void RequestQueue::HandlePush(const Reply& push) {
  ++pushes_;
  if (push.elements.size() >= 2)
    RememberSubscription(Upper(push.elements[0].text), push.elements[1].text);
  if (options_.on_push) options_.on_push(push);
}

void RequestQueue::RememberSubscription(const std::string& kind, const std::string& channel) {
  for (size_t i = 0; i < subscribed_.size(); ++i) {
    if (kind == kSubscriptionKinds[i].subscribe) subscribed_[i].insert(channel);
    if (kind == kSubscriptionKinds[i].unsubscribe) subscribed_[i].erase(channel);
  }
}

absl::Status RequestQueue::LostStatus(const Entry& entry, const absl::Status& why) const {
  const std::string cause(why.message());
  if (entry.reads) {
    const std::string text = fmt::format("{}: no reply: {}", entry.command, cause);
    return absl::IsDeadlineExceeded(why) ? absl::DeadlineExceededError(text)
                                         : absl::UnavailableError(text);
  }
  return absl::UnknownError(fmt::format(
      "{}: it was sent, but its reply did not come, so that it may have taken effect or not: {}",
      entry.command, cause));
}

RequestQueue::Bound RequestQueue::Next(Bound bound, std::string_view command) {
  if (command == "MULTI") return Bound::kByMulti;
  if (command == "EXEC" || command == "DISCARD" || command == "RESET") return Bound::kNot;
  if (bound == Bound::kByMulti) return bound;
  if (BeginsWatch(command)) return Bound::kByWatch;
  return command == "UNWATCH" ? Bound::kNot : bound;
}

bool RequestQueue::BelongsToLost(std::string_view command) {
  if (lost_ == Bound::kNot) return false;
  const bool watched_only = lost_ == Bound::kByWatch;
  if (watched_only && command == "MULTI") {  // it counts on what was watched
    lost_ = Bound::kByMulti;
    return true;
  }
  const bool begins = BeginsWatch(command) || command == "MULTI" || command == "RESET";
  const bool ends = watched_only ? command == "UNWATCH" : command == "EXEC" || command == "DISCARD";
  if (begins || ends) lost_ = Bound::kNot;
  return !begins && !watched_only;
}

void RequestQueue::ConnectionLost(const absl::Status& why, bool again) {
  ByteBuffer kept;
  size_t begin = 0;
  Bound bound = bound_;  // of the connection behind what was sent
  bool transaction_lost = false;
  const auto forget = [](Entry* entry, absl::Status outcome) {
    entry->outcome = std::move(outcome);
    entry->size = 0;
  };
  for (Entry& entry : entries_) {
    if (!entry.outcome.ok()) continue;
    const std::string_view request = bytes_.view().substr(begin, entry.size);
    begin += entry.size;
    VARVE_ASSERT(begin <= bytes_.size());
    const bool sent = begin <= sent_;
    if (!sent && bound != Bound::kNot) {
      lost_ = std::exchange(bound, Bound::kNot);
      transaction_lost = true;
    }
    // Inside MULTI a request would have waited for EXEC; by itself it is another one.
    const bool stands_alone = bound != Bound::kByMulti;
    if (sent) bound = Next(bound, entry.command);
    if (sent && !(again && entry.resend && stands_alone)) {
      forget(&entry, LostStatus(entry, why));
    } else if (transaction_lost && BelongsToLost(entry.command)) {
      forget(&entry, LostTransaction(entry.command));
    } else {
      kept.Append(request);
      entry.sent |= sent;
    }
  }
  if (bound != Bound::kNot) lost_ = bound;
  bytes_ = std::move(kept);
  BeginConnection();
}

void RequestQueue::FailAll(const absl::Status& why) {
  for (Entry& entry : entries_) {
    if (entry.outcome.ok()) entry.outcome = entry.sent ? LostStatus(entry, why) : why;
    entry.size = 0;
  }
  bytes_.Clear();
  sent_ = 0;
  in_.Clear();  // nothing of it belongs to a request any more
  wanted_ = 1;
}

}  // namespace varve
