#include "client/move/mover.h"

#include <algorithm>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "client/move/comparison.h"
#include "client/move/move_errors.h"
#include "client/move/shown.h"
#include "client/socket.h"
#include "fmt/format.h"
#include "util/base/size_text.h"
#include "util/base/status.h"
#include "util/os/clock.h"

namespace varve {
namespace {

using ChangeKind = ChangeOperation::Kind;
using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{50};
constexpr milliseconds kLongestPause{5000};
constexpr milliseconds kStep{20};    // between two looks at whether it is stopped
constexpr milliseconds kWait{500};   // for the next change
constexpr milliseconds kTurn{3000};  // of copying, between two turns of changes
constexpr milliseconds kSaveEvery{1000};
constexpr milliseconds kLongestWait{120'000};  // for a server that is gone without a word
// A reply with fewer was all that there was: the server ends one behind 1,000 commits or 1 MiB.
constexpr size_t kManyCommits = 1000;
constexpr size_t kManyBytes = size_t{512} << 10;
constexpr size_t kWindowBytes = size_t{4} << 20;
constexpr int kComparisons = 3;

ClientOptions OfMove(ClientOptions connection, std::string_view name) {
  connection.reconnect_for = milliseconds(0);  // the mover decides what is to come again
  if (connection.timeout.count() == 0) connection.timeout = kLongestWait;
  connection.protocol = 2;
  if (connection.name.empty()) connection.name = name;
  return connection;
}

MoveOptions OfMove(MoveOptions options) {
  options.source = OfMove(std::move(options.source), "varve-move");
  options.target = OfMove(std::move(options.target), "varve-move");
  return options;
}

// Returns what two runs of a move have in common.
std::string RouteOf(const MoveOptions& options) {
  return fmt::format("from {} to {}, {}{}{}", AddressOf(options.source), AddressOf(options.target),
                     options.space ? "namespace " + *options.space : "all namespaces",
                     options.into.empty() ? "" : " into " + options.into,
                     options.prefix.empty() ? "" : ", keys that begin with " + options.prefix);
}

std::string NewFeedName() {
  std::random_device random;
  return fmt::format("varve-move-{:08x}{:08x}", random(), random());
}

absl::Status Missed(const MoveState& state, const std::string& why) {
  return absl::FailedPreconditionError(fmt::format(
      "the source no longer has the changes behind version {}, which the target lacks: {}; what "
      "was "
      "written since can't be told from what was there before, so begin again: remove the state "
      "file, and use --replace. --feed-size=SIZE has the source keep more for a move that is away",
      state.position, why));
}

}  // namespace

Mover::Mover(MoveOptions options, Stopped stopped, Say say)
    : options_(OfMove(std::move(options))),
      stopped_(std::move(stopped)),
      say_(std::move(say)),
      source_(&options_),
      rate_(options_.bytes_per_second, RealClock()),
      backoff_(kFirstPause, kLongestPause),
      reported_(Clock::now()) {}

absl::Status Mover::Run() {
  VARVE_RETURN_IF_ERROR(TakeUp());
  for (;;) {
    const absl::Status status = Work();
    if (status.ok()) return status;
    window_.Clear();
    reader_.reset();
    // What was never there may have a wrong address.
    if (stopped_() || !MayPass(status) || !was_connected_) return Stop(status);
    source_.DropIfLost();
    target_->DropIfLost();
    SayOnce(fmt::format("{}; trying again", std::string(status.message())));
    Pause(backoff_.Next());
  }
}

absl::Status Mover::TakeUp() {
  bool goes_on = false, follows = false;
  if (!options_.state.empty()) {
    VARVE_ASSIGN_OR_RETURN(lock_, PosixFileSystem()->Lock(options_.state + ".lock"));
    absl::StatusOr<MoveState> state = MoveState::Load(options_.state);
    if (!state.ok() && !absl::IsNotFound(state.status())) return state.status();
    goes_on = state.ok();
    if (goes_on) state_ = *std::move(state);
    follows = goes_on && state_.is_open;
    state_.is_open = true;
  }
  const std::string route = RouteOf(options_);
  if (goes_on && state_.route != route) {
    return absl::InvalidArgumentError(
        fmt::format("{} is the state of another move, {}; this one is {}", options_.state,
                    state_.route, route));
  }
  state_.route = route;
  if (state_.feed.empty()) state_.feed = NewFeedName();
  target_ = std::make_unique<MoveTarget>(&options_, follows, say_,
                                         [this](milliseconds pause) { Pause(pause); });
  say_(fmt::format("moving {}{}", Shown(route),
                   state_.position == kNoSequence
                       ? ""
                       : fmt::format("; going on at version {}", state_.position)));
  // A place at the source that nobody knows of would keep changes there.
  return options_.state.empty() ? absl::OkStatus() : state_.Save(options_.state);
}

absl::Status Mover::Work() {
  VARVE_RETURN_IF_ERROR(source_.Connect());
  VARVE_RETURN_IF_ERROR(target_->Connect(stopped_));
  was_connected_ = true;
  state_.is_open = true;
  if (state_.position == kNoSequence) {
    VARVE_RETURN_IF_ERROR(Begin());
  } else {
    const absl::Status kept = source_.EnsureFeed(state_.feed, state_.position);
    if (IsGap(kept)) return Missed(state_, std::string(kept.message()));
    VARVE_RETURN_IF_ERROR(kept);
  }
  VARVE_RETURN_IF_ERROR(Go(options_.until_caught_up || options_.finish || options_.verify));
  if (options_.verify) VARVE_RETURN_IF_ERROR(Verify());
  say_(fmt::format(
      "nothing is behind: the target has everything up to version {}; {} keys were "
      "copied{}",
      state_.position, state_.keys,
      target_->refused() == 0 ? "" : fmt::format(", and {} left out", target_->refused())));
  return Finish();
}

absl::Status Mover::Begin() {
  VARVE_ASSIGN_OR_RETURN(const std::string source, source_.Identity());
  VARVE_ASSIGN_OR_RETURN(const std::string target, target_->Identity());
  // What is to make room at the target would be the source's.
  if (!source.empty() && source == target)
    return absl::InvalidArgumentError("the source and the target are the same server");
  VARVE_RETURN_IF_ERROR(source_.EnsureFeed(state_.feed, kNoSequence));
  VARVE_ASSIGN_OR_RETURN(const ChangeReply now, source_.Now());
  state_.copies.clear();
  VARVE_RETURN_IF_ERROR(Prepare());
  state_.history_id = now.history_id;
  state_.position = now.next;
  saved_ = {};
  return Checkpoint();
}

absl::Status Mover::Prepare() {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> spaces, source_.Spaces());
  for (const std::string& space : spaces) {
    VARVE_RETURN_IF_ERROR(EnsureSpace(space));
    state_.copies.push_back({space, BoundsOfPrefix(options_.prefix)});
  }
  return absl::OkStatus();
}

absl::Status Mover::EnsureSpace(const std::string& space) {
  if (stopped_()) return absl::CancelledError("interrupted");
  bool is_empty = true;
  if (!state_.spaces.contains(space)) {
    VARVE_ASSIGN_OR_RETURN(is_empty, target_->IsEmpty(space));
    if (!is_empty && !options_.replace) {
      return absl::FailedPreconditionError(
          fmt::format("the target has keys in {} already; --replace deletes them first, and an "
                      "interrupted move "
                      "goes on with the --state=FILE that it had",
                      Shown(TargetSpace(options_, space))));
    }
  }
  VARVE_ASSIGN_OR_RETURN(const std::optional<SpaceDescription> description,
                         source_.Describe(space));
  VARVE_RETURN_IF_ERROR(target_->Ensure(space, description));
  if (!is_empty) VARVE_RETURN_IF_ERROR(target_->Clear(space));
  state_.spaces.insert(space);
  return absl::OkStatus();
}

absl::Status Mover::Go(bool until_caught_up) {
  goal_.reset();
  for (;;) {
    if (stopped_()) return absl::CancelledError("interrupted");
    if (!state_.copies.empty()) VARVE_RETURN_IF_ERROR(CopyForAWhile());
    const bool waits = state_.copies.empty() && !until_caught_up;
    VARVE_ASSIGN_OR_RETURN(const Reached reached, ApplyChanges(waits ? kWait : milliseconds(0)));
    if (!said_.empty()) say_("both servers answer; going on");
    said_.clear();
    backoff_.Reset();
    VARVE_RETURN_IF_ERROR(Checkpoint());
    const bool is_current = reached == Reached::kNothing && state_.copies.empty();
    VARVE_RETURN_IF_ERROR(Report(is_current && was_behind_ && !until_caught_up));
    if (!until_caught_up || !state_.copies.empty()) continue;
    if (goal_ && state_.position >= *goal_) return absl::OkStatus();
    if (goal_ && is_current) Pause(kStep);
    if (goal_ || reached == Reached::kMore) continue;
    VARVE_RETURN_IF_ERROR(source_.MakeDurable());
    VARVE_ASSIGN_OR_RETURN(const ChangeReply now, source_.Now());
    goal_ = now.next;
  }
}

absl::Status Mover::CopyForAWhile() {
  const Clock::time_point until = Clock::now() + kTurn;
  // A page that was asked for is older than the changes that would be applied before it.
  while (!state_.copies.empty() && !stopped_()) {
    const bool is_asked_for = reader_ != nullptr && reader_->is_requested();
    if (Clock::now() >= until && !is_asked_for) break;
    VARVE_RETURN_IF_ERROR(CopyPage(until));
  }
  if (stopped_()) reader_.reset();
  return Checkpoint();
}

absl::StatusOr<std::vector<MovedRecord>> Mover::ReadPage() {
  const PendingCopy& copy = state_.copies.front();
  if (reader_ == nullptr) {
    VARVE_ASSIGN_OR_RETURN(reader_, PageReader::Open(options_.source, copy.space, copy.bounds));
  }
  if (!reader_->is_requested()) reader_->Request();
  return reader_->Receive();
}

absl::Status Mover::CopyPage(Clock::time_point until) {
  absl::StatusOr<std::vector<MovedRecord>> read = ReadPage();
  if (IsNoNamespace(read.status())) {
    EndCopy();  // it was dropped, and the feed tells so
    return absl::OkStatus();
  }
  VARVE_RETURN_IF_ERROR(read.status());
  std::vector<MovedRecord> page = *std::move(read);
  // The target may have dropped one of that name before it.
  const std::string space = state_.copies.front().space;
  if (!target_->Knows(space)) VARVE_RETURN_IF_ERROR(EnsureSpace(space));
  const bool has_more = reader_->has_more();
  if (has_more && Clock::now() < until && !stopped_()) reader_->Request();
  const std::string last = page.empty() ? std::string() : page.back().key;
  uint64_t keys = 0;
  for (MovedRecord& record : page) {
    if (!HasPrefix(record.key)) continue;
    ++keys;
    window_.Put(space, std::move(record));
  }
  const size_t bytes = window_.bytes();
  VARVE_RETURN_IF_ERROR(WriteWindow());
  bytes_ += bytes;
  state_.keys += keys;
  if (!has_more) {
    EndCopy();
  } else {
    state_.copies.front().bounds.min = BehindKey(last);
  }
  return Report(false);
}

void Mover::EndCopy() {
  reader_.reset();
  state_.copies.pop_front();
}

absl::StatusOr<Mover::Reached> Mover::ApplyChanges(milliseconds wait) {
  const Clock::time_point until = Clock::now() + kTurn;
  for (;;) {
    absl::StatusOr<ChangeReply> reply = source_.Changes(state_.position, wait);
    if (IsGap(reply.status())) return Missed(state_, std::string(reply.status().message()));
    VARVE_RETURN_IF_ERROR(reply.status());
    if (reply->history_id != state_.history_id)
      return Missed(state_, "it was restored, and has another history");
    size_t bytes = 0;
    for (Change& commit : reply->commits) {
      for (ChangeOperation& operation : commit.operations) {
        bytes += operation.key.size() + operation.value.size() + operation.metadata.size();
        VARVE_RETURN_IF_ERROR(Apply(&operation));
      }
    }
    VARVE_RETURN_IF_ERROR(WriteWindow());
    state_.position = std::max(state_.position, reply->next);
    if (reply->commits.empty()) return Reached::kNothing;
    VARVE_RETURN_IF_ERROR(Checkpoint());
    VARVE_RETURN_IF_ERROR(Report(false));
    if (reply->commits.size() < kManyCommits && bytes < kManyBytes) return Reached::kHead;
    // While keys are to be copied, both take turns.
    if (stopped_() || Clock::now() >= until) return Reached::kMore;
    wait = milliseconds(0);
  }
}

absl::Status Mover::Apply(ChangeOperation* operation) {
  const std::string& space = operation->name;
  switch (operation->kind) {
    case ChangeKind::kSet:
    case ChangeKind::kExpire:
    case ChangeKind::kMeta:
    case ChangeKind::kDelete:
    case ChangeKind::kExpired:
    case ChangeKind::kEvicted:
      break;
    default:
      // What concerns many keys comes behind what was gathered.
      VARVE_RETURN_IF_ERROR(WriteWindow());
      return ApplyToSpace(*operation);
  }
  if (!HasPrefix(operation->key)) return absl::OkStatus();
  if (!target_->Knows(space)) {
    VARVE_RETURN_IF_ERROR(WriteWindow());
    VARVE_RETURN_IF_ERROR(EnsureSpace(space));
  }
  const bool is_put = operation->kind == ChangeKind::kSet ||
                      operation->kind == ChangeKind::kExpire ||
                      operation->kind == ChangeKind::kMeta;
  if (is_put) {
    window_.Put(space, {.key = std::move(operation->key),
                        .value = std::move(operation->value),
                        .expiry_ms = operation->expiry_ms,
                        .metadata = std::move(operation->metadata)});
  } else {
    window_.Delete(space, operation->key);
  }
  return window_.bytes() < kWindowBytes ? absl::OkStatus() : WriteWindow();
}

absl::Status Mover::ApplyToSpace(const ChangeOperation& operation) {
  const std::string& space = operation.name;
  if (operation.kind == ChangeKind::kDrop) return DropSpace(space);
  if (IsMoved(space) && (operation.kind == ChangeKind::kCreate || !target_->Knows(space)))
    VARVE_RETURN_IF_ERROR(EnsureSpace(space));
  switch (operation.kind) {
    case ChangeKind::kDeleteRange:
      return target_->DeleteRange(space, operation.key, operation.value);
    case ChangeKind::kFlush:
      return target_->Clear(space);
    case ChangeKind::kIngest:
      state_.copies.push_back({space, {.min = "[" + operation.key, .max = "[" + operation.value}});
      return absl::OkStatus();
    case ChangeKind::kClone:
      return CopyAnew(space);
    case ChangeKind::kSwap:
      VARVE_RETURN_IF_ERROR(CopyAnew(space));
      return CopyAnew(operation.key);
    default:
      return absl::OkStatus();  // kCreate
  }
}

absl::Status Mover::DropSpace(const std::string& space) {
  // What the target has of that name may be somebody else's.
  if (!state_.spaces.contains(space)) return absl::OkStatus();
  const bool is_database = IsDatabaseName(TargetSpace(options_, space));
  if (options_.prefix.empty() && !is_database) return target_->Drop(space);
  if (!target_->Knows(space)) VARVE_RETURN_IF_ERROR(EnsureSpace(space));
  return target_->Clear(space);
}

absl::Status Mover::CopyAnew(const std::string& space) {
  if (!IsMoved(space)) return absl::OkStatus();
  if (!target_->Knows(space)) VARVE_RETURN_IF_ERROR(EnsureSpace(space));
  VARVE_RETURN_IF_ERROR(target_->Clear(space));
  reader_.reset();
  std::erase_if(state_.copies, [&](const PendingCopy& copy) { return copy.space == space; });
  state_.copies.push_back({space, BoundsOfPrefix(options_.prefix)});
  return absl::OkStatus();
}

absl::Status Mover::WriteWindow() {
  if (window_.empty()) return absl::OkStatus();
  if (stopped_()) return absl::CancelledError("interrupted");
  const absl::Duration wait = rate_.Wait();
  if (wait > absl::ZeroDuration()) Pause(milliseconds(absl::ToInt64Milliseconds(wait) + 1));
  rate_.Spend(window_.bytes());
  VARVE_RETURN_IF_ERROR(target_->Write(window_));
  window_.Clear();
  return absl::OkStatus();
}

absl::Status Mover::Checkpoint() {
  if (Clock::now() < saved_ + kSaveEvery) return absl::OkStatus();
  if (!options_.state.empty()) VARVE_RETURN_IF_ERROR(state_.Save(options_.state));
  saved_ = Clock::now();
  if (acknowledged_ == state_.position) return absl::OkStatus();
  acknowledged_ = state_.position;
  const absl::Status told = source_.AckFeed(state_.feed, state_.position);
  if (told.ok() || MayPass(told) || absl::IsPermissionDenied(told)) return told;
  // The place is gone, or was lost. Reading on tells whether something was missed.
  const absl::Status kept = source_.EnsureFeed(state_.feed, state_.position);
  return IsGap(kept) ? Missed(state_, std::string(kept.message())) : kept;
}

absl::Status Mover::Report(bool is_due) {
  if (!is_due && Clock::now() < reported_ + options_.report_every) return absl::OkStatus();
  VARVE_ASSIGN_OR_RETURN(const ChangeReply now, source_.Now());
  reported_ = Clock::now();
  const uint64_t behind = now.next - std::min(now.next, state_.position);
  if (!state_.copies.empty()) {
    was_behind_ = true;
    say_(fmt::format(
        "copying {}: {} keys so far, {} by this run; the changes are {} versions behind",
        Shown(state_.copies.front().space), state_.keys, FormatSize(bytes_), behind));
  } else if (behind > 0) {
    was_behind_ = true;
    say_(fmt::format("at version {}, {} versions behind", state_.position, behind));
  } else if (std::exchange(was_behind_, false)) {
    say_(fmt::format("nothing is behind at version {}", state_.position));
  }
  return absl::OkStatus();
}

absl::Status Mover::Verify() {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> spaces, source_.Spaces());
  Comparison comparison(&options_, stopped_);
  VARVE_RETURN_IF_ERROR(comparison.CompareAll(spaces));
  // A key that was written meanwhile differs until the target has what was written.
  for (int i = 0; i < kComparisons && !comparison.differences().empty(); ++i) {
    VARVE_RETURN_IF_ERROR(Go(true));
    VARVE_RETURN_IF_ERROR(comparison.CompareAgain());
  }
  for (const std::string& line : comparison.Lines()) say_(line);
  if (comparison.differences().empty()) return absl::OkStatus();
  return absl::DataLossError(fmt::format(
      "{} keys differ between both sides; those that clients write all the time may do so, so "
      "compare again while nobody writes to the source, and see that nobody else writes to the "
      "target",
      comparison.differences().size()));
}

absl::Status Mover::Finish() {
  const bool goes_on = !options_.state.empty() && !options_.finish;
  if (goes_on) {
    saved_ = {};
    state_.is_open = false;
    return Checkpoint();
  }
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> spaces, source_.Spaces());
  for (const std::string& space : spaces) {
    VARVE_ASSIGN_OR_RETURN(const std::optional<SpaceDescription> description,
                           source_.Describe(space));
    if (description) VARVE_RETURN_IF_ERROR(target_->SetQuotas(space, *description));
  }
  VARVE_RETURN_IF_ERROR(source_.DropFeed(state_.feed));
  if (options_.state.empty()) return absl::OkStatus();
  return PosixFileSystem()->Remove(options_.state);
}

absl::Status Mover::Stop(const absl::Status& why) {
  const bool is_asked_for = stopped_() && (absl::IsCancelled(why) || MayPass(why));
  if (!options_.state.empty()) {
    state_.is_open = target_->is_open();
    const absl::Status saved = state_.Save(options_.state);
    if (!saved.ok()) return saved;
    if (!is_asked_for) return why;
    say_(
        fmt::format("stopped at version {}; the same command goes on from there", state_.position));
    return absl::OkStatus();
  }
  // Nothing could go on, so the source is to keep nothing for it.
  if (source_.Connect().ok()) source_.DropFeed(state_.feed).IgnoreError();
  if (!is_asked_for) return why;
  say_(fmt::format("stopped at version {}; without --state=FILE a move can't go on",
                   state_.position));
  return absl::OkStatus();
}

bool Mover::HasPrefix(std::string_view key) const { return key.starts_with(options_.prefix); }

bool Mover::IsMoved(const std::string& space) const {
  return !options_.space || *options_.space == space;
}

void Mover::Pause(milliseconds pause) const {
  while (pause.count() > 0 && !stopped_()) {
    const milliseconds step = std::min(pause, kStep);
    std::this_thread::sleep_for(step);
    pause -= step;
  }
}

void Mover::SayOnce(const std::string& line) {
  if (line == said_) return;
  said_ = line;
  say_(line);
}

}  // namespace varve
