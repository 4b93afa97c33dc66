// The roster is the list of servers that use a store over HBase, and what each has seen of the
// catalog and of the floor of versions. Whoever changes one of them waits until every server has
// seen it; so no server writes to a place that was retired, or gives a version below the floor,
// after the change was answered.
//
// A server shows in its row what it has seen (a beat), and trusts its copy of the catalog for
// HbaseStoreOptions::trust from the beginning of its last beat on. A server whose row does not
// change for HbaseStoreOptions::dead_after trusts nothing any more, and its row is removed. A
// server without trust first shows itself, then looks at the catalog, and then trusts it: whoever
// changed the catalog meanwhile has found its row.
//
// Thread-safety: Any thread may call WaitForAll(); one at a time makes beats or removes the dead.
// Requires: The context and the rows outlive the roster.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

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
  // catalog of a new store.
  absl::Status Beat();

  // The newest state of the cluster that a server has seen.
  struct Seen {
    SequenceNumber catalog = kNoSequence;
    SequenceNumber floor = kNoSequence;
  };
  // Waits until every server has seen so much. DeadlineExceeded: some server has not in time; the
  // message names it.
  absl::Status WaitForAll(const Seen& seen);

  // Removes the rows of servers that are dead. It looks for them again and again.
  absl::Status RemoveDead();

  // Takes this server out of the list. Nothing is written after that.
  void Leave();

 private:
  struct Row {
    std::string identity;
    uint64_t since_nanos;  // of the monotonic clock, since when it is as it is
  };

  absl::Status Look();
  absl::Status ShowCatalog(const SystemRow& row);
  absl::Status Show();
  // Returns the first server that has not seen so much; an empty one: all have.
  absl::StatusOr<std::string> FindBehind(const Seen& seen);

  HbaseContext* const context_;
  SystemRows* const rows_;
  const std::string name_;  // of this server's row
  absl::Mutex beating_;     // a beat at a time
  Seen shown_ ABSL_GUARDED_BY(beating_);
  uint64_t shown_at_nanos_ ABSL_GUARDED_BY(beating_) = 0;
  bool has_left_ ABSL_GUARDED_BY(beating_) = false;
  std::map<std::string, Row> watched_;
};

}  // namespace varve
