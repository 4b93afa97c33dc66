// The store copy takes a copy of the primary's store over the ordinary port: a sealed checkpoint,
// file by file. Files that this server's own store has already are not sent again.
//
// Thread-safety: stateless function. One copy at a time may be made in a store's directory.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "server/following/incoming_store.h"
#include "server/following/primary_answers.h"

namespace varve {

struct StoreCopyOptions {
  FileSystem* file_system = nullptr;
  std::string store;                        // the directory of this server's own store
  std::string id;                           // of this server
  const std::atomic<bool>* stop = nullptr;  // set: the copy ends with Cancelled
  // Called with the bytes that are here, and of how many.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

struct StoreCopied {
  CopyAnswer copy;
  uint64_t sent_bytes = 0;
  uint64_t shared_bytes = 0;
};

// Copies the store of the client's server into `incoming`, without sealing that. DataLoss: a file
// came damaged. Unavailable or Unknown: the connection was lost. The primary removes its files then
// and later, whatever the outcome is.
[[nodiscard]] absl::StatusOr<StoreCopied> CopyStore(Client* client, const StoreCopyOptions& options,
                                                    IncomingStore* incoming);

}  // namespace varve
