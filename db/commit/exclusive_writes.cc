#include "db/commit/exclusive_writes.h"

#include "absl/time/clock.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"

namespace varve {

class ExclusiveWrites::Held final : public ExclusiveWrite {
 public:
  explicit Held(ExclusiveWrites* writes) : writes_(*writes) {}
  ~Held() override {
    absl::MutexLock lock(&writes_.versions_->mutex());
    if (writes_.held_ != this) return;
    writes_.held_ = nullptr;
    writes_.marks_wait_ = false;
    writes_.ended_.SignalAll();
  }

 private:
  ExclusiveWrites& writes_;
};

std::unique_ptr<ExclusiveWrite> ExclusiveWrites::Begin() {
  std::unique_ptr<Held> exclusive;  // takes some 50 bytes, which are waited for
  while (!TryWithMemory([&] { exclusive = std::make_unique<Held>(this); }))
    absl::SleepFor(absl::Milliseconds(1));
  absl::MutexLock lock(&versions_->mutex());
  AwaitOthersLocked(nullptr);
  VARVE_ASSERT(held_ == nullptr);
  held_ = exclusive.get();
  return exclusive;
}

void ExclusiveWrites::HoldMarks() {
  absl::MutexLock lock(&versions_->mutex());
  VARVE_ASSERT(held_ != nullptr);
  marks_wait_ = true;
}

void ExclusiveWrites::AwaitOthers(const ExclusiveWrite* own) {
  absl::MutexLock lock(&versions_->mutex());
  AwaitOthersLocked(own);
}

void ExclusiveWrites::AwaitOthersLocked(const ExclusiveWrite* own) {
  versions_->mutex().AssertHeld();
  while (held_ != nullptr && held_ != own) ended_.Wait(&versions_->mutex());
}

}  // namespace varve
