// The skip list is a sorted list with express lanes (Pugh, 1990).
//
// Nodes come from an arena, are linked in from the bottom up with release stores and never removed,
// so a reader that follows links with acquire loads always stands on a complete node. Items are
// copied into their node and should be small (a pointer). Insertions remember where the last one
// went (a finger): inserting in ascending order costs a few comparisons each, whatever the length.
//
// Requires: Item is trivially copyable. Comparator has int operator()(const Item&, const Item&)
// const; no two items of a list are equal.
// Thread-safety: one thread at a time inserts; any number of threads read without a lock.
// Invariants: on each level items ascend; a node of level n is on all levels below n.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>

#include "structure/arena.h"
#include "util/base/assert.h"

namespace varve {

template <typename Item, typename Comparator>
class SkipList {
  struct Node;

 public:
  SkipList(Arena* arena, Comparator compare)
      : compare_(compare), arena_(arena), head_(NewNode(Item{}, kMaxHeight)) {
    std::fill_n(finger_, kMaxHeight, head_);
  }
  SkipList(const SkipList&) = delete;
  SkipList& operator=(const SkipList&) = delete;

  void Insert(const Item& item);

  class Cursor {
   public:
    explicit Cursor(const SkipList* list) : list_(list) {}
    bool Valid() const { return node_ != nullptr; }
    const Item& item() const { return node_->item; }
    void Next() { node_ = node_->Next(0); }
    // Costs a search: nodes know only what follows them.
    void Prev() { Before(node_->item); }
    void SeekToFirst() { node_ = list_->head_->Next(0); }
    void SeekToLast() {
      Node* last = list_->FindLast();
      node_ = last == list_->head_ ? nullptr : last;
    }
    // Seek moves to the first item >= `target`, Before to the last item < `target`.
    void Seek(const Item& target) { list_->FindLess(target, &node_); }
    void Before(const Item& target) {
      Node* next;
      Node* node = list_->FindLess(target, &next);
      node_ = node == list_->head_ ? nullptr : node;
    }

   private:
    const SkipList* list_;
    Node* node_ = nullptr;
  };

 private:
  // A quarter of the nodes of each level reach the next: good for 4^16 items.
  static constexpr int kMaxHeight = 16;

  struct Node {
    explicit Node(const Item& value) : item(value) {}
    Node* Next(int level) const { return next[level].load(std::memory_order_acquire); }
    const Item item;
    std::atomic<Node*> next[1];  // as many as the node is high
  };

  Node* NewNode(const Item& item, int height) {
    char* memory = arena_->Allocate(sizeof(Node) + sizeof(std::atomic<Node*>) * (height - 1));
    Node* node = new (memory) Node(item);
    for (int level = 0; level < height; ++level)
      new (&node->next[level]) std::atomic<Node*>(nullptr);
    return node;
  }

  int RandomHeight() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    int height = 1;
    for (uint64_t bits = random_; height < kMaxHeight && (bits & 3) == 0; bits >>= 2) ++height;
    return height;
  }

  bool IsBefore(const Node* node, const Item& target) const {
    return node != nullptr && compare_(node->item, target) < 0;
  }

  // Returns the last node before `target`, and in `*next` the one that followed it when it was
  // compared: not before `target`, whatever has been inserted between the two since.
  Node* FindLess(const Item& target, Node** next) const {
    Node* node = head_;
    for (int level = height_.load(std::memory_order_relaxed) - 1;; --level) {
      for (*next = node->Next(level); IsBefore(*next, target); *next = node->Next(level))
        node = *next;
      if (level == 0) return node;
    }
  }

  Node* FindLast() const {
    Node* node = head_;
    for (int level = height_.load(std::memory_order_relaxed) - 1;; --level) {
      for (Node* next = node->Next(level); next != nullptr; next = node->Next(level)) node = next;
      if (level == 0) return node;
    }
  }

  void MoveFinger(const Item& item);

  const Comparator compare_;
  Arena* const arena_;
  Node* const head_;
  std::atomic<int> height_{1};
  uint64_t random_ = 0x9e3779b97f4a7c15;
  // The last node before the item inserted last, or that item, on each level.
  Node* finger_[kMaxHeight];
};

// Makes finger_[level] the last node before `item` on every level below the list's height.
template <typename Item, typename Comparator>
void SkipList<Item, Comparator>::MoveFinger(const Item& item) {
  const int height = height_.load(std::memory_order_relaxed);
  int level = 0;
  if (finger_[0] != head_ && !IsBefore(finger_[0], item)) {
    std::fill_n(finger_, kMaxHeight, head_);  // the item lies behind the finger: start over
    level = height - 1;
  } else {
    // Climb until the lane above would not carry us further.
    while (level + 1 < height && IsBefore(finger_[level + 1]->Next(level + 1), item)) ++level;
  }
  for (Node* node = finger_[level];; --level) {
    for (Node* next = node->Next(level); IsBefore(next, item); next = node->Next(level))
      node = next;
    finger_[level] = node;
    if (level == 0) return;
  }
}

template <typename Item, typename Comparator>
void SkipList<Item, Comparator>::Insert(const Item& item) {
  MoveFinger(item);
  const int height = RandomHeight();
  Node* node = NewNode(item, height);  // where memory is short, the list stays as it was
  if (height > height_.load(std::memory_order_relaxed))
    height_.store(height, std::memory_order_relaxed);
  VARVE_ASSERT(finger_[0] == head_ || compare_(finger_[0]->item, item) < 0);
  VARVE_ASSERT(finger_[0]->Next(0) == nullptr || compare_(item, finger_[0]->Next(0)->item) < 0);
  for (int level = 0; level < height; ++level) {
    node->next[level].store(finger_[level]->Next(level), std::memory_order_relaxed);
    finger_[level]->next[level].store(node, std::memory_order_release);
    finger_[level] = node;
  }
}

}  // namespace varve
