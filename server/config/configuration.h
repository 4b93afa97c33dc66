// The configuration holds the settings in force while the server runs; CONFIG shows and changes
// them.
//
// Thread-safety: All threads may use an object at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/config/settings.h"

namespace varve {

class LiveSettings;

class Configuration {
 public:
  // `given`: what REWRITE writes; `in_force`: the same with what was left to the server chosen,
  // which GET shows. `file`: where the settings came from, in part; empty: there is none.
  Configuration(ServerConfig given, ServerConfig in_force, std::string file)
      : file_(std::move(file)), given_(std::move(given)), in_force_(std::move(in_force)) {}

  const std::string& file() const { return file_; }

  // The port that is listened on, where any was fine.
  void NotePort(uint16_t port) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteTlsPort(uint16_t port) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteHttpPort(uint16_t port) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whom the server follows from now on: "host port", or empty. REWRITE writes it, too.
  void NotePrimary(const std::string& primary) ABSL_LOCKS_EXCLUDED(mutex_);
  // Return all settings, as they were given and changed since, and as they are in force.
  ServerConfig given() const ABSL_LOCKS_EXCLUDED(mutex_);
  ServerConfig in_force() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the settings of replication that are in force now.
  ReplicationOptions replication() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Names (Redis' own among them) that match one of the patterns, and their values; in alphabetic
  // order.
  std::vector<std::pair<std::string, std::string>> Get(
      absl::Span<const std::string_view> patterns) const ABSL_LOCKS_EXCLUDED(mutex_);
  // One of them; empty when there is none.
  std::string Get(std::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Puts all settings into force, or none. `pairs` is name, value, name, value, ... NotFound: the
  // message is the name that there is no setting for. Otherwise the message begins with the
  // setting's name in quotes.
  [[nodiscard]] absl::Status Set(LiveSettings& live, absl::Span<const std::string_view> pairs)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Reads the password's file again, if there is one.
  [[nodiscard]] absl::Status ReloadPassword(LiveSettings& live) ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes the settings as they were given and changed since into the file. FailedPrecondition:
  // there is none.
  [[nodiscard]] absl::Status Rewrite() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::string file_;
  mutable absl::Mutex mutex_;
  ServerConfig given_ ABSL_GUARDED_BY(mutex_);
  ServerConfig in_force_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
