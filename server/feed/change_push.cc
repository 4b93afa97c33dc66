#include "server/feed/change_push.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "server/access/permissions.h"
#include "server/execution/rights_check.h"
#include "util/base/assert.h"
#include "util/base/glob.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kPushLookBytes = 1u << 20;  // of changes that are looked at in one step
constexpr size_t kLookRecords = 4096;        // of a snapshot
constexpr size_t kMostHeldOpen = 64u << 10;  // of a message beside which the iterator stays open
constexpr int kProtocol = 3;
// Between signs of life about commits of which nothing is shown.
constexpr std::chrono::seconds kBetweenMoves{1};

}  // namespace

ChangePush::ChangePush(CommandContext& context, Arguments arguments, ChangeStart start,
                       const ChangeRequest& request)
    : server_(context.server),
      mailbox_(context.client.link.mailbox),
      request_(request),
      start_(std::move(start)),
      visible_(ChangesForClient(context, arguments.first(2), request.range)),
      writer_(context.server.store, request.with_previous, request.full),
      space_name_(request.space.value_or(context.client.space_name)),
      in_snapshot_(request.start == ChangeRequest::Start::kSnapshot) {
  VARVE_ASSERT(!in_snapshot_ || start_.filter.space.has_value());
}

// --- Between steps -------------------------------------------------------------------------------

bool ChangePush::TryBegin(ClientState* client) {
  const State state = state_.load();
  if (ended() || state == State::kRunning) return false;
  if (state == State::kWaits && word_ == server_.clients.changes.word() &&
      std::chrono::steady_clock::now() - told_at_ < kBetweenSigns && !client->rights.NeedCheck() &&
      client->protocol == kProtocol)
    return false;
  if (!MayGoOn(client)) return false;
  state_.store(State::kRunning);
  return true;
}

bool ChangePush::MayGoOn(ClientState* client) {
  if (client->protocol != kProtocol) {  // pushes have no meaning any more
    End();
    return false;
  }
  ClientRights& rights = client->rights;
  if (!rights.NeedCheck() && visible_.user() == nullptr) return true;
  if (rights.Stale() && !rights.LookAgain()) {
    Fail("NOPERM the user of this connection was removed");
    return false;
  }
  const User& user = rights.user();
  const std::string refusal =
      RefusalByLimits(user.limits, user.name, client->address, std::time(nullptr));
  const std::string_view request[] = {visible_.command().name, "stream"};
  const bool is_denied = FindDenial(server_.clients.users.catalog(), user, visible_.command(),
                                    request, PlaceOfClient(*client))
                             .has_value();
  UserPointer shown_to = rights.limited() ? rights.user_pointer() : nullptr;
  const bool differs = shown_to != visible_.user();
  if (!refusal.empty() || is_denied || (differs && in_snapshot_)) {
    Fail(!refusal.empty() ? refusal : "NOPERM the rights of this user have changed");
    return false;
  }
  if (differs) visible_.Become(std::move(shown_to));
  return true;
}

void ChangePush::Rest() {
  if (state_.load() != State::kRunning) CloseIterators();
}

void ChangePush::CloseIterators() {
  records_.reset();
  changes_.reset();
}

void ChangePush::LetSnapshotGo() {
  CloseIterators();
  snapshot_.reset();
  snapshot_since_.store(0);
}

void ChangePush::End() {
  const absl::MutexLock lock(&mutex_);
  ended_.store(true);
}

std::chrono::steady_clock::time_point ChangePush::snapshot_since() const {
  return Time(Time::duration(snapshot_since_.load()));
}

void ChangePush::Deliver(std::string_view message, SequenceNumber durable_after,
                         bool can_be_made_again) {
  const absl::MutexLock lock(&mutex_);
  if (ended()) return;
  mailbox_.DeliverPulled(std::make_shared<const std::string>(message), durable_after,
                         can_be_made_again);
}

void ChangePush::Fail(std::string_view error) {
  ByteBuffer message;
  RespWriter reply(&message, kProtocol);
  reply.Push(2);
  reply.Bulk("error");
  reply.Bulk(error);
  Deliver(message.view(), kNoSequence);
  End();
  mailbox_.Nudge();
}

// --- A step --------------------------------------------------------------------------------------

void ChangePush::Step() {
  VARVE_ASSERT(state_.load() == State::kRunning);
  if (mailbox_.LacksText()) return MakeAgain();
  ByteBuffer message;
  Outcome outcome = Outcome::kMore;
  SequenceNumber durable_after = kNoSequence;
  const bool of_snapshot = in_snapshot_;
  last_began_ = start_.since;
  if (!ended() && in_snapshot_) {
    outcome = ReadSnapshot(&message);
    if (records_ != nullptr) durable_after = records_->durable_after();
    if (!in_snapshot_) LetSnapshotGo();
  } else if (!ended()) {
    outcome = ReadChanges(&message);
  }
  if (!message.empty()) {
    const absl::Status pushed = server_.store->PushUnsynced();
    pushed.ok() ? Deliver(message.view(), durable_after, /*can_be_made_again=*/!of_snapshot)
                : Fail(pushed);
  }
  if (ended()) LetSnapshotGo();
  if (message.size() > kMostHeldOpen) changes_.reset();
  const uint64_t word = word_;
  if (outcome == Outcome::kMore || !message.empty()) {
    state_.store(State::kReady);
    return mailbox_.Nudge();
  }
  changes_.reset();
  state_.store(State::kWaits);
  server_.clients.changes.Wait(&mailbox_);
  if (server_.clients.changes.word() != word) mailbox_.Nudge();
}

ChangePush::Outcome ChangePush::ReadSnapshot(ByteBuffer* message) {
  const VisibleKeys& keys = visible_.KeysOf(*start_.filter.space, space_name_);
  RespWriter reply(message, kProtocol);
  if (!OpenRecords(keys)) return Outcome::kMore;
  if (keys.ranges.empty()) {
    EndSnapshot(&reply);
    return Outcome::kMore;
  }
  ByteBuffer records;
  RespWriter writer(&records, kProtocol);
  const size_t count = WriteRecords(keys, &writer);
  if (const absl::Status status = records_->status(); !status.ok()) {
    Fail(status);
    return Outcome::kMore;
  }
  if (count > 0) {
    reply.Push(2);
    reply.Bulk("snapshot");
    reply.Array(2 * count);
    message->Append(records.view());
  }
  if (records_->Valid()) {
    next_key_.assign(records_->key());
  } else {
    EndSnapshot(&reply);
  }
  return Outcome::kMore;
}

bool ChangePush::OpenRecords(const VisibleKeys& keys) {
  if (snapshot_ == nullptr) {
    snapshot_ = server_.store->GetSnapshot();
    start_.since = snapshot_->sequence();
    snapshot_since_.store(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  if (records_ != nullptr || keys.ranges.empty()) return true;
  ReadOptions options = NoWaitReadOptions(*start_.filter.space);
  options.snapshot = snapshot_.get();
  options.fill_cache = false;
  options.without_value = request_.keys_only;
  records_ = server_.store->NewIterator(options, keys.ranges.front().lower,
                                        keys.ranges.back().upper, nullptr);
  next_key_.empty() ? records_->SeekToFirst() : records_->Seek(next_key_);
  return true;
}

size_t ChangePush::WriteRecords(const VisibleKeys& keys, RespWriter* reply) {
  size_t count = 0;
  size_t looked_at = 0;
  auto range = keys.ranges.begin();
  while (records_->Valid() && reply->buffer()->size() < kSnapshotBytes &&
         looked_at++ < kLookRecords) {
    const std::string_view key = records_->key();
    while (range != keys.ranges.end() && !range->upper.empty() && key >= range->upper) ++range;
    VARVE_ASSERT(range != keys.ranges.end());
    if (key < range->lower) {
      records_->Seek(range->lower);
      continue;
    }
    const auto matches = [&](const std::string& pattern) { return GlobMatches(pattern, key); };
    if (keys.patterns.empty() || std::any_of(keys.patterns.begin(), keys.patterns.end(), matches)) {
      reply->Bulk(key);
      request_.keys_only ? reply->Null() : reply->Bulk(records_->value());
      ++count;
    }
    records_->Next();
  }
  return count;
}

void ChangePush::EndSnapshot(RespWriter* reply) {
  reply->Push(2);
  reply->Bulk("snapshot-end");
  reply->Integer(AsInteger(start_.since));
  in_snapshot_ = false;
}

ChangePush::Outcome ChangePush::ReadChanges(ByteBuffer* message) {
  word_ = server_.clients.changes.word();
  const absl::StatusOr<ChangePositions> positions = server_.store->GetChangePositions();
  if (!positions.ok()) {
    Fail(ExplainNoChanges(*server_.store, positions.status()));
    return Outcome::kMore;
  }
  RespWriter reply(message, kProtocol);
  // What a snapshot showed may be ahead of what can be delivered.
  bool is_at_head = positions->last <= start_.since;
  if (!is_at_head) {
    if (!OpenChanges()) return Outcome::kMore;
    is_at_head = WriteChanges(&reply);
  }
  if (ended() || !is_at_head) return Outcome::kMore;
  const auto since_told = std::chrono::steady_clock::now() - told_at_;
  const bool moved = told_of_ != start_.since && since_told >= kBetweenMoves;
  if (!told_ || moved || since_told >= kBetweenSigns) WriteProgress(&reply);
  return Outcome::kNothing;
}

bool ChangePush::OpenChanges() {
  if (changes_ != nullptr) return true;
  absl::StatusOr<std::unique_ptr<ChangeIterator>> opened =
      server_.store->NewChangeIterator(start_.since, start_.filter);
  if (!opened.ok()) {
    Fail(opened.status());
    return false;
  }
  changes_ = *std::move(opened);
  return true;
}

bool ChangePush::WriteChanges(RespWriter* reply) {
  while (reply->buffer()->size() < kMessageBytes) {
    const SequenceNumber before = changes_->position();
    const absl::StatusOr<bool> next = changes_->Next(kPushLookBytes);
    if (!next.ok()) {
      // The client gets what is before the damage first.
      changes_.reset();
      if (reply->buffer()->size() == 0) Fail(next.status());
      return false;
    }
    start_.since = std::max(start_.since, changes_->position());
    if (!*next) return changes_->position() == before;
    const size_t length = reply->buffer()->size();
    WriteChange(changes_->change(), reply);
    if (reply->buffer()->size() > length) told_ = false;
  }
  return false;
}

void ChangePush::WriteChange(const Change& change, RespWriter* reply) {
  const std::vector<ShownOperation> shown = visible_.Show(change, request_.keys_only);
  if (shown.empty()) return;
  reply->Push(4);
  reply->Bulk("change");
  reply->Integer(AsInteger(change.version));
  reply->Integer(AsInteger(change.instant_ms));
  writer_.WriteOperations(change, shown, reply);
}

void ChangePush::MakeAgain() {
  ByteBuffer message;
  RespWriter reply(&message, kProtocol);
  const bool is_same = !ended() && WriteAgain(&reply).ok() &&
                       mailbox_.GiveText(std::make_shared<const std::string>(message.view()));
  state_.store(State::kReady);
  if (is_same) return mailbox_.Nudge();
  End();
  mailbox_.RequestClose();
}

absl::Status ChangePush::WriteAgain(RespWriter* reply) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<ChangeIterator> changes,
                         server_.store->NewChangeIterator(last_began_, start_.filter));
  while (changes->position() < start_.since) {
    const SequenceNumber before = changes->position();
    VARVE_ASSIGN_OR_RETURN(const bool has_change, changes->Next(kPushLookBytes));
    if (has_change) {
      WriteChange(changes->change(), reply);
    } else if (changes->position() == before) {
      return absl::InternalError("the changes end before the message");
    }
  }
  return absl::OkStatus();
}

void ChangePush::WriteProgress(RespWriter* reply) {
  reply->Push(3);
  reply->Bulk("progress");
  reply->Integer(AsInteger(start_.since));
  reply->Integer(AsInteger(server_.store->NowMillis()));
  told_ = true;
  told_of_ = start_.since;
  told_at_ = std::chrono::steady_clock::now();
}

}  // namespace varve
