// An RDB input is where an RDB reader takes its bytes from: a file, or a connection to a Redis.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace varve {

class RdbInput {
 public:
  virtual ~RdbInput() = default;

  // Returns the bytes that are buffered, at least `wanted` of them unless the input ends before.
  // The view is valid until the next call.
  [[nodiscard]] virtual absl::StatusOr<std::string_view> Peek(size_t wanted) = 0;
  // Drops bytes from the front of what Peek() returns.
  // Requires: it returned so many.
  virtual void Consume(size_t bytes) = 0;
  // Returns where the first byte that was not consumed stands.
  virtual uint64_t offset() const = 0;
  // Returns an error that names the input and the present offset.
  virtual absl::Status Damaged(std::string_view what) const = 0;
};

}  // namespace varve
