// The client link is the part of a connection that other threads use. ClientModes are the modes
// that change what the connection may do.
//
// Thread-safety: the thread that executes for the connection writes the figures of ClientLink, and
// all threads read them. ClientModes belongs to that thread alone.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <set>
#include <string>

#include "absl/synchronization/mutex.h"
#include "server/clients/client_transaction.h"
#include "server/clients/mailbox.h"
#include "server/clients/pubsub.h"
#include "server/clients/pushed_stream.h"
#include "type/tree_key.h"

namespace varve {

struct ClientLink {
  Mailbox mailbox;
  // These are set before other threads see the connection, and never change.
  std::string local_address;
  int descriptor = -1;

  // The connection's thread holds it while it changes the names of the connection and its library;
  // other threads hold it while they read them.
  mutable absl::Mutex names_mutex;

  std::atomic<const char*> last_command{"NULL"};
  std::atomic<int64_t> active_at{0};  // when bytes came last, in seconds of the steady clock
  std::atomic<uint64_t> input_bytes{0};
  std::atomic<uint64_t> input_room{0};
  std::atomic<uint64_t> output_bytes{0};
  // The memory that ClientMemory counts for the connection, without the mailbox.
  std::atomic<size_t> memory{0};
  // The memory of the names that the client listens to, with their entries in tables.
  std::atomic<size_t> subscription_bytes{0};
  std::atomic<size_t> transaction_bytes{0};  // of queued requests and watched keys
  std::atomic<int> queued{-1};               // requests; -1 outside of a transaction
  std::atomic<int> protocol{2};
  std::atomic<NamespaceId> space{kDefaultNamespace};
  std::atomic<size_t> subscriptions[PubSub::kKinds] = {};
  std::atomic<bool> monitoring{false};
  std::atomic<bool> no_evict{false};

  // CLIENT TRACKING: the bits say what holds for the connection.
  static constexpr uint8_t kTracks = 1;
  static constexpr uint8_t kBroadcasts = 2;
  static constexpr uint8_t kRedirectionBroken = 4;
  std::atomic<uint8_t> tracking{0};
  std::atomic<uint64_t> redirect{0};
  std::atomic<bool> is_target{false};  // others have redirected to it
  std::atomic<bool> paused{false};     // its next request waits for the end of CLIENT PAUSE
  // It says whether a request waits for the next commit, and how CLIENT UNBLOCK has ended that.
  enum class Blocked : uint8_t { kNo, kWaits, kTimedOut, kRefused };
  std::atomic<Blocked> blocked{Blocked::kNo};
  std::atomic<bool> streams{false};  // it gets the messages of a stream

  // Returns whether CLIENT UNBLOCK has ended the wait.
  bool Unblocked() const { return blocked.load() > Blocked::kWaits; }
  bool Subscribed() const {
    return std::any_of(std::begin(subscriptions), std::end(subscriptions),
                       [](const std::atomic<size_t>& names) { return names.load() > 0; });
  }

  // Returns the memory that its buffers hold and keep ready.
  uint64_t BufferBytes() const {
    return input_bytes.load(std::memory_order_relaxed) +
           input_room.load(std::memory_order_relaxed) +
           output_bytes.load(std::memory_order_relaxed) + mailbox.bytes();
  }
};

// The choices of CLIENT TRACKING.
struct TrackingMode {
  bool on = false;
  bool broadcast = false;
  bool optin = false;
  bool optout = false;
  bool noloop = false;
  bool caching = false;   // CLIENT CACHING was given for the next request or transaction
  uint64_t redirect = 0;  // the connection that gets the messages; 0: this one
  std::set<std::string> prefixes;
  // The place and the user that KeyTracking::NotePlace() noted last.
  NamespaceId known_space = kDefaultNamespace;
  uint64_t known_user = 0;

  // Returns whether the keys that the next request reads are to be remembered.
  bool Remembers() const { return on && !broadcast && (optin ? caching : !(optout && caching)); }
};

struct ClientModes {
  enum class Replies : uint8_t {
    kOn,
    kOff,
    kSkipNext,  // the replies to the next command
    kSkip,      // the replies to this command
  };

  std::set<std::string> subscriptions[PubSub::kKinds];
  bool monitoring = false;
  Replies replies = Replies::kOn;
  bool no_touch = false;  // its reads do not count as uses of keys
  ClientTransaction transaction;
  TrackingMode tracking;
  std::shared_ptr<PushedStream> stream;  // null: there is none
  StreamTurns::Turn stream_turn;         // null: it makes no message

  bool Subscribed() const {
    return !subscriptions[0].empty() || !subscriptions[1].empty() || !subscriptions[2].empty();
  }
};

}  // namespace varve
