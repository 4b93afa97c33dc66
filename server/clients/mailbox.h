// The mailbox of one connection holds what other threads deliver to it: messages of channels, lines
// of MONITOR, messages of the connection's stream, and the request to close. The first message
// wakes the loop of the connection, which sends messages between replies. A message that lies in
// several mailboxes is shared by them.
//
// The stream (pushed_stream.h) makes each message only when the client has taken those before it:
// its messages are pulled. A large pulled message leaves in parts. Until its last part was taken,
// nothing else leaves and no request is executed. When the client takes nothing meanwhile, the
// mailbox may forget the text and keep its hash: the stream makes the text again. So thousands of
// slow readers of large commits cost a part each (32 KiB, where whole commits of 256 KiB took
// 314 KiB).
//
// Thread-safety: Deliver(), RequestClose(), Nudge(), LacksText(), overflowed(), bytes() and empty()
// may be called on any thread; DeliverPulled() and GiveText() on the thread that makes a step of
// the stream; only the thread that executes for the connection calls the rest. Messages of one
// thread leave in the order in which it delivered them.
// Invariants: beside pulled messages, a mailbox holds no more bytes than the limits allow.
// When a message would exceed them, the connection is to be closed and the mailbox takes no more
// messages.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/clients/output_gauge.h"
#include "server/clients/pending_replies.h"
#include "server/config/live_options.h"
#include "util/resp/resp_buffer.h"
#include "varve/types.h"

namespace varve {

class Mailbox {
 public:
  // A message is encoded in RESP3. If the connection speaks RESP2, a push is sent as an array.
  using Message = std::shared_ptr<const std::string>;
  // The connections that a message is for: all, or those that speak RESP3 when they take it, as it
  // has no meaning in RESP2.
  enum class Audience : uint8_t { kAll, kThreeOnly };

  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Requires: no thread delivers yet, the limits outlive the mailbox, and `wake` may be called on
  // any thread.
  void Open(const LiveOutputLimits* limits, std::function<void()> wake);

  // Adds a message that must not leave before `durable_after` is durable. Returns whether it woke
  // the connection, which will send the message.
  bool Deliver(Message message, SequenceNumber durable_after, Audience audience = Audience::kAll)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds a message that is made only once the client has taken those before it, and wakes nobody:
  // Nudge() follows. No limit holds for it: a commit is sent whole, whatever it holds. It is for
  // connections that speak RESP3. `can_be_made_again`: see PutAway().
  void DeliverPulled(Message message, SequenceNumber durable_after, bool can_be_made_again)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether the text of a pulled message was put away and is wanted.
  bool LacksText() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives the text back. Returns false if it is another one: then the connection is to be closed,
  // as the client has the beginning of the first one.
  // Requires: LacksText().
  [[nodiscard]] bool GiveText(Message message) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether a message would have exceeded the limits, so that the connection is to be
  // closed.
  bool overflowed() const { return overflowed_.load(std::memory_order_relaxed); }
  void RequestClose();
  // Has the loop of the connection look whether there is something to do.
  void Nudge() { wake_(); }

  bool empty() const { return bytes() == 0; }
  size_t bytes() const { return bytes_.load(std::memory_order_acquire); }

  bool close_requested() const { return close_requested_.load(std::memory_order_acquire); }
  // Returns whether the connection takes its messages too slowly for the limits.
  bool OverLimit(std::chrono::steady_clock::time_point now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns whether a part of a message was taken, and its end was not.
  bool inside() const { return inside_; }
  // The client takes nothing at present: forgets the text of the message that it has begun to take,
  // if it can be made again. A message is put away at most every five seconds and the more seldom
  // the larger it is, so that making it again takes little of the processor's time. `second` is the
  // present one.
  void PutAway(uint32_t second) ABSL_LOCKS_EXCLUDED(mutex_);

  // Moves messages behind `replies` until about `budget` bytes were moved. The next part of a
  // message is moved once `replies` is empty.
  void Take(PendingReplies* replies, int protocol, size_t budget) ABSL_LOCKS_EXCLUDED(mutex_);
  // Appends all messages to `out`; returns the highest of their durable-after sequences.
  // Requires: !inside().
  SequenceNumber TakeAll(ByteBuffer* out, int protocol) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Item {
    Message message;  // null: it was put away
    SequenceNumber durable_after;
    Audience audience;
    bool is_pulled = false;
    bool can_be_made_again = false;
    size_t taken = 0;  // bytes that have left
    size_t whole = 0;  // bytes and hash of what was put away
    uint64_t hash = 0;
    uint32_t may_be_put_away_at = 0;  // second

    size_t bytes() const { return kItemBytes + (message == nullptr ? 0 : message->size()); }
  };
  static constexpr size_t kItemBytes = 64;  // that a message takes beside its text
  void Add(Item item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The item is counted, or not any more.
  void Count(const Item& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Discount(const Item& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool LacksTextLocked() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !items_.empty() && items_.front().message == nullptr;
  }
  // Returns the bytes for which the limits hold.
  size_t LimitedBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return bytes_.load(std::memory_order_relaxed) - pulled_bytes_;
  }
  // Appends the first message, if it is for this protocol, and returns its durable-after sequence.
  SequenceNumber TakeFirst(ByteBuffer* out, int protocol) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Appends the next part of the first message.
  void TakePart(PendingReplies* replies) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LiveOutputLimits* limits_ = nullptr;
  std::function<void()> wake_;
  std::atomic<size_t> bytes_{0};
  std::atomic<bool> close_requested_{false};
  std::atomic<bool> overflowed_{false};  // set under the mutex
  bool inside_ = false;                  // for the thread that executes
  mutable absl::Mutex mutex_;
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  size_t pulled_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  OutputGauge gauge_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
