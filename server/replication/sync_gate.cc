#include "server/replication/sync_gate.h"

namespace varve {

void SyncGate::SetReplicas(size_t count, bool begins) {
  if (store_ == nullptr) return;
  absl::MutexLock lock(&mutex_);
  count_ = count;
  if (count == 0) {
    bound_ = kMaxSequence;
  } else if (bound_ == kMaxSequence) {
    bound_ = begins ? kNoSequence : store_->Identity().durable;
  }
  store_->BoundDurable(bound_);
}

bool SyncGate::Update() {
  absl::MutexLock lock(&mutex_);
  if (count_ == 0) return false;
  const SequenceNumber durable = followers_.DurableOn(count_);
  if (durable <= bound_) return false;
  bound_ = durable;
  store_->BoundDurable(bound_);
  return true;
}

bool SyncGate::HoldsBack(SequenceNumber version) const {
  absl::MutexLock lock(&mutex_);
  return version > bound_;
}

}  // namespace varve
