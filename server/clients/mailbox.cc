#include "server/clients/mailbox.h"

#include <algorithm>
#include <utility>

#include "util/base/assert.h"
#include "util/base/hash.h"

namespace varve {
namespace {

// A pulled message of more bytes leaves in parts of so many.
constexpr size_t kPartBytes = 32u << 10;
// Between two times that a message is put away, for each started MiB of it.
constexpr size_t kSecondsPerMegabyte = 5;

}  // namespace

void Mailbox::Open(const LiveOutputLimits* limits, std::function<void()> wake) {
  VARVE_ASSERT(limits != nullptr && limits_ == nullptr);
  VARVE_ASSERT(wake != nullptr);
  limits_ = limits;
  wake_ = std::move(wake);
}

bool Mailbox::Deliver(Message message, SequenceNumber durable_after, Audience audience) {
  VARVE_ASSERT(limits_ != nullptr);
  VARVE_ASSERT(!message->empty());
  bool wakes = false;
  {
    absl::MutexLock lock(&mutex_);
    if (overflowed()) return false;
    const size_t after = LimitedBytes() + message->size() + kItemBytes;
    wakes = items_.empty();
    VARVE_ASSERT(wakes == empty());
    if (const OutputLimits limits = limits_->Get(); limits.hard > 0 && after > limits.hard) {
      overflowed_.store(true, std::memory_order_relaxed);
      wakes = true;
    } else {
      Add({.message = std::move(message), .durable_after = durable_after, .audience = audience});
    }
  }
  if (wakes) wake_();
  return wakes;
}

void Mailbox::DeliverPulled(Message message, SequenceNumber durable_after, bool can_be_made_again) {
  VARVE_ASSERT(limits_ != nullptr && !message->empty());
  absl::MutexLock lock(&mutex_);
  if (overflowed()) return;
  Add({.message = std::move(message),
       .durable_after = durable_after,
       .audience = Audience::kThreeOnly,
       .is_pulled = true,
       .can_be_made_again = can_be_made_again});
}

bool Mailbox::LacksText() const {
  absl::MutexLock lock(&mutex_);
  return LacksTextLocked();
}

bool Mailbox::GiveText(Message message) {
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(LacksTextLocked());
  Item& first = items_.front();
  if (message->size() != first.whole || HashKey(*message) != first.hash) return false;
  Discount(first);
  first.message = std::move(message);
  Count(first);
  return true;
}

void Mailbox::PutAway(uint32_t second) {
  if (!inside_) return;
  absl::MutexLock lock(&mutex_);
  Item& first = items_.front();
  if (!first.can_be_made_again || first.message == nullptr || second < first.may_be_put_away_at)
    return;
  const size_t megabytes = 1 + (first.message->size() >> 20);
  first.may_be_put_away_at = second + static_cast<uint32_t>(kSecondsPerMegabyte * megabytes);
  first.whole = first.message->size();
  first.hash = HashKey(*first.message);
  Discount(first);
  first.message = nullptr;
  Count(first);
}

void Mailbox::Count(const Item& item) {
  mutex_.AssertHeld();
  bytes_.fetch_add(item.bytes(), std::memory_order_release);
  if (item.is_pulled) pulled_bytes_ += item.bytes();
}

void Mailbox::Discount(const Item& item) {
  mutex_.AssertHeld();
  VARVE_ASSERT(bytes() >= item.bytes());
  bytes_.fetch_sub(item.bytes(), std::memory_order_release);
  if (item.is_pulled) pulled_bytes_ -= item.bytes();
}

void Mailbox::Add(Item item) {
  mutex_.AssertHeld();
  Count(item);
  items_.push_back(std::move(item));
}

void Mailbox::RequestClose() {
  close_requested_.store(true, std::memory_order_release);
  wake_();
}

bool Mailbox::OverLimit(std::chrono::steady_clock::time_point now) {
  absl::MutexLock lock(&mutex_);
  if (overflowed()) return true;
  return gauge_.Over(LimitedBytes(), limits_->Get(), now);
}

SequenceNumber Mailbox::TakeFirst(ByteBuffer* out, int protocol) {
  mutex_.AssertHeld();
  VARVE_ASSERT(!items_.empty());
  const Item item = std::move(items_.front());
  items_.pop_front();
  Discount(item);
  if (protocol < 3 && item.audience == Audience::kThreeOnly) return kNoSequence;
  std::string_view text = *item.message;
  if (protocol < 3 && text.front() == '>') {
    out->Append("*");
    text.remove_prefix(1);
  }
  out->Append(text);
  return item.durable_after;
}

void Mailbox::TakePart(PendingReplies* replies) {
  mutex_.AssertHeld();
  Item& first = items_.front();
  const std::string_view part = std::string_view(*first.message).substr(first.taken, kPartBytes);
  first.taken += part.size();
  inside_ = first.taken < first.message->size();
  replies->bytes().Append(part);
  replies->Mark(first.durable_after, inside_ ? 0 : 1);
  if (inside_) return;
  Discount(first);
  items_.pop_front();
}

void Mailbox::Take(PendingReplies* replies, int protocol, size_t budget) {
  absl::MutexLock lock(&mutex_);
  if (inside_ && (!replies->empty() || LacksTextLocked())) return;
  const size_t full = replies->size() + budget;
  while (!items_.empty() && replies->size() < full) {
    const Item& first = items_.front();
    if (first.is_pulled && first.message->size() > kPartBytes && protocol >= 3) {
      TakePart(replies);
      if (inside_) break;
      continue;
    }
    const size_t before = replies->size();
    const SequenceNumber durable_after = TakeFirst(&replies->bytes(), protocol);
    if (replies->size() > before) replies->Mark(durable_after, 1);
  }
  if (items_.empty()) std::deque<Item>().swap(items_);
  VARVE_ASSERT(items_.empty() == empty());
}

SequenceNumber Mailbox::TakeAll(ByteBuffer* out, int protocol) {
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(!inside_);
  SequenceNumber durable_after = kNoSequence;
  while (!items_.empty()) durable_after = std::max(durable_after, TakeFirst(out, protocol));
  VARVE_ASSERT(empty());
  return durable_after;
}

}  // namespace varve
