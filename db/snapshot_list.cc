#include "db/snapshot_list.h"

#include <utility>

namespace varve {

class SnapshotList::Entry final : public Snapshot {
 public:
  Entry(SnapshotList* list, SequenceNumber sequence, NamespaceTable namespaces)
      : list_(list), sequence_(sequence), namespaces_(std::move(namespaces)) {}
  ~Entry() override {
    absl::MutexLock lock(&list_->mutex_);
    list_->held_.erase(list_->held_.find(sequence_));
  }

  SequenceNumber sequence() const override { return sequence_; }
  std::optional<NamespaceGeneration> Generation(NamespaceId space) const override {
    return namespaces_.Generation(space);
  }

 private:
  SnapshotList* const list_;
  const SequenceNumber sequence_;
  const NamespaceTable namespaces_;
};

std::shared_ptr<const Snapshot> SnapshotList::Take(const std::atomic<SequenceNumber>& visible,
                                                   NamespaceTable namespaces) {
  absl::MutexLock lock(&mutex_);
  const SequenceNumber sequence = visible.load();
  held_.insert(sequence);
  return std::make_shared<Entry>(this, sequence, std::move(namespaces));
}

SnapshotList::Held SnapshotList::List(const std::atomic<SequenceNumber>& visible) const {
  absl::MutexLock lock(&mutex_);
  Held held;
  for (const SequenceNumber sequence : held_) {
    if (held.sequences.empty() || held.sequences.back() != sequence) held.sequences.push_back(sequence);
  }
  held.visible = visible.load();
  return held;
}

}  // namespace varve
