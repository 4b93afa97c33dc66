// A restore plan says how the store that a backup holds becomes the store that somebody wants: as
// of which version, and what that means for each namespace. It follows from the manifest and the
// time marks alone, so it is known before a byte is copied.
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "db/format/manifest_contents.h"
#include "db/format/time_mark.h"
#include "tools/backup/backup_list.h"
#include "varve/namespace.h"
#include "varve/options.h"
#include "varve/types.h"

namespace varve {

// A restore target says what somebody wants of a backup.
// Requires: at most one of at_version and at_time_ms.
struct RestoreTarget {
  std::optional<SequenceNumber> at_version;  // the state once this version had been written
  std::optional<uint64_t> at_time_ms;        // the newest version at this instant or before it
  // The number of a database or the name of a namespace; only it is restored.
  std::optional<std::string> name_space;
};

struct RestorePlan {
  SequenceNumber version = kNoSequence;
  uint64_t instant_ms = 0;
  // The state is older than the backup, and these steps lead there.
  bool rewinds = false;
  std::vector<NamespaceDescription> dropped;       // they were not there at the version
  std::vector<NamespaceDescription> rewound;       // they get what they held at the version
  std::vector<NamespaceDescription> brought_back;  // they were dropped since
  std::optional<NamespaceId> only;                 // all others go
  // The limits of histories of namespaces that have none of their own.
  HistoryLimits history;
};

// Returns OutOfRange if the backup does not reach to what is wanted, or a namespace does not keep
// that version: the message says what can be had. NotFound: there is no such namespace.
// FailedPrecondition: a namespace keeps no history.
[[nodiscard]] absl::StatusOr<RestorePlan> PlanRestore(const BackupDescription& backup,
                                                      const Manifest& manifest,
                                                      absl::Span<const TimeMark> marks,
                                                      const RestoreTarget& target);

// A restored store's versions are beyond all that the store had by so many.
inline constexpr SequenceNumber kRestoredVersionsAhead = SequenceNumber{1} << 40;

// Makes the manifest that of another store with the same contents: with ids of its own, versions
// that are beyond all before, and without log files, retained changes and feeds. Of the namespaces
// stays what the plan says.
[[nodiscard]] absl::Status MakeManifestOfRestored(const RestorePlan& plan, Manifest* manifest);

// Returns the instant as people read it, such as 2026-11-25T19:33:00Z.
std::string ShownInstant(uint64_t instant_ms);

}  // namespace varve
