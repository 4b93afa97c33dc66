#include "db/hbase/row_commit.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "db/hbase/range_reads.h"
#include "fmt/format.h"
#include "util/base/assert.h"

namespace varve {

void RowCommit::Together(HbaseContext* context, std::string table, std::vector<RowIntent> intents,
                         Done done) {
  std::make_shared<RowCommit>(context, std::move(table), std::move(intents), /*is_together=*/true,
                              std::move(done))
      ->Try();
}

void RowCommit::Each(HbaseContext* context, std::string table, std::vector<RowIntent> intents,
                     Done done) {
  std::make_shared<RowCommit>(context, std::move(table), std::move(intents), /*is_together=*/false,
                              std::move(done))
      ->Try();
}

RowCommit::RowCommit(HbaseContext* context, std::string table, std::vector<RowIntent> intents,
                     bool is_together, Done done)
    : context_(context),
      table_(std::move(table)),
      intents_(std::move(intents)),
      is_together_(is_together),
      done_(std::move(done)),
      deadline_(context->NewDeadline()),
      found_(intents_.size()),
      open_(intents_.size()),
      statuses_(intents_.size()) {
  std::iota(open_.begin(), open_.end(), size_t{0});
}

void RowCommit::Try() {
  std::vector<size_t> read;
  std::vector<std::string> rows;
  for (const size_t index : open_) {
    // A row that has to have a version is not read: the cluster compares.
    if (intents_[index].required.has_value() || found_[index].has_value()) continue;
    read.push_back(index);
    rows.push_back(intents_[index].row);
  }
  if (read.empty()) return Send();
  ReadRowsInSteps(*context_, table_, std::move(rows), deadline_,
                  [self = shared_from_this(), read = std::move(read)](
                      absl::StatusOr<std::vector<std::optional<std::string>>> cells) {
                    self->TakeRead(read, cells);
                  });
}

void RowCommit::TakeRead(const std::vector<size_t>& read,
                         const absl::StatusOr<std::vector<std::optional<std::string>>>& cells) {
  if (!cells.ok()) return FinishWith(cells.status());
  for (size_t i = 0; i < read.size(); ++i) {
    const absl::Status status = Note(read[i], (*cells)[i]);
    if (status.ok()) continue;
    if (is_together_) return FinishWith(status);
    statuses_[read[i]] = status;
    std::erase(open_, read[i]);
  }
  Send();
}

absl::Status RowCommit::Note(size_t index, const std::optional<std::string>& cell) {
  Found& found = found_[index].emplace();
  if (!cell.has_value()) return absl::OkStatus();
  const std::optional<HbaseCell> decoded = DecodeCellHeader(*cell);
  if (!decoded) return NotACell(table_, cell->size());
  found.identity = cell->substr(0, kCellIdentitySize);
  found.version = decoded->version;
  found.is_gone = decoded->is_tombstone;
  return absl::OkStatus();
}

// Returns whether the row is as wanted without a write or a look by the cluster: a key that is not
// there is to be deleted by itself.
bool RowCommit::HasNothingToDo(size_t index) const {
  const std::optional<Found>& found = found_[index];
  return !is_together_ && intents_[index].kind == RowIntent::Kind::kDelete && found.has_value() &&
         found->is_gone;
}

SequenceNumber RowCommit::SeenVersion(size_t index) const {
  if (intents_[index].required.has_value()) return *intents_[index].required;
  return found_[index]->version;
}

HbaseRowWrite RowCommit::WriteOf(size_t index, SequenceNumber version) const {
  const RowIntent& intent = intents_[index];
  HbaseRowWrite write;
  write.row = intent.row;
  const SequenceNumber seen = SeenVersion(index);
  const bool is_required = intent.required.has_value();
  write.is_checked = true;
  write.expects_prefix = true;
  if (is_required && seen != kNoSequence) write.expected = CellVersionBytes(seen);
  if (!is_required && !found_[index]->identity.empty()) write.expected = found_[index]->identity;
  const bool is_there = is_required ? seen != kNoSequence : !found_[index]->is_gone;
  const bool writes =
      intent.kind == RowIntent::Kind::kPut || (intent.kind == RowIntent::Kind::kDelete && is_there);
  write.kind = writes ? HbaseRowWrite::Kind::kPut : HbaseRowWrite::Kind::kCheckOnly;
  if (!writes) return write;
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
  std::erase_if(open_, [this](size_t index) { return HasNothingToDo(index); });
  if (open_.empty()) return Finish();
  is_together_ ? SendTogether() : SendEach();
}

void RowCommit::SendTogether() {
  SequenceNumber seen = kNoSequence;
  for (const size_t index : open_) seen = std::max(seen, SeenVersion(index));
  version_ = context_->clock.Next(seen);
  std::vector<HbaseRowWrite> writes;
  for (const size_t index : open_) writes.push_back(WriteOf(index, version_));
  context_->client->CommitRows(
      table_, std::move(writes), deadline_,
      [self = shared_from_this()](const absl::Status& status) { self->TakeTogether(status); });
}

void RowCommit::TakeTogether(const absl::Status& status) {
  if (!absl::IsAborted(status)) return FinishWith(status);
  // The conditions of the caller's are the only ones, or may be what failed: then the rows are read
  // to tell.
  const auto is_required = [](const RowIntent& intent) { return intent.required.has_value(); };
  if (std::all_of(intents_.begin(), intents_.end(), is_required)) return FinishWith(status);
  if (IsPastDeadline()) return FinishWith(GaveUp());
  std::vector<std::string> rows;
  for (const RowIntent& intent : intents_) rows.push_back(intent.row);
  ReadRowsInSteps(
      *context_, table_, std::move(rows), deadline_,
      [self = shared_from_this()](absl::StatusOr<std::vector<std::optional<std::string>>> cells) {
        if (!cells.ok()) return self->FinishWith(cells.status());
        for (size_t i = 0; i < cells->size(); ++i) {
          const absl::Status noted = self->Note(i, (*cells)[i]);
          if (!noted.ok()) return self->FinishWith(noted);
          const RowIntent& intent = self->intents_[i];
          if (intent.required.has_value() && *intent.required != self->found_[i]->version)
            return self->FinishWith(absl::AbortedError("a key was written since it was read"));
        }
        self->Send();
      });
}

void RowCommit::SendEach() {
  std::vector<HbaseRowWrite> writes;
  for (const size_t index : open_) {
    const SequenceNumber version = context_->clock.Next(SeenVersion(index));
    version_ = std::max(version_, version);
    writes.push_back(WriteOf(index, version));
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
    const bool again = absl::IsAborted(statuses[i]) && !intents_[index].required.has_value();
    statuses_[index] = again && is_late ? GaveUp() : statuses[i];
    if (!again || is_late) continue;
    found_[index].reset();
    open_.push_back(index);
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

void RowCommit::Finish() { done_(statuses_, version_); }

void RowCommit::FinishWith(const absl::Status& status) {
  if (is_together_) {
    statuses_.assign(1, status);
  } else {
    for (const size_t index : open_) statuses_[index] = status;
  }
  done_(statuses_, version_);
}

}  // namespace varve
