#include "server/execution/transaction_queue.h"

#include <string>

#include "fmt/format.h"
#include "server/clients/client_modes.h"
#include "server/execution/request_checks.h"
#include "util/base/assert.h"

namespace varve {

bool QueuedByTransaction(CommandContext& context, const Command& command, Arguments arguments) {
  ClientTransaction& transaction = context.client.modes.transaction;
  if (!transaction.open || (command.flags & kInTransactionCommand) != 0) return false;
  if ((command.flags & kNotInTransactionCommand) != 0) {
    context.reply.Error("ERR Command not allowed inside a transaction");
    transaction.refused = true;
    return true;
  }
  if ((command.flags & kContainerCommand) != 0 && !AcceptsSubcommand(context, command, arguments)) {
    transaction.refused = true;
    return true;
  }
  if (!transaction.refused) {
    const size_t bytes = QueuedRequest::BytesOf(arguments);
    if (transaction.queued_bytes + bytes > kMaxQueuedBytes) {
      context.reply.Error(
          fmt::format("ERR more than {} bytes in one transaction", kMaxQueuedBytes));
      transaction.refused = true;
      return true;
    }
    transaction.requests.emplace_back(&command, arguments);
    transaction.queued_bytes += bytes;
    VARVE_ASSERT(transaction.queued_bytes <= kMaxQueuedBytes);
    ShowTransaction(&context.client);
  }
  context.reply.Simple("QUEUED");
  context.NotExecuted();
  return true;
}

void NoteRefused(CommandContext& context, const Command* command, size_t begin) {
  VARVE_ASSERT(begin < context.reply.buffer()->size());
  ClientTransaction& transaction = context.client.modes.transaction;
  if (transaction.open) transaction.refused = true;
  if (command == nullptr || command->name != "exec") return;
  std::string_view error = context.reply.buffer()->view().substr(begin);
  error.remove_prefix(error.starts_with("-ERR ") ? 5 : 1);
  const std::string text = fmt::format("EXECABORT Transaction discarded because of: {}",
                                       // Behind it, the end of the line.
                                       error.substr(0, error.size() - 2));
  context.reply.buffer()->Truncate(begin);
  context.reply.Error(text);
  EndTransaction(&context.client);
}

}  // namespace varve
