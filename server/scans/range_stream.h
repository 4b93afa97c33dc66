// Replies to RANGE, PREFIX, KEYS and COUNT, produced in slices at one snapshot. Keys that LIMIT
// skips and keys that are counted cost a slice's time, and nothing is written for them.
//
// Thread-safety: one thread at a time uses a stream.
#pragma once

#include <cstdint>
#include <string_view>

#include "server/execution/command_context.h"
#include "server/requests/range_request.h"
#include "server/scans/counted_stream.h"
#include "server/scans/range_cursor.h"

namespace varve {

class RangeStream final : public CountedStream {
 public:
  RangeStream(SelectedKeys keys, const RangeOptions& options);

 private:
  bool Find(CommandContext& context) override;
  void Write(RespWriter* writer) const override;
  size_t elements() const override;
  void NoteListed(CommandContext& context) override;
  void Pass() override { cursor_.Step(); }
  // Returns whether the key at the cursor belongs to the reply.
  bool Matches() const;

  const bool keys_only_;
  const bool with_expiry_;
  const bool with_version_;
  const bool with_metadata_;
  const std::string_view pattern_;
  int64_t skip_;     // keys still to be skipped
  size_t used_ = 0;  // keys that count as used
};

class CountStream : public ReplyStream {
 public:
  explicit CountStream(SelectedKeys keys) : cursor_(std::move(keys), {.keys_only = true}) {}

  Progress Produce(CommandContext& context, size_t budget) override;
  void Rest() override { cursor_.Rest(); }

 private:
  RangeCursor cursor_;
  int64_t keys_ = 0;
};

}  // namespace varve
