// The target of a move: a server that takes keys and namespaces.
//
// Keys are written one by one, many requests ahead, so that a server over a cluster takes them
// whatever their groups are, and writes those of one region together.
//
// A request whose connection was lost may still be under way, and could take effect behind a later
// one of the same key. So a new connection writes nothing before the time is over in which that can
// be: the target's own deadline where it asks other machines.
//
// Thread-safety: One thread at a time uses an object.
// Invariants: A function that returns an error for which MayPass() may be called again with the
// same arguments, also by another process, as everything here may happen twice.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/client.h"
#include "client/move/key_window.h"
#include "client/move/move_options.h"
#include "client/move/server_identity.h"
#include "client/move/space_description.h"

namespace varve {

class MoveTarget {
 public:
  using Clock = std::chrono::steady_clock;
  using Say = std::function<void(const std::string& line)>;
  // Waits for so long, or until the move is to end.
  using Pause = std::function<void(std::chrono::milliseconds)>;

  // `follows`: another process may have written here a moment ago.
  // Requires: the options outlive the object.
  MoveTarget(const MoveOptions* options, bool follows, Say say, Pause pause);

  // Connects, unless it is connected, and waits until nothing of an earlier connection can be under
  // way. Cancelled: the move is to end.
  [[nodiscard]] absl::Status Connect(const std::function<bool()>& stopped);
  // Forgets a connection that was lost.
  void DropIfLost();
  // Returns whether a request may be under way whose answer nobody waits for.
  bool is_open() const {
    return lost_.has_value() || (client_ != nullptr && client_->pipeline().closed());
  }

  // The functions below require a connection. They take the names of the source.

  [[nodiscard]] absl::StatusOr<std::string> Identity() { return ServerIdentity(client_.get()); }
  // Makes the database or namespace unless it is there, and gives it the options of the description
  // but for quotas; nothing: the source does not have it any more. FailedPrecondition: it lacks an
  // option and none may be lacking, or its keys are grouped in another way.
  [[nodiscard]] absl::Status Ensure(const std::string& space,
                                    const std::optional<SpaceDescription>& description);
  bool Knows(const std::string& space) const { return expires_.count(space) > 0; }
  // Gives it the quotas, which would refuse what comes in another order than at the source.
  [[nodiscard]] absl::Status SetQuotas(const std::string& space,
                                       const SpaceDescription& description);
  // Returns whether it holds no keys that the move is about; a missing one does not.
  [[nodiscard]] absl::StatusOr<bool> IsEmpty(const std::string& space);

  // Requires for all: Knows() the spaces, but for Drop().
  [[nodiscard]] absl::Status Write(const KeyWindow& window);
  // Deletes [begin, end); an empty `end` is no end.
  [[nodiscard]] absl::Status DeleteRange(const std::string& space, const std::string& begin,
                                         const std::string& end);
  // Deletes all keys that the move is about.
  [[nodiscard]] absl::Status Clear(const std::string& space);
  [[nodiscard]] absl::Status Drop(const std::string& space);

  // Keys that were refused and left out.
  uint64_t refused() const { return refused_; }

 private:
  // A request whose reply is to come.
  struct Sent {
    const std::string* space;
    const std::string* key;
  };

  const std::string& NameOf(const std::string& space) const { return TargetSpace(options_, space); }
  std::string GroupingOf(const std::string& name, const SpaceDescription* description) const;
  absl::StatusOr<Reply> Call(absl::Span<const std::string_view> words);
  absl::StatusOr<Reply> Call(std::initializer_list<std::string_view> words);
  // Returns how long a request may be under way once its connection was lost.
  std::chrono::milliseconds LongestRequest();
  // Has the commands that follow work there.
  absl::Status Use(const std::string& space);
  // Returns whether the namespace was made, and did not exist.
  absl::StatusOr<bool> Create(const std::string& name, const std::string& grouping);
  absl::Status CheckGrouping(const std::string& space, const std::string& grouping);
  // Gives it the words, which are those of the options or tell whether the target takes these.
  absl::Status SetOptions(const std::string& space, const SpaceOptions& options,
                          const std::vector<std::string>& words);
  void SendRecord(const std::string& space, const MovedRecord& record);
  // Takes replies until no more than `most` are to come. The first error ends it, once all replies
  // are here.
  absl::Status TakeReplies(size_t most);
  absl::Status Take(const Sent& sent, const absl::StatusOr<Reply>& reply);

  const MoveOptions& options_;
  const Say say_;
  const Pause pause_;
  std::unique_ptr<Client> client_;
  std::string used_;  // the space in use; empty: that of a new connection
  std::deque<Sent> sent_;
  std::optional<Clock::time_point> lost_;  // when the connection before this one was lost
  std::map<std::string, bool> expires_;  // whether what is written there without an expiry gets one
  uint64_t refused_ = 0;
};

}  // namespace varve
