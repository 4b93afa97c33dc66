// The base of replies that list what a cursor finds, produced in slices at one snapshot.
//
// RESP announces an array's length before its elements. So a stream collects up to kCollectBytes;
// if the cursor comes to an end within them, the length is known. Otherwise it counts the rest at
// the same snapshot, announces the sum, sends what it collected and goes on reading from there.
// Memory stays bounded whatever there is. On a store without snapshots the keys may be others when
// they are read again: there it collects all, and a reply of more than kMostCollectBytes is
// refused. Collecting and counting end their slice with nothing
// written when its time is spent, so that they keep no thread from others.
//
// Thread-safety: one thread at a time uses a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "server/execution/command_context.h"
#include "server/scans/range_cursor.h"

namespace varve {

class CountedStream : public ReplyStream {
 public:
  static constexpr size_t kCollectBytes = 256u << 10;
  static constexpr size_t kMostCollectBytes = 256u << 20;

  Progress Produce(CommandContext& context, size_t budget) final;
  void Rest() final { cursor_.Rest(); }

 protected:
  // `limit` is the most that is listed; negative: all.
  CountedStream(SelectedKeys keys, const RangeCursor::Options& options, int64_t limit);

  // Makes the next thing to be listed the one at hand. False: the slice is spent, there is none, or
  // it can't be read.
  [[nodiscard]] virtual bool Find(CommandContext& context) = 0;
  // Writes the one at hand, in elements() elements of the array.
  virtual void Write(RespWriter* writer) const = 0;
  virtual size_t elements() const = 0;
  // The one at hand was written.
  virtual void NoteListed(CommandContext& context) { (void)context; }
  // Moves the cursor behind the one at hand, if Find() has not done it.
  virtual void Pass() {}
  virtual bool AtEnd() const { return !cursor_.Valid(); }
  // The cursor goes back to what was counted.
  virtual void Return(std::string_view begin) { cursor_.Return(begin); }

  void ListNothing() { remaining_ = 0; }

  RangeCursor cursor_;

 private:
  enum class Phase : uint8_t { kCollect, kCount, kSend };

  // Goes through the phases before kSend, whose end writes the array's header and what was
  // collected. False: the slice is spent, or something can't be read.
  bool Prepare(CommandContext& context);
  void Announce(CommandContext& context);

  Phase phase_ = Phase::kCollect;
  bool has_snapshot_ = true;
  int64_t remaining_ = INT64_MAX;  // still wanted
  ByteBuffer collected_;
  int64_t collected_count_ = 0;
  int64_t rest_ = 0;         // counted behind the collected ones
  std::string rest_begins_;  // the key where they begin
};

}  // namespace varve
