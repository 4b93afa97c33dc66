// The reply to DIFF: the keys in which two states differ, ascending.
//
// The array's length is announced before the keys, as CountedStream does it: up to kCollectBytes
// are collected, the rest is counted, and looked for again to be sent. The states stand still
// meanwhile.
//
// Thread-safety: one thread at a time uses a stream.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "server/execution/command_context.h"
#include "server/scans/selected_keys.h"
#include "varve/difference.h"

namespace varve {

class DifferenceStream final : public ReplyStream {
 public:
  static constexpr size_t kCollectBytes = 256u << 10;

  // Shows at most `limit` keys; negative: all.
  DifferenceStream(ComparedState a, ComparedState b, SelectedKeys keys, int64_t limit);

  Progress Produce(CommandContext& context, size_t budget) override;
  void Rest() override;

 private:
  enum class Phase : uint8_t { kCollect, kCount, kSend };
  // The search goes on at this point.
  struct ResumePoint {
    size_t range = 0;  // of keys_
    std::string from;  // in the range; empty: its begin
  };

  // Makes the next key that differs the iterator's. False: the slice is spent, there is none, or
  // the store can't tell.
  bool Find(CommandContext& context);
  bool Open(CommandContext& context);
  bool AtEnd() const { return place_.range == keys_.ranges.size(); }
  // Goes through the phases before kSend. False: the slice is spent, or the store can't tell.
  bool Prepare(CommandContext& context);
  void Announce(CommandContext& context);

  const ComparedState a_, b_;
  const SelectedKeys keys_;
  Phase phase_ = Phase::kCollect;
  int64_t remaining_ = INT64_MAX;  // keys still wanted
  ResumePoint place_;
  std::unique_ptr<DifferenceIterator> iterator_;  // null: to be made at place_
  std::chrono::steady_clock::time_point opened_;
  absl::Status status_;
  ByteBuffer collected_;
  int64_t collected_keys_ = 0;
  int64_t rest_ = 0;  // keys counted behind the collected ones
  ResumePoint rest_begins_;
};

}  // namespace varve
