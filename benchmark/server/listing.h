// A listing finds the three names directly below a prefix, where nearly all keys lie below the
// second one: `list/a/1`, `list/b/<number>` ..., `list/c/1`. CHILDREN asks for them in one request;
// SCAN goes through all keys, and the client takes the names from them.
//
// Thread-safety: one thread uses an object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"

namespace varve::bench {

struct ListingResult {
  double p50 = 0;         // seconds
  uint64_t requests = 0;  // of one listing
};

class Listing {
 public:
  // Connects to a server of 127.0.0.1; `server` is for messages. Ends the program where it fails,
  // as the other functions do.
  Listing(std::string server, uint16_t port);

  // Writes so many keys.
  void Fill(uint64_t keys, size_t value_size);
  // Lists for about so many seconds, at least three times.
  ListingResult Run(bool by_children, double seconds);

 private:
  Reply Ask(const std::vector<std::string>& request);
  // Returns how many requests it took.
  uint64_t ListByChildren();
  uint64_t ListByScan();

  const std::string server_;
  std::unique_ptr<Client> client_;
};

}  // namespace varve::bench
