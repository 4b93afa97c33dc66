// A mover brings what a server holds to another one, which may lie over a cluster, while clients
// write on: it copies all keys, applies what is committed meanwhile, and then follows.
//
// Copying and applying take turns, so the source keeps no more changes than those of a turn. A page
// of keys is read when all changes that are applied are older, and the changes behind them come
// again over what the page has shown; so each key ends as its last change says, and one without a
// change as it was copied. What copies many keys at once at the source (a clone, an ingest, two
// databases that are swapped) is copied anew.
//
// Thread-safety: One thread at a time uses an object.
// Invariants: The saved position and what is pending tell of nothing that the target does not have;
// what was written behind them is written again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/backoff.h"
#include "client/copies/change_reply.h"
#include "client/copies/rate_limit.h"
#include "client/move/key_window.h"
#include "client/move/move_options.h"
#include "client/move/move_source.h"
#include "client/move/move_state.h"
#include "client/move/move_target.h"
#include "client/move/page_reader.h"
#include "util/os/file_system.h"

namespace varve {

class Mover {
 public:
  using Stopped = std::function<bool()>;
  using Say = std::function<void(const std::string& line)>;

  Mover(MoveOptions options, Stopped stopped, Say say);

  // Runs until it is stopped, or until nothing is behind if that is asked for. An error is one that
  // another attempt does not mend.
  [[nodiscard]] absl::Status Run();

 private:
  using Clock = std::chrono::steady_clock;

  // Takes up the move of the state file, if there is one.
  absl::Status TakeUp();
  // Works with a connection to each side, until one is lost (an error for which MayPass()).
  absl::Status Work();
  absl::Status Begin();
  // Makes what the move is about at the target, and lists it as to be copied.
  absl::Status Prepare();
  // Copies and applies until nothing is behind, or until it is stopped (Cancelled).
  absl::Status Go(bool until_caught_up);
  absl::Status Verify();
  // Ends the move: for good, or so that it can go on.
  absl::Status Finish();
  absl::Status Stop(const absl::Status& why);

  absl::Status CopyForAWhile();
  // Takes a page of the first pending copy, and asks for the one behind it while `until` lies
  // ahead.
  absl::Status CopyPage(Clock::time_point until);
  // An error for which IsNoNamespace(): the source does not have it any more.
  absl::StatusOr<std::vector<MovedRecord>> ReadPage();
  void EndCopy();
  enum class Reached : uint8_t { kMore, kHead, kNothing };
  // Applies what the feed has, for a turn at most. kHead: there is next to nothing behind it;
  // kNothing: there was nothing.
  absl::StatusOr<Reached> ApplyChanges(std::chrono::milliseconds wait);
  absl::Status Apply(ChangeOperation* operation);
  absl::Status ApplyToSpace(const ChangeOperation& operation);
  absl::Status CopyAnew(const std::string& space);
  // Makes it at the target. FailedPrecondition: it has keys there that are not the move's.
  absl::Status EnsureSpace(const std::string& space);
  absl::Status DropSpace(const std::string& space);
  absl::Status WriteWindow();
  absl::Status Checkpoint();
  absl::Status Report(bool is_due);
  bool HasPrefix(std::string_view key) const;
  bool IsMoved(const std::string& space) const;
  void Pause(std::chrono::milliseconds pause) const;
  void SayOnce(const std::string& line);

  const MoveOptions options_;
  const Stopped stopped_;
  const Say say_;
  MoveSource source_;
  std::unique_ptr<MoveTarget> target_;
  MoveState state_;
  std::unique_ptr<FileLock> lock_;      // of the state file
  std::unique_ptr<PageReader> reader_;  // of the first pending copy
  KeyWindow window_;
  RateLimit rate_;
  Backoff backoff_;
  std::string said_;
  std::optional<SequenceNumber> goal_;  // nothing is behind once the position is there
  SequenceNumber acknowledged_ = kNoSequence;
  uint64_t bytes_ = 0;          // copied by this process
  bool was_connected_ = false;  // to both servers
  bool was_behind_ = true;
  Clock::time_point saved_;
  Clock::time_point reported_;
};

}  // namespace varve
