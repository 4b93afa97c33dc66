// Deletes a range of keys: in one step where the store does that, else in slices, of which others
// may see some done and others not yet. A key that is written meanwhile, behind the place where the
// deletion is, goes too.
//
// Thread-safety: one thread at a time uses a context or a stream.
#pragma once

#include <string>

#include "server/execution/command_context.h"
#include "server/requests/key_range.h"

namespace varve {

// Deletes the keys and answers OK, or the error.
void DeleteRange(CommandContext& context, const KeyRange& range);

// The deletion in slices.
class RangeRemoval final : public ReplyStream {
 public:
  RangeRemoval(std::string lower, std::string upper)
      : lower_(std::move(lower)), upper_(std::move(upper)) {}

  Progress Produce(CommandContext& context, size_t budget) override;

 private:
  std::string lower_;  // what is left begins here
  const std::string upper_;
  bool may_have_deleted_ = false;
};

}  // namespace varve
