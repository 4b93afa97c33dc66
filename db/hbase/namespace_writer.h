// The changes of namespaces of a store over HBase: conditional writes of the catalog, seen by every
// server before they are answered.
//
// Servers see a change at different moments: the one that makes it at once, another one with its
// next beat. Where a namespace is emptied or dropped, the two work with different places until the
// change is answered. The later one still reads the retired place, and what it writes there is
// answered and lost, though its client may have seen the emptied namespace at the earlier one. To
// have the earlier one wait would only exchange the two: nobody could use the new place before all
// know of it without a time in which nobody uses either.
//
// Thread-safety: All functions are thread-safe. They wait for the cluster and for other servers.
// Requires: The context, the rows and the roster outlive this object.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/hbase/batch_plan.h"
#include "db/hbase/hbase_context.h"
#include "db/hbase/server_roster.h"
#include "db/hbase/system_rows.h"
#include "varve/read_result.h"

namespace varve {

class NamespaceWriter {
 public:
  NamespaceWriter(HbaseContext* context, SystemRows* rows, ServerRoster* roster)
      : context_(context), rows_(rows), roster_(roster) {}

  // Makes all changes of the plan in one step. Unavailable: a namespace was emptied or dropped, but
  // some server may not know of it yet; the message says so. A server that is silent learns of
  // other changes after they were answered.
  absl::StatusOr<CommitResult> Change(const BatchPlan& plan, HbaseClient::Deadline deadline);

  // Changes the catalog, again and again if others do so at the same time. Returns its version.
  absl::StatusOr<SequenceNumber> ChangeCatalog(
      const std::function<absl::Status(SpaceCatalog*)>& change, HbaseClient::Deadline deadline);

 private:
  HbaseClient::Deadline DeadlineOfWait(bool retires, HbaseClient::Deadline deadline) const;

  HbaseContext* const context_;
  SystemRows* const rows_;
  ServerRoster* const roster_;
};

}  // namespace varve
