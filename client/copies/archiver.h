// An archiver copies what a server commits to a target, for as long as it runs: a base first, and
// then each commit within the interval. The server keeps the archive's place as a feed, so that a
// reader that is away for a while misses nothing; once the feed's bounds are exceeded, there is a
// gap, and the archiver begins again with a base.
//
// A lost connection is made again with growing pauses, until the archiver is stopped; so is a
// target that is full tried again. Further bases are copied beside the changes, on a thread of
// their own.
//
// Thread-safety: One thread at a time uses an archiver.
// Invariants: The server is told only of what is on disk, so what a killed archiver had not written
// yet comes again.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "client/backoff.h"
#include "client/client.h"
#include "client/client_options.h"
#include "client/copies/archive_target.h"
#include "client/copies/base_thread.h"
#include "client/copies/change_reply.h"
#include "util/os/clock.h"

namespace varve {

struct ArchiverOptions {
  std::chrono::milliseconds interval{1000};  // commits are on disk within it
  bool once = false;                         // ends once the target has everything
  uint64_t feed_bytes = uint64_t{1} << 30;   // that the server keeps for the archive at most
  std::chrono::milliseconds feed_age{std::chrono::hours(24 * 7)};  // and for how long
};

class Archiver {
 public:
  // Returns whether the archiver is to end; what it has read is then written first.
  using Stopped = std::function<bool()>;
  // Called with what an operator should know, a line each.
  using Say = std::function<void(const std::string& line)>;

  // Requires: the target outlives the archiver.
  Archiver(ClientOptions connection, const ArchiverOptions& options, ArchiveTarget* target,
           Stopped stopped, Say say);

  // Runs until it is stopped, or has everything if that is asked for. An error is one that another
  // attempt does not mend: of the disk, of rights, of the server's words.
  [[nodiscard]] absl::Status Run();

 private:
  // Works with one connection, until that is lost (an error for which IsLost()).
  absl::Status Work();
  absl::Status Connect();
  // Makes the feed, unless it is there and has not lost its place.
  absl::Status EnsureFeed();
  absl::Status CreateFeed(const std::string& from);
  absl::Status EnsureBase();
  // Begins to copy another base where one is due, and has the archive join it once both are there.
  absl::Status TendBase();
  absl::Status BeginBase();
  absl::Status EndBase();
  bool IsBaseUnderWay() const;
  bool HasEverything(bool nothing) const;
  // Looks whether the server has the history of the archive.
  absl::Status CheckHistory();
  // Reads what comes next. Returns true if there was nothing.
  absl::StatusOr<bool> ReadOn();
  absl::StatusOr<uint64_t> ServerMillis();
  void Take(ChangeReply reply);
  bool IsDue() const;
  // Writes what was read, and tells the server.
  absl::Status WriteOut();
  absl::StatusOr<Reply> Call(std::initializer_list<std::string_view> words);
  // Waits a little, and less if it is stopped meanwhile.
  void Pause(std::chrono::milliseconds pause) const;
  void ForgetRead();
  void SayOnce(const std::string& line);
  uint64_t NowMillis() const { return RealClock().MonotonicNanos() / 1'000'000; }

  const ClientOptions connection_;
  const ArchiverOptions options_;
  ArchiveTarget& target_;
  const Stopped stopped_;
  const Say say_;
  std::string said_;           // the last line that was said once
  std::string said_why_base_;  // why the base is needed that is being taken
  Backoff backoff_;
  Backoff full_backoff_;  // where the target is full
  std::unique_ptr<Client> client_;
  SequenceNumber cursor_ = kNoSequence;  // everything up to here was read
  std::vector<Change> read_;             // and not written yet
  size_t read_bytes_ = 0;
  uint64_t read_since_ms_ = 0;  // when the first of them came, of the monotonic clock
  uint64_t noted_ms_ = 0;       // when NoteCurrent() was called last
  uint64_t server_ms_ = 0;      // what the server's clock showed last; 0: nobody has asked
  BaseThread base_thread_;
  uint64_t next_base_ms_ = 0;  // no other base is begun before, of the monotonic clock
  std::string why_base_;       // the commit behind those that were read can't be replayed
};

}  // namespace varve
