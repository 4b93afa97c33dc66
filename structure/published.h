// Published holds one immutable object that many threads read and few replace. Reading takes no
// lock and writes no shared cache line (hazard pointers, after Michael, 2004).
//
// A reader announces the object that it uses in a slot that its thread has to itself; a writer
// replaces the object and gives the old one back once no slot announces it. Reading costs one
// compare-and-swap on the thread's own line and two loads.
//
// Thread-safety: all functions may be called by any thread; the destructor only when no pin is
// held.
// Invariants: an object that a slot announces is current or among the retired ones; a slot is
// announced by at most one pin.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"

namespace varve {

template <typename T>
class Published {
 public:
  // A pin keeps the object in place for a short time; a reader that needs it longer copies share().
  // Requires: the thread that took a pin also gives it back.
  class Pin {
   public:
    Pin(Pin&& other) noexcept
        : slot_(std::exchange(other.slot_, nullptr)), object_(other.object_) {}
    Pin& operator=(Pin&&) = delete;
    ~Pin() {
      if (slot_ == nullptr) return;
      VARVE_ASSERT(slot_->load(std::memory_order_relaxed) == object_);
      slot_->store(nullptr, std::memory_order_release);
    }
    const T* get() const { return object_; }
    const T* operator->() const { return object_; }
    const T& operator*() const { return *object_; }

   private:
    friend class Published;
    Pin(std::atomic<const T*>* slot, const T* object) : slot_(slot), object_(object) {}
    std::atomic<const T*>* slot_;
    const T* object_;
  };

  explicit Published(std::shared_ptr<const T> first)
      : owner_(std::move(first)), current_(owner_.get()) {}
  // Requires: no pin is held any more.
  ~Published() = default;

  Pin Acquire() const {
    for (size_t index = ThreadIndex();; ++index) {
      std::atomic<const T*>& slot = slots_[index % kSlots].used;
      const T* expected = nullptr;
      const T* object = current_.load();
      if (!slot.compare_exchange_strong(expected, object))
        continue;  // another thread's, or this one holds a pin already
      // Announced; valid only if it was still current after the announcement.
      for (const T* now = current_.load(); now != object; now = current_.load()) {
        object = now;
        slot.store(object);
      }
      return Pin(&slot, object);
    }
  }

  // Returns whether `pin` holds the newest object.
  bool IsCurrent(const Pin& pin) const { return current_.load() == pin.get(); }

  std::shared_ptr<const T> share() const {
    absl::MutexLock lock(&mutex_);
    return owner_;
  }

  // Takes the memory that the next Replace() needs, so that it cannot fail.
  // Requires: callers of PrepareReplace and Replace take turns.
  void PrepareReplace() {
    absl::MutexLock lock(&mutex_);
    ReserveMore(&retired_, 1);
  }

  // Replaces the object and keeps the old one until Reclaim() finds it unused. Returns how many old
  // ones are kept.
  size_t Replace(std::shared_ptr<const T> next) {
    absl::MutexLock lock(&mutex_);
    if (owner_ != nullptr) retired_.push_back(std::move(owner_));
    owner_ = std::move(next);
    current_.store(owner_.get());
    return retired_.size();
  }

  // Lets go of replaced objects that no pin holds any more; returns how many are still in use.
  size_t Reclaim() {
    size_t in_use = 0;  // among those looked at
    bool has_released = false;
    for (;;) {
      std::shared_ptr<const T> released;  // destroyed after the lock is gone
      absl::MutexLock lock(&mutex_);
      if (has_released) --releasing_;
      while (in_use < retired_.size() && IsInUse(*retired_[in_use])) ++in_use;
      if (in_use >= retired_.size()) return retired_.size();
      std::swap(retired_[in_use], retired_.back());
      released = std::move(retired_.back());
      retired_.pop_back();
      ++releasing_;
      has_released = true;
    }
  }

  // Waits until what other threads have let go of is destroyed.
  void AwaitReleases() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](size_t* releasing) { return *releasing == 0; }, &releasing_));
  }

 private:
  bool IsInUse(const T& object) const {
    for (const Slot& slot : slots_) {
      if (slot.used.load() == &object) return true;
    }
    return false;
  }

  // Threads count up, so that the first kSlots of them each have a slot to themselves.
  static size_t ThreadIndex() {
    static std::atomic<size_t> next{0};
    static thread_local const size_t mine = next.fetch_add(1, std::memory_order_relaxed);
    return mine;
  }

  static constexpr size_t kSlots = 256;  // more threads than this at once wait for a free slot

  struct alignas(64) Slot {
    std::atomic<const T*> used{nullptr};
  };

  mutable absl::Mutex mutex_;
  std::shared_ptr<const T> owner_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<const T>> retired_ ABSL_GUARDED_BY(mutex_);
  size_t releasing_ ABSL_GUARDED_BY(mutex_) = 0;  // objects that Reclaim() is destroying
  std::atomic<const T*> current_;
  mutable Slot slots_[kSlots];
};

}  // namespace varve
