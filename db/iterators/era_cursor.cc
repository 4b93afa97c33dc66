#include "db/iterators/era_cursor.h"

#include <algorithm>

#include "db/iterators/super_version_iterator.h"
#include "type/tree_key.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// The cursor steps over so many versions of one key one by one; for more it seeks instead.
constexpr int kEraStepsBeforeSeek = 8;

// Moves behind the last version of the key.
void PassKey(std::string_view tree_key, InternalIterator* records) {
  for (int steps = 0; records->Valid() && records->record().key == tree_key; records->Next()) {
    if (++steps == kEraStepsBeforeSeek) {
      records->Seek(tree_key, kNoSequence);
      if (!records->Valid() || records->record().key != tree_key) return;
    }
  }
}

}  // namespace

ChangeOperation::Kind ChangeKindOf(const RecordView& record) {
  const bool is_value = record.kind == RecordKind::kValue;
  switch (record.cause) {
    case WriteCause::kExpiryChange:
      return ChangeOperation::Kind::kExpire;
    case WriteCause::kMetadataChange:
      return ChangeOperation::Kind::kMeta;
    case WriteCause::kExpired:
      return ChangeOperation::Kind::kExpired;
    case WriteCause::kEvicted:
      return ChangeOperation::Kind::kEvicted;
    case WriteCause::kWrite:
      break;
  }
  return is_value ? ChangeOperation::Kind::kSet : ChangeOperation::Kind::kDelete;
}

EraCursor::EraCursor(const SuperVersion* state, const NamespaceEra& era, const Bounds& bounds)
    : state_(*state),
      era_(era),
      first_(bounds.first),
      newest_(std::min(bounds.at, era.end == kMaxSequence ? kMaxSequence : era.end - 1)) {
  VARVE_ASSERT(bounds.first <= bounds.at && era.begin <= bounds.at);
  if (era.generation == kNoGeneration) return;
  const TreeKey lower(era.generation, bounds.lower);
  end_ = bounds.upper.empty() ? EndTreeKey(era.generation)
                              : std::string(TreeKey(era.generation, bounds.upper).view());
  records_ = NewVersionsIterator(state_, bounds.fill_cache, lower.view(), end_);
  records_->Seek(lower.view(), kMaxSequence);
  if (const NamespaceFork* const fork = state_.namespaces.forks().Of(era.generation)) {
    inherited_ = NewInheritedIterator(state_, *fork, bounds.fill_cache, lower.view(), end_);
    inherited_->Seek(lower.view(), kMaxSequence);
  }
}

std::string_view EraCursor::key() const {
  VARVE_ASSERT(Valid());
  if (!Inherited()) return UserKeyOf(records_->record().key);
  if (!Own()) return UserKeyOf(inherited_->record().key);
  return UserKeyOf(std::min(records_->record().key, inherited_->record().key));
}

void EraCursor::MoveBehind(std::string_view key) {
  if (records_ == nullptr) return;
  const TreeKey tree_key(era_.generation, key);
  for (InternalIterator* const each : {records_.get(), inherited_.get()}) {
    if (each != nullptr) PassKey(tree_key.view(), each);
  }
}

absl::Status EraCursor::status() const {
  if (records_ == nullptr) return absl::OkStatus();
  if (absl::Status status = records_->status(); !status.ok() || inherited_ == nullptr)
    return status;
  return inherited_->status();
}

const RecordView* EraCursor::OwnVersionOf(std::string_view tree_key) const {
  return Own() && records_->record().key == tree_key ? &records_->record() : nullptr;
}

bool EraCursor::ShowAbove(std::string_view tree_key, SequenceNumber floor,
                          absl::FunctionRef<bool(const KeyChange&)> show) {
  const RecordView* own = OwnVersionOf(tree_key);
  if (own != nullptr && own->sequence > newest_) {
    records_->Seek(tree_key, newest_);
    own = OwnVersionOf(tree_key);
  }
  for (SequenceNumber up_to = newest_; up_to > floor;) {
    const SequenceNumber record = own != nullptr ? own->sequence : kNoSequence;
    const SequenceNumber covering = state_.CoveringSequence(tree_key, up_to);
    up_to = std::max(record, covering);
    if (up_to <= floor) break;
    KeyChange change{.sequence = up_to, .kind = ChangeOperation::Kind::kDeleteRange};
    if (up_to == record) {
      change.kind = ChangeKindOf(*own);
      if (own->kind == RecordKind::kValue) change.record = own;
    }
    if (!show(change)) return false;
    // A flush that was repeated after a crash may have left a record twice.
    while (own != nullptr && own->sequence >= up_to) {
      records_->Next();
      own = OwnVersionOf(tree_key);
    }
    --up_to;
  }
  return true;
}

bool EraCursor::ShowChanges(std::string_view key, absl::FunctionRef<bool(const KeyChange&)> show) {
  const TreeKey owned(era_.generation, key);
  const std::string_view tree_key = owned.view();
  const SequenceNumber floor = std::min(std::max(first_, era_.begin), newest_);
  if (!ShowAbove(tree_key, floor, show)) return false;
  // What the key had when the era began, or at the oldest version that can be read.
  const RecordView* record = OwnVersionOf(tree_key);
  const SequenceNumber covering =
      records_ == nullptr ? kNoSequence : state_.CoveringSequence(tree_key, floor);
  const bool is_hidden = covering > (record != nullptr ? record->sequence : kNoSequence);
  if (record == nullptr && !is_hidden && Inherited() && inherited_->record().key == tree_key)
    record = &inherited_->record();
  const bool has_value = record != nullptr && !is_hidden && record->kind == RecordKind::kValue;
  KeyChange change{.record = has_value ? record : nullptr};
  if (era_.begin > first_) {
    change.sequence = era_.begin;
    change.kind = era_.begun_by;
    return show(change);
  }
  if (record == nullptr) return true;
  change.sequence = is_hidden ? covering : record->sequence;
  change.kind = is_hidden ? ChangeOperation::Kind::kDeleteRange : ChangeKindOf(*record);
  change.is_oldest = true;
  return show(change);
}

}  // namespace varve
