// The client state is the state of one connection from request to request: the client's names, its
// modes, and the namespace that its commands work in.
//
// Thread-safety: a client state belongs to the thread that executes for the connection. Other
// threads may read `id`, `address` and `connected`, which never change after they see the
// connection; use `link`; and read the names while they hold link.names_mutex.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/clients/client_link.h"
#include "server/clients/client_rights.h"
#include "type/tree_key.h"
#include "varve/read_result.h"
#include "varve/types.h"

namespace varve {

struct ClientState {
  uint64_t id = 0;
  int protocol = 2;
  std::string name;
  std::string address;
  std::string library_name;
  std::string library_version;
  std::string user_name = "default";  // as which it is logged in
  std::chrono::steady_clock::time_point connected = std::chrono::steady_clock::now();
  // The server closes the connection once the replies written so far have left.
  bool close_after_reply = false;
  // The client has logged in, or connected when it did not have to.
  bool authenticated = true;
  // The requests are those of the primary that this server follows: what keeps clients from writing
  // does not concern them (CLIENT PAUSE, a follower that is read-only).
  bool is_primary_link = false;
  uint32_t failed_logins = 0;  // since the last successful one
  // The session holds the replies of this batch back for this long.
  std::chrono::milliseconds penalty{0};
  // The version of the last write that was committed for the client, and whether its mode asks for
  // a sync.
  SequenceNumber last_write = kNoSequence;
  bool last_write_syncs = false;
  ClientModes modes;
  ClientLink link;
  ClientRights rights;
  NamespaceId space = kDefaultNamespace;
  std::string space_name;  // of a named namespace; empty in a database

  void UseNamespace(NamespaceId wanted, std::string_view its_name = {}) {
    space = wanted;
    space_name.assign(its_name);
    link.space.store(wanted, std::memory_order_relaxed);
  }

  // Notes that a write was committed for the client.
  void NoteWrite(const CommitResult& committed) {
    last_write = committed.sequence;
    last_write_syncs = committed.durable_after != kNoSequence;
  }

  // Speaks that version of the protocol from now on.
  void Speak(int version) {
    protocol = version;
    link.protocol.store(version);
  }

  // Returns whether the client waits for messages that are no replies.
  bool Listens() const { return modes.monitoring || modes.Subscribed() || modes.stream != nullptr; }
  // Returns whether messages may stand between the replies.
  bool MayGetMessages() const {
    return Listens() || modes.tracking.on || link.is_target.load(std::memory_order_relaxed);
  }
  // Returns whether CLIENT REPLY asked for replies not to be sent.
  bool RepliesKept() const {
    return modes.replies == ClientModes::Replies::kOff ||
           modes.replies == ClientModes::Replies::kSkip;
  }
  // Notes that a command has been answered.
  void CountReply() {
    if (modes.replies == ClientModes::Replies::kSkip) modes.replies = ClientModes::Replies::kOn;
    if (modes.replies == ClientModes::Replies::kSkipNext)
      modes.replies = ClientModes::Replies::kSkip;
  }
  // Returns whether the executor has to check each command by itself, because some are refused or
  // their replies do not leave as they are.
  bool Restricted() const { return RestrictedByModes() || rights.NeedCheck(); }
  // Returns whether that is so whatever its user may do.
  bool RestrictedByModes() const {
    return modes.replies != ClientModes::Replies::kOn || modes.transaction.open ||
           modes.monitoring || modes.tracking.on || (protocol < 3 && modes.Subscribed()) ||
           !authenticated;
  }
};

}  // namespace varve
