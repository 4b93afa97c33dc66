// The table of channels and their subscribers behind SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE and PUBLISH.
// Messages are not stored: the connections that listen at that moment get them, and a crash forgets
// what was not sent yet.
//
// Thread-safe; Publish() may be called from any thread. It costs one load where nobody listens to
// anything, otherwise a reader's lock, held for no longer than the caller lets it go on. Each
// subscriber gets the messages of one publisher in the order in which they were published. After
// Unsubscribe() has returned nothing more is delivered for that subscription, so a mailbox may go
// once it has no subscriptions. No lock of the store is taken inside.
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
  // Messages are counted there; it outlives their last receiver.
  explicit PubSub(ClientMemory* memory) : memory_(memory) {}

  enum class Kind : uint8_t {
    kChannel,
    kPattern,  // of channels' names
    kShard,    // channels of SSUBSCRIBE, which have names of their own
  };
  static constexpr size_t kKinds = 3;

  // Bytes of a channel's name; a pattern has at most kMaxGlobPattern. Callers see to both. So a
  // match takes a few milliseconds at worst, and none is given up.
  static constexpr size_t kMaxChannelName = 1024;
  static_assert(kMaxChannelName * kMaxGlobPattern <= kMaxGlobSteps);

  // A message on its way to all who listen to its channel or to a pattern that matches it.
  struct Publication {
    Kind kind = Kind::kChannel;  // or kShard, for which there are no patterns
    std::string_view channel;
    std::string_view message;
    SequenceNumber durable_after = kNoSequence;  // the message leaves when that is durable
    size_t deliveries = 0;
    size_t woken = 0;  // connections that had nothing to send before

    // How far it has come.
    bool sent_to_channel = false;
    std::string next_pattern = {};  // those before it are done
    // All receivers of the name in progress up to this one have the message; it may be gone.
    Mailbox* last = nullptr;
    Mailbox::Message encoded = nullptr;  // for that name
  };

  // Somebody listens to something. Cheap.
  bool Any() const { return subscriptions_.load(std::memory_order_acquire) != 0; }

  void Subscribe(Kind kind, std::string_view name, Mailbox* mailbox) ABSL_LOCKS_EXCLUDED(mutex_);
  void Unsubscribe(Kind kind, std::string_view name, Mailbox* mailbox) ABSL_LOCKS_EXCLUDED(mutex_);

  // Delivers it, or goes on with it: there may be any number of subscribers and patterns. After
  // each, `spent` is told what it may have cost, in the units of GlobCost(), and asked whether
  // others should get their turn. False: it said so, call again. Whoever subscribes or unsubscribes
  // in between gets the message or does not, and nobody gets it twice.
  [[nodiscard]] bool Publish(Publication* publication, absl::FunctionRef<bool(size_t)> spent)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The first `count` names from `from` on that have a subscriber, in the order of bytes.
  std::vector<std::string> Names(Kind kind, std::string_view from, size_t count) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  size_t Subscribers(Kind kind, std::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // How many names have a subscriber.
  size_t Count(Kind kind) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Both in order, so that a walk can go on where it stopped.
  using Mailboxes = absl::btree_set<Mailbox*>;
  using Table = absl::btree_map<std::string, Mailboxes, std::less<>>;

  // To all of one name, or to those that are left of it.
  static bool DeliverToAll(const Mailboxes& mailboxes,
                           std::initializer_list<std::string_view> parts, ClientMemory* memory,
                           Publication* publication, absl::FunctionRef<bool(size_t)> spent);

  ClientMemory* const memory_;
  std::atomic<size_t> subscriptions_{0};
  mutable absl::Mutex mutex_;
  Table tables_[kKinds] ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
