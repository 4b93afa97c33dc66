// A redactor takes secrets out of what a bundle holds. A secret becomes a hash under a key that is
// made anew for each redactor and kept nowhere, so that the same secret can be recognized within
// one bundle and nobody can find out by trying what it was.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "type/reply.h"

namespace varve {

class Redactor {
 public:
  // Unavailable: the system gives no random bytes for the key.
  [[nodiscard]] static absl::StatusOr<Redactor> Create();

  // Returns "#" and 16 digits; for an empty text an empty one. Remembers the secret for Clean().
  std::string Hash(std::string_view secret);
  // Returns the text with each remembered secret of at least four bytes hashed.
  std::string Clean(std::string_view text);

  // Takes a reply to SLOWLOG GET. Hashes the client's name and all words of each request but for
  // the command's name in front. A name that the reply to COMMAND LIST lacks is hashed, too: it may
  // be a password that was sent in the place of a command.
  void RedactSlowLog(const Reply& commands, Reply* entries);
  // Takes a reply to CONFIG GET. Removes passwords, and hashes prefixes of keys.
  void RedactSettings(Reply* settings);
  // Returns a reply to CLIENT LIST with the names of clients and users hashed, but for "default".
  std::string RedactClients(std::string_view list);
  // Returns a page of metrics with prefixes of keys hashed.
  std::string RedactMetrics(std::string_view page);

 private:
  explicit Redactor(std::string key) : key_(std::move(key)) {}

  std::string key_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace varve
