// The reply to CHILDREN: the names directly below a prefix, in order, as if the delimiter divided
// keys into paths. A directory costs one seek, whatever lies in it, unless its keys are counted.
//
// Thread-safety: one thread at a time uses a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/execution/command_context.h"
#include "server/scans/counted_stream.h"

namespace varve {

struct ChildrenRequest {
  enum class Figures : uint8_t { kNone, kCounts, kSizes };

  std::string_view prefix;  // stays in place until the batch is done, as does the delimiter
  std::string_view delimiter = "/";
  std::string_view after;  // a name behind which to begin; empty: at the first one
  bool reverse = false;
  int64_t limit = -1;  // negative: all
  Figures figures = Figures::kNone;

  // Returns the range of the keys that children are looked for in.
  KeyRange Range() const;
};

class ChildrenStream final : public CountedStream {
 public:
  // With sizes, the keys of a directory are counted up to so many; a larger one is estimated, or
  // counted in full where EstimatesSizes() is false.
  static constexpr uint64_t kMostCounted = 128;

  // Requires: `keys` are of request.Range().
  ChildrenStream(SelectedKeys keys, const ChildrenRequest& request);

 private:
  bool Find(CommandContext& context) override;
  void Write(RespWriter* writer) const override;
  size_t elements() const override { return HasFigures() ? 2 : 1; }
  bool AtEnd() const override { return ended_ || (!cursor_.Valid() && directory_.empty()); }
  void Return(std::string_view begin) override {
    ended_ = false;
    cursor_.Return(begin);
  }

  bool HasFigures() const { return request_.figures != ChildrenRequest::Figures::kNone; }
  // The key at the cursor lies in the directory of that name: makes it the child at hand, or begins
  // to count its keys.
  void FoundDirectory(CommandContext& context, std::string_view name);
  // Makes the directory the child at hand and goes on behind it. Where sizes are wanted, the store
  // estimates this one.
  void LeaveDirectory(CommandContext& context);
  // Returns what the key at the cursor adds to the figure of its child.
  uint64_t FigureOfKey() const;
  // Returns the bytes below the directory that the client's user may read, as estimated.
  uint64_t SizeOf(CommandContext& context, const KeyRange& directory) const;

  const ChildrenRequest request_;
  std::string child_;      // the one at hand
  uint64_t figure_ = 0;    // its keys or bytes
  std::string directory_;  // whose keys are being added up; empty: none
  uint64_t counted_ = 0;   // of its keys
  bool ended_ = false;     // nothing is behind the last child
};

}  // namespace varve
