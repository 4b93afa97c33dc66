#include "server/feed/change_stream.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "server/execution/database_index.h"
#include "server/execution/request_checks.h"
#include "server/execution/rights_check.h"
#include "server/execution/store_capability.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// Changes that are looked at between two questions whether other clients should get their turn.
constexpr size_t kLookBytes = 256u << 10;
constexpr size_t kBytesPerLook = 256;  // that count as one key of SliceClock

// Finds the namespace whose changes are asked for. False: the error was answered.
bool FindSpace(CommandContext& context, const ChangeRequest& request,
               std::optional<NamespaceId>* space) {
  *space = context.space();
  if (request.all_spaces) space->reset();
  if (!request.space) return true;
  const std::string& name = *request.space;
  Place place{.name = name};
  const bool is_number = !name.empty() && std::all_of(name.begin(), name.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; });
  if (is_number) {
    *space = ParseDatabase(context, name);
    if (!space->has_value()) return false;
    place = {.database = **space};
  } else {
    const absl::StatusOr<NamespaceList> list = context.server.store->Namespaces();
    if (!list.ok()) {
      context.Fail(list.status());
      return false;
    }
    context.DependOn(list->durable_after);
    const NamespaceDescription* const found = list->Find(name);
    if (found == nullptr) {
      context.reply.Error(fmt::format("ERR there is no namespace '{}'", ShownInError(name)));
      return false;
    }
    *space = found->id;
  }
  const ClientRights& rights = context.client.rights;
  if (!rights.limited() || MayUsePlace(rights.user(), place)) return true;
  ReplyDenied(context, {.reason = DenialReason::kDatabase, .object = PlaceText(place)});
  return false;
}

}  // namespace

absl::Status ExplainNoChanges(const Store& store, const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return status;
  if (!Meets(store.capabilities(), StoreNeed::kHistory))
    return absl::FailedPreconditionError(LackOf(StoreNeed::kHistory));
  return absl::FailedPreconditionError(
      "the server retains no changes: set change-retention-bytes or change-retention-time");
}

bool FindChangeStart(CommandContext& context, const ChangeRequest& request, ChangeStart* start) {
  const absl::StatusOr<ChangePositions> positions = context.server.store->GetChangePositions();
  if (!positions.ok()) {
    context.Fail(ExplainNoChanges(*context.server.store, positions.status()));
    return false;
  }
  using Start = ChangeRequest::Start;
  start->since = request.since;
  if (request.start == Start::kFirst) start->since = positions->first;
  if (request.start == Start::kNow) start->since = positions->last;
  start->filter.lower = request.range.lower;
  start->filter.upper = request.range.upper;
  start->filter.keys_only = request.keys_only;
  return FindSpace(context, request, &start->filter.space);
}

VisibleChanges ChangesForClient(const CommandContext& context, Arguments request, KeyRange range) {
  const ClientRights& rights = context.client.rights;
  const CommandCatalog& catalog = context.server.clients.users.catalog();
  const std::optional<size_t> number = catalog.Find(request[0]);
  VARVE_ASSERT(number.has_value());
  std::vector<std::string> words(request.begin(), request.end());
  return VisibleChanges(std::move(range), &catalog,
                        rights.limited() ? rights.user_pointer() : nullptr,
                        catalog.entry(*number).command, std::move(words));
}

ChangeStream::ChangeStream(const CommandContext& context, Arguments arguments, ChangeStart start,
                           const ChangeRequest& request)
    : arguments_(arguments),
      request_(request),
      start_(std::move(start)),
      visible_(ChangesForClient(context, arguments.first(2), request.range)) {
  if (request.block && request.block->count() > 0)
    until_ = std::chrono::steady_clock::now() + *request.block;
}

std::optional<ReplyStream::Progress> ChangeStream::RefusedMeanwhile(CommandContext& context) {
  ClientRights& rights = context.client.rights;
  if (!rights.NeedCheck()) return std::nullopt;
  const RightsCheck checked = CheckRights(context, visible_.command(), arguments_);
  if (checked != RightsCheck::kAllowed)
    return checked == RightsCheck::kRefused ? Progress::kDone : Progress::kBroken;
  visible_.Become(rights.limited() ? rights.user_pointer() : nullptr);
  return std::nullopt;
}

ReplyStream::Progress ChangeStream::Produce(CommandContext& context, size_t /*budget*/) {
  const Progress progress = ProduceNext(context);
  if (progress != Progress::kMore) context.server.clients.changes.EndBlock(&context.client.link);
  return progress;
}

void ChangeStream::AnswerUnblocked(CommandContext& context) {
  if (context.client.link.blocked.load() == ClientLink::Blocked::kRefused)
    return context.reply.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
  Answer(context, start_.since);
}

ReplyStream::Progress ChangeStream::ProduceNext(CommandContext& context) {
  if (std::exchange(waited_, false)) {
    if (const std::optional<Progress> refused = RefusedMeanwhile(context)) return *refused;
    if (context.client.link.Unblocked()) {
      AnswerUnblocked(context);
      return Progress::kDone;
    }
  }
  do {
    switch (Collect(context)) {
      case Found::kSliceSpent:
        return Progress::kMore;
      case Found::kFailed:
        return Progress::kDone;
      case Found::kAll:
        break;
    }
    iterator_.reset();
  } while (BeginPart(&start_));
  const bool may_wait = request_.block && empty() && !context.in_transaction() &&
                        !context.server.draining.load(std::memory_order_relaxed);
  if (may_wait && (!until_ || std::chrono::steady_clock::now() < *until_)) {
    waited_ = true;
    context.AwaitChanges({.word = word_, .until = until_});
    return Progress::kMore;
  }
  Answer(context, start_.since);
  return Progress::kDone;
}

ChangeStream::Found ChangeStream::Collect(CommandContext& context) {
  if (iterator_ == nullptr) {
    word_ = context.server.clients.changes.word();
    absl::StatusOr<std::unique_ptr<ChangeIterator>> opened =
        context.server.store->NewChangeIterator(start_.since, start_.filter);
    if (!opened.ok() && !empty()) return Found::kAll;
    if (!opened.ok()) {
      context.Fail(ExplainNoChanges(*context.server.store, opened.status()));
      return Found::kFailed;
    }
    iterator_ = *std::move(opened);
  }
  for (;;) {
    const SequenceNumber before = iterator_->position();
    if (before >= start_.last) return Found::kAll;
    const absl::StatusOr<bool> next = iterator_->Next(kLookBytes);
    if (!next.ok()) {
      // The reader gets what is before the damage first.
      if (!empty()) return Found::kAll;
      context.Fail(next.status());
      return Found::kFailed;
    }
    start_.since = std::max(start_.since, iterator_->position());
    if (!*next) {
      if (iterator_->position() == before) return Found::kAll;
      if (context.SliceSpent(kLookBytes / kBytesPerLook)) return Found::kSliceSpent;
      continue;
    }
    const Change& change = iterator_->change();
    const std::vector<ShownOperation> shown = visible_.Show(change, request_.keys_only);
    if (!shown.empty() && Add(change, shown)) return Found::kAll;
    if (context.SliceSpent(1 + change.operations.size())) return Found::kSliceSpent;
  }
}

bool CommitStream::Add(const Change& change, absl::Span<const ShownOperation> operations) {
  reply_.Array(3);
  reply_.Integer(AsInteger(change.version));
  reply_.Integer(AsInteger(change.instant_ms));
  writer_.WriteOperations(change, operations, &reply_);
  ++commits_;
  return commits_ >= request().count.value_or(kMostCommits) || collected_.size() >= kMostBytes;
}

void CommitStream::Answer(CommandContext& context, SequenceNumber position) {
  if (!WriteChangesHead(context, position)) return;
  context.reply.Array(commits_);
  context.reply.buffer()->Append(collected_.view());
}

bool WriteChangesHead(CommandContext& context, std::optional<SequenceNumber> position) {
  const absl::StatusOr<ChangePositions> positions = context.server.store->GetChangePositions();
  if (!positions.ok()) {
    context.Fail(ExplainNoChanges(*context.server.store, positions.status()));
    return false;
  }
  context.reply.Array(4);
  context.reply.Integer(AsInteger(positions->history_id));
  context.reply.Integer(AsInteger(position.value_or(positions->last)));
  context.reply.Integer(AsInteger(positions->first));
  return true;
}

}  // namespace varve
