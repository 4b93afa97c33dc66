// A page reader reads a range of a namespace in pages, each from a snapshot of its own, with a
// connection of its own. The next page can be asked for while the one before is at work.
//
// Thread-safety: One thread at a time uses a reader.
// Invariants: The server holds nothing for a reader between two pages, however long that takes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/client_options.h"
#include "client/move/key_bounds.h"
#include "client/move/moved_record.h"

namespace varve {

class PageReader {
 public:
  // An error for which IsNoNamespace(): the server has no such namespace.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<PageReader>> Open(const ClientOptions& server,
                                                                        const std::string& space,
                                                                        KeyBounds bounds);

  // Asks for the next page. Requires: it was not asked for, and has_more().
  void Request();
  bool is_requested() const { return is_requested_; }
  // Waits for the page that was asked for; an empty one is the last.
  [[nodiscard]] absl::StatusOr<std::vector<MovedRecord>> Receive();
  // Returns whether there may be keys behind the pages that were received.
  bool has_more() const { return has_more_; }

 private:
  PageReader(std::unique_ptr<Client> client, KeyBounds bounds)
      : client_(std::move(client)), bounds_(std::move(bounds)) {}

  static constexpr size_t kFirstPage = 32;

  const std::unique_ptr<Client> client_;
  KeyBounds bounds_;  // of what comes next
  size_t page_ = kFirstPage;
  bool is_requested_ = false;
  bool has_more_ = true;
};

// Returns the options by which a client works in the database or namespace.
ClientOptions InSpace(ClientOptions server, const std::string& space);

// Returns the record of the key; nothing: it is missing.
[[nodiscard]] absl::StatusOr<std::vector<MovedRecord>> ReadRecords(Client* client,
                                                                   const KeyBounds& bounds,
                                                                   size_t limit);

}  // namespace varve
