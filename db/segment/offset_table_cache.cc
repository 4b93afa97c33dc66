#include "db/segment/offset_table_cache.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "util/base/assert.h"

namespace varve {
namespace {

// The engine opens a segment soon after the builder has finished it, so nobody will collect the
// oldest of more indexes than this.
constexpr size_t kMaxLeft = 256;

std::atomic<uint32_t> next_thread_shard{0};
constinit thread_local uint32_t thread_shard = ~uint32_t{0};

}  // namespace

size_t ResidentIndex::ThreadShard() {
  if (thread_shard == ~uint32_t{0}) [[unlikely]] {
    thread_shard = next_thread_shard.fetch_add(1, std::memory_order_relaxed) % kPinShards;
  }
  return thread_shard;
}

void ResidentIndex::WaitUntilUnpinned() const {
  for (const PinShard& shard : pins_) {
    while (shard.count.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
  }
}

bool OffsetTableCache::Insert(ResidentIndex* resident, std::shared_ptr<const SegmentIndex> index) {
  Victims victims;
  absl::MutexLock lock(&mutex_);
  if (!Fits(index->charge())) return false;
  if (resident->owner_ != nullptr) return true;
  MakeRoom(index->charge(), &victims);
  ring_.push_back(resident);  // from here on nothing needs memory
  usage_ += index->charge();
  resident->owner_ = std::move(index);
  VARVE_ASSERT(usage_ <= capacity_);
  resident->recently_used_.store(true, std::memory_order_relaxed);
  resident->page_count_hint_.store(resident->owner_->table().page_count(),
                                   std::memory_order_relaxed);
  resident->table_hint_.store(resident->owner_->table_bytes(), std::memory_order_relaxed);
  resident->current_.store(resident->owner_.get(), std::memory_order_seq_cst);
  return true;
}

void OffsetTableCache::Erase(ResidentIndex* resident) {
  std::shared_ptr<const SegmentIndex> index;  // freed after the lock
  absl::MutexLock lock(&mutex_);
  const auto found = std::find(ring_.begin(), ring_.end(), resident);
  if (found == ring_.end()) return;
  *found = ring_.back();
  ring_.pop_back();
  index = Unhook(resident);
}

std::shared_ptr<const SegmentIndex> OffsetTableCache::Unhook(ResidentIndex* resident) {
  resident->table_hint_.store(nullptr, std::memory_order_relaxed);
  resident->current_.store(nullptr, std::memory_order_seq_cst);
  resident->WaitUntilUnpinned();
  VARVE_ASSERT(resident->owner_ != nullptr && usage_ >= resident->owner_->charge());
  usage_ -= resident->owner_->charge();
  return std::exchange(resident->owner_, nullptr);
}

void OffsetTableCache::MakeRoom(size_t charge, Victims* victims) {
  while (usage_ + charge > capacity_ && !left_.empty()) DropOldestLeft(victims);
  // Each step evicts an index or clears a bit, so the loop ends; once the ring is empty, every
  // index fits that Fits() says to fit.
  while (usage_ + charge > capacity_ && !ring_.empty()) {
    if (hand_ >= ring_.size()) hand_ = 0;
    ResidentIndex* resident = ring_[hand_];
    if (resident->recently_used_.exchange(false, std::memory_order_relaxed)) {
      ++hand_;
      continue;
    }
    victims->emplace_back();
    ring_[hand_] = ring_.back();
    ring_.pop_back();
    victims->back() = Unhook(resident);
  }
}

void OffsetTableCache::Leave(std::shared_ptr<const SegmentIndex> index) {
  Victims victims;
  absl::MutexLock lock(&mutex_);
  if (!Fits(index->charge())) return;
  if (left_.size() >= kMaxLeft) DropOldestLeft(&victims);
  MakeRoom(index->charge(), &victims);
  left_.push_back(index);
  usage_ += index->charge();
  VARVE_ASSERT(usage_ <= capacity_ && left_.size() <= kMaxLeft);
}

void OffsetTableCache::DropOldestLeft(Victims* victims) {
  VARVE_ASSERT(!left_.empty() && usage_ >= left_.front()->charge());
  victims->push_back(left_.front());
  usage_ -= left_.front()->charge();
  left_.pop_front();
}

std::shared_ptr<const SegmentIndex> OffsetTableCache::Collect(uint64_t segment_number) {
  absl::MutexLock lock(&mutex_);
  const auto found = std::find_if(left_.begin(), left_.end(), [segment_number](const auto& index) {
    return index->footer().info.number == segment_number;
  });
  if (found == left_.end()) return nullptr;
  std::shared_ptr<const SegmentIndex> index = std::move(*found);
  left_.erase(found);
  VARVE_ASSERT(usage_ >= index->charge());
  usage_ -= index->charge();
  return index;
}

void OffsetTableCache::Hold(size_t charge) {
  Victims victims;
  absl::MutexLock lock(&mutex_);
  MakeRoom(charge, &victims);
  usage_ += charge;
  held_.fetch_add(charge, std::memory_order_relaxed);
}

void OffsetTableCache::Release(size_t charge) {
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(held_.load(std::memory_order_relaxed) >= charge && usage_ >= charge);
  usage_ -= charge;
  held_.fetch_sub(charge, std::memory_order_relaxed);
}

size_t OffsetTableCache::usage() const {
  absl::MutexLock lock(&mutex_);
  return usage_;
}

}  // namespace varve
