// HbaseFailure is what went wrong with a request to a server of HBase, and what its caller does.
//
// Thread-safety: Plain values and free functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace varve {

struct HbaseFailure {
  enum class Kind : uint8_t {
    kFinal,  // another attempt would end the same way
    kMoved,  // the region is not at this server
    kBusy,   // the server cannot do it now
    kLost,   // the server did not answer
  };

  Kind kind = Kind::kFinal;
  // Says that the server may have done what it was asked for all the same.
  bool may_have_happened = false;
  absl::Status status;

  bool is_final() const { return kind == Kind::kFinal; }
  // Returns whether the region has to be looked up before the next attempt.
  bool is_misplaced() const { return kind == Kind::kMoved || kind == Kind::kLost; }
};

// `class_name` is that of the exception in Java, `trace` its message with the stack below it.
HbaseFailure FailureOfException(std::string_view class_name, std::string_view trace,
                                bool do_not_retry, std::string_view server);

// The server sent what no server of HBase sends.
HbaseFailure FailureOfGarbage(std::string_view what, std::string_view server);

// The connection broke or was never made.
HbaseFailure FailureOfConnection(std::string_view what, std::string_view server, bool was_sent);

// The end of a message that says whether a write happened.
inline std::string_view OutcomeText(bool may_have_happened) {
  return may_have_happened ? "the write may or may not have happened" : "nothing was written";
}

}  // namespace varve
