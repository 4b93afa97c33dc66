// Replies to RANGE, PREFIX, KEYS and COUNT, produced in slices at one snapshot.
//
// RESP announces an array's length before its elements. So a RANGE collects up to kCollectBytes; if
// the range ends within them, the length is known. Otherwise it counts the rest of the keys at the
// same snapshot, announces the sum, sends what it collected and goes on reading from there. Memory
// stays bounded whatever the range holds. Skipping (LIMIT) and counting end their slice with
// nothing written when its time is spent, so that they keep no thread from others.
//
// Thread-safety: one thread at a time uses a stream.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/execution/command_context.h"
#include "server/requests/key_range.h"
#include "server/scans/range_cursor.h"

namespace varve {

struct RangeOptions {
  bool reverse = false;
  bool keys_only = false;
  bool with_expiry = false;        // with the instant at which each expires
  int64_t offset = 0;              // negative: nothing
  int64_t limit = -1;              // negative: all
  std::string_view pattern = "*";  // keys match it; stays in place until the batch is done
};

class RangeStream : public ReplyStream {
 public:
  static constexpr size_t kCollectBytes = 256u << 10;

  RangeStream(SelectedKeys keys, const RangeOptions& options);

  Progress Produce(CommandContext& context, size_t budget) override;
  void Rest() override { cursor_.Rest(); }

 private:
  enum class Phase : uint8_t { kSkip, kCollect, kCount, kSend };

  // Goes on through the phases before kSend, whose end writes the array's header and what was
  // collected. Stays in one of them when the slice is spent or the range can't be read.
  void Prepare(CommandContext& context);
  void Announce(CommandContext& context);
  // Returns whether the key at the cursor belongs to the reply.
  bool Matches() const;
  void Write(RespWriter* writer);

  RangeCursor cursor_;
  const bool keys_only_;
  const bool with_expiry_;
  const std::string_view pattern_;
  Phase phase_ = Phase::kSkip;
  int64_t skip_;                   // keys still to be skipped
  int64_t remaining_ = INT64_MAX;  // still wanted
  ByteBuffer collected_;
  int64_t collected_keys_ = 0;
  int64_t rest_ = 0;         // keys counted behind the collected ones
  std::string rest_begins_;  // the first of them
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
