#include "server/past/past_store.h"

namespace varve {
namespace {

absl::Status NoWrites() {
  return absl::FailedPreconditionError("what was written in the past can't be changed");
}

}  // namespace

absl::StatusOr<CommitResult> PastStore::Write(const WriteOptions& options, WriteBatch* batch) {
  return NoWrites();
}

absl::StatusOr<CommitResult> PastStore::Submit(const WriteOptions& options, WriteBatch* batch) {
  return NoWrites();
}

void PastStore::WriteAsync(const WriteOptions& options, WriteBatch* batch, WriteDone done) {
  done(NoWrites());
}

absl::StatusOr<CommitResult> PastStore::Update(const WriteOptions& options,
                                               absl::Span<const std::string_view> keys,
                                               absl::FunctionRef<absl::Status(WriteBatch*)>) {
  return NoWrites();
}

std::unique_ptr<ExclusiveWrite> PastStore::BeginExclusiveWrite() {
  return std::make_unique<ExclusiveWrite>();
}

}  // namespace varve
