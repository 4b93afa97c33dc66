#include "db/segment/value_read_ahead.h"

#include <algorithm>

#include "db/format/record_format.h"
#include "db/segment/segment_caches.h"

namespace varve {
namespace {

constexpr size_t kMostAhead = 32;       // values
constexpr size_t kFoundBeforeRest = 4;  // values in memory, one after the other
constexpr size_t kLeastRest = 64;       // records
constexpr size_t kMostRest = 1024;

}  // namespace

void ValueReadAhead::AskAhead(std::string_view window, uint64_t window_begin, uint64_t next) {
  if (asked_until_ < next || asked_until_ > window_begin + window.size()) {
    asked_until_ = next;
    asked_ = 0;
  } else if (asked_ > 0) {
    --asked_;
  }
  const size_t most = std::min(passed_ / 2, kMostAhead);
  while (asked_ < most && rests_ == 0 && AskForOne(window, window_begin)) {
  }
}

bool ValueReadAhead::AskForOne(std::string_view window, uint64_t window_begin) {
  if (asked_until_ >= window_begin + window.size()) return false;
  RecordView record;
  uint32_t shared = 0;
  const size_t size = DecodeRecord(window.substr(asked_until_ - window_begin), seed_,
                                   ChecksumMode::kTrusted, &record, &shared);
  asked_until_ += size;
  ValueHandle handle;
  if (size != 0 && IsSeparated(record) && DecodeValueHandle(record.value, &handle)) {
    ++asked_;
    NoteWhereItIs(AskFor(handle));
  }
  return size != 0;
}

bool ValueReadAhead::AskFor(const ValueHandle& handle) const {
  if (cache_ != nullptr &&
      cache_->PrefetchEntry(handle.file_number, RecordKey(handle.offset), 0) != nullptr)
    return true;
  const auto file = std::lower_bound(
      files_->begin(), files_->end(), handle.file_number,
      [](const ValueFile* each, uint64_t wanted) { return each->number() < wanted; });
  return file != files_->end() && (*file)->number() == handle.file_number &&
         (*file)->Prefetch(handle.offset, handle.operation_size);
}

void ValueReadAhead::NoteWhereItIs(bool in_memory) {
  if (!in_memory) {
    in_memory_ = 0;
    rest_ = 0;
  } else if (++in_memory_ >= kFoundBeforeRest) {
    in_memory_ = 0;
    rest_ = std::clamp(2 * rest_, kLeastRest, kMostRest);
    rests_ = rest_;
  }
}

}  // namespace varve
