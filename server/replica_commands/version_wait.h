// Replies that wait for a version: until this server, its disk or its followers have it, or until
// their time is over. No thread waits with them. Between MULTI and EXEC they do not wait at all.
//
// A change of what they wait for wakes them through Clients::changes.
//
// Thread-safety: one thread at a time uses a wait.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "server/execution/command_context.h"

namespace varve {

class VersionWait : public ReplyStream {
 public:
  // `timeout` 0: the wait has no end.
  explicit VersionWait(std::chrono::milliseconds timeout);
  ~VersionWait() override;

  Progress Produce(CommandContext& context, size_t budget) override;

 protected:
  // Returns whether what the reply waits for has come.
  virtual bool HasCome(CommandContext& context) = 0;
  // Writes the reply. `has_come`: what HasCome() returned last; else the time is over.
  virtual void Answer(CommandContext& context, bool has_come) = 0;

 private:
  bool MayWait(const CommandContext& context) const;
  // Has the disk's progress wake the reply from now on.
  void WatchDisk(ChangeWaiters* waiters);

  ChangeWaiters* disk_waiters_ = nullptr;  // where it is noted that the reply waits
  std::optional<std::chrono::steady_clock::time_point> until_;
};

// WAIT and WAITAOF: followers, and perhaps this server, have a version on disk.
class FollowerWait final : public VersionWait {
 public:
  struct Wanted {
    SequenceNumber version = kNoSequence;
    int64_t followers = 0;
    std::optional<bool> local;  // of WAITAOF: this server is to have it on disk; else of WAIT
    SequenceNumber durable_after = kNoSequence;  // that the reply depends on
  };

  FollowerWait(const Wanted& wanted, std::chrono::milliseconds timeout)
      : VersionWait(timeout), wanted_(wanted) {}

 private:
  bool HasCome(CommandContext& context) override;
  void Answer(CommandContext& context, bool has_come) override;

  const Wanted wanted_;
  size_t followers_ = 0;  // that have it
  bool local_ = false;
};

// READAFTER: readers of this server see a version.
class VisibleWait final : public VersionWait {
 public:
  VisibleWait(SequenceNumber version, std::chrono::milliseconds timeout)
      : VersionWait(timeout), version_(version) {}

 private:
  bool HasCome(CommandContext& context) override;
  void Answer(CommandContext& context, bool has_come) override;

  const SequenceNumber version_;
};

}  // namespace varve
