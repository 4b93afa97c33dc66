#include "db/iterators/run_iterator.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "db/version/version.h"
#include "util/base/assert.h"

namespace varve {
namespace {

class RunIterator final : public InternalIterator {
 public:
  RunIterator(absl::Span<const std::shared_ptr<Segment>> segments, CacheUse cache_use)
      : segments_(segments), open_(segments.size()), cache_use_(cache_use) {}
  RunIterator(std::vector<std::shared_ptr<Segment>> segments, CacheUse cache_use)
      : list_(std::move(segments)), segments_(list_), open_(list_.size()), cache_use_(cache_use) {}

  bool Valid() const override { return current_ != nullptr && current_->Valid(); }

  void SeekToFirst() override {
    if (!Open(0)) return;
    current_->SeekToFirst();
    SkipForward();
  }

  void SeekToLast() override {
    if (segments_.empty() || !Open(segments_.size() - 1)) return;
    current_->SeekToLast();
    SkipBackward();
  }

  void PrepareSeek(std::string_view tree_key, SeekStep step) override {
    const bool finds = step == SeekStep::kFindPlace;
    if (finds ? !Open(SegmentOf(tree_key)) : current_ == nullptr) return;
    if (finds && goes_back_) current_->ExpectWayBack();
    current_->PrepareSeek(tree_key, step);
  }

  void ExpectWayBack() override { goes_back_ = true; }

  void Seek(std::string_view tree_key, SequenceNumber sequence) override {
    const bool goes_back = std::exchange(goes_back_, false);
    if (!Open(SegmentOf(tree_key))) return;
    if (goes_back) current_->ExpectWayBack();
    current_->Seek(tree_key, sequence);
    SkipForward();
  }

  void Next() override {
    VARVE_ASSERT(Valid());
    current_->Next();
    if (!current_->Valid()) [[unlikely]]
      SkipForward();
  }

  // No other segment of the run has the key.
  const RecordView* NextKey() override {
    VARVE_ASSERT(Valid());
    if (const RecordView* const record = current_->NextKey()) [[likely]]
      return record;
    SkipForward();
    return Valid() ? &record() : nullptr;
  }

  void Prev() override {
    VARVE_ASSERT(Valid());
    current_->Prev();
    if (!current_->Valid()) [[unlikely]]
      SkipBackward();
  }

  const RecordView& record() const override { return current_->record(); }

  absl::Status status() const override {
    return current_ == nullptr ? absl::OkStatus() : current_->status();
  }

 private:
  // Returns the index of the first segment that reaches to `tree_key`.
  size_t SegmentOf(std::string_view tree_key) const {
    const auto first = std::partition_point(segments_.begin(), segments_.end(),
                                            [tree_key](const std::shared_ptr<Segment>& segment) {
                                              return !ReachesTo(segment->info(), tree_key);
                                            });
    return static_cast<size_t>(first - segments_.begin());
  }

  // Opens the cursor of a segment, or uses it again if it is open already. Returns false behind the
  // last segment; then the iterator is not Valid().
  bool Open(size_t index) {
    if (index >= segments_.size()) {
      current_ = nullptr;
      return false;
    }
    if (open_ != index || iterator_ == nullptr) {
      iterator_ = segments_[index]->NewIterator(cache_use_);
      open_ = index;
    }
    current_ = iterator_.get();
    return true;
  }

  // Moves past the ends of segments, and past segments that hold nothing but range tombstones,
  // unless an error stops it.
  void SkipForward() {
    while (!current_->Valid() && current_->status().ok()) {
      if (!Open(open_ + 1)) return;
      current_->SeekToFirst();
    }
  }

  void SkipBackward() {
    while (!current_->Valid() && current_->status().ok()) {
      if (open_ == 0) {
        current_ = nullptr;
        return;
      }
      Open(open_ - 1);
      current_->SeekToLast();
    }
  }

  const std::vector<std::shared_ptr<Segment>> list_;  // empty: the segments lie elsewhere
  const absl::Span<const std::shared_ptr<Segment>> segments_;
  std::unique_ptr<InternalIterator> iterator_;  // of segments_[open_]
  InternalIterator* current_ = nullptr;         // iterator_, or null where the run has ended
  size_t open_;
  bool goes_back_ = false;  // the caller will move back from where the next Seek leads
  const CacheUse cache_use_;
};

}  // namespace

std::unique_ptr<InternalIterator> NewRunIterator(
    absl::Span<const std::shared_ptr<Segment>> segments, CacheUse cache_use) {
  if (segments.size() == 1) return segments.front()->NewIterator(cache_use);
  return std::make_unique<RunIterator>(segments, cache_use);
}

std::unique_ptr<InternalIterator> NewRunIterator(std::vector<std::shared_ptr<Segment>> segments,
                                                 CacheUse cache_use) {
  return std::make_unique<RunIterator>(std::move(segments), cache_use);
}

}  // namespace varve
