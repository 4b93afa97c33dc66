#include "server/scans/range_stream.h"

#include <utility>

#include "spdlog/spdlog.h"
#include "util/base/glob.h"

namespace varve {

RangeStream::RangeStream(SelectedKeys keys, const RangeOptions& options)
    : cursor_(std::move(keys), {.reverse = options.reverse, .keys_only = options.keys_only}),
      keys_only_(options.keys_only),
      with_expiry_(options.with_expiry),
      pattern_(options.pattern),
      skip_(options.offset) {
  if (options.limit >= 0) remaining_ = options.limit;
  if (cursor_.empty() || options.offset < 0) remaining_ = 0;
}

bool RangeStream::Matches() const {
  return (pattern_ == "*" || GlobMatches(pattern_, cursor_.key())) &&
         cursor_.keys().Shows(cursor_.key());
}

void RangeStream::Write(RespWriter* writer) {
  writer->Bulk(cursor_.key());
  if (!keys_only_) writer->Bulk(cursor_.value());
  if (with_expiry_)
    writer->Integer(cursor_.expiry_ms() == 0 ? -1 : static_cast<int64_t>(cursor_.expiry_ms()));
}

void RangeStream::Prepare(CommandContext& context) {
  if (phase_ == Phase::kSkip) {
    for (; cursor_.Valid() && skip_ > 0 && !context.SliceSpent(cursor_.cost()); cursor_.Step())
      skip_ -= Matches() ? 1 : 0;
    if (cursor_.Valid() && skip_ > 0) return;
    phase_ = Phase::kCollect;
  }
  if (phase_ == Phase::kCollect) {
    const auto wanted = [&] {
      return cursor_.Valid() && remaining_ > 0 && collected_.size() < kCollectBytes;
    };
    RespWriter writer(&collected_, context.reply.protocol());
    for (; wanted() && !context.SliceSpent(cursor_.cost()); cursor_.Step()) {
      if (!Matches()) continue;
      Write(&writer);
      ++collected_keys_;
      --remaining_;
    }
    if (wanted()) return;
    if (cursor_.Valid() && remaining_ > 0) rest_begins_.assign(cursor_.key());
    phase_ = Phase::kCount;
  }
  for (; cursor_.Valid() && rest_ < remaining_ && !context.SliceSpent(cursor_.cost());
       cursor_.Step()) {
    rest_ += Matches() ? 1 : 0;
  }
  if (cursor_.Valid() && rest_ < remaining_) return;
  if (cursor_.status().ok()) Announce(context);
}

void RangeStream::Announce(CommandContext& context) {
  const size_t keys = static_cast<size_t>(collected_keys_ + rest_);
  const size_t each = 1 + (keys_only_ ? 0 : 1) + (with_expiry_ ? 1 : 0);
  context.reply.Array(each * keys);
  context.reply.buffer()->Append(collected_.view());
  collected_ = ByteBuffer();
  remaining_ = rest_;
  if (rest_ > 0) cursor_.Return(rest_begins_);
  phase_ = Phase::kSend;
}

ReplyStream::Progress RangeStream::Produce(CommandContext& context, size_t budget) {
  const size_t full = context.reply.buffer()->size() + budget;
  if (remaining_ == 0 && phase_ == Phase::kSkip) {
    context.reply.Array(0);
    return Progress::kDone;
  }
  const RangeCursor::Slice slice(&cursor_, context);
  if (phase_ != Phase::kSend) Prepare(context);
  if (phase_ != Phase::kSend) {
    if (const absl::Status status = cursor_.status(); !status.ok()) {
      context.Fail(status);
      return Progress::kDone;
    }
    return Progress::kMore;
  }
  while (remaining_ > 0 && context.reply.buffer()->size() < full &&
         !context.SliceSpent(cursor_.cost())) {
    if (!cursor_.Valid()) {
      spdlog::error("A reply broke off after its length was sent: {}", cursor_.status().ToString());
      return Progress::kBroken;
    }
    if (Matches()) {
      Write(&context.reply);
      --remaining_;
    }
    cursor_.Step();
  }
  if (remaining_ == 0) return Progress::kDone;
  return Progress::kMore;
}

ReplyStream::Progress CountStream::Produce(CommandContext& context, size_t budget) {
  if (cursor_.empty()) {
    context.reply.Integer(0);
    return Progress::kDone;
  }
  const RangeCursor::Slice slice(&cursor_, context);
  for (; cursor_.Valid() && !context.SliceSpent(cursor_.cost()); ++keys_) cursor_.Step();
  if (cursor_.Valid()) return Progress::kMore;
  if (const absl::Status status = cursor_.status(); !status.ok()) {
    context.Fail(status);
  } else {
    context.reply.Integer(keys_);
  }
  return Progress::kDone;
}

}  // namespace varve
