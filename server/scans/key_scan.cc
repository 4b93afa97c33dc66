#include "server/scans/key_scan.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "server/scans/key_range.h"
#include "spdlog/spdlog.h"
#include "util/base/glob.h"

namespace varve {
namespace {

bool Matches(std::string_view pattern, std::string_view key) {
  return pattern == "*" || GlobMatches(pattern, key);
}

KeyRange RangeFrom(std::string_view pattern, std::string_view begin) {
  KeyRange range = PrefixRange(GlobPrefix(pattern));
  if (begin > range.lower) range.lower.assign(begin);
  range.empty = !range.upper.empty() && range.lower >= range.upper;
  return range;
}

// The shortest key that lies behind `before` and not behind `next`, which is larger.
std::string_view ShortestBetween(std::string_view before, std::string_view next) {
  const size_t shorter = std::min(before.size(), next.size());
  const auto differs =
      std::mismatch(before.begin(), before.begin() + static_cast<ptrdiff_t>(shorter), next.begin());
  return next.substr(0, static_cast<size_t>(differs.second - next.begin()) + 1);
}

}  // namespace

KeysStream::KeysStream(std::string_view pattern)
    : pattern_(pattern), cursor_(RangeFrom(pattern, {}), {.keys_only = true}) {}

void KeysStream::Prepare(CommandContext& context) {
  if (phase_ == Phase::kCollect) {
    RespWriter writer(&collected_, context.reply.protocol());
    const auto room = [&] { return cursor_.Valid() && collected_.size() < kCollectBytes; };
    for (; room() && !context.SliceSpent(cursor_.cost()); cursor_.Step()) {
      if (!Matches(pattern_, cursor_.key())) continue;
      writer.Bulk(cursor_.key());
      ++collected_keys_;
    }
    if (room()) return;
    if (cursor_.Valid()) rest_begins_.assign(cursor_.key());
    phase_ = Phase::kCount;
  }
  for (; cursor_.Valid() && !context.SliceSpent(cursor_.cost()); cursor_.Step())
    rest_ += Matches(pattern_, cursor_.key()) ? 1 : 0;
  if (cursor_.Valid() || !cursor_.status().ok()) return;
  context.reply.Array(collected_keys_ + rest_);
  context.reply.buffer()->Append(collected_.view());
  collected_ = ByteBuffer();
  if (rest_ > 0) cursor_.Return(rest_begins_);
  phase_ = Phase::kSend;
}

ReplyStream::Progress KeysStream::Produce(CommandContext& context, size_t budget) {
  const size_t full = context.reply.buffer()->size() + budget;
  const RangeCursor::Slice slice(&cursor_, context);
  if (phase_ != Phase::kSend) Prepare(context);
  if (phase_ != Phase::kSend) {
    if (const absl::Status status = cursor_.status(); !status.ok()) {
      context.Fail(status);
      return Progress::kDone;
    }
    return Progress::kMore;
  }
  while (rest_ > 0 && context.reply.buffer()->size() < full &&
         !context.SliceSpent(cursor_.cost())) {
    if (!cursor_.Valid()) {
      spdlog::error("A reply to KEYS broke off after its length was sent: {}",
                    cursor_.status().ToString());
      return Progress::kBroken;
    }
    if (Matches(pattern_, cursor_.key())) {
      context.reply.Bulk(cursor_.key());
      --rest_;
    }
    cursor_.Step();
  }
  if (rest_ == 0) return Progress::kDone;
  return Progress::kMore;
}

ScanStream::ScanStream(const ScanRequest& request)
    : request_(request), cursor_(RangeFrom(request.pattern, request.begin), {.keys_only = true}) {}

ReplyStream::Progress ScanStream::Produce(CommandContext& context, size_t) {
  uint64_t next = 0;
  if (!cursor_.range().empty) {
    const RangeCursor::Slice slice(&cursor_, context);
    const auto room = [&] {
      return cursor_.Valid() && seen_keys_ < std::min(request_.count, kMaxKeys) &&
             found_.size() < kMaxBytes;
    };
    RespWriter writer(&found_, context.reply.protocol());
    for (; room() && !context.SliceSpent(cursor_.cost()); cursor_.Step()) {
      ++seen_keys_;
      last_.assign(cursor_.key());
      if (!Matches(request_.pattern, last_)) continue;
      writer.Bulk(last_);
      ++found_keys_;
    }
    if (room()) return Progress::kMore;
    if (cursor_.Valid()) {
      std::string begin(ShortestBetween(last_, cursor_.key()));
      next = context.server.scan_cursors.Add(context.client.id, std::move(begin), request_.cursor);
    } else if (const absl::Status status = cursor_.status(); !status.ok()) {
      context.Fail(status);
      return Progress::kDone;
    }
  }
  context.reply.Array(2);
  context.reply.Bulk(fmt::to_string(next));
  context.reply.Array(found_keys_);
  context.reply.buffer()->Append(found_.view());
  return Progress::kDone;
}

}  // namespace varve
