#include "db/segment/value_lookahead.h"

#include <algorithm>

#include "db/format/record_format.h"
#include "db/segment/segment.h"

namespace varve {
namespace {

// Of records that the disk is told of.
constexpr size_t kMostAhead = 16;
// Of records that one step decodes, where few of them are separated.
constexpr size_t kMostDecoded = 32;
// The first bytes of a value, of which the disk is told; the kernel reads ahead from there.
constexpr uint64_t kMostAskedFor = uint64_t{128} << 10;
// Finding the file among more of them costs as much as the lookahead gains from memory.
constexpr size_t kMostFilesInMemory = 64;

}  // namespace

ValueLookahead::ValueLookahead(Segment* segment, ValuesFrom from)
    : segment_(from == ValuesFrom::kNowhere ? nullptr : segment),
      cache_(from == ValuesFrom::kCache ? &segment->caches().blocks : nullptr),
      seed_(segment->number()) {}

void ValueLookahead::Begin(const RecordView& record, bool from_disk) {
  ValueHandle handle;
  if (segment_ != nullptr && DecodeValueHandle(record.value, &handle)) Ask(handle, from_disk);
}

void ValueLookahead::Advance(std::string_view window, uint64_t window_begin, uint64_t next,
                             bool from_disk) {
  if (segment_ == nullptr) return;
  depth_ = from_disk ? std::clamp<size_t>(2 * depth_, 1, kMostAhead) : cache_ != nullptr ? 2 : 1;
  if (decoded_until_ < next || decoded_until_ > window_begin + window.size()) {
    decoded_until_ = next;
    ahead_ = 0;
  } else {
    if (ahead_ > 0) --ahead_;
    if (cache_ != nullptr && !from_disk && last_.file_number != 0) Ask(last_, from_disk);
  }
  for (size_t decoded = 0; ahead_ < depth_ && decoded < kMostDecoded; ++decoded) {
    if (!DecodeOne(window, window_begin)) return;
    if (last_.file_number == 0) continue;
    ++ahead_;
    if (cache_ != nullptr && !from_disk) {
      cache_->PrefetchSlot(last_.file_number, RecordKey(last_.offset));
    } else {
      Ask(last_, from_disk);
    }
  }
}

bool ValueLookahead::DecodeOne(std::string_view window, uint64_t window_begin) {
  last_ = {};
  if (decoded_until_ >= window_begin + window.size()) return false;
  RecordView record;
  uint32_t shared = 0;
  const size_t size = DecodeRecord(window.substr(decoded_until_ - window_begin), seed_,
                                   ChecksumMode::kTrusted, &record, &shared);
  if (size == 0) return false;
  decoded_until_ += size;
  if (IsSeparated(record) && !DecodeValueHandle(record.value, &last_)) last_ = {};
  return true;
}

void ValueLookahead::Ask(const ValueHandle& handle, bool from_disk) {
  if (cache_ != nullptr &&
      cache_->PrefetchEntry(handle.file_number, RecordKey(handle.offset), 0) != nullptr)
    return;
  // What a mapping holds is asked for without a system call.
  if (!from_disk && (!segment_->caches().kernel_caches_gets ||
                     segment_->value_files().size() > kMostFilesInMemory))
    return;
  const ValueFile* const file = FileOf(handle.file_number);
  if (file != nullptr)
    file->Prefetch(handle.offset, std::min<uint64_t>(handle.operation_size, kMostAskedFor));
}

const ValueFile* ValueLookahead::FileOf(uint64_t number) {
  const std::vector<std::shared_ptr<ValueFile>>& files = segment_->value_files();
  const std::vector<ValueReference>& references = segment_->info().value_files;
  if (file_ >= files.size() || references[file_].file_number != number) {
    const auto found = std::find_if(
        references.begin(), references.end(),
        [number](const ValueReference& reference) { return reference.file_number == number; });
    if (found == references.end()) return nullptr;
    file_ = static_cast<size_t>(found - references.begin());
  }
  return files[file_].get();
}

}  // namespace varve
