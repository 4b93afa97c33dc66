#include "server/command_context.h"

namespace varve {

bool CommandContext::Submit(WriteBatch* batch) {
  const absl::StatusOr<CommitResult> committed = store.Submit(WriteOptions(), batch);
  if (!committed.ok()) {
    Fail(committed.status());
    return false;
  }
  Submitted();
  DependOn(committed->gate);
  return true;
}

std::string CommandContext::ErrorText(const absl::Status& status) {
  // MISCONF is what clients of Redis know as "writes are refused"; DATALOSS is damage that leaves other keys readable.
  const char* code = "ERR";
  if (absl::IsResourceExhausted(status) || absl::IsUnavailable(status)) code = "MISCONF";
  if (absl::IsDataLoss(status)) code = "DATALOSS";
  std::string text(code);
  text += ' ';
  const absl::string_view message = status.message();
  text.append(message.data(), message.size());
  return text;
}

}  // namespace varve
