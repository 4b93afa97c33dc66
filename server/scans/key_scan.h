// The reply to SCAN: keys that match a pattern, in key order. Only the range that the pattern's
// beginning leaves is read: `user:*` costs what begins with "user:".
//
// Thread-safety: one thread at a time uses a stream.
#pragma once

#include <cstdint>
#include <string>

#include "server/execution/command_context.h"
#include "server/scans/range_cursor.h"

namespace varve {

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
  // Shows only what the client's user may read; `arguments` are those of its request.
  ScanStream(const ScanRequest& request, const CommandContext& context, Arguments arguments);

  Progress Produce(CommandContext& context, size_t budget) override;
  void Rest() override { cursor_.Rest(); }

 private:
  const ScanRequest request_;
  RangeCursor cursor_;
  ByteBuffer found_;
  size_t found_keys_ = 0;
  uint64_t seen_keys_ = 0;  // of those that the user may read: the others don't show in a reply
  uint64_t looked_at_ = 0;
  std::string last_;  // key looked at
};

}  // namespace varve
