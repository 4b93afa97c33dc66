// PubSub is the table of channels and their subscribers behind SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE
// and PUBLISH. It stores no messages: the connections that are subscribed at that moment get them,
// and a crash loses what was not sent yet.
//
// Each subscriber gets the messages of one publisher in the order in which they were published.
// After Unsubscribe() has returned, PubSub delivers nothing more for that subscription, so a
// mailbox may be destroyed once it has no subscriptions.
//
// Thread-safety: all functions may be called on any thread. Publish() costs one load while there
// are no subscriptions, otherwise a reader's lock, which it holds until it is done or `spent`
// returns true. PubSub takes no lock of the store.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "server/clients/mailbox.h"
#include "util/base/glob.h"
#include "varve/types.h"

namespace varve {

class ClientMemory;

class PubSub {
 public:
  // Requires: `memory`, which counts the messages, outlives the mailboxes that hold them.
  explicit PubSub(ClientMemory* memory) : memory_(memory) {}

  enum class Kind : uint8_t {
    kChannel,
    kPattern,  // of channels' names
    kShard,    // channels of SSUBSCRIBE, which have names of their own
  };
  static constexpr size_t kKinds = 3;

  // The most bytes of a channel's name; a pattern has at most kMaxGlobPattern. Callers check both,
  // so that a match takes a few milliseconds at worst and is never given up.
  static constexpr size_t kMaxChannelName = 1024;
  static_assert(kMaxChannelName * kMaxGlobPattern <= kMaxGlobSteps);

  // A publication is a message on its way to the subscribers of its channel and of the patterns
  // that match it.
  struct Publication {
    Kind kind = Kind::kChannel;  // or kShard, for which there are no patterns
    std::string_view channel;
    std::string_view message;
    SequenceNumber durable_after = kNoSequence;  // the message leaves when that is durable
    size_t deliveries = 0;
    size_t woken = 0;  // connections that had nothing to send before

    // How far Publish() has come.
    bool sent_to_channel = false;
    std::string next_pattern = {};  // the patterns before it are done
    // The last receiver of the current channel or pattern that has the message. Its mailbox may
    // have been destroyed.
    Mailbox* last = nullptr;
    Mailbox::Message encoded = nullptr;  // for the current channel or pattern
  };

  // Returns whether there is any subscription; costs one load.
  bool Any() const { return subscriptions_.load(std::memory_order_acquire) != 0; }

  void Subscribe(Kind kind, std::string_view name, Mailbox* mailbox) ABSL_LOCKS_EXCLUDED(mutex_);
  void Unsubscribe(Kind kind, std::string_view name, Mailbox* mailbox) ABSL_LOCKS_EXCLUDED(mutex_);

  // Delivers the message, or continues to: there may be any number of subscribers and patterns.
  // After each of them it passes the cost, in the units of GlobCost(), to `spent`, which returns
  // true when the thread should serve other clients. Then Publish() returns false and the caller
  // calls it again later. A client that subscribes or unsubscribes in between may or may not get
  // the message, and no client gets it twice.
  [[nodiscard]] bool Publish(Publication* publication, absl::FunctionRef<bool(size_t)> spent)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the first `count` names from `from` on that have a subscriber, in the order of bytes.
  std::vector<std::string> Names(Kind kind, std::string_view from, size_t count) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls `visit` for each subscription; PubSub's lock is held meanwhile.
  void ForEachSubscription(Kind kind,
                           absl::FunctionRef<void(std::string_view, const Mailbox*)> visit) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  size_t Subscribers(Kind kind, std::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns how many names have a subscriber.
  size_t Count(Kind kind) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Both are ordered, so that a walk can continue where it stopped.
  using Mailboxes = absl::btree_set<Mailbox*>;
  using Table = absl::btree_map<std::string, Mailboxes, std::less<>>;

  // Delivers the message to the mailboxes of one name behind `publication->last`.
  static bool DeliverToAll(const Mailboxes& mailboxes,
                           std::initializer_list<std::string_view> parts, ClientMemory* memory,
                           Publication* publication, absl::FunctionRef<bool(size_t)> spent);

  ClientMemory* const memory_;
  std::atomic<size_t> subscriptions_{0};
  mutable absl::Mutex mutex_;
  Table tables_[kKinds] ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
