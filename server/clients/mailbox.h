// The mailbox of one connection takes what other threads leave for it: messages of channels, lines
// of MONITOR, and the request to close. The first message wakes the loop of the connection, which
// sends messages between replies. All mailboxes that a message lies in share it.
//
// Threads: Deliver(), RequestClose(), overflowed(), bytes() and empty() from any thread; the rest
// belongs to whoever executes for the connection. Messages of one thread leave in the order in
// which it delivered them.
//
// Invariant: No more bytes lie here than the limits allow; a connection that would need more is to
// be closed, and is left nothing more.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/clients/gated_replies.h"
#include "server/clients/output_gauge.h"
#include "server/config/live_options.h"
#include "util/resp/resp_buffer.h"
#include "varve/types.h"

namespace varve {

class Mailbox {
 public:
  // Encoded in RESP3; a push is sent as an array where the connection speaks RESP2.
  using Message = std::shared_ptr<const std::string>;

  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // To be called before anybody delivers. The limits outlive the mailbox; `wake` may be called by
  // any thread.
  void Open(const LiveOutputLimits* limits, std::function<void()> wake);

  // Leaves a message that must not leave before `durable_after` is durable. True: the connection
  // was woken, and will send for it.
  bool Deliver(Message message, SequenceNumber durable_after) ABSL_LOCKS_EXCLUDED(mutex_);
  // The connection is to be closed, since more was left than it may have: nothing is taken any
  // more.
  bool overflowed() const { return overflowed_.load(std::memory_order_relaxed); }
  void RequestClose();

  bool empty() const { return bytes() == 0; }
  size_t bytes() const { return bytes_.load(std::memory_order_acquire); }

  bool close_requested() const { return close_requested_.load(std::memory_order_acquire); }
  // The connection takes its messages too slowly.
  bool OverLimit(std::chrono::steady_clock::time_point now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Moves messages behind `replies` until about `budget` bytes were moved.
  void Take(GatedReplies* replies, int protocol, size_t budget) ABSL_LOCKS_EXCLUDED(mutex_);
  // Appends all messages to `out`; returns the highest of their gates.
  SequenceNumber TakeAll(ByteBuffer* out, int protocol) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Item {
    Message message;
    SequenceNumber durable_after;
  };
  // Appends the first message, and returns its gate.
  SequenceNumber TakeFirst(ByteBuffer* out, int protocol) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LiveOutputLimits* limits_ = nullptr;
  std::function<void()> wake_;
  std::atomic<size_t> bytes_{0};
  std::atomic<bool> close_requested_{false};
  std::atomic<bool> overflowed_{false};  // set under the mutex
  absl::Mutex mutex_;
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  OutputGauge gauge_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
