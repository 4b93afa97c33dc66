// The mailbox of one connection holds what other threads deliver to it: messages of channels, lines
// of MONITOR, and the request to close. The first message wakes the loop of the connection, which
// sends messages between replies. A message that lies in several mailboxes is shared by them.
//
// Thread-safety: Deliver(), RequestClose(), Nudge(), overflowed(), bytes() and empty() may be
// called on any thread; only the thread that executes for the connection calls the rest. Messages
// of one thread leave in the order in which it delivered them.
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
  // Nudge() follows. No limit holds for it: a commit is sent whole, whatever it holds.
  void DeliverPulled(Message message, SequenceNumber durable_after, Audience audience)
      ABSL_LOCKS_EXCLUDED(mutex_);
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

  // Moves messages behind `replies` until about `budget` bytes were moved.
  void Take(PendingReplies* replies, int protocol, size_t budget) ABSL_LOCKS_EXCLUDED(mutex_);
  // Appends all messages to `out`; returns the highest of their durable-after
  // sequences.
  SequenceNumber TakeAll(ByteBuffer* out, int protocol) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Item {
    Message message;
    SequenceNumber durable_after;
    Audience audience;
    bool is_pulled;
  };
  void Add(Item item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the bytes for which the limits hold.
  size_t LimitedBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return bytes_.load(std::memory_order_relaxed) - pulled_bytes_;
  }
  // Appends the first message, if it is for this protocol, and returns its durable-after sequence.
  SequenceNumber TakeFirst(ByteBuffer* out, int protocol) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LiveOutputLimits* limits_ = nullptr;
  std::function<void()> wake_;
  std::atomic<size_t> bytes_{0};
  std::atomic<bool> close_requested_{false};
  std::atomic<bool> overflowed_{false};  // set under the mutex
  absl::Mutex mutex_;
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  size_t pulled_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  OutputGauge gauge_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
