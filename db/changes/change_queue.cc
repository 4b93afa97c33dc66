#include "db/changes/change_queue.h"

#include <algorithm>
#include <utility>

#include "util/base/assert.h"
#include "util/base/coding.h"

namespace varve {
namespace {

// Ahead of the operations of a batch: first sequence, count, size, whether it begins a buffer.
constexpr size_t kHeadSize = 8 + 4 + 4 + 1;
constexpr size_t kChunkSize = size_t{64} << 10;

bool HasRoom(const std::string& bytes, size_t more) {
  return bytes.capacity() - bytes.size() >= more;
}

}  // namespace

ChangeQueue::Chunk::~Chunk() {
  for (std::unique_ptr<Chunk> after = std::move(next); after != nullptr;)
    after = std::exchange(after->next, nullptr);
}

void ChangeQueue::Reserve(size_t operations_size) {
  const size_t size = kHeadSize + operations_size;
  absl::MutexLock lock(&mutex_);
  // There is a spare chunk even if the newest one has room: the recorder may take that one before
  // Add() is called.
  if (spare_ == nullptr) spare_ = std::make_unique<Chunk>();
  if (!HasRoom(spare_->bytes, size)) spare_->bytes.reserve(std::max(size, kChunkSize));
}

bool ChangeQueue::Add(const Batch& batch) noexcept {
  const size_t size = kHeadSize + batch.operations.size();
  absl::MutexLock lock(&mutex_);
  if (newest_ == nullptr || !HasRoom(newest_->bytes, size)) {
    VARVE_ASSERT(spare_ != nullptr && HasRoom(spare_->bytes, size));
    std::unique_ptr<Chunk>& place = newest_ == nullptr ? oldest_ : newest_->next;
    place = std::move(spare_);
    newest_ = place.get();
  }
  char head[kHeadSize];
  EncodeFixed64(head, batch.first);
  EncodeFixed32(head + 8, batch.count);
  EncodeFixed32(head + 12, static_cast<uint32_t>(batch.operations.size()));
  head[16] = batch.begins_buffer ? 1 : 0;
  newest_->bytes.append(head, kHeadSize).append(batch.operations);
  const size_t before = bytes_.fetch_add(size, std::memory_order_release);
  return before < kBytesThatWake && before + size >= kBytesThatWake;
}

std::unique_ptr<ChangeQueue::Chunk> ChangeQueue::Take() {
  absl::MutexLock lock(&mutex_);
  newest_ = nullptr;
  bytes_.store(0, std::memory_order_release);
  return std::move(oldest_);
}

void ChangeQueue::ForEach(const Chunk& list, const std::function<void(const Batch&)>& visit) {
  for (const Chunk* chunk = &list; chunk != nullptr; chunk = chunk->next.get()) {
    for (std::string_view rest = chunk->bytes; !rest.empty();) {
      const size_t size = DecodeFixed32(rest.data() + 12);
      visit({.first = DecodeFixed64(rest.data()),
             .count = DecodeFixed32(rest.data() + 8),
             .begins_buffer = rest[16] != 0,
             .operations = rest.substr(kHeadSize, size)});
      rest.remove_prefix(kHeadSize + size);
    }
  }
}

}  // namespace varve
