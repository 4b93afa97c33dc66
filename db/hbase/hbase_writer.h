// The writes of a store over HBase.
//
// A batch of keys goes to the cluster as one commit of rows, which all lie in one region as they
// are of one group. Batches of one key that are written asynchronously wait for Push() and go out
// together, each on its own terms: the cluster syncs its log once for those of a region. Of several
// that just put the same key, the last one alone is sent: nobody can tell that the others happened
// right before it. Such puts wait while an earlier one of their key is under way, with which they
// would only contend.
// WriteOptions::independent_keys has each key of a batch written by itself.
//
// A write is durable when it is answered: three copies of the log are on disk (`hsync`).
//
// Thread-safety: All functions are thread-safe.
// Requires: The context outlives every call's answer.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "db/hbase/batch_plan.h"
#include "db/hbase/hbase_context.h"
#include "db/hbase/namespace_writer.h"
#include "varve/store.h"
#include "varve/write_batch.h"

namespace varve {

class HbaseWriter {
 public:
  HbaseWriter(HbaseContext* context, NamespaceWriter* namespaces)
      : context_(context), namespaces_(namespaces) {}

  // As StoreWrites has them. WriteAsync() takes batches of keys alone (FailedPrecondition
  // otherwise): a change of namespaces waits for other servers.
  absl::StatusOr<CommitResult> Write(const WriteOptions& options, WriteBatch* batch);
  void WriteAsync(const WriteOptions& options, WriteBatch* batch, StoreWrites::WriteDone done);
  absl::StatusOr<CommitResult> Update(const WriteOptions& options,
                                      absl::Span<const std::string_view> keys,
                                      absl::FunctionRef<absl::Status(WriteBatch*)> decide);
  // Sends what WriteAsync() has gathered.
  void Push();

 private:
  // A caller that waits for a write.
  struct Waiter {
    size_t operations;  // 0: a condition alone
    OperationGate::Pass pass;
    StoreWrites::WriteDone done;
  };
  // One write that waits for Push().
  struct Gathered {
    RowIntent intent;
    size_t bytes;
    HbaseClient::Deadline deadline;
    std::vector<Waiter> waiters;

    // Returns whether it puts whatever the row holds.
    bool is_plain_put() const {
      return intent.kind == RowIntent::Kind::kPut && !intent.required.has_value();
    }
  };
  struct GatheredTable {
    std::string name;
    std::vector<Gathered> writes;
  };
  // Writers of the same keys in this process, one after the other once they have met.
  class Turn;

  absl::StatusOr<BatchPlan> Plan(const WriteOptions& options, const WriteBatch& batch) const;
  void Commit(const WriteOptions& options, BatchPlan plan, OperationGate::Pass pass,
              StoreWrites::WriteDone done);
  void Gather(BatchPlan plan, OperationGate::Pass pass, StoreWrites::WriteDone done);
  void Send(std::string table, std::vector<Gathered> writes);
  // Takes what a later put of the same row asks for.
  static void Overtake(Gathered later, Gathered* earlier);
  bool Begin(const std::string& table, Gathered* write);
  // Returns the puts that have waited for the puts of these rows.
  std::vector<Gathered> Release(const std::string& table, const std::vector<std::string>& rows);
  void SendByRegion(const std::string& table, const std::shared_ptr<std::vector<Gathered>>& writes);
  void SendPart(const std::string& table, const std::shared_ptr<std::vector<Gathered>>& writes,
                const HbaseClient::Part& part);

  HbaseContext* const context_;
  NamespaceWriter* const namespaces_;
  absl::Mutex mutex_;
  std::vector<GatheredTable> gathered_ ABSL_GUARDED_BY(mutex_);
  // By table and row of a put that is under way: the put that waits for it, if there is one.
  std::map<std::pair<std::string, std::string>, std::optional<Gathered>> under_way_
      ABSL_GUARDED_BY(mutex_);
  std::array<std::timed_mutex, 256> turns_;
};

}  // namespace varve
