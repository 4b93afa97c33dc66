// The stream of CHANGES STREAM: pushes of commits, as far as the client takes them, perhaps behind
// the records of a snapshot.
//
//   ["snapshot", [key, value, ...]]      some KiB of records, in the order of keys
//   ["snapshot-end", version]            the changes that follow are those behind this version
//   ["change", version, ms, operations]
//   ["progress", version, ms]            there was nothing more to send at that instant
//   ["error", text]                      nothing follows
//
// The stream pulls: a step reads from its position what one message holds, and holds no iterator
// while the client takes nothing. When the mailbox has put a large message away meanwhile, a step
// makes its text again. A stream that has sent everything waits for the next commit
// (server/clients/change_waiters.h).
//
// Thread-safety: as PushedStream.
// Requires: the server's state outlives it, and the client whose mailbox it fills outlives each
// step.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/clients/pushed_stream.h"
#include "server/execution/command_context.h"
#include "server/feed/change_stream.h"

namespace varve {

class ChangePush final : public PushedStream {
 public:
  static constexpr size_t kMessageBytes = 16u << 10;   // of changes
  static constexpr size_t kSnapshotBytes = 32u << 10;  // of records
  static constexpr std::chrono::seconds kBetweenSigns{5};

  ChangePush(CommandContext& context, Arguments arguments, ChangeStart start,
             const ChangeRequest& request);

  bool TryBegin(ClientState* client) override;
  void Abandon() override { state_.store(State::kReady); }
  bool running() const override { return state_.load() == State::kRunning; }
  void Step() override;
  void Rest() override;
  void End() override ABSL_LOCKS_EXCLUDED(mutex_);
  bool ended() const override { return ended_.load(); }
  std::chrono::steady_clock::time_point snapshot_since() const override;

 private:
  using Time = std::chrono::steady_clock::time_point;
  enum class State : uint8_t {
    kReady,    // the next step may be made
    kWaits,    // for the next commit, or until a sign of life is due
    kRunning,  // a step is being made
  };

  enum class Outcome : uint8_t { kMore, kNothing };  // kNothing: until the next commit

  // Looks whether the client still has the right to the stream. False: it has ended.
  bool MayGoOn(ClientState* client);
  // Each reads on and writes what it finds to the message, which may be nothing.
  Outcome ReadSnapshot(ByteBuffer* message);
  Outcome ReadChanges(ByteBuffer* message);
  // Returns whether the records of the snapshot can be read on from next_key_.
  bool OpenRecords(const VisibleKeys& keys);
  // Writes the records that are shown, and returns their number.
  size_t WriteRecords(const VisibleKeys& keys, RespWriter* reply);
  void EndSnapshot(RespWriter* reply);
  // Returns whether changes can be read on from the position.
  bool OpenChanges();
  // Writes what the iterator has next. Returns whether the stream has come to the head.
  bool WriteChanges(RespWriter* reply);
  // Writes the change, or nothing of it if none of its operations is shown.
  void WriteChange(const Change& change, RespWriter* reply);
  // Makes the text of the last message again. Closes the connection if it cannot be had: the
  // retention has passed over it, or other rights hold.
  void MakeAgain();
  // Writes the changes between the last message's beginning and its end.
  absl::Status WriteAgain(RespWriter* reply);
  void WriteProgress(RespWriter* reply);
  // Sends the error; nothing follows.
  void Fail(std::string_view error) ABSL_LOCKS_EXCLUDED(mutex_);
  void Fail(const absl::Status& status) { Fail(CommandContext::ErrorText(status)); }
  void Deliver(std::string_view message, SequenceNumber durable_after,
               bool can_be_made_again = false) ABSL_LOCKS_EXCLUDED(mutex_);
  void CloseIterators();
  void LetSnapshotGo();

  ServerState& server_;
  Mailbox& mailbox_;
  const ChangeRequest request_;
  std::atomic<State> state_{State::kReady};
  std::atomic<bool> ended_{false};
  std::atomic<int64_t> snapshot_since_{0};  // ticks of the steady clock; 0: no snapshot is held
  absl::Mutex mutex_;                       // held while a message is delivered

  // The step that is being made has these; between steps the thread that has the session.
  ChangeStart start_;                        // its `since` moves on
  SequenceNumber last_began_ = kNoSequence;  // where it was before the last message
  VisibleChanges visible_;
  ChangeWriter writer_;
  std::string space_name_;
  bool in_snapshot_ = false;
  std::shared_ptr<const Snapshot> snapshot_;
  std::unique_ptr<Iterator> records_;
  std::string next_key_;  // of the snapshot
  std::unique_ptr<ChangeIterator> changes_;
  uint64_t word_ = 0;           // of ChangeWaiters, when the store was looked at
  bool told_ = false;           // nothing was sent since the last sign of life
  SequenceNumber told_of_ = 0;  // the position in it
  Time told_at_{};
};

}  // namespace varve
