#include "server/clients/mailbox.h"

#include <algorithm>
#include <utility>

#include "util/base/assert.h"

namespace varve {
namespace {

constexpr size_t kItemBytes = 64;  // that a message takes beside its text

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
      Add({std::move(message), durable_after, audience, false});
    }
  }
  if (wakes) wake_();
  return wakes;
}

void Mailbox::DeliverPulled(Message message, SequenceNumber durable_after, Audience audience) {
  VARVE_ASSERT(limits_ != nullptr && !message->empty());
  absl::MutexLock lock(&mutex_);
  if (overflowed()) return;
  pulled_bytes_ += message->size() + kItemBytes;
  Add({std::move(message), durable_after, audience, true});
}

void Mailbox::Add(Item item) {
  mutex_.AssertHeld();
  bytes_.fetch_add(item.message->size() + kItemBytes, std::memory_order_release);
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
  VARVE_ASSERT(bytes() >= item.message->size() + kItemBytes);
  bytes_.fetch_sub(item.message->size() + kItemBytes, std::memory_order_release);
  if (item.is_pulled) pulled_bytes_ -= item.message->size() + kItemBytes;
  if (protocol < 3 && item.audience == Audience::kThreeOnly) return kNoSequence;
  std::string_view text = *item.message;
  if (protocol < 3 && text.front() == '>') {
    out->Append("*");
    text.remove_prefix(1);
  }
  out->Append(text);
  return item.durable_after;
}

void Mailbox::Take(PendingReplies* replies, int protocol, size_t budget) {
  absl::MutexLock lock(&mutex_);
  const size_t full = replies->size() + budget;
  while (!items_.empty() && replies->size() < full) {
    const size_t before = replies->size();
    const SequenceNumber durable_after = TakeFirst(&replies->bytes(), protocol);
    if (replies->size() > before) replies->Mark(durable_after, 1);
  }
  if (items_.empty()) std::deque<Item>().swap(items_);
  VARVE_ASSERT(items_.empty() == empty());
}

SequenceNumber Mailbox::TakeAll(ByteBuffer* out, int protocol) {
  absl::MutexLock lock(&mutex_);
  SequenceNumber durable_after = kNoSequence;
  while (!items_.empty()) durable_after = std::max(durable_after, TakeFirst(out, protocol));
  VARVE_ASSERT(empty());
  return durable_after;
}

}  // namespace varve
