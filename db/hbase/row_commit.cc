#include "db/hbase/row_commit.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "db/hbase/range_reads.h"
#include "db/hbase_rpc/hbase_failure.h"
#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"

namespace varve {
namespace {

// The status of a write whose row could not be read, before it was written or behind a commit that
// was refused.
absl::Status NotWritten(const absl::Status& read) {
  return absl::Status(read.code(), fmt::format("{}; {}", WordsOf(read), OutcomeText(false)));
}

}  // namespace

void RowCommit::Together(HbaseContext* context, std::string table, std::vector<RowIntent> intents,
                         HbaseClient::Deadline deadline, Done done) {
  const auto commit = std::make_shared<RowCommit>(context, std::move(table), std::move(intents),
                                                  /*is_together=*/true, deadline, std::move(done));
  commit->Guess();
  commit->Try();
}

void RowCommit::Each(HbaseContext* context, std::string table, std::vector<RowIntent> intents,
                     HbaseClient::Deadline deadline, Done done) {
  const auto commit = std::make_shared<RowCommit>(context, std::move(table), std::move(intents),
                                                  /*is_together=*/false, deadline, std::move(done));
  commit->Guess();
  commit->Try();
}

RowCommit::RowCommit(HbaseContext* context, std::string table, std::vector<RowIntent> intents,
                     bool is_together, HbaseClient::Deadline deadline, Done done)
    : context_(context),
      table_(std::move(table)),
      intents_(std::move(intents)),
      is_together_(is_together),
      done_(std::move(done)),
      deadline_(deadline),
      found_(intents_.size()),
      open_(intents_.size()),
      statuses_(is_together ? 1 : intents_.size()),
      versions_(statuses_.size(), kNoSequence) {
  std::iota(open_.begin(), open_.end(), size_t{0});
  names_.reserve(intents_.size());
  for (const RowIntent& intent : intents_)
    names_.push_back(GuessedVersions::NameOf(table_, intent.row));
}

// --- What rows hold ------------------------------------------------------------------------------

// A row is guessed once at most: what has failed is read.
void RowCommit::Guess() {
  std::vector<size_t> puts;
  std::vector<GuessedVersions::Name> names;
  for (const size_t index : open_) {
    const RowIntent& intent = intents_[index];
    if (intent.required.has_value() || intent.kind != RowIntent::Kind::kPut) continue;
    puts.push_back(index);
    names.push_back(names_[index]);
  }
  const std::vector<std::optional<SequenceNumber>> guesses = context_->guesses.Guess(names);
  for (size_t i = 0; i < puts.size(); ++i) {
    if (!guesses[i].has_value()) continue;
    Found& found = found_[puts[i]];
    found.how = Found::How::kGuessed;
    found.version = *guesses[i];
    if (found.version != kNoSequence) found.identity = CellVersionBytes(found.version);
  }
}

void RowCommit::Try() {
  std::vector<size_t> read;
  std::vector<std::string> rows;
  for (const size_t index : open_) {
    // A row that has to have a version is not read: the cluster compares.
    const Found::How how = found_[index].how;
    const bool is_unknown = how == Found::How::kUnread || how == Found::How::kStale;
    if (intents_[index].required.has_value() || !is_unknown) continue;
    read.push_back(index);
    rows.push_back(intents_[index].row);
  }
  if (read.empty()) return Send();
  ReadHeaders(
      *context_, table_, std::move(rows), deadline_,
      [self = shared_from_this(), read = std::move(read)](
          const std::vector<HbaseClient::RowValue>& cells) { self->TakeRead(read, cells); });
}

void RowCommit::TakeRead(const std::vector<size_t>& read,
                         const std::vector<HbaseClient::RowValue>& cells) {
  for (size_t i = 0; i < read.size(); ++i) {
    const absl::Status status = Note(read[i], cells[i]);
    if (status.ok()) continue;
    if (is_together_) return FinishWith(NotWritten(status));
    statuses_[read[i]] = NotWritten(status);
    std::erase(open_, read[i]);
  }
  Send();
}

absl::Status RowCommit::Note(size_t index, const HbaseClient::RowValue& read) {
  if (!read.ok()) return read.status();
  const std::optional<std::string>& cell = *read;
  Found now{.how = Found::How::kRead};
  if (cell.has_value()) {
    const std::optional<HbaseCell> decoded = DecodeCellHeader(*cell);
    if (!decoded) return NotACell(table_, cell->size());
    now.identity = cell->substr(0, kCellIdentitySize);
    now.version = decoded->version;
    now.is_gone = decoded->is_tombstone;
  }
  const Found before = std::exchange(found_[index], std::move(now));
  const SequenceNumber version = found_[index].version;
  if (before.how == Found::How::kGuessed)
    context_->guesses.TellOutcome(names_[index], before.version, before.version == version);
  // Only what was read instead of guessed tells what guesses are worth.
  const RowIntent& intent = intents_[index];
  if (before.how == Found::How::kUnread && intent.kind == RowIntent::Kind::kPut &&
      !intent.required.has_value()) {
    context_->guesses.TellFound(names_[index], version);
  } else {
    context_->guesses.Note(names_[index], version);
  }
  return absl::OkStatus();
}

// Takes in what the cluster has said of a row: that it was as expected and is as wanted now, or
// that it was not.
void RowCommit::TakeOutcome(size_t index, bool was_right) {
  Found& found = found_[index];
  if (found.how == Found::How::kGuessed)
    context_->guesses.TellOutcome(names_[index], found.version, was_right);
  if (!was_right) {
    found.how = Found::How::kStale;
  } else if (Writes(index)) {
    context_->guesses.Note(names_[index], versions_[is_together_ ? 0 : index]);
  }
}

// --- Writing -------------------------------------------------------------------------------------

// Returns whether the row is as wanted without a write or a look by the cluster: a key that is not
// there is to be deleted by itself.
bool RowCommit::HasNothingToDo(size_t index) const {
  return !is_together_ && intents_[index].kind == RowIntent::Kind::kDelete &&
         found_[index].how == Found::How::kRead && found_[index].is_gone;
}

SequenceNumber RowCommit::SeenVersion(size_t index) const {
  return intents_[index].required.value_or(found_[index].version);
}

bool RowCommit::Writes(size_t index) const {
  const RowIntent& intent = intents_[index];
  const bool is_there =
      intent.required.has_value() ? *intent.required != kNoSequence : !found_[index].is_gone;
  return intent.kind == RowIntent::Kind::kPut ||
         (intent.kind == RowIntent::Kind::kDelete && is_there);
}

HbaseRowWrite RowCommit::WriteOf(size_t index, SequenceNumber version) const {
  const RowIntent& intent = intents_[index];
  HbaseRowWrite write;
  write.row = intent.row;
  write.is_checked = true;
  write.expects_prefix = true;
  write.ascending = kCellVersionSize;
  std::string expected = found_[index].identity;
  if (intent.required.has_value())
    expected = *intent.required == kNoSequence ? "" : CellVersionBytes(*intent.required);
  if (!expected.empty()) write.expected = std::move(expected);
  write.kind = Writes(index) ? HbaseRowWrite::Kind::kPut : HbaseRowWrite::Kind::kCheckOnly;
  if (!Writes(index)) return write;
  write.timestamp = version;
  HbaseCell cell{.version = version, .writer = context_->writer};
  if (intent.kind == RowIntent::Kind::kPut) {
    cell.expiry_ms = intent.expiry_ms;
    cell.metadata = intent.metadata;
    cell.value = intent.value;
  } else {
    cell.is_tombstone = true;
  }
  write.value = EncodeCell(cell);
  return write;
}

void RowCommit::Send() {
  std::erase_if(open_, [this](size_t index) {
    const bool is_done = HasNothingToDo(index);
    // It may have been tried before, and others came first.
    if (is_done) statuses_[index] = absl::OkStatus();
    return is_done;
  });
  if (open_.empty()) return Finish();
  is_together_ ? SendTogether() : SendEach();
}

void RowCommit::SendTogether() {
  SequenceNumber seen = kNoSequence;
  for (const size_t index : open_) seen = std::max(seen, SeenVersion(index));
  versions_.front() = context_->clock.Next(seen);
  std::vector<HbaseRowWrite> writes;
  for (const size_t index : open_) writes.push_back(WriteOf(index, versions_.front()));
  context_->client->CommitRows(
      table_, std::move(writes), deadline_,
      [self = shared_from_this()](const absl::Status& status) { self->TakeTogether(status); });
}

void RowCommit::TakeTogether(const absl::Status& status) {
  if (status.ok()) {
    for (size_t index = 0; index < intents_.size(); ++index) TakeOutcome(index, true);
  }
  if (!absl::IsAborted(status)) return FinishWith(status);
  // The conditions of the caller's are the only ones, or may be what failed: then the rows are read
  // to tell.
  const auto is_required = [](const RowIntent& intent) { return intent.required.has_value(); };
  if (std::all_of(intents_.begin(), intents_.end(), is_required)) return FinishWith(status);
  if (IsPastDeadline()) return FinishWith(GaveUp());
  std::vector<std::string> rows;
  for (const RowIntent& intent : intents_) rows.push_back(intent.row);
  ReadHeaders(*context_, table_, std::move(rows), deadline_,
              [self = shared_from_this()](const std::vector<HbaseClient::RowValue>& cells) {
                self->TakeReadAgain(cells);
              });
}

void RowCommit::TakeReadAgain(const std::vector<HbaseClient::RowValue>& cells) {
  for (size_t i = 0; i < cells.size(); ++i) {
    const absl::Status noted = Note(i, cells[i]);
    if (!noted.ok()) return FinishWith(NotWritten(noted));
    const RowIntent& intent = intents_[i];
    if (intent.required.has_value() && *intent.required != found_[i].version)
      return FinishWith(absl::AbortedError("a key was written since it was read"));
  }
  Send();
}

void RowCommit::SendEach() {
  std::vector<HbaseRowWrite> writes;
  for (const size_t index : open_) {
    versions_[index] = context_->clock.Next(SeenVersion(index));
    writes.push_back(WriteOf(index, versions_[index]));
  }
  context_->client->CommitEach(
      table_, std::move(writes), deadline_,
      [self = shared_from_this(), sent = open_](const std::vector<absl::Status>& statuses) {
        self->TakeEach(sent, statuses);
      });
}

void RowCommit::TakeEach(const std::vector<size_t>& sent,
                         const std::vector<absl::Status>& statuses) {
  VARVE_ASSERT(sent.size() == statuses.size());
  const bool is_late = IsPastDeadline();
  open_.clear();
  for (size_t i = 0; i < sent.size(); ++i) {
    const size_t index = sent[i];
    const bool has_failed = absl::IsAborted(statuses[i]);
    if (statuses[i].ok() || has_failed) TakeOutcome(index, !has_failed);
    const bool again = has_failed && !intents_[index].required.has_value();
    statuses_[index] = again && is_late ? GaveUp() : statuses[i];
    if (again && !is_late) open_.push_back(index);
  }
  open_.empty() ? Finish() : Try();
}

bool RowCommit::IsPastDeadline() const { return std::chrono::steady_clock::now() >= deadline_; }

absl::Status RowCommit::GaveUp() const {
  return absl::UnavailableError(fmt::format(
      "other writers changed the same keys of table {} again and again for {} ms, so this write "
      "was given up; nothing of it was written",
      table_, context_->options.deadline.count()));
}

void RowCommit::Finish() { done_(statuses_, versions_); }

void RowCommit::FinishWith(const absl::Status& status) {
  if (is_together_) {
    statuses_.front() = status;
  } else {
    for (const size_t index : open_) statuses_[index] = status;
  }
  Finish();
}

}  // namespace varve
