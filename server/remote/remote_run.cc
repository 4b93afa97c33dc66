#include "server/remote/remote_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "server/execution/key_read.h"
#include "server/execution/request_account.h"
#include "server/execution/request_checks.h"
#include "server/execution/store_capability.h"
#include "server/remote/slice_iterator.h"
#include "server/requests/range_request.h"
#include "util/base/assert.h"
#include "varve/key_group.h"
#include "varve/store_status.h"

namespace varve {

RemoteRun::RemoteRun(ServerState* server, BatchCursor* cursor)
    : server_(server), cursor_(cursor), space_(cursor->client->space) {}

// --- Taking requests -----------------------------------------------------------------------------

std::shared_ptr<RemoteRun> RemoteRun::Take(ServerState* server, BatchCursor* cursor) {
  const RequestBatch& batch = *cursor->batch;
  auto run = std::make_shared<RemoteRun>(server, cursor);
  const size_t end = std::min(batch.requests.size(), cursor->next + kMaxRequests);
  for (size_t place = cursor->next; place < end && place != cursor->on_thread; ++place) {
    if (!IsAskedTogether(*server, *cursor->client, batch, batch.requests[place])) break;
    const bool is_away = AsksWhatIsAway(*server, *cursor->client, *batch.requests[place].command,
                                        batch.ArgumentsOf(batch.requests[place]));
    if (place > cursor->next && is_away != run->is_away_) break;
    run->is_away_ = is_away;
    if (!run->Add(place)) break;
  }
  if (run->requests_.empty()) return nullptr;
  run->uses_.clear();
  return run;
}

Arguments RemoteRun::ArgumentsOf(const Request& request) const {
  return cursor_->batch->ArgumentsOf(cursor_->batch->requests[request.place]);
}

CommandKind RemoteRun::KindOf(const Request& request) const {
  return cursor_->batch->requests[request.place].command->kind;
}

bool RemoteRun::Add(size_t place) {
  Request request{place, reads_.size(), 0, writes_.size()};
  const Arguments arguments = ArgumentsOf(request);
  const Arguments keys = arguments.subspan(1);
  bool added = false;
  switch (KindOf(request)) {
    case CommandKind::kGet:
    case CommandKind::kMGet:
      added = AddReads(&request, keys, /*without_value=*/false);
      break;
    case CommandKind::kExists:
      added = AddReads(&request, keys, /*without_value=*/true);
      break;
    case CommandKind::kSet:
      added = AddSet(&request, arguments[1], arguments[2]);
      break;
    case CommandKind::kDelete:
      added = AddDeletion(&request, keys);
      break;
    case CommandKind::kRange:
    case CommandKind::kPrefix:
      added = AddRange(&request, KindOf(request), arguments);
      break;
    case CommandKind::kOther:
      break;
  }
  if (added) requests_.push_back(request);
  return added;
}

bool RemoteRun::AddReads(Request* request, Arguments keys, bool without_value) {
  if (reads_.size() + keys.size() > kMaxKeys) return false;
  for (const std::string_view key : keys) {
    const auto use = uses_.find(key);
    if (use != uses_.end() && (use->second.deleted || use->second.write != kNone)) return false;
  }
  request->reads = keys.size();
  for (const std::string_view key : keys) {
    uses_[key].read = true;
    reads_.push_back({.key = key, .without_value = without_value});
  }
  return true;
}

bool RemoteRun::AddSet(Request* request, std::string_view key, std::string_view value) {
  if (!ranges_.empty()) return false;
  Use& use = uses_[key];
  if (use.read || use.deleted) return false;
  if (use.write == kNone) {
    use.write = writes_.size();
    writes_.emplace_back();
  } else if (value.size() > kSmallValue || use.is_large) {
    return false;  // one that is refused would take the other with it
  }
  use.is_large = value.size() > kSmallValue;
  request->first_write = use.write;
  WriteBatch& batch = writes_[use.write].batch;
  batch.Clear();  // a SET before it leaves no trace
  batch.Put(key, value, space_, server_->store->UsualExpiry(space_));
  return true;
}

bool RemoteRun::AddDeletion(Request* request, Arguments keys) {
  if (!ranges_.empty() || reads_.size() + keys.size() > kMaxKeys) return false;
  if (std::any_of(keys.begin(), keys.end(), [this](auto key) { return uses_.contains(key); }))
    return false;
  for (const std::string_view key : keys) {
    if (!uses_.try_emplace(key, Use{.deleted = true}).second) continue;  // named twice
    reads_.push_back({.key = key, .without_value = true});
  }
  request->reads = reads_.size() - request->first_read;
  DivideDeletion(request);
  return true;
}

bool RemoteRun::AddRange(Request* request, CommandKind kind, Arguments arguments) {
  if (!writes_.empty() || ranges_.size() == kMaxRanges) return false;
  RangeRequest asked;
  // A thread answers what is wrong with the arguments.
  const std::string_view error = ParseRangeRequestOf(kind, arguments, &asked);
  const RangeOptions& options = asked.options;
  if (!error.empty() || asked.range.empty) return false;
  if (options.limit <= 0 || options.limit > kMaxRangeEntries || options.offset < 0 ||
      options.offset > kMaxRangeEntries - options.limit)
    return false;
  request->range = ranges_.size();
  RangeRead& range = ranges_.emplace_back();
  range.wanted = {.lower = std::move(asked.range.lower),
                  .upper = std::move(asked.range.upper),
                  .descending = options.reverse,
                  .max_entries = static_cast<size_t>(options.offset + options.limit)};
  range.keys_only = options.keys_only;
  range.newer_than = options.newer_than;
  return true;
}

void RemoteRun::DivideDeletion(Request* request) {
  const std::optional<KeyGrouping> grouping = server_->store->GroupsOf(space_);
  const auto group_of = [&](const Read& read) {
    return grouping ? GroupOf(*grouping, read.key) : std::string_view();
  };
  const auto first = reads_.begin() + static_cast<ptrdiff_t>(request->first_read);
  // The keys of a group become neighbours.
  std::sort(first, reads_.end(), [](const Read& a, const Read& b) { return a.key < b.key; });
  for (size_t i = request->first_read; i < reads_.size(); ++i) {
    const bool goes_on = i > request->first_read && writes_.back().reads < kMostTogether &&
                         group_of(reads_[i]) == group_of(reads_[i - 1]);
    if (!goes_on) {
      writes_.emplace_back();
      writes_.back().first_read = i;
    }
    ++writes_.back().reads;
  }
  request->writes = writes_.size() - request->first_write;
}

// --- Asking the store ----------------------------------------------------------------------------

void RemoteRun::Send(std::function<void()> done) {
  VARVE_ASSERT(next_ < requests_.size());
  {
    absl::MutexLock lock(&mutex_);
    done_ = std::move(done);
  }
  if (sent_at_ == std::chrono::steady_clock::time_point())
    sent_at_ = std::chrono::steady_clock::now();
  if (deadline_ == StoreWaits::Time::max()) deadline_ = server_->store_waits.NewDeadline();
  left_.store(1, std::memory_order_relaxed);
  // The writes first: they look at what was read, which the store's threads change from then on.
  SendWrites();
  AskForReads();
  AskForRanges();
  Came();
}

void RemoteRun::Abandon() {
  absl::MutexLock lock(&mutex_);
  done_ = nullptr;
}

void RemoteRun::Came() {
  if (left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  // Under the lock: behind Abandon() nothing is left of those who wait.
  absl::MutexLock lock(&mutex_);
  if (done_ != nullptr) done_();
  done_ = nullptr;
}

void RemoteRun::AskForReads() {
  std::vector<size_t> values, looks;
  bool is_full = false;
  for (size_t i = requests_[next_].first_read; i < reads_.size(); ++i) {
    const Read& read = reads_[i];
    if (read.state != Read::State::kUnasked) continue;
    if (read.without_value) {
      looks.push_back(i);
    } else if (!is_full && read.alone) {
      // The values behind it are not held while it is on its way.
      if (values.empty()) AskForOne(i, SIZE_MAX);
      is_full = true;
    } else if (!is_full) {
      values.push_back(i);
    }
  }
  AskFor(std::move(values), /*without_value=*/false);
  AskFor(std::move(looks), /*without_value=*/true);
}

void RemoteRun::AskFor(std::vector<size_t> reads, bool without_value) {
  if (reads.empty()) return;
  if (reads.size() == 1 && !without_value) return AskForOne(reads.front(), kMaxBytes);
  ReadOptions options = NoWaitMultiGetOptions(space_, without_value ? SIZE_MAX : kMaxBytes);
  options.max_bytes = without_value ? SIZE_MAX : kMaxBytes;
  options.without_value = without_value;
  options.deadline = deadline_;
  std::vector<std::string> keys;
  for (const size_t read : reads) {
    keys.emplace_back(reads_[read].key);
    reads_[read].state = Read::State::kAsked;
  }
  left_.fetch_add(1, std::memory_order_relaxed);
  server_->store->MultiGetAsync(options, std::move(keys),
                                [self = shared_from_this(), reads = std::move(reads)](
                                    absl::Status status, std::vector<MultiGetResult> answers) {
                                  self->NoteAnswers(reads, status, absl::MakeSpan(answers));
                                  self->Came();
                                });
}

void RemoteRun::AskForOne(size_t read, size_t max_value_bytes) {
  ReadOptions options = NoWaitReadOptions(space_);
  options.max_value_bytes = max_value_bytes;
  options.deadline = deadline_;
  reads_[read].state = Read::State::kAsked;
  left_.fetch_add(1, std::memory_order_relaxed);
  server_->store->GetAsync(
      options, std::string(reads_[read].key),
      [self = shared_from_this(), read](absl::StatusOr<ReadResult> result, std::string value) {
        MultiGetResult answer;
        answer.value = std::move(value);
        if (result.ok()) answer.result = *std::move(result);
        self->NoteAnswers({&read, 1}, result.status(), {&answer, 1});
        self->Came();
      });
}

void RemoteRun::AskForRanges() {
  for (RangeRead& range : ranges_) {
    if (range.asked) continue;
    range.asked = true;
    ReadOptions options = NoWaitReadOptions(space_);
    options.without_value = range.keys_only;
    options.with_metadata = true;  // as iterators do
    options.newer_than = range.newer_than;
    options.max_bytes = kMaxRangeBytes;
    options.deadline = deadline_;
    left_.fetch_add(1, std::memory_order_relaxed);
    server_->store->ReadRangeAsync(
        options, range.wanted,
        [self = shared_from_this(), &range](absl::StatusOr<RangeSlice> slice) {
          range.slice = std::move(slice);
          self->Came();
        });
  }
}

void RemoteRun::NoteAnswers(absl::Span<const size_t> reads, const absl::Status& status,
                            absl::Span<MultiGetResult> answers) {
  VARVE_ASSERT(!status.ok() || (answers.size() == reads.size() && answers.front().read));
  for (size_t i = 0; i < reads.size(); ++i) {
    Read& read = reads_[reads[i]];
    read.state = Read::State::kAnswered;
    if (!status.ok()) {
      read.answer.status = status;
    } else if (!answers[i].read) {
      read.state = Read::State::kUnasked;
    } else if (answers[i].status.ok() && answers[i].result.too_large) {
      read.state = Read::State::kUnasked;
      read.alone = true;
    } else {
      read.answer = std::move(answers[i]);
    }
  }
}

void RemoteRun::SendWrites() {
  for (size_t i = next_; i < requests_.size(); ++i) {
    const Request& request = requests_[i];
    const CommandKind kind = KindOf(request);
    if (kind == CommandKind::kSet && !writes_[request.first_write].sent)
      SendWrite(&writes_[request.first_write]);
    if (kind != CommandKind::kDelete) continue;
    for (size_t part = 0; part < request.writes; ++part) {
      Write& write = writes_[request.first_write + part];
      if (!write.sent && FillDeletion(&write)) SendWrite(&write);
    }
  }
}

absl::Span<RemoteRun::Read> RemoteRun::ReadsOf(const Write& write) {
  return absl::MakeSpan(reads_).subspan(write.first_read, write.reads);
}

bool RemoteRun::FillDeletion(Write* write) {
  write->batch.Clear();
  for (const Read& look : ReadsOf(*write)) {
    if (look.state != Read::State::kAnswered || !look.answer.status.ok()) return false;
    // One that is missing has to be so at the same moment.
    write->batch.RequireUnchanged(look.key, look.answer.result, space_);
    if (look.answer.result.found) write->batch.Delete(look.key, space_);
  }
  return !write->batch.empty();
}

void RemoteRun::SendWrite(Write* write) {
  write->sent = true;
  left_.fetch_add(1, std::memory_order_relaxed);
  WriteOptions options;
  options.deadline = deadline_;
  server_->store->WriteAsync(
      options, &write->batch,
      [self = shared_from_this(), write](absl::StatusOr<CommitResult> committed) {
        write->committed = std::move(committed);
        write->answered = true;
        self->Came();
      });
}

// --- Answering -----------------------------------------------------------------------------------

bool RemoteRun::Answer(PendingReplies* replies) {
  VARVE_ASSERT(left_.load(std::memory_order_acquire) == 0);
  {
    // The thread that told of the last answer may still hold the session, or be about to wake the
    // loop. A server that stops must not find it there.
    absl::MutexLock lock(&mutex_);
    VARVE_ASSERT(done_ == nullptr);
  }
  cursor_->replies = replies;
  replies->BeginBatch(inside_reply_);
  CommandContext context(server_, cursor_->client, &replies->bytes());
  const auto taken = std::chrono::steady_clock::now() - sent_at_;
  const auto nanos = static_cast<uint64_t>(std::chrono::nanoseconds(taken).count());
  while (next_ < requests_.size() && AnswerNext(&context)) {
    const Request& request = requests_[next_];
    const RequestBatch& batch = *cursor_->batch;
    VARVE_ASSERT(cursor_->next == request.place);
    cursor_->client->link.last_command.store(
        FullCommandName(*batch.requests[request.place].command, ArgumentsOf(request)),
        std::memory_order_relaxed);
    ShowToMonitors(server_, *cursor_->client, space_, batch, request.place, 1);
    AccountRequests(server_, *cursor_->client, batch, request.place, 1, nanos);
    ++cursor_->next;
    ++next_;
    deadline_ = StoreWaits::Time::max();
  }
  return next_ == requests_.size();
}

bool RemoteRun::AnswerNext(CommandContext* context) {
  Request& request = requests_[next_];
  switch (KindOf(request)) {
    case CommandKind::kGet:
      return AnswerGet(context, request);
    case CommandKind::kMGet:
      return AnswerMGet(context, &request);
    case CommandKind::kExists:
      return AnswerExists(context, request);
    case CommandKind::kSet:
      return AnswerSet(context, request);
    case CommandKind::kDelete:
      return AnswerDeletion(context, request);
    case CommandKind::kRange:
    case CommandKind::kPrefix:
      return AnswerRange(request);
    case CommandKind::kOther:
      break;
  }
  VARVE_ASSERT(false);
  return false;
}

void RemoteRun::EndReply(CommandContext* context, size_t begin) {
  PendingReplies& replies = *cursor_->replies;
  AccountReply(server_, cursor_->batch->requests[requests_[next_].place].command,
               replies.bytes().view().substr(begin));
  replies.Mark(context->TakeDurableAfter(), 1);
  inside_reply_ = false;
}

bool RemoteRun::AnswerGet(CommandContext* context, const Request& request) {
  Read& read = reads_[request.first_read];
  if (read.state != Read::State::kAnswered) return false;
  const size_t begin = cursor_->replies->size();
  if (!read.answer.status.ok()) {
    context->Fail(read.answer.status);
  } else {
    NoteRead(*context, read.key, read.answer.result);
    read.answer.result.found ? context->reply.Bulk(read.answer.value) : context->reply.Null();
  }
  std::string().swap(read.answer.value);
  EndReply(context, begin);
  return true;
}

bool RemoteRun::AnswerMGet(CommandContext* context, Request* request) {
  const size_t begin = cursor_->replies->size();
  for (; request->answered < request->reads; ++request->answered) {
    Read& read = reads_[request->first_read + request->answered];
    if (read.state != Read::State::kAnswered) break;
    if (request->answered == 0) {
      context->reply.Array(request->reads);
      inside_reply_ = true;
    }
    if (!read.answer.status.ok()) {
      context->Fail(read.answer.status);  // in the place of this one value
    } else {
      NoteRead(*context, read.key, read.answer.result);
      read.answer.result.found ? context->reply.Bulk(read.answer.value) : context->reply.Null();
    }
    std::string().swap(read.answer.value);
    deadline_ = StoreWaits::Time::max();
  }
  if (request->answered == request->reads) {
    EndReply(context, begin);
    return true;
  }
  if (cursor_->replies->size() > begin) cursor_->replies->Mark(context->TakeDurableAfter(), 0);
  return false;
}

bool RemoteRun::AnswerExists(CommandContext* context, const Request& request) {
  const absl::Span<Read> reads = absl::MakeSpan(reads_).subspan(request.first_read, request.reads);
  const auto is_missing = [](const Read& read) { return read.state != Read::State::kAnswered; };
  if (std::any_of(reads.begin(), reads.end(), is_missing)) return false;
  const size_t begin = cursor_->replies->size();
  int64_t found = 0;
  absl::Status failed;
  for (const Read& read : reads) {
    if (failed.ok()) failed = read.answer.status;
    if (!read.answer.status.ok()) continue;
    context->DependOn(read.answer.result.durable_after);
    context->CountLookup(read.key, read.answer.result.found);
    found += read.answer.result.found ? 1 : 0;
  }
  failed.ok() ? context->reply.Integer(found) : context->Fail(failed);
  EndReply(context, begin);
  return true;
}

void RemoteRun::TellOfWrite(std::string_view key) {
  if (!server_->clients.tracking.Any()) [[likely]]
    return;
  WrittenKeys written;
  written.AddKey(space_, key);
  // Clients that track have no runs.
  server_->clients.tracking.Invalidate(&written, /*writer=*/0);
}

bool RemoteRun::AnswerSet(CommandContext* context, const Request& request) {
  const Write& write = writes_[request.first_write];
  VARVE_ASSERT(write.answered);
  const std::string_view key = ArgumentsOf(request)[1];
  if (MayBeVisible(write.committed.status())) TellOfWrite(key);
  const size_t begin = cursor_->replies->size();
  if (write.committed.ok()) {
    cursor_->client->NoteWrite(*write.committed);
    context->DependOn(write.committed->durable_after);
    context->Notify(kStringEvent, "set", key);
    context->reply.Ok();
  } else {
    context->Fail(write.committed.status());
  }
  EndReply(context, begin);
  return true;
}

// The command itself answers, from the slice. Where it does not come to its end, as the slice is
// not all that it wants or the thread was kept from it for long, it has written nothing, and the
// request is left to a thread. What was read for those behind it is read again then.
bool RemoteRun::AnswerRange(const Request& request) {
  RangeRead& range = ranges_[request.range];
  // A clock of its own: the ranges of a run are answered one after the other.
  CommandContext context(server_, cursor_->client, &cursor_->replies->bytes());
  const size_t begin = cursor_->replies->size();
  if (!range.slice.ok()) {
    context.Fail(range.slice.status());
  } else if (!range.IsWhole() || !Produce(&context, request, *std::move(range.slice))) {
    VARVE_ASSERT(cursor_->replies->size() == begin);
    cursor_->on_thread = request.place;
    requests_.resize(next_);
    return false;
  }
  EndReply(&context, begin);
  return true;
}

bool RemoteRun::Produce(CommandContext* context, const Request& request, RangeSlice slice) {
  const bool descending = ranges_[request.range].wanted.descending;
  context->Prepare(std::make_unique<SliceIterator>(std::move(slice), descending));
  cursor_->batch->requests[request.place].command->handler(*context, ArgumentsOf(request));
  const std::unique_ptr<ReplyStream> stream = context->TakeStream();
  VARVE_ASSERT(stream != nullptr);
  return stream->Produce(*context, kMaxBytes) == ReplyStream::Progress::kDone;
}

bool RemoteRun::IsSettled(Write* write) {
  const absl::Span<Read> looks = ReadsOf(*write);
  bool has_failed = false, has_found = false;
  for (const Read& look : looks) {
    if (look.state != Read::State::kAnswered) return false;
    has_failed = has_failed || !look.answer.status.ok();
    has_found = has_found || look.answer.result.found;
  }
  if (has_failed || !has_found) return true;  // nothing is sent
  if (!write->answered) return false;
  if (!absl::IsAborted(write->committed.status())) return true;
  if (++write->tries > kMaxTries || std::chrono::steady_clock::now() >= deadline_) {
    write->committed = StoreUnavailable(
        "other clients write the keys all the time: nothing was written, and it may be tried "
        "again");
    return true;
  }
  for (Read& look : looks) look.state = Read::State::kUnasked;
  write->sent = write->answered = false;
  return false;
}

bool RemoteRun::AnswerDeletion(CommandContext* context, const Request& request) {
  const absl::Span<Write> writes =
      absl::MakeSpan(writes_).subspan(request.first_write, request.writes);
  bool settled = true;
  for (Write& write : writes) settled = IsSettled(&write) && settled;
  if (!settled) return false;
  const size_t begin = cursor_->replies->size();
  absl::flat_hash_set<std::string_view> deleted;
  absl::Status failed;
  const Write* told = nullptr;  // the part whose error is the answer
  for (const Write& write : writes) {
    const bool is_first = failed.ok();
    if (write.sent) {
      if (failed.ok()) failed = write.committed.status();
      if (write.committed.ok()) {
        cursor_->client->NoteWrite(*write.committed);
        context->DependOn(write.committed->durable_after);
      }
    }
    for (const Read& look : ReadsOf(write)) {
      if (failed.ok()) failed = look.answer.status;
      if (!look.answer.status.ok()) continue;
      context->DependOn(look.answer.result.durable_after);
      if (!write.sent || !look.answer.result.found) continue;
      if (MayBeVisible(write.committed.status())) TellOfWrite(look.key);
      if (write.committed.ok()) deleted.insert(look.key);
    }
    if (is_first && !failed.ok()) told = &write;
  }
  const bool may_have_deleted =
      std::any_of(writes.begin(), writes.end(), [told](const Write& write) {
        return &write != told && write.sent && MayBeVisible(write.committed.status());
      });
  failed.ok() ? context->reply.Integer(static_cast<int64_t>(deleted.size()))
              : context->Fail(failed, may_have_deleted ? kOthersMayBeDeleted : "");
  for (const std::string_view key : ArgumentsOf(request).subspan(1)) {
    if (deleted.erase(key) > 0) context->Notify(kGenericEvent, "del", key);
  }
  EndReply(context, begin);
  return true;
}

}  // namespace varve
