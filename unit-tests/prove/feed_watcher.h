// Reads the change feed of a server that is killed and started again, and holds it against what the
// writers were told.
//
// Thread-safety: one thread at a time uses an object.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/client.h"

namespace varve::prove {

class FeedWatcher {
 public:
  // Reads until the connection is lost. Internal: an answer that must not be.
  absl::Status Run(Client* client);
  // Reads until there is nothing more.
  absl::Status ReadToEnd(Client* client);

  // Returns what the key became, write by write: numbers of values, and "-" where it was deleted.
  const std::vector<std::string>& OrderOf(const std::string& key) const;

 private:
  // Sets `*had_any` to whether there were commits.
  absl::Status ReadOnce(Client* client, bool* had_any);
  absl::Status Take(const Reply& commit);

  int64_t position_ = 0;
  int64_t last_ = -1;                                       // version
  std::map<std::string, std::vector<std::string>> orders_;  // by key
};

}  // namespace varve::prove
