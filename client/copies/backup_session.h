// A backup session is one backup that a server holds for this client, from BACKUP START to BACKUP
// CLEANUP.
//
// Thread-safety: One thread at a time uses an object.
// Invariants: A session gives up the backup that it began and no other: one that began at another
// time belongs to somebody else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/client.h"
#include "client/copies/backup_target.h"
#include "type/reply.h"

namespace varve {

// A file of a sealed backup, as the server lists it.
struct SealedFile {
  std::string name;
  uint64_t size = 0;
};

class BackupSession {
 public:
  // Requires: the client outlives the object, and has no requests under way.
  explicit BackupSession(Client* client) : client_(*client) {}

  // Pins the files of the server's store and has it seal them.
  [[nodiscard]] absl::Status Start();
  // Returns what was sealed.
  [[nodiscard]] absl::StatusOr<BackupSource> Source();
  // Returns the files of it; the last one is MANIFEST.
  [[nodiscard]] absl::StatusOr<std::vector<SealedFile>> Files();
  // Puts the request for a piece of a file behind those that are under way.
  void Request(const SealedFile& file, uint64_t offset, uint64_t length);
  // Returns the piece that was requested first.
  // Requires: the arguments are those of that Request().
  [[nodiscard]] absl::StatusOr<std::string> Receive(const SealedFile& file, uint64_t offset,
                                                    uint64_t length);
  // Ends the pins. Requires: no request is under way.
  [[nodiscard]] absl::Status Release();
  // Ends what Start() began, as far as that can be, also after the connection was lost. Returns
  // `why`, and adds to its words where the server may go on holding files.
  [[nodiscard]] absl::Status GiveUp(const absl::Status& why);

 private:
  absl::StatusOr<Reply> Ask(absl::Span<const std::string_view> words);
  // Returns whether the server is at the backup that this session began: a new connection may lead
  // to a server that was started again and is at somebody else's.
  absl::StatusOr<bool> IsThere();
  absl::Status Abandon();

  Client& client_;
  bool began_ = false;
  // As the server tells them; empty: not known yet.
  std::string start_time_;
  std::string version_;
};

// Ends the backup that the server holds for a process that was killed: one that began at `began_s`
// of the server's clock, in seconds since the epoch, or up to two seconds later. One that began at
// another time belongs to somebody else, and stays.
[[nodiscard]] absl::Status EndBackupOfKilled(Client* client, uint64_t began_s);

}  // namespace varve
