#include "db/merging_iterator.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace varve {
namespace {

// A binary heap of the children that have a record, the next one to deliver on top. The heap holds each child's record by
// value, so that a step costs the winner's move and at most 2 log k comparisons over memory that lies together.
class MergingIterator final : public InternalIterator {
 public:
  explicit MergingIterator(std::vector<std::unique_ptr<InternalIterator>> children) : children_(std::move(children)) {
    heap_.reserve(children_.size());
  }

  bool Valid() const override { return !heap_.empty() && !failed_; }

  void SeekToFirst() override {
    Start(kForward);
    for (size_t i = 0; i < children_.size(); ++i) {
      children_[i]->SeekToFirst();
      Enter(i);
    }
    BuildHeap();
  }

  void SeekToLast() override {
    Start(kReverse);
    for (size_t i = 0; i < children_.size(); ++i) {
      children_[i]->SeekToLast();
      Enter(i);
    }
    BuildHeap();
  }

  void Seek(std::string_view tree_key, SequenceNumber sequence) override {
    Start(kForward);
    for (size_t i = 0; i < children_.size(); ++i) {
      children_[i]->Seek(tree_key, sequence);
      Enter(i);
    }
    BuildHeap();
  }

  void Next() override {
    if (direction_ != kForward) [[unlikely]]
      TurnAround(kForward);
    heap_.front().child->Next();
    ReplaceTop();
  }

  void Prev() override {
    if (direction_ != kReverse) [[unlikely]]
      TurnAround(kReverse);
    heap_.front().child->Prev();
    ReplaceTop();
  }

  const RecordView& record() const override { return heap_.front().record; }

  absl::Status status() const override {
    for (const std::unique_ptr<InternalIterator>& child : children_) {
      if (absl::Status status = child->status(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  enum Direction { kForward, kReverse };

  struct Entry {
    RecordView record;
    InternalIterator* child = nullptr;
    size_t index = 0;  // of the child: the order of equal records
  };

  // Whether `a` is delivered before `b` in the present direction.
  bool Before(const Entry& a, const Entry& b) const {
    int order = CompareInternal(a.record.key, a.record.sequence, b.record.key, b.record.sequence);
    if (order == 0) order = a.index < b.index ? -1 : 1;
    return direction_ == kForward ? order < 0 : order > 0;
  }

  void Start(Direction direction) {
    direction_ = direction;
    failed_ = false;
    heap_.clear();
  }

  // Takes up child `index` where it stands.
  void Enter(size_t index) {
    InternalIterator* child = children_[index].get();
    if (child->Valid()) {
      heap_.push_back({child->record(), child, index});
    } else if (!child->status().ok()) {
      failed_ = true;
    }
  }

  void BuildHeap() {
    for (size_t i = heap_.size() / 2; i-- > 0;) SiftDown(i);
  }

  // The top's child has moved: puts it where it belongs now.
  void ReplaceTop() {
    Entry& top = heap_.front();
    if (top.child->Valid()) [[likely]] {
      top.record = top.child->record();
    } else {
      if (!top.child->status().ok()) failed_ = true;
      if (heap_.size() > 1) top = heap_.back();
      heap_.pop_back();
    }
    if (heap_.size() > 1) SiftDown(0);
  }

  void SiftDown(size_t hole) {
    const size_t size = heap_.size();
    size_t child = 2 * hole + 1;
    if (child >= size) return;
    if (child + 1 < size && Before(heap_[child + 1], heap_[child])) ++child;
    if (!Before(heap_[child], heap_[hole])) return;  // stays on top: runs of keys from one child are common
    const Entry moving = heap_[hole];
    do {
      heap_[hole] = heap_[child];
      hole = child;
      child = 2 * hole + 1;
      if (child + 1 < size && Before(heap_[child + 1], heap_[child])) ++child;
    } while (child < size && Before(heap_[child], moving));
    heap_[hole] = moving;
  }

  // Stays on the current record and sets the other children to their nearest one in the new direction.
  void TurnAround(Direction direction) {
    const Entry current = heap_.front();
    const std::string key(current.record.key);
    const SequenceNumber sequence = current.record.sequence;
    Start(direction);
    for (size_t i = 0; i < children_.size(); ++i) {
      InternalIterator* child = children_[i].get();
      if (i != current.index) {
        child->Seek(key, sequence);
        // An equal record of an earlier child comes before the current one, of a later child behind it.
        const bool equal = child->Valid() && child->record().sequence == sequence && child->record().key == key;
        if (direction == kForward && equal && i < current.index) {
          child->Next();
        } else if (direction == kReverse && !(equal && i < current.index)) {
          if (child->Valid()) {
            child->Prev();
          } else if (child->status().ok()) {
            child->SeekToLast();
          }
        }
      }
      Enter(i);
    }
    // The current record lies before all others in the new direction, so it comes out on top.
    BuildHeap();
  }

  std::vector<std::unique_ptr<InternalIterator>> children_;
  absl::InlinedVector<Entry, 8> heap_;
  Direction direction_ = kForward;
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<InternalIterator> NewMergingIterator(std::vector<std::unique_ptr<InternalIterator>> children) {
  if (children.size() == 1) return std::move(children.front());
  return std::make_unique<MergingIterator>(std::move(children));
}

}  // namespace varve
