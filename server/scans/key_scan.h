// The replies to KEYS and SCAN: the keys that match a pattern, in key order. Only the range that
// the pattern's beginning leaves is read: `user:*` costs what begins with "user:". They are
// produced in slices with bounded memory.
//
// Thread-safety: one thread at a time uses a stream.
#pragma once

#include <cstdint>
#include <string>

#include "server/execution/command_context.h"
#include "server/scans/range_cursor.h"

namespace varve {

// The reply to KEYS: all keys at one snapshot, as long as RANGE's reply may be
// (server/scans/range_stream.h): collects up to kCollectBytes, counts the rest, announces the
// number, sends.
class KeysStream : public ReplyStream {
 public:
  static constexpr size_t kCollectBytes = 256u << 10;

  // Requires: `pattern` stays in place until the batch is done.
  explicit KeysStream(std::string_view pattern);

  Progress Produce(CommandContext& context, size_t budget) override;
  void Rest() override { cursor_.Rest(); }

 private:
  enum class Phase : uint8_t { kCollect, kCount, kSend };

  // Goes on to kSend, whose beginning it writes, unless the slice ends before or the keys can't be
  // read.
  void Prepare(CommandContext& context);

  const std::string_view pattern_;
  RangeCursor cursor_;
  Phase phase_ = Phase::kCollect;
  ByteBuffer collected_;
  size_t collected_keys_ = 0;
  size_t rest_ = 0;          // matches counted behind the collected ones
  std::string rest_begins_;  // the first of them
};

struct ScanRequest {
  uint64_t cursor = 0;
  std::string begin;  // where the scan of `cursor` goes on
  std::string_view pattern = "*";
  uint64_t count = 10;  // keys to look at
};

// One step of a scan: looks at `count` keys and answers those that match, with the cursor of the
// next step. As in Redis the number is a wish: kMaxKeys and kMaxBytes bound a step.
class ScanStream : public ReplyStream {
 public:
  static constexpr uint64_t kMaxKeys = 1u << 16;
  static constexpr size_t kMaxBytes = 1u << 20;

  // Requires: what `request` points to stays in place until the batch is done.
  explicit ScanStream(const ScanRequest& request);

  Progress Produce(CommandContext& context, size_t budget) override;
  void Rest() override { cursor_.Rest(); }

 private:
  const ScanRequest request_;
  RangeCursor cursor_;
  ByteBuffer found_;
  size_t found_keys_ = 0;
  uint64_t seen_keys_ = 0;
  std::string last_;  // key looked at
};

}  // namespace varve
