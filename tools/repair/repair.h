// Makes a store that damage keeps from opening, or from being read whole, into one that is whole
// again, with all that can be read.
//
//   segments   a damaged one is written anew with the records that are intact, in the same place of
//              the tree
//   log        where acknowledged operations can't be read, those before and behind them become
//              segments
//   manifest   its copy takes its place; without one, all segments are merged into one run, and the
//              log follows
//
// No original is overwritten: what is replaced goes to DIR/damaged. Interrupted anywhere, it is
// started again: until the plan is on disk (the file REPAIR, below) nothing has changed but for new
// files that nobody names; from then on every start goes on with it, and a server refuses to open
// the store.
//
// Without a manifest REPAIR.begun says which segments are its own, so that a second start doesn't
// take them for the store's.
//
//   REPAIR = lines "move NAME NAME-IN-DAMAGED", then "checksum XXXXXXXX" of those lines;
//   MANIFEST.repaired is the manifest to come
//
// What is lost is listed. A lost record may have deleted or replaced what an older one says: the
// list says where older values, or keys that were deleted, may be back.
//
// Thread-safety: a function without state of its own.
// Requires: no server has the store open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/verify.h"
#include "util/os/file_system.h"

namespace varve {

struct RepairReport {
  struct Entry {
    std::string file;
    uint64_t offset = 0;
    std::string what;
  };
  std::vector<Entry> lost;         // names what was damaged, and what of it is gone
  std::vector<Entry> saved;        // names what was made of the files that were damaged
  std::vector<std::string> moved;  // files that are in DIR/damaged now
  // An interrupted repair was brought to its end; what it lost it had listed before.
  bool continued = false;

  bool nothing_to_do() const { return lost.empty() && !continued; }
};

// Returns what was lost and saved. FailedPrecondition: a server has the store open. NotFound: there
// is no store. Other errors are those of reading and writing; then the caller starts it again.
[[nodiscard]] absl::StatusOr<RepairReport> RepairStore(FileSystem* file_system,
                                                       const std::string& directory,
                                                       const VerifyProgress& progress);

}  // namespace varve
