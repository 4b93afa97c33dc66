// The target of an archiver is where bases and changes of a server go. The archiver knows the wire
// and the target knows the files, so that the client's library stays free of the engine.
//
// Thread-safety: One thread at a time uses a target, but for CopyBase().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/client.h"
#include "varve/changes.h"

namespace varve {

class ArchiveTarget {
 public:
  struct Position {
    uint64_t history_id = 0;
    SequenceNumber version = kNoSequence;
  };

  virtual ~ArchiveTarget() = default;

  // Returns the name of the archive's feed on the server.
  virtual std::string FeedName() const = 0;
  // Returns how far the archive has come; nothing: it needs a base.
  virtual std::optional<Position> position() const = 0;
  // Returns why it needs a base.
  virtual std::string why_base() const = 0;
  // The changes behind the position can't be had, or not be replayed.
  virtual void NeedBase(std::string_view why) = 0;
  // Remembers, also for a process that comes after this one was killed, that a base is begun at
  // that instant of the server's clock, in seconds since the epoch.
  [[nodiscard]] virtual absl::Status NoteBaseBegins(uint64_t server_s) = 0;
  // Nothing was begun: the server is at another backup.
  [[nodiscard]] virtual absl::Status ForgetBaseBegun() = 0;
  // Returns what was noted of a base that was begun and not taken.
  virtual std::optional<uint64_t> base_began_s() const = 0;
  // Takes a base from the client's server, and goes on from it.
  [[nodiscard]] virtual absl::Status TakeBase(Client* client) = 0;
  // Returns whether another base is due though none is needed, at that instant of the server's
  // clock, in milliseconds since the epoch.
  virtual bool IsBaseDue(uint64_t server_ms) const = 0;
  // Copies a base from the client's server while the archive goes on. Ends with Cancelled once
  // `stopped` returns true. It may run on another thread while the functions above and below, but
  // for TakeBase() and those of copied bases, are called.
  [[nodiscard]] virtual absl::Status CopyBase(Client* client,
                                              const std::function<bool()>& stopped) = 0;
  // Returns the base that was copied; nothing: there is none, or the archive has joined it.
  virtual std::optional<Position> copied_base() const = 0;
  // Has the changes that follow stand on the copied base. Requires: there is one, of the history of
  // the position, and everything up to its version was appended.
  [[nodiscard]] virtual absl::Status JoinBase() = 0;
  // Leaves the copied base alone.
  virtual void ForgetCopiedBase() = 0;
  // Returns why the commit can't be replayed; empty: it can.
  virtual std::string WhyNotReplayed(const Change& commit) const = 0;
  // Puts the commits on disk. Requires: there is a commit, and they ascend from the position.
  [[nodiscard]] virtual absl::Status Append(absl::Span<const Change> commits) = 0;
  // Nothing came behind the position until then, in milliseconds since the epoch.
  [[nodiscard]] virtual absl::Status NoteCurrent(uint64_t current_ms) = 0;
};

}  // namespace varve
