// The request queue remembers the requests of a client until their replies are here. It is the
// protocol of a client without input and output, which the blocking and the asynchronous client
// share.
//
// The bytes of a request are kept until its reply is here, so that requests which the server can't
// have executed, or that may be executed twice, go out again on a new connection. The others are
// reported: Unknown for a write, Unavailable for a read.
//
// Thread-safety: One thread at a time uses an object.
//
// Invariants: Entries are in request order; bytes_ holds the requests of the pending entries back
// to back, of which the first sent_ bytes were handed to the kernel on the present connection.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/client_options.h"
#include "type/reply.h"
#include "util/resp/resp_buffer.h"

namespace varve {

// Takes a long array apart as it arrives, so that it is never in memory as a whole. The request's
// reply is then an array without elements. Lost in the middle it is reported, never asked for
// again.
struct ReplySink {
  std::function<void(size_t elements)> begin;    // before the first element
  std::function<bool(Reply&& element)> element;  // false: enough; the connection is given up
};

class RequestQueue {
 public:
  enum class Taken {
    kReply,    // the first request is done: its reply, or what became of it
    kNothing,  // more bytes are needed
    // The bytes that arrived make no sense, or the server refused the handshake: broken() says so.
    // The caller closes the connection.
    kBroken,
  };

  explicit RequestQueue(const ClientOptions& options)
      : options_(options),
        credentials_{options.user, options.password},
        selection_(InitialSelection(options)) {}

  // InvalidArgument ends a request without words, and those after which replies could not be told
  // apart any more: CLIENT REPLY OFF or SKIP, HELLO 2 where the options chose RESP3. An AUTH that
  // the server takes replaces the options' user and password.
  void Add(absl::Span<const std::string_view> arguments, WhenLost when_lost,
           std::unique_ptr<ReplySink> sink = nullptr);
  // Requests without a reply so far, and their bytes.
  size_t outstanding() const { return entries_.size(); }
  size_t outstanding_bytes() const { return bytes_.size(); }

  // --- One connection ----------------------------------------------------------------------------
  // Nothing has been sent or received on the new connection. The handshake (HELLO, AUTH, SELECT,
  // subscriptions, MONITOR) goes first.
  void BeginConnection();
  bool handshaken() const {
    return handshake_replies_ == 0 && handshake_sent_ == handshake_.size();
  }
  // Returns the bytes to send now. The caller tells MarkSent() how many of them were taken.
  std::string_view Unsent() const;
  void MarkSent(size_t bytes);
  // Returns the place for received bytes. The caller tells Received() how many there were.
  char* Room(size_t bytes) { return in_.Reserve(bytes); }
  void Received(size_t bytes) { in_.Commit(bytes); }
  // Reads on in what was received. Push messages go to options.on_push meanwhile.
  Taken Take(absl::StatusOr<Reply>* reply);
  const absl::Status& broken() const { return broken_; }
  // Push messages handed over so far.
  size_t pushes() const { return pushes_; }
  // Messages come unasked on this connection: there are subscriptions, or it is in MONITOR. Made
  // again on the next one.
  bool listens() const;
  void StopListening();
  // The database or namespace in use: "3", "users"; empty: database 0.
  std::string selected() const { return selection_.empty() ? std::string() : selection_.back(); }

  // The connection is gone. `again`: requests that may be are sent once more on the next
  // connection.
  void ConnectionLost(const absl::Status& why, bool again);
  // There will be no connection: whatever is still pending ends with `why`.
  void FailAll(const absl::Status& why);

 private:
  struct Credentials {
    std::string user;
    std::string password;
  };
  using Selection = std::vector<std::string>;  // the request that makes it; empty: none
  // The state that a transaction gives the connection, and that ends with it.
  enum class Bound { kNot, kByWatch, kByMulti };
  struct Entry {
    std::string command;  // upper case
    size_t size = 0;      // of its request; 0 once it is known to be lost
    bool reads = false;
    bool resend = false;
    bool sent = false;         // as a whole, on a connection that is gone
    bool begun = false;        // the sink was given a part of the reply
    size_t remaining = 0;      // elements that the sink still waits for
    size_t confirmations = 0;  // push messages that together are the reply
    std::unique_ptr<ReplySink> sink;
    std::unique_ptr<Credentials> credentials;  // of an AUTH
    Selection selection;                       // of a SELECT or NAMESPACE USE
    absl::Status outcome;                      // an error: the reply will not come
  };

  static Selection InitialSelection(const ClientOptions& options);
  void AppendHandshake(absl::Span<const std::string_view> arguments, bool has_reply);
  Taken Break(absl::Status why);
  Taken Finish(absl::StatusOr<Reply>* reply, absl::StatusOr<Reply> result);
  Taken TakeHandshakeReply(const Reply& reply);
  // Hands out elements of the front entry's array. kReply: all of them.
  Taken FeedSink(Entry* entry, absl::StatusOr<Reply>* reply);
  // True: one whole reply (or array header, with `header`) was read and consumed. False: *taken
  // says why not.
  bool Parse(Reply* reply, Taken* taken);
  bool ParseArrayHeader(size_t* elements, Taken* taken);
  static Bound Next(Bound bound, std::string_view command);
  // The request belongs to the transaction that was lost, and on another connection would be no
  // part of one.
  bool BelongsToLost(std::string_view command);
  // Notes what a reply says about the connection from now on.
  void NoteTransaction(Entry* entry, const Reply& reply);
  void NoteReply(Entry* entry, const Reply& reply);
  void HandlePush(const Reply& push);
  void RememberSubscription(const std::string& kind, const std::string& channel);
  absl::Status LostStatus(const Entry& entry, const absl::Status& why) const;

  const ClientOptions options_;
  std::deque<Entry> entries_;
  ByteBuffer bytes_;
  size_t sent_ = 0;
  ByteBuffer in_;
  size_t wanted_ = 1;  // bytes that must be here before parsing is worth a try

  ByteBuffer handshake_;
  size_t handshake_sent_ = 0;
  size_t handshake_replies_ = 0;  // still to come
  // The handshake is a PING. By TLS 1.3 a server may refuse the client's certificate after the
  // client has sent its first bytes; a request that is not sent before a reply came is not lost.
  bool probes_ = false;
  absl::Status broken_;
  size_t pushes_ = 0;
  Credentials credentials_;
  Bound bound_ = Bound::kNot;  // this connection
  // By an earlier one, and what it was bound to has not been ended or begun anew since.
  Bound lost_ = Bound::kNot;
  Selection selection_;  // made again on each new connection
  // Requests that wait for EXEC, and among them those that select, by place.
  size_t queued_ = 0;
  std::vector<std::pair<size_t, Selection>> queued_selections_;
  std::array<std::set<std::string>, 3> subscribed_;  // to channels, patterns, shard channels
  bool monitors_ = false;
};

}  // namespace varve
