#include "server/scans/key_scan.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "server/requests/key_range.h"
#include "util/base/glob.h"

namespace varve {
namespace {

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

ScanStream::ScanStream(const ScanRequest& request)
    : request_(request), cursor_(RangeFrom(request.pattern, request.begin), {.keys_only = true}) {}

ScanStream::ScanStream(const ScanRequest& request, const CommandContext& context,
                       Arguments arguments)
    : request_(request),
      cursor_(SelectVisible(context, arguments, RangeFrom(request.pattern, request.begin)),
              {.keys_only = true}) {}

ReplyStream::Progress ScanStream::Produce(CommandContext& context, size_t) {
  uint64_t next = 0;
  if (!cursor_.empty()) {
    const RangeCursor::Slice slice(&cursor_, context);
    const auto room = [&] {
      return cursor_.Valid() && seen_keys_ < std::min(request_.count, kMaxKeys) &&
             looked_at_ < kMaxKeys && found_.size() < kMaxBytes;
    };
    RespWriter writer(&found_, context.reply.protocol());
    for (; room() && !context.SliceSpent(cursor_.cost()); cursor_.Step()) {
      ++looked_at_;
      last_.assign(cursor_.key());
      if (!cursor_.keys().Shows(last_)) continue;
      ++seen_keys_;
      if (!GlobMatches(request_.pattern, last_)) continue;
      writer.Bulk(last_);
      ++found_keys_;
    }
    if (room()) return Progress::kMore;
    if (cursor_.Valid()) {
      std::string begin(ShortestBetween(last_, cursor_.key()));
      next =
          context.server.scan_cursors.Add(context.client.id, context.client.rights.user().identity,
                                          std::move(begin), request_.cursor);
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
