// The reply to RANGE and PREFIX: keys (and values) of a range in order, at one snapshot, produced in slices.
//
// RESP announces an array's length before its elements. So the stream collects up to kCollectBytes; if the range ends within
// them, the length is known. Otherwise it counts the rest of the keys at the same snapshot, announces the sum, sends what it
// collected and goes on reading from there. Memory stays bounded whatever the range holds.
// Used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/command_context.h"
#include "server/key_range.h"

namespace varve {

struct RangeOptions {
  bool reverse = false;
  bool keys_only = false;
  int64_t offset = 0;  // negative: nothing
  int64_t limit = -1;  // negative: all
};

class RangeStream : public ReplyStream {
 public:
  static constexpr size_t kCollectBytes = 256u << 10;

  RangeStream(CommandContext& context, KeyRange range, const RangeOptions& options);

  Progress Produce(CommandContext& context, size_t budget) override;
  // Drops the iterator; the next Produce() opens another one at the same snapshot.
  void Rest() override;

 private:
  // Writes the array's header and what was collected. False: the range can't be read, and an error was answered instead.
  bool Begin(CommandContext& context);
  void Open(CommandContext& context);
  void Start(Iterator* iterator) const;
  void Step(Iterator* iterator) const;
  void Emit(RespWriter* writer);

  const KeyRange range_;
  const RangeOptions options_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::unique_ptr<Iterator> iterator_;
  std::optional<std::string> resume_;  // where a dropped iterator stood
  SequenceNumber gate_ = kNoSequence;
  int64_t remaining_ = INT64_MAX;  // elements still wanted
  bool begun_ = false;
};

}  // namespace varve
