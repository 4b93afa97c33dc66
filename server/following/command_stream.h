// A command stream executes the commands that a Redis sends to its replicas, in order, as those of
// a client that may do everything. They run through the executor that serves clients, so that they
// are atomic, counted and told of like theirs. Commands on types that this store does not have are
// counted and named instead (server/following/stream_commands.h). What Redis has executed and this
// store refuses is counted, too, and does not end the stream, unless the store itself is the reason
// (a full disk, maxmemory): then the stores differ, and only another copy makes them the same.
//
// Thread-safety: one thread at a time uses an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/clients/client_state.h"
#include "server/clients/pending_replies.h"
#include "server/execution/batch_executor.h"
#include "server/execution/server_state.h"
#include "server/following/skipped_keys.h"
#include "server/following/stream_commands.h"
#include "server/requests/request_batch.h"
#include "util/resp/resp_buffer.h"
#include "util/resp/resp_parser.h"

namespace varve {

class CommandStream {
 public:
  // `address`: of the primary. Requires: `server` and `skipped` outlive the stream.
  CommandStream(ServerState* server, SkippedKeys* skipped, const std::string& address);
  ~CommandStream();
  CommandStream(const CommandStream&) = delete;
  CommandStream& operator=(const CommandStream&) = delete;

  // A copy has been taken: what follows begins in the first database.
  void BeginAfterCopy();
  // A connection begins whose bytes go on behind the last transaction that is complete: what was
  // sent of an open one comes again.
  void BeginConnection();

  struct Taken {
    size_t bytes = 0;  // 0: the first request is not complete
    // The bytes at their front behind which no transaction is open; 0: one is, all along.
    size_t settled = 0;
    bool wants_ack = false;  // the last request asks how far this server is
  };
  // Executes complete requests at the front of `input`, not necessarily all. What is taken may be
  // consumed. Aborted: the store refused a write. DataLoss: these are no requests.
  [[nodiscard]] absl::StatusOr<Taken> Execute(ByteBuffer* input);

  // Waits until all that was executed is as durable as the store's mode promises.
  [[nodiscard]] absl::Status WaitUntilDurable();

 private:
  // Adds the request, or what it becomes, to the batch. False: the batch ends behind it.
  bool Add(size_t first);
  void AddCommand(const StreamCommand& command, Arguments arguments, size_t first);
  void AddRequest(size_t first, size_t count);
  // Adds a request of the stream's own.
  void AddOwn(absl::Span<const std::string_view> words);
  // Adds a request that deletes the key.
  void AddDeletion(const StreamTarget& target);
  void AddReplacement(Arguments arguments, size_t first);
  void AddSetMany(Arguments arguments);
  bool Select(Arguments arguments, size_t first);
  absl::Status ExecuteBatch();
  absl::Status CheckReplies();
  // Notes that the store refused what Redis has executed, or ends the stream.
  absl::Status NoteRefusal(const RequestBatch::Request& request, std::string_view error);

  ServerState& server_;
  SkippedKeys& skipped_;
  ClientState client_;
  BatchExecutor executor_;
  PendingReplies replies_;  // to the last batch
  RespParser parser_;
  RequestBatch batch_;
  std::deque<std::string> own_text_;  // words of the batch that the primary did not send
  bool in_transaction_ = false;       // a MULTI is before what comes next
  bool wants_ack_ = false;
  struct Place {
    std::string database;  // in use, as SELECT named it
    bool beyond = false;   // the store has no such database
  };
  Place place_;
  Place place_before_;                         // at the MULTI of the transaction that is open
  std::set<std::string, std::less<>> logged_;  // kinds of refusals
};

}  // namespace varve
