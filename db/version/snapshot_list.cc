#include "db/version/snapshot_list.h"

#include <utility>

#include "util/base/assert.h"

namespace varve {

class SnapshotList::Entry final : public TreeSnapshot {
 public:
  Entry(SnapshotList* list, NamespaceTable namespaces, uint64_t instant_ms)
      : list_(list), namespaces_(std::move(namespaces)), instant_ms_(instant_ms) {}
  ~Entry() override {
    absl::MutexLock lock(&list_->mutex_);
    if (!is_held_) return;
    const auto held = list_->held_.find(sequence_);
    VARVE_ASSERT(held != list_->held_.end());
    list_->held_.erase(held);
  }
  // With the list's lock.
  void Hold(SequenceNumber sequence) {
    list_->mutex_.AssertHeld();
    VARVE_ASSERT(!is_held_);
    list_->held_.insert(sequence);
    sequence_ = sequence;
    is_held_ = true;
  }

  SequenceNumber sequence() const override { return sequence_; }
  uint64_t instant_ms() const override { return instant_ms_; }
  std::optional<NamespaceGeneration> Generation(NamespaceId space) const override {
    return namespaces_.Generation(space);
  }

 private:
  SnapshotList* const list_;
  const NamespaceTable namespaces_;
  const uint64_t instant_ms_;
  SequenceNumber sequence_ = kNoSequence;
  bool is_held_ = false;
};

namespace {

class NotTakenSnapshot final : public TreeSnapshot {
 public:
  SequenceNumber sequence() const override { return kNoSequence; }
  uint64_t instant_ms() const override { return 0; }
  std::optional<NamespaceGeneration> Generation(NamespaceId) const override { return std::nullopt; }
};

}  // namespace

std::shared_ptr<const Snapshot> SnapshotList::NotTaken() {
  static const NotTakenSnapshot not_taken;
  // Owned by nobody.
  return std::shared_ptr<const Snapshot>(std::shared_ptr<const Snapshot>(), &not_taken);
}

std::shared_ptr<const Snapshot> SnapshotList::Take(const std::atomic<SequenceNumber>& visible,
                                                   NamespaceTable namespaces, uint64_t instant_ms) {
  auto entry = std::make_shared<Entry>(this, std::move(namespaces), instant_ms);
  absl::MutexLock lock(&mutex_);
  entry->Hold(visible.load());
  return entry;
}

SnapshotList::Held SnapshotList::List(const std::atomic<SequenceNumber>& visible) const {
  absl::MutexLock lock(&mutex_);
  Held held;
  for (const SequenceNumber sequence : held_) {
    if (held.sequences.empty() || held.sequences.back() != sequence)
      held.sequences.push_back(sequence);
  }
  held.visible = visible.load();
  VARVE_ASSERT(held.sequences.empty() || held.sequences.back() <= held.visible);
  return held;
}

}  // namespace varve
