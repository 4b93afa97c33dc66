// The iterator of a transaction: the store's keys at its snapshot with its own writes on top, in
// both directions. The range that it goes over becomes a condition of the commit, keys that are not
// there included.
//
// Thread-safety: one thread at a time.
// Requires: it is destroyed before its transaction ends.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "db/transaction/transaction_store.h"
#include "varve/iterator.h"

namespace varve {

class TransactionIterator final : public Iterator {
 public:
  // Requires: `below` goes over the same bounds, at the transaction's snapshot.
  TransactionIterator(TransactionStore* transaction, NamespaceId space, std::string_view lower,
                      std::string_view upper, std::unique_ptr<Iterator> below);
  ~TransactionIterator() override;

  bool Valid() const override { return valid_; }
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(std::string_view key) override;
  void SeekForPrev(std::string_view key) override;
  void Next() override;
  void Prev() override;

  std::string_view key() const override { return key_; }
  std::string_view value() const override {
    return own_ != nullptr ? std::string_view(own_->value) : below_->value();
  }
  std::string_view metadata() const override {
    return own_ != nullptr ? std::string_view(own_->metadata) : below_->metadata();
  }
  SequenceNumber version() const override {
    return own_ != nullptr ? kNoSequence : below_->version();
  }
  uint64_t expiry_ms() const override {
    return own_ != nullptr ? own_->expiry_ms : below_->expiry_ms();
  }
  SequenceNumber durable_after() const override { return below_->durable_after(); }
  absl::Status status() const override;

 private:
  bool Hides(const OwnWrites::Write& write) const {
    return write.Hidden(transaction_->snapshot_->instant_ms());
  }
  const OwnWrites::Space* Own() const { return transaction_->writes_.Find(space_); }
  bool BelowValid(const OwnWrites::Space* own) const {
    return below_->Valid() && (own == nullptr || !own->cleared);
  }
  template <typename Step>
  void Move(Step step);
  // Move to the first key from `from` on, or to the last one up to it (null: up to the end of the
  // bounds); `itself` says whether `from` counts.
  // Requires: below_ stands at the first of its keys there that may count.
  void FindForward(std::string_view from, bool itself);
  void FindBackward(const std::string* from, bool itself);
  void Take(const std::string* own_key, const OwnWrites::Write* own, bool below);

  // Return the end of the range that was seen: at the key where it stands, or at the bound.
  std::string EndSeen() const { return valid_ ? key_ + '\0' : upper_; }
  std::string BeginSeen() const { return valid_ ? key_ : lower_; }
  void BeginSeeing(std::string begin, std::string end);
  void NoteSeen();

  TransactionStore* const transaction_;
  const NamespaceId space_;
  const std::string lower_;
  const std::string upper_;  // empty: no end
  const std::unique_ptr<Iterator> below_;

  bool valid_ = false;
  // below_ stands at the last of its keys before key_ that may count, or at key_.
  bool backward_ = false;
  std::string key_;
  const OwnWrites::Write* own_ = nullptr;  // the write at key_; null: it is below's
  absl::Status lack_of_memory_;
  struct Seen {
    std::string begin;
    std::string end;  // empty: no end
  };
  std::optional<Seen> seen_;  // since the last seek, not noted yet
};

}  // namespace varve
