// The source of a move: a server that runs, its namespaces, and its change feed.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/copies/change_reply.h"
#include "client/move/move_options.h"
#include "client/move/server_identity.h"
#include "client/move/space_description.h"
#include "varve/types.h"

namespace varve {

class MoveSource {
 public:
  // Requires: the options outlive the object.
  explicit MoveSource(const MoveOptions* options) : options_(*options) {}

  // Connects, unless it is connected.
  [[nodiscard]] absl::Status Connect();
  // Forgets a connection that was lost.
  void DropIfLost();

  // The functions below require a connection.

  [[nodiscard]] absl::StatusOr<std::string> Identity() { return ServerIdentity(client_.get()); }
  // Returns the databases that hold keys and the namespaces that the move is about.
  [[nodiscard]] absl::StatusOr<std::vector<std::string>> Spaces();
  // Nothing: there is none of that name.
  [[nodiscard]] absl::StatusOr<std::optional<SpaceDescription>> Describe(const std::string& space);

  // Has the server keep what is committed behind the version, unless it does so already for a place
  // of the name. kNoSequence: from now on. An error for which IsGap(): it does not have it any
  // more.
  [[nodiscard]] absl::Status EnsureFeed(const std::string& name, SequenceNumber from);
  // Everything up to the version need not be kept.
  [[nodiscard]] absl::Status AckFeed(const std::string& name, SequenceNumber version);
  [[nodiscard]] absl::Status DropFeed(const std::string& name);

  // Returns where the feed stands, without commits.
  [[nodiscard]] absl::StatusOr<ChangeReply> Now();
  // Returns commits behind the version. Waits for so long if there are none.
  [[nodiscard]] absl::StatusOr<ChangeReply> Changes(SequenceNumber since,
                                                    std::chrono::milliseconds wait);
  // Returns once everything that was written before can be delivered by the feed, whatever sync its
  // writers asked for.
  [[nodiscard]] absl::Status MakeDurable();

 private:
  absl::StatusOr<Reply> Call(std::initializer_list<std::string_view> words);

  const MoveOptions& options_;
  std::unique_ptr<Client> client_;
};

}  // namespace varve
