#include "db/transaction/transaction_iterator.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "util/base/assert.h"
#include "util/base/memory_guard.h"

namespace varve {

TransactionIterator::TransactionIterator(TransactionStore* transaction, NamespaceId space,
                                         std::string_view lower, std::string_view upper,
                                         std::unique_ptr<Iterator> below)
    : transaction_(transaction),
      space_(space),
      lower_(lower),
      upper_(upper),
      below_(std::move(below)) {
  ++transaction_->iterators_;
}

TransactionIterator::~TransactionIterator() {
  NoteSeen();
  VARVE_ASSERT(transaction_->iterators_ > 0);
  --transaction_->iterators_;
}

absl::Status TransactionIterator::status() const {
  if (!lack_of_memory_.ok()) return lack_of_memory_;
  return transaction_->status_.ok() ? below_->status() : transaction_->status_;
}

template <typename Step>
void TransactionIterator::Move(Step step) {
  lack_of_memory_ = GuardMemory("moving an iterator", [&] {
    step();
    return absl::OkStatus();
  });
  if (!status().ok()) valid_ = false;
}

void TransactionIterator::NoteSeen() {
  if (!seen_) return;
  transaction_->Note([this] { transaction_->reads_.AddRange(seen_->begin, seen_->end, space_); });
  seen_.reset();
}

void TransactionIterator::BeginSeeing(std::string begin, std::string end) {
  const OwnWrites::Space* const own = Own();
  if (own != nullptr && own->cleared) return;  // nothing of the store was seen
  seen_ = Seen{std::move(begin), std::move(end)};
}

void TransactionIterator::SeekToFirst() { Seek(lower_); }

void TransactionIterator::Seek(std::string_view key) {
  Move([&] {
    NoteSeen();
    const std::string from(std::max<std::string_view>(key, lower_));
    below_->Seek(from);
    FindForward(from, /*itself=*/true);
    BeginSeeing(from, EndSeen());
  });
}

void TransactionIterator::SeekToLast() {
  Move([&] {
    NoteSeen();
    below_->SeekToLast();
    FindBackward(upper_.empty() ? nullptr : &upper_, /*itself=*/false);
    BeginSeeing(BeginSeen(), upper_);
  });
}

void TransactionIterator::SeekForPrev(std::string_view key) {
  if (!upper_.empty() && key >= upper_) return SeekToLast();
  Move([&] {
    NoteSeen();
    const std::string from(key);
    below_->SeekForPrev(from);
    FindBackward(&from, /*itself=*/true);
    BeginSeeing(BeginSeen(), from + '\0');
  });
}

void TransactionIterator::Next() {
  VARVE_ASSERT(valid_);
  Move([&] {
    if (backward_) {
      below_->Seek(key_);
      if (below_->Valid() && below_->key() == key_) below_->Next();
    } else if (own_ == nullptr) {
      below_->Next();
    }
    const std::string from = key_;
    FindForward(from, /*itself=*/false);
    if (seen_ && !seen_->end.empty()) {
      std::string end = EndSeen();
      if (end.empty() || end > seen_->end) seen_->end = std::move(end);
    }
  });
}

void TransactionIterator::Prev() {
  VARVE_ASSERT(valid_);
  Move([&] {
    if (!backward_) {
      below_->SeekForPrev(key_);
      if (below_->Valid() && below_->key() == key_) below_->Prev();
    } else if (own_ == nullptr) {
      below_->Prev();
    }
    const std::string from = key_;
    FindBackward(&from, /*itself=*/false);
    if (seen_) seen_->begin = std::min(std::move(seen_->begin), BeginSeen());
  });
}

void TransactionIterator::Take(const std::string* own_key, const OwnWrites::Write* own,
                               bool below) {
  own_ = below ? nullptr : own;
  valid_ = below || own != nullptr;
  if (below) {
    key_.assign(below_->key());
  } else if (own != nullptr) {
    key_.assign(*own_key);
  }
}

void TransactionIterator::FindForward(std::string_view from, bool itself) {
  backward_ = false;
  const OwnWrites::Space* const own = Own();
  if (own == nullptr) return Take(nullptr, nullptr, below_->Valid());
  while (BelowValid(own)) {
    if (const std::optional<RangeSet::Range> hidden = own->hidden.Find(below_->key())) {
      if (hidden->end.empty()) {
        below_->SeekToLast();
        below_->Next();
      } else {
        below_->Seek(hidden->end);
      }
    } else if (own->keys.find(below_->key()) != own->keys.end()) {
      below_->Next();
    } else {
      break;
    }
  }
  auto write = itself ? own->keys.lower_bound(from) : own->keys.upper_bound(from);
  while (write != own->keys.end() && Hides(write->second)) ++write;
  const bool has_own = write != own->keys.end() && (upper_.empty() || write->first < upper_);
  if (!has_own) return Take(nullptr, nullptr, BelowValid(own));
  Take(&write->first, &write->second, BelowValid(own) && below_->key() < write->first);
}

void TransactionIterator::FindBackward(const std::string* from, bool itself) {
  backward_ = true;
  const OwnWrites::Space* const own = Own();
  if (own == nullptr) return Take(nullptr, nullptr, below_->Valid());
  while (BelowValid(own)) {
    if (const std::optional<RangeSet::Range> hidden = own->hidden.Find(below_->key())) {
      below_->SeekForPrev(hidden->begin);
      if (below_->Valid() && below_->key() == hidden->begin) below_->Prev();
    } else if (own->keys.find(below_->key()) != own->keys.end()) {
      below_->Prev();
    } else {
      break;
    }
  }
  auto behind = from == nullptr ? own->keys.end()
                : itself        ? own->keys.upper_bound(*from)
                                : own->keys.lower_bound(*from);
  while (behind != own->keys.begin() && Hides(std::prev(behind)->second)) --behind;
  const bool has_own = behind != own->keys.begin() && std::prev(behind)->first >= lower_;
  if (!has_own) return Take(nullptr, nullptr, BelowValid(own));
  const auto write = std::prev(behind);
  Take(&write->first, &write->second, BelowValid(own) && below_->key() > write->first);
}

}  // namespace varve
