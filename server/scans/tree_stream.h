// The reply to TREE: the names below a prefix as nested arrays, as if the delimiter divided keys
// into paths. One walk over the keys in their order meets each directory before what is in it; a
// directory at the greatest depth costs one seek, whatever lies in it. Where sizes are wanted that
// cannot be estimated, the walk reads every key below the names shown.
//
// An array says its length before its elements, so the whole tree is collected before its first
// byte is sent. The bounds on names and their bytes bound that memory.
//
// Thread-safety: one thread at a time uses a stream.
// Invariants: nodes_ holds each directory before its children, as the reply does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/execution/command_context.h"
#include "server/scans/range_cursor.h"

namespace varve {

struct TreeRequest {
  static constexpr size_t kMaxDepth = 32;
  static constexpr int64_t kMaxNames = 100'000;

  std::string_view prefix;  // stays in place until the batch is done, as does the delimiter
  std::string_view delimiter = "/";
  size_t depth = kMaxDepth;  // of the names shown; those directly below the prefix have depth 1
  int64_t limit = -1;        // names; negative: all, and an error if these are too many
  bool sizes = false;
};

class TreeStream final : public ReplyStream {
 public:
  static constexpr size_t kMaxNameBytes = 16u << 20;
  // The keys of a directory whose contents are not shown are counted up to so many; the size of a
  // larger one is estimated, or counted in full where EstimatesSizes() is false.
  static constexpr uint64_t kMostCounted = 128;

  // Requires: `keys` are of the prefix; the limit is not above TreeRequest::kMaxNames.
  TreeStream(SelectedKeys keys, const TreeRequest& request);

  Progress Produce(CommandContext& context, size_t budget) override;
  void Rest() override { cursor_.Rest(); }

 private:
  struct Node {
    size_t name_begin;  // in names_
    size_t name_size;
    uint32_t children = 0;
    uint64_t keys = 0;
    uint64_t bytes = 0;
  };
  struct OpenDirectory {
    size_t node;
    size_t path_size;  // of its path below the prefix, the delimiter included
  };

  // Takes keys until the slice is spent (false) or the tree is collected.
  bool Collect(CommandContext& context);
  // Takes the key at the cursor and goes on to the next one that may add to the tree.
  void TakeKey(CommandContext& context);
  // Adds a name in the innermost open directory. Returns false if there is no room for it.
  bool AddNode(std::string_view name);
  // Counts the key at the cursor in the directory at the greatest depth, or skips the rest of it.
  void TakeHiddenKey(CommandContext& context);
  // Counts the key at the cursor in the innermost open directory, and steps behind it.
  void CountKey();
  void SkipDirectory();
  void CloseDirectory(CommandContext& context);
  // Raises the directory's figures to what the store estimates of the keys that the client's user
  // may read.
  void Estimate(CommandContext& context, Node* directory);
  bool Send(CommandContext& context, size_t budget);

  const TreeRequest request_;
  RangeCursor cursor_;
  std::vector<Node> nodes_;
  std::string names_;                // of all nodes, one behind the other
  std::string path_;                 // of the innermost open directory, below the prefix
  std::vector<OpenDirectory> open_;  // the outermost one first
  uint32_t roots_ = 0;               // nodes directly below the prefix
  bool ended_ = false;               // nothing more is to be taken
  bool counts_all_ = false;          // sizes are wanted, and none may be estimated
  bool cut_ = false;                 // the limit left something out
  bool too_large_ = false;
  bool is_collected_ = false;
  size_t sent_ = 0;  // nodes
};

}  // namespace varve
