// Who listens to which channel: the table behind SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE and PUBLISH. Messages are not stored: whoever
// listens at that moment gets them, and a crash forgets what was not sent yet.
//
// Thread-safe; Publish() may be called from any thread. It costs one load where nobody listens to anything, otherwise a reader's
// lock. Each subscriber gets the messages of one thread in the order of its calls. After Unsubscribe() has returned nothing more is
// delivered for that subscription, so a mailbox may go once it has no subscriptions. No lock of the store is taken inside.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "server/mailbox.h"
#include "type/sequence.h"

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

  void Subscribe(Kind kind, std::string_view name, Mailbox* mailbox) ABSL_LOCKS_EXCLUDED(mutex_);
  void Unsubscribe(Kind kind, std::string_view name, Mailbox* mailbox) ABSL_LOCKS_EXCLUDED(mutex_);

  // Delivers to everybody who listens to the channel or to a pattern that matches it. The message leaves when `gate` is durable.
  // Returns the number of deliveries.
  size_t Publish(std::string_view channel, std::string_view message, SequenceNumber gate = kNoSequence)
      ABSL_LOCKS_EXCLUDED(mutex_);
  size_t PublishShard(std::string_view channel, std::string_view message) ABSL_LOCKS_EXCLUDED(mutex_);

  // Names with at least one subscriber that match the pattern (empty: all), in the order of bytes.
  std::vector<std::string> Names(Kind kind, std::string_view pattern) const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t Subscribers(Kind kind, std::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // How many names have a subscriber.
  size_t Count(Kind kind) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Mailboxes = absl::flat_hash_set<Mailbox*>;
  struct NameHash {  // Debian's abseil takes no std::string_view for a string
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  using Table = absl::flat_hash_map<std::string, Mailboxes, NameHash, std::equal_to<>>;

  ClientMemory* const memory_;
  std::atomic<size_t> subscriptions_{0};
  mutable absl::Mutex mutex_;
  Table tables_[kKinds] ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
