// EXEC: executes queued requests as one transaction of the store. The commands' own handlers run, against a store that is the
// transaction (db/transaction_store.h); what they wrote becomes one record of the log, and the reply waits for it.
//
// Where somebody has written what they read, all of it runs anew. After some tries, and at once where a request does something that
// can't be done twice (PUBLISH), it runs while other writers wait. Used by one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "db/transaction.h"
#include "server/client_transaction.h"
#include "server/command_context.h"

namespace varve {

// Bytes of the reply to one EXEC.
inline constexpr size_t kMaxExecReplyBytes = 1024u << 20;

class TransactionRun {
 public:
  // `context` is EXEC's own, where the reply goes.
  TransactionRun(CommandContext* context, ClientTransaction transaction)
      : context_(context), transaction_(std::move(transaction)) {}

  void Execute();

 private:
  enum class Outcome : uint8_t { kAnswered, kConflict };

  Outcome Try(const WriteTurn* turn);
  // Whether the keys watched are what they were; they become conditions of `transaction`.
  absl::StatusOr<bool> WatchedAreSame(Transaction* transaction, const WriteOptions& options);
  void ExecuteOne(CommandContext& inner, const QueuedRequest& request);
  bool Repeatable() const;
  void Account() const;

  CommandContext* const context_;
  const ClientTransaction transaction_;
  struct Executed {
    uint64_t nanos;
    size_t begin;  // of its reply
    NamespaceId space;
  };
  std::vector<Executed> executed_;
  ByteBuffer replies_;  // of the last try
};

}  // namespace varve
