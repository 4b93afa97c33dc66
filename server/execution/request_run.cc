#include "server/execution/request_run.h"

#include <algorithm>
#include <string>

#include "server/execution/command_context.h"
#include "server/execution/key_read.h"
#include "server/execution/request_account.h"
#include "server/execution/request_checks.h"
#include "server/requests/command.h"
#include "util/base/assert.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

constexpr size_t kMaxSetBytes = 1 << 20;  // of a run
constexpr size_t kKeptValue = 64u << 10;  // bytes of a value's memory worth keeping for the next
constexpr size_t kGetArguments = 2, kSetArguments = 3;  // without options

}  // namespace

RequestRun& RequestRun::OfThread() {
  thread_local RequestRun run;
  return run;
}

void RequestRun::Begin(Kind kind, ServerState* server, size_t max_value_bytes) {
  kind_ = kind;
  server_ = server;
  max_value_bytes_ = max_value_bytes;
  size_ = 0;
  parts_.clear();
  writes_.Clear();
}

bool RequestRun::Fits(const BatchCursor& cursor, const RequestBatch::Request& request) const {
  if (request.command == nullptr) return false;
  if (kind_ == Kind::kGets) {
    return request.command->kind == CommandKind::kGet && request.count == kGetArguments;
  }
  if (request.command->kind != CommandKind::kSet || request.count != kSetArguments) return false;
  const Arguments arguments = cursor.batch->ArgumentsOf(request);
  // A write that would be refused stands alone, so that it does not take the others with it.
  return (size_ == 0 || writes_.bytes() < kMaxSetBytes) && arguments[1].size() <= kMaxKeySize &&
         arguments[2].size() <= kMaxValueSize;
}

size_t RequestRun::Take(BatchCursor* cursor, size_t limit) {
  VARVE_ASSERT(cursor->replies != nullptr);
  VARVE_ASSERT(parts_.empty() || parts_.back().cursor != cursor);
  const RequestBatch& batch = *cursor->batch;
  if (batch.refused || cursor->client->Restricted() || server_->clients.pause.Any()) return 0;
  if (MayRefuseForReplication(*server_) && IsRefused(*cursor->client)) return 0;
  if (kind_ == Kind::kGets) {
    if (size_ > 0 && cursor->client->space != space_) return 0;
    space_ = cursor->client->space;
  } else if (server_->clients.events.Tells(kNewEvent) || MayExceedBounds(batch)) {
    return 0;  // each SET has to look whether its key is new, or whether there is room for it
  }
  const size_t end = std::min(batch.requests.size(), cursor->next + std::min(limit, room()));
  const uint64_t expiry_ms =
      kind_ == Kind::kSets ? server_->store->UsualExpiry(cursor->client->space) : 0;
  size_t next = cursor->next;
  for (; next < end && Fits(*cursor, batch.requests[next]); ++next, ++size_) {
    const Arguments arguments = batch.ArgumentsOf(batch.requests[next]);
    if (kind_ == Kind::kGets) {
      keys_[size_] = arguments[1];
    } else {
      writes_.Put(arguments[1], arguments[2], cursor->client->space, expiry_ms);
    }
  }
  const size_t taken = next - cursor->next;
  if (taken > 0) parts_.push_back({cursor, cursor->next, taken});
  VARVE_ASSERT(size_ <= (kind_ == Kind::kGets ? kMaxGets : kMaxSets));
  return taken;
}

bool RequestRun::IsRefused(const ClientState& client) const {
  if (client.is_primary_link) return false;
  return !(kind_ == Kind::kSets ? WriteRefusal(*server_) : StaleRefusal(*server_)).empty();
}

bool RequestRun::MayExceedBounds(const RequestBatch& batch) const {
  if (server_->disk != nullptr && server_->disk->IsTight()) return true;
  return server_->live.max_memory.load(std::memory_order_relaxed) != 0 &&
         server_->store->CheckData(writes_.bytes() + batch.input_bytes) != DataCheck::kWithin;
}

RequestRun::Outcome RequestRun::Execute() {
  VARVE_ASSERT(size_ > 0 && !parts_.empty());
  return kind_ == Kind::kGets ? ExecuteGets() : ExecuteSets();
}

absl::Status RequestRun::Read(absl::Span<MultiGetResult> results) const {
  ReadOptions options = NoWaitMultiGetOptions(space_, max_value_bytes_);
  if (size_ > 1) {
    return server_->store->MultiGet(options, absl::MakeSpan(keys_.data(), size_), results);
  }
  MultiGetResult& only = results.front();
  const absl::StatusOr<ReadResult> read = server_->store->Get(options, keys_[0], &only.value);
  only.read = true;
  only.status = absl::OkStatus();
  if (!read.ok()) return read.status();
  only.result = *read;
  return absl::OkStatus();
}

RequestRun::Outcome RequestRun::ExecuteGets() {
  absl::Span<MultiGetResult> results = absl::MakeSpan(results_).first(size_);
  const absl::Status status = Read(results);
  for (Part& part : parts_) {
    const absl::Span<MultiGetResult> own = results.first(part.count);
    results.remove_prefix(part.count);
    if (status.ok()) part.count = CountRead(own);
    if (part.count > 0) AnswerGets(part, status, own.first(part.count));
    for (MultiGetResult& result : own) {
      if (result.value.capacity() > kKeptValue) std::string().swap(result.value);
    }
  }
  VARVE_ASSERT(results.empty());
  return parts_.front().count > 0 ? Outcome::kAnswered : Outcome::kNeedsPool;
}

void RequestRun::AnswerGets(const Part& part, const absl::Status& status,
                            absl::Span<MultiGetResult> results) {
  const BatchCursor& cursor = *part.cursor;
  CommandContext context(server_, cursor.client, &cursor.replies->bytes());
  for (size_t i = 0; i < results.size(); ++i) {
    const RequestBatch::Request& request = cursor.batch->requests[part.first + i];
    const MultiGetResult& result = results[i];
    const size_t begin = cursor.replies->size();
    if (const absl::Status& failed = status.ok() ? result.status : status; !failed.ok()) {
      context.Fail(failed);
      AccountReply(server_, request.command, cursor.replies->bytes().view().substr(begin));
    } else {
      NoteRead(context, cursor.batch->ArgumentsOf(request)[1], result.result);
      result.result.found ? context.reply.Bulk(result.value) : context.reply.Null();
    }
    cursor.replies->Mark(context.TakeDurableAfter(), 1);
  }
  FinishPart(part);
}

RequestRun::Outcome RequestRun::ExecuteSets() {
  WriteOptions options;
  options.waits_for_exclusive_write = max_value_bytes_ == SIZE_MAX;
  options.independent_keys = true;
  const absl::StatusOr<CommitResult> committed =
      server_->evictor.WriteWithRoom(server_->evictor.NeedOf(writes_), options,
                                     [&] { return server_->store->Submit(options, &writes_); });
  // Another thread has the exclusive right to write, or room has to be made, and this one serves
  // others meanwhile; or a quota may have room for some of the writes.
  const bool needs_pool = absl::IsCancelled(committed.status());
  if (needs_pool || (size_ > 1 && ConcernsSomeWrites(committed.status())))
    return RefuseSets(needs_pool ? Outcome::kNeedsPool : Outcome::kApart);
  if (server_->clients.tracking.Any() && MayBeVisible(committed.status())) [[unlikely]]
    TellOfSets();
  for (const Part& part : parts_) AnswerSets(part, committed);
  return Outcome::kAnswered;
}

RequestRun::Outcome RequestRun::RefuseSets(Outcome outcome) {
  parts_.clear();
  return outcome;
}

void RequestRun::TellOfSets() const {
  WrittenKeys written;
  for (const Part& part : parts_) {
    const BatchCursor& cursor = *part.cursor;
    for (size_t i = 0; i < part.count; ++i) {
      const RequestBatch::Request& request = cursor.batch->requests[part.first + i];
      written.AddKey(cursor.client->space, cursor.batch->ArgumentsOf(request)[1]);
    }
  }
  // Clients that track are Restricted(), and write by themselves.
  server_->clients.tracking.Invalidate(&written, /*writer=*/0);
}

void RequestRun::AnswerSets(const Part& part, const absl::StatusOr<CommitResult>& committed) {
  BatchCursor& cursor = *part.cursor;
  CommandContext context(server_, cursor.client, &cursor.replies->bytes());
  cursor.submitted = cursor.submitted || committed.ok();
  if (committed.ok()) cursor.client->NoteWrite(*committed);
  for (size_t i = 0; i < part.count; ++i) {
    const RequestBatch::Request& request = cursor.batch->requests[part.first + i];
    const size_t begin = cursor.replies->size();
    if (committed.ok()) {
      context.DependOn(committed->durable_after);
      context.Notify(kStringEvent, "set", cursor.batch->ArgumentsOf(request)[1]);
      context.reply.Ok();
    } else {
      context.Fail(committed.status());
      AccountReply(server_, request.command, cursor.replies->bytes().view().substr(begin));
    }
    cursor.replies->Mark(context.TakeDurableAfter(), 1);
  }
  FinishPart(part);
}

void RequestRun::FinishPart(const Part& part) {
  BatchCursor& cursor = *part.cursor;
  const RequestBatch::Request& last = cursor.batch->requests[part.first + part.count - 1];
  cursor.client->link.last_command.store(
      FullCommandName(*last.command, cursor.batch->ArgumentsOf(last)), std::memory_order_relaxed);
  ShowToMonitors(server_, *cursor.client, cursor.client->space, *cursor.batch, part.first,
                 part.count);
  VARVE_ASSERT(cursor.next == part.first);
  cursor.next += part.count;
}

void RequestRun::Account(uint64_t nanos) const {
  size_t answered = 0;
  for (const Part& part : parts_) answered += part.count;
  for (const Part& part : parts_) {
    if (part.count == 0) continue;
    AccountRequests(server_, *part.cursor->client, *part.cursor->batch, part.first, part.count,
                    nanos / answered);
  }
}

}  // namespace varve
