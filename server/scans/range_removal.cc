#include "server/scans/range_removal.h"

#include <memory>

#include "server/execution/key_update.h"

namespace varve {
namespace {

constexpr size_t kKeysPerSlice = 1000;

}  // namespace

void DeleteRange(CommandContext& context, const KeyRange& range) {
  if (range.empty) return context.reply.Ok();
  if (!context.server.store->capabilities().constant_time_range_delete) {
    // RefusedByStore() lets none of them into a transaction.
    return context.Stream(std::make_unique<RangeRemoval>(range.lower, range.upper));
  }
  WriteBatch& batch = ClearedBatch(context);
  batch.DeleteRange(range.lower, range.upper);
  if (context.Submit(&batch)) context.reply.Ok();
}

ReplyStream::Progress RangeRemoval::Produce(CommandContext& context, size_t) {
  ReadOptions options = NoWaitReadOptions(context.space());
  options.fill_cache = false;
  options.without_value = true;
  const std::unique_ptr<Iterator> iterator =
      context.store.NewIterator(options, lower_, upper_, /*durable_after=*/nullptr);
  WriteBatch& batch = ClearedBatch(context);
  size_t keys = 0;
  for (iterator->SeekToFirst(); iterator->Valid() && keys < kKeysPerSlice; iterator->Next()) {
    batch.Delete(iterator->key());
    if (++keys == kKeysPerSlice) lower_.assign(iterator->key()).push_back('\0');
  }
  absl::Status status = iterator->status();
  if (status.ok() && keys > 0) {
    may_have_deleted_ = true;
    const absl::StatusOr<CommitResult> deleted = context.Commit(&batch, /*independent_keys=*/true);
    status = deleted.status();
    if (deleted.ok()) {
      context.Submitted();
      context.DependOn(deleted->durable_after);
    }
  }
  if (!status.ok()) {
    context.Fail(status, may_have_deleted_ ? kOthersMayBeDeleted : "");
    return Progress::kDone;
  }
  if (keys == kKeysPerSlice) return Progress::kMore;
  context.reply.Ok();
  return Progress::kDone;
}

}  // namespace varve
