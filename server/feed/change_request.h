// The request of a client to the change feed: where to begin, which operations, and how much of
// them.
//
//   NOW | SINCE version|FIRST options | STREAM SINCE version|FIRST | FROM SNAPSHOT options
//   options: [PREFIX p | RANGE min max] [NAMESPACE name|ALL] [COUNT n] [BLOCK ms] [KEYS] [PREV]
//            [FULL]
//
// Thread-safety: plain values; the functions are pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/requests/key_range.h"
#include "server/requests/request_batch.h"
#include "varve/changes.h"

namespace varve {

struct ChangeRequest {
  enum class Start : uint8_t { kVersion, kFirst, kNow, kSnapshot };

  Start start = Start::kVersion;
  SequenceNumber since = kNoSequence;  // of kVersion
  KeyRange range;                      // of keys
  std::optional<std::string> space;    // the name of a namespace, or a number; nothing: in use
  bool all_spaces = false;
  bool keys_only = false;
  bool with_previous = false;
  bool full = false;  // with metadata and the numbers of namespaces
  // The most commits, or entries; nothing: as many as are read together.
  std::optional<size_t> count;
  std::optional<std::chrono::milliseconds> block;  // 0: for ever
};

// Reads the words behind CHANGES or, `is_stream`, behind CHANGES STREAM. InvalidArgument: the
// reply's words behind "ERR".
absl::StatusOr<ChangeRequest> ParseChangeRequest(Arguments words, bool is_stream);

// Read the values of COUNT and BLOCK.
absl::Status ParseChangeCount(std::string_view text, std::optional<size_t>* count);
absl::Status ParseChangeBlock(std::string_view text,
                              std::optional<std::chrono::milliseconds>* block);

}  // namespace varve
