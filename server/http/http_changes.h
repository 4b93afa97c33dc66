// The page /changes: the change feed as server-sent events, or as one document that waits for the
// next commit.
//
//   id: 118
//   event: change
//   data: {"version":118,"ms":1764000000000,"ops":[{"op":"set","namespace":"0","key":"k",...}]}
//
// Bytes that are not UTF-8 are {"base64":"..."}. What has nothing to show is null. `progress` says
// that everything up to its version was sent, `error` that nothing follows; a comment every 15 s
// keeps the connection alive. A browser that connects again names the last id, and goes on there.
//
// Thread-safety: as HttpStream; a thread of the pool makes the pieces.
// Requires: the server's state outlives it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/execution/server_state.h"
#include "server/feed/change_stream.h"
#include "server/http/http_listener.h"
#include "server/http/http_parser.h"
#include "server/http/http_stream.h"

namespace varve {

class HttpChanges final : public HttpStream, public std::enable_shared_from_this<HttpChanges> {
 public:
  static constexpr size_t kPieceBytes = 16u << 10;
  static constexpr std::chrono::seconds kBetweenSigns{15};
  static constexpr std::chrono::seconds kLongestPoll{30};

  struct Request {
    ChangeStart start;
    KeyRange range;
    bool polls = false;
  };

  // `wake` has the listener call TakePiece().
  HttpChanges(ServerState* server, UserPointer user, Request request, std::function<void()> wake);
  ~HttpChanges() override;
  HttpChanges(const HttpChanges&) = delete;
  HttpChanges& operator=(const HttpChanges&) = delete;

  std::string TakePiece(Time now) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool ended() const override { return ended_.load(); }

 private:
  // On the pool: makes the next piece.
  void Read() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether the user still has the right to the stream.
  bool MayGoOn();
  // Appends what comes next. Returns whether the stream has come to the head.
  absl::StatusOr<bool> Append(std::string* text);
  void AppendCommit(const Change& change, absl::Span<const ShownOperation> operations,
                    std::string* text);
  // Writes the document of a poll around its commits.
  std::string Document(const std::string& commits) const;

  ServerState& server_;
  const std::string user_name_;
  const Request request_;
  Mailbox mailbox_;  // through which a commit wakes the listener
  const std::function<void()> wake_;
  const Time began_ = std::chrono::steady_clock::now();
  std::atomic<bool> ended_{false};

  // The thread that makes a piece has these; `running_` says that there is one.
  SequenceNumber position_;
  VisibleChanges visible_;
  SequenceNumber told_of_ = kNoSequence;
  bool has_commit_ = false;  // the piece of a poll

  absl::Mutex mutex_;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool waits_ ABSL_GUARDED_BY(mutex_) = false;  // has come to the head
  bool last_ ABSL_GUARDED_BY(mutex_) = false;   // nothing follows the piece
  uint64_t word_ ABSL_GUARDED_BY(mutex_) = 0;   // of ChangeWaiters, before it looked at the head
  std::string piece_ ABSL_GUARDED_BY(mutex_);
  Time sent_at_ ABSL_GUARDED_BY(mutex_) = began_;
};

// Answers a request for /changes: a stream, or why there is none.
HttpReply ChangesReply(ServerState* server, UserPointer user, const HttpRequest& request,
                       std::function<void()> wake);

}  // namespace varve
