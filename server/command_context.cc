#include "server/command_context.h"

namespace varve {
namespace {

constexpr size_t kKeysPerLook = 16;  // at the clock

}  // namespace

bool CommandContext::SliceSpent(size_t keys) {
  if (slice_spent_) return true;
  if (keys_to_look_ > keys) {
    keys_to_look_ -= keys;
    return false;
  }
  keys_to_look_ = kKeysPerLook;
  const auto now = std::chrono::steady_clock::now();
  if (slice_end_ == std::chrono::steady_clock::time_point()) slice_end_ = now + kSlice;
  return slice_spent_ = now >= slice_end_;
}

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
