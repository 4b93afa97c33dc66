#include "server/clients/client_transaction.h"

#include <cstring>

namespace varve {

QueuedRequest::QueuedRequest(const Command* command, Arguments arguments) : command_(command) {
  size_t size = 0;
  for (const std::string_view argument : arguments) size += argument.size();
  bytes_ = std::make_unique_for_overwrite<char[]>(size);
  arguments_.reserve(arguments.size());
  char* end = bytes_.get();
  for (const std::string_view argument : arguments) {
    if (!argument.empty()) std::memcpy(end, argument.data(), argument.size());
    arguments_.emplace_back(end, argument.size());
    end += argument.size();
  }
}

size_t QueuedRequest::BytesOf(Arguments arguments) {
  constexpr size_t kBytesPerAllocation = 32;
  size_t bytes = 2 * sizeof(QueuedRequest) + 2 * kBytesPerAllocation +
                 arguments.size() * sizeof(std::string_view);
  for (const std::string_view argument : arguments) bytes += argument.size();
  return bytes;
}

}  // namespace varve
