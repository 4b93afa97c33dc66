#include "db/changes/change_reader.h"

#include <algorithm>
#include <string>

#include "type/tree_key.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

using Kind = ChangeOperation::Kind;

}  // namespace

absl::StatusOr<bool> ChangeReader::Next(size_t most_bytes) {
  return GuardMemory("reading changes", [&] { return NextUnguarded(most_bytes); });
}

absl::StatusOr<bool> ChangeReader::NextUnguarded(size_t most_bytes) {
  const SequenceNumber deliverable = deliverable_();
  for (size_t looked_at = 0; looked_at < most_bytes;) {
    const ChangeBlock& block = place_.block;
    if (position_ >= block.last || position_ < block.after) {
      VARVE_ASSIGN_OR_RETURN(const bool read, ReadBlock(deliverable));
      if (!read) return false;
    }
    bool is_shown = false;
    while (!is_shown && offset_ < block.commits.size() && looked_at < most_bytes) {
      size_t next = offset_;
      ChangeCommit commit;
      if (!ReadCommit(block, &next, &commit))
        return absl::InternalError("a block of changes makes no sense");
      if (commit.last > position_) {
        if (commit.last > deliverable) return false;
        position_ = commit.last;
        looked_at += next - offset_;
        Show(commit);
        is_shown = !change_.operations.empty();
      }
      offset_ = next;
    }
    if (is_shown) return true;
    if (offset_ >= block.commits.size())
      position_ = std::max(position_, std::min(block.last, deliverable));
    if (position_ < block.last && offset_ >= block.commits.size()) return false;
  }
  return false;
}

absl::StatusOr<bool> ChangeReader::ReadBlock(SequenceNumber deliverable) {
  SequenceNumber covered = kNoSequence;
  const absl::StatusOr<bool> read = recorder_.Read(position_, &place_, &covered);
  offset_ = 0;
  if (read.ok() && *read) return true;
  place_ = {};  // a reader that waits holds no memory
  VARVE_RETURN_IF_ERROR(read.status());
  position_ = std::max(position_, std::min(covered, deliverable));
  return false;
}

void ChangeReader::Show(const ChangeCommit& commit) {
  change_.version = commit.last;
  change_.instant_ms = commit.instant_ms;
  change_.operations.clear();
  for (size_t at = 0; at < commit.operations.size();) {
    ChangeRecord record;
    if (!ReadChangeRecord(commit, &at, &record)) return;
    if (!LetsThrough(&record)) continue;
    ShowOperation(place_.block, record, filter_.keys_only, &change_.operations.emplace_back());
  }
}

bool ChangeReader::LetsThrough(ChangeRecord* record) const {
  if (record->kind == kStoresOwn) return false;
  const NamespaceId space = place_.block.dictionary[record->space].first;
  const bool is_other = record->kind == Kind::kSwap && record->value.size() == kGenerationSize &&
                        filter_.space == GenerationOf(record->value);
  if (filter_.space && *filter_.space != space && !is_other) return false;
  if (ConcernsNamespace(record->kind)) return true;
  const std::string_view lower = filter_.lower, upper = filter_.upper;
  if (record->kind == Kind::kDeleteRange) {
    record->key = std::max(record->key, lower);
    if (!upper.empty() && (record->value.empty() || upper < record->value)) record->value = upper;
    return record->value.empty() || record->key < record->value;
  }
  if (record->kind == Kind::kIngest)
    return record->value >= lower && (upper.empty() || record->key < upper);
  return record->key >= lower && (upper.empty() || record->key < upper);
}

}  // namespace varve
