// The roster is the list of servers that use a store over HBase, and what each has seen of the
// catalog and of the floor of versions. Whoever changes one of them waits until every server has
// seen it; so no server writes to a place that was retired, or gives a version below the floor,
// after the change was answered.
//
// A server shows in its row what it has seen (a beat), and trusts its copy of the catalog for
// HbaseStoreOptions::trust from the beginning of its last beat on. A server whose row does not
// change for HbaseStoreOptions::dead_after trusts nothing any more, so that nobody waits for it,
// and its row is removed. Every server watches the rows of the others by itself, so that it knows
// this also where the remover has died. A server without trust first shows itself, then looks at
// the catalog, and then trusts it: whoever changed the catalog meanwhile has found its row.
//
// Thread-safety: Any thread may call WaitForAll(); one at a time makes beats or removes the dead.
// Requires: The context and the rows outlive the roster.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "db/hbase/hbase_context.h"
#include "db/hbase/system_rows.h"

namespace varve {

class ServerRoster {
 public:
  ServerRoster(HbaseContext* context, SystemRows* rows);

  // Looks at the catalog and at the floor, and shows that it was seen. The first one makes the
  // catalog of a new store. Its calls end by the deadline; while another beat is under way, it
  // waits for that.
  absl::Status Beat(HbaseClient::Deadline deadline = HbaseClient::Deadline::max());

  // The newest state of the cluster that a server has seen.
  struct Seen {
    SequenceNumber catalog = kNoSequence;
    SequenceNumber floor = kNoSequence;
  };
  // Waits until every server that is not dead has seen so much. DeadlineExceeded: some server has
  // not in time; the message names it, and says how long it has been silent.
  absl::Status WaitForAll(const Seen& seen, HbaseClient::Deadline deadline);
  absl::Status WaitForAll(const Seen& seen) { return WaitForAll(seen, context_->NewDeadline()); }

  // Says whether they have by now.
  absl::StatusOr<bool> HaveAllSeen(const Seen& seen);

  // Removes the rows of servers that are dead.
  absl::Status RemoveDead();

  // Takes this server out of the list. Nothing is written after that.
  void Leave();

 private:
  struct Row {
    std::string identity;
    uint64_t since_nanos;  // of the monotonic clock, since when it is known to be as it is
  };
  struct Server {
    std::string id;
    SystemRow row;
    uint64_t silent_nanos;  // how long its row has been as it is, or longer
  };

  absl::Status Look(SystemRows* rows);
  absl::Status ShowCatalog(const SystemRow& row);
  // Writes what was seen into this server's row.
  absl::Status Show(SystemRows* rows, const Seen& seen);
  // Lists the servers, and takes in since when the row of each is as it is.
  absl::StatusOr<std::vector<Server>> Watch(
      HbaseClient::Deadline deadline = HbaseClient::Deadline::max());
  bool IsDead(const Server& server) const;
  // Returns the first server that is not dead and has not seen so much.
  absl::StatusOr<std::optional<Server>> FindBehind(
      const Seen& seen, HbaseClient::Deadline deadline = HbaseClient::Deadline::max());

  HbaseContext* const context_;
  SystemRows* const rows_;
  const std::string name_;                // of this server's row
  absl::Mutex beating_;                   // a beat at a time
  Seen shown_ ABSL_GUARDED_BY(beating_);  // by the last write that was answered
  uint64_t shown_at_nanos_ ABSL_GUARDED_BY(beating_) = 0;
  bool has_left_ ABSL_GUARDED_BY(beating_) = false;
  absl::Mutex watching_;
  std::map<std::string, Row> watched_ ABSL_GUARDED_BY(watching_);
};

}  // namespace varve
