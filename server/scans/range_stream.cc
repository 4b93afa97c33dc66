#include "server/scans/range_stream.h"

#include <algorithm>
#include <utility>

#include "util/base/glob.h"

namespace varve {

namespace {

// So many keys of a reply count as used. A reply with all there is would take the room of other
// clients' reads, and says nothing about which keys are wanted.
constexpr size_t kMostUsed = 4096;

// Entries that the stream steps over, and the one behind them; 0: it may be any number.
uint32_t ExpectedEntries(const RangeOptions& options) {
  constexpr int64_t kMost = 10'000;
  if (options.limit < 0 || options.offset < 0 || options.pattern != "*") return 0;
  return static_cast<uint32_t>(std::min(options.limit, kMost) + std::min(options.offset, kMost) +
                               1);
}

}  // namespace

RangeStream::RangeStream(SelectedKeys keys, const RangeOptions& options)
    : CountedStream(std::move(keys),
                    {.reverse = options.reverse,
                     .keys_only = options.keys_only,
                     .expected_entries = ExpectedEntries(options),
                     .newer_than = options.newer_than},
                    options.limit),
      keys_only_(options.keys_only),
      with_expiry_(options.with_expiry),
      with_version_(options.with_version),
      with_metadata_(options.with_metadata),
      pattern_(options.pattern),
      skip_(options.offset) {
  if (options.offset < 0) ListNothing();
}

bool RangeStream::Matches() const {
  return (pattern_ == "*" || GlobMatches(pattern_, cursor_.key())) &&
         cursor_.keys().Shows(cursor_.key());
}

bool RangeStream::Find(CommandContext& context) {
  for (; cursor_.Valid() && !context.SliceSpent(cursor_.cost()); cursor_.Step()) {
    if (!Matches()) continue;
    if (skip_ == 0) return true;
    --skip_;
  }
  return false;
}

size_t RangeStream::elements() const {
  size_t each = 1;
  for (const bool is_told : {!keys_only_, with_expiry_, with_version_, with_metadata_})
    each += is_told ? 1 : 0;
  return each;
}

void RangeStream::NoteListed(CommandContext& context) {
  if (keys_only_ || used_ == kMostUsed) return;
  ++used_;
  context.NoteUse(context.space(), cursor_.key(), cursor_.version());
}

void RangeStream::Write(RespWriter* writer) const {
  writer->Bulk(cursor_.key());
  if (!keys_only_) writer->Bulk(cursor_.value());
  if (with_expiry_)
    writer->Integer(cursor_.expiry_ms() == 0 ? -1 : static_cast<int64_t>(cursor_.expiry_ms()));
  if (with_version_) {
    // What EXEC has written itself has none yet.
    const SequenceNumber version = cursor_.version();
    version == kNoSequence ? writer->Null() : writer->Integer(static_cast<int64_t>(version));
  }
  if (with_metadata_) {
    const std::string_view metadata = cursor_.metadata();
    metadata.empty() ? writer->Null() : writer->Bulk(metadata);
  }
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
