// A request batch holds the requests that one read brought in; it is the unit of execution. The
// arguments are views into the session's input, which stays in place until the batch is done.
//
// Thread-safety: The I/O thread hands the batch to the thread that executes it and gets it back;
// one thread at a time uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace varve {

struct Command;

using Arguments = absl::Span<const std::string_view>;

struct RequestBatch {
  struct Request {
    const Command* command;  // null: unknown verb
    uint32_t first;          // into `arguments`
    uint32_t count;
  };

  std::vector<std::string_view> arguments;
  std::vector<Request> requests;
  size_t input_bytes = 0;  // of the session's input that the batch covers

  // The execution policy asks for the following counts and flags.
  uint32_t reads = 0;       // keys read
  uint32_t writes = 0;      // keys written
  uint32_t gets = 0;        // requests that are a GET
  uint32_t plain_sets = 0;  // requests that are a SET without options
  bool refused = false;     // its only request is one for which the client has to log in first
  // Its last request may be one, and no other: each wrong one has its own delay.
  bool tries_password = false;
  bool slow = false;         // a request may take long or touch any number of keys
  bool maintenance = false;  // a request waits for background work

  Arguments ArgumentsOf(const Request& request) const {
    return Arguments(arguments).subspan(request.first, request.count);
  }
  bool empty() const { return requests.empty(); }
  void Clear() {
    arguments.clear();
    requests.clear();
    if (arguments.capacity() > kKeep) arguments.shrink_to_fit();
    input_bytes = reads = writes = gets = plain_sets = 0;
    slow = maintenance = refused = tries_password = false;
  }

 private:
  static constexpr size_t kKeep = 8192;
};

}  // namespace varve
