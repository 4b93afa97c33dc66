#include "server/scans/counted_stream.h"

#include <utility>

#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace varve {

CountedStream::CountedStream(SelectedKeys keys, const RangeCursor::Options& options, int64_t limit)
    : cursor_(std::move(keys), options) {
  if (limit >= 0) remaining_ = limit;
  if (cursor_.empty()) remaining_ = 0;
}

bool CountedStream::Prepare(CommandContext& context) {
  if (phase_ == Phase::kCollect) {
    RespWriter writer(&collected_, context.reply.protocol());
    const size_t most = has_snapshot_ ? kCollectBytes : kMostCollectBytes;
    while (remaining_ > 0 && collected_.size() < most && Find(context)) {
      Write(&writer);
      NoteListed(context);
      Pass();
      ++collected_count_;
      --remaining_;
    }
    const bool wants_more = remaining_ > 0 && !AtEnd();
    if (wants_more && (collected_.size() < most || !has_snapshot_)) return false;
    if (wants_more) rest_begins_.assign(cursor_.key());
    phase_ = Phase::kCount;
  }
  for (; rest_ < remaining_ && Find(context); ++rest_) Pass();
  if (rest_ < remaining_ && !AtEnd()) return false;
  if (!cursor_.status().ok()) return false;
  Announce(context);
  return true;
}

void CountedStream::Announce(CommandContext& context) {
  context.reply.Array(elements() * static_cast<size_t>(collected_count_ + rest_));
  context.reply.buffer()->Append(collected_.view());
  collected_ = ByteBuffer();
  remaining_ = rest_;
  if (rest_ > 0) Return(rest_begins_);
  phase_ = Phase::kSend;
}

ReplyStream::Progress CountedStream::Produce(CommandContext& context, size_t budget) {
  if (remaining_ == 0 && phase_ == Phase::kCollect && collected_count_ == 0) {
    context.reply.Array(0);
    return Progress::kDone;
  }
  const size_t full = context.reply.buffer()->size() + budget;
  has_snapshot_ = context.store.capabilities().snapshots;
  const RangeCursor::Slice slice(&cursor_, context);
  if (phase_ != Phase::kSend && !Prepare(context)) {
    const bool is_too_large = !has_snapshot_ && collected_.size() >= kMostCollectBytes;
    if (cursor_.status().ok() && !is_too_large) return Progress::kMore;
    context.Fail(is_too_large ? absl::OutOfRangeError(fmt::format(
                                    "the reply has more than {} bytes, which takes a store with "
                                    "snapshots: ask for less at a time, with LIMIT",
                                    kMostCollectBytes))
                              : cursor_.status());
    return Progress::kDone;
  }
  while (remaining_ > 0 && context.reply.buffer()->size() < full && Find(context)) {
    Write(&context.reply);
    NoteListed(context);
    Pass();
    --remaining_;
  }
  if (remaining_ == 0) return Progress::kDone;
  if (!AtEnd() && cursor_.status().ok()) return Progress::kMore;
  spdlog::error("A reply broke off after its length was sent: {}", cursor_.status().ToString());
  return Progress::kBroken;
}

}  // namespace varve
