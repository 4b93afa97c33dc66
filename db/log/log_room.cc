#include "db/log/log_room.h"

#include "util/base/assert.h"

namespace varve {

void LogRoom::Begin(uint64_t size) {
  VARVE_ASSERT(size >= kLogPageSize);
  file_size_ = size;
  cursor_ = {file_index_, kLogPageSize};
}

bool LogRoom::Fits(uint64_t unit, uint64_t next_size, bool for_deletes) const {
  const uint64_t reserve = for_deletes ? 0 : delete_reserve_;
  if (cursor_.file == file_index_) {
    // The reserve is kept in the last file there is.
    if (cursor_.offset + unit + (next_size == 0 ? reserve : 0) <= file_size_) return true;
    return kLogPageSize + unit + reserve <= next_size;
  }
  return cursor_.offset + unit + reserve <= next_size;
}

void LogRoom::Take(uint64_t unit, uint64_t next_size) {
  VARVE_ASSERT(unit % kLogPageSize == 0);
  VARVE_ASSERT(cursor_.file == file_index_ || cursor_.file == file_index_ + 1);
  if (GoesToNextFile(unit)) cursor_ = {file_index_ + 1, kLogPageSize};
  cursor_.offset += unit;
  buffered_units_ += unit;
  is_promised_ = false;
  PublishSafe(next_size);
}

void LogRoom::BringBack(uint64_t position, uint64_t next_size) {
  const uint64_t used = LogPageAlign(position);
  VARVE_ASSERT(used >= kLogPageSize && position <= file_size_);
  const Cursor bound = used + buffered_units_ <= file_size_
                           ? Cursor{file_index_, used + buffered_units_}
                           : Cursor{file_index_ + 1, kLogPageSize + buffered_units_};
  cursor_ = std::min(cursor_, bound);
  PublishSafe(next_size);
}

bool LogRoom::TakeMark(uint64_t offset, uint64_t next_size) {
  VARVE_ASSERT(offset % kLogPageSize == 0);
  // The reserve is for deletes while there is no next file.
  const uint64_t kept = next_size > 0 ? 0 : delete_reserve_;
  if (is_promised_ || cursor_ != Cursor{file_index_, offset} ||
      offset + kLogPageSize + kept > file_size_)
    return false;
  cursor_.offset += kLogPageSize;
  PublishSafe(next_size);
  return true;
}

void LogRoom::NextFile(uint64_t size) {
  VARVE_ASSERT(size >= kLogPageSize);
  ++file_index_;
  VARVE_ASSERT(cursor_.file == file_index_);
  file_size_ = size;
}

void LogRoom::SkipRest() {
  VARVE_ASSERT(buffered_units_ == 0);
  is_promised_ = false;  // to a commit that failed
  cursor_ = {file_index_ + 1, kLogPageSize};
  safe_->store(0, std::memory_order_release);  // until the next Take()
}

void LogRoom::PublishSafe(uint64_t next_size) {
  const uint64_t size = cursor_.file == file_index_ ? file_size_ : next_size;
  const uint64_t used = cursor_.offset + delete_reserve_ + kLogPageSize;
  safe_->store(size > used ? size - used : 0, std::memory_order_release);
}

}  // namespace varve
