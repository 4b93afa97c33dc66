// Blocks of changes as they travel from a primary to its followers, one behind the other.
//
// Thread-safety: a stateless function.
#pragma once

#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "db/changes/change_block.h"

namespace varve {

// Calls `visit` with each block until it returns an error. DataLoss: the bytes are damaged.
[[nodiscard]] absl::Status ForEachBlock(
    std::string_view bytes, absl::FunctionRef<absl::Status(const ChangeBlock& block)> visit);

// The source of the blocks, as errors call it.
inline constexpr char kFromPrimary[] = "the changes that the primary sent";

}  // namespace varve
