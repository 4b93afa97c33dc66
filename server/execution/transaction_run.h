// EXEC: executes queued requests as one transaction of the store. The commands' own handlers run,
// against the transaction in the place of the store (Transaction::contents); what they wrote
// becomes one record of the log, and the reply waits for it. Nothing of the reply leaves before all
// of it is there; what takes long does so in slices, like other replies.
//
// Where somebody has written what they read, all of it runs anew. After some tries, and at once
// where a request does something that can't be done twice (PUBLISH), it runs while other writers
// wait, and then in one piece. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/clients/client_transaction.h"
#include "server/execution/command_context.h"
#include "varve/transaction.h"

namespace varve {

// Bytes of the reply to one EXEC.
inline constexpr size_t kMaxExecReplyBytes = 1024u << 20;

class TransactionRun final : public ReplyStream {
 public:
  // `is_cached`: the client tracks keys and may keep what is read in a cache.
  TransactionRun(ClientTransaction transaction, bool is_cached);

  // Returns whether it was done in this slice, and all was answered. Else nothing was: the rest is
  // Produce()'s.
  [[nodiscard]] bool ExecuteWhole(CommandContext& context);
  Progress Produce(CommandContext& context, size_t budget) override;
  bool MayBeShown() const override { return executed_all_; }

 private:
  enum class Step : uint8_t { kSliceSpent, kDone, kConflict };

  // Writes replies_ and durable_after_. False: others should get their turn before it goes on.
  bool Execute(CommandContext& context);
  bool ExecuteInside(CommandContext& context);
  // False: there is nothing to execute, and that was answered.
  bool Begin(CommandContext& context, const ExclusiveWrite* exclusive);
  // The answer where others wrote what was read. An attempt that is not repeatable has done more
  // than to read and write keys.
  std::string_view LostRaceText(bool by_version) const;
  Step Advance(CommandContext& context, bool in_slices);
  // The next request, or what was left of it. False: of its reply there is more to come.
  bool ExecuteOne();
  Step Commit(CommandContext& context);
  absl::StatusOr<CommitResult> SubmitWithRoom(CommandContext& context);
  // Returns whether the keys and ranges watched are what they were; they become conditions of the
  // transaction.
  absl::StatusOr<bool> WatchedAreSame(CommandContext& context, Transaction* transaction,
                                      const WriteOptions& options);
  absl::StatusOr<bool> WatchedRangesAreSame(Transaction* transaction, const WriteOptions& options);
  bool Repeatable() const;
  void Account(CommandContext& context) const;
  // Notes, before the snapshot is taken, what a client that tracks is about to read.
  void RememberQueuedReads(CommandContext& context) const;
  // Tells those who track keys of what the attempt has written.
  void TellTrackers(CommandContext& context);
  // Returns a writer of what takes the place of all replies.
  RespWriter Answer(CommandContext& context);
  // False: there is more.
  bool Send(CommandContext& context, size_t budget);
  void ShowMemory(CommandContext& context) const;

  ClientTransaction transaction_;
  const bool is_cached_;
  const bool repeatable_;
  int tries_ = 0;
  StoreWaits::Time deadline_ = StoreWaits::Time::max();  // of all calls of the store
  struct Executed {
    uint64_t nanos;
    size_t begin;  // of its reply
    NamespaceId space;
  };
  std::vector<Executed> executed_;
  ByteBuffer replies_;  // of the last try, and then what is to be sent
  SequenceNumber durable_after_ = kNoSequence;
  bool executed_all_ = false;
  // One run of the requests.
  struct Attempt {
    Attempt(CommandContext& context, const WriteOptions& options, ByteBuffer* replies);
    // Makes as if nothing had happened, also not to the connection.
    void Undo();

    const int protocol;
    const NamespaceId space;
    const std::string space_name;
    Transaction transaction;
    const WriteOptions write;
    TrackedWrite tracked;
    bool reads_elsewhere = false;  // in another database, keys that a tracker may keep
    CommandContext inner;
    size_t next = 0;  // request
    // The reply to that request, where it takes several slices.
    std::unique_ptr<ReplyStream> stream;
    size_t begin = 0;
    uint64_t nanos = 0;
  };
  std::unique_ptr<Attempt> attempt_;
};

}  // namespace varve
