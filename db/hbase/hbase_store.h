// A store over HBase keeps its keys in the tables of an HBase cluster, which any number of servers
// use at the same time. The server that opens it keeps no state of its own.
//
//   auto client = HbaseClient::Open({.quorum = "a:2181,b:2181,c:2181"});
//   auto store = HbaseStore::Open(std::move(*client), {.table = "varve"});
//
// How it lies in the cluster:
//   Rows        A key is a row, of one cell: version, expiry, metadata and value
//               (db/hbase/row_codec.h). There is a table for namespaces without groups, one for
//               those that are one group, and one for each delimiter (db/hbase/space_catalog.h), so
//               that no region's border tears a group apart.
//   Versions    A version is above the one that the row had before, whatever the clocks of servers
//               do (db/hbase/version_clock.h). A write carries the condition that the row is as it
//               was read; where another one came first, it reads and tries again.
//   Deletes     A deleted key leaves a tombstone. One elected server removes tombstones and what
//               has expired, an hour later, after it has raised the floor of all versions
//               (db/hbase/remover.h).
//   Namespaces  They are one row, of which every server has a copy that it compares each second.
//               A change is answered once all servers know of it (db/hbase/server_roster.h).
//
// The store promises:
//   A write is durable when it is answered, and so is all that is read.
//   One key, conditions included, is atomic; several keys are if they are of one group
//   (varve/key_group.h). Other batches fail with CrossGroup, unless WriteOptions::independent_keys
//   is set.
//   Reads of several keys, iterators and slices see each row as it is at some moment: a slice is
//   consistent within a region, and nothing else is.
//   Count() of a namespace reads it.
//
// The store answers FailedPrecondition where it lacks an ability: snapshots, conditions on ranges,
// the deletion of a range in one step, clones, exchanges of namespaces, quotas, history, changes
// and watches.
// BeginExclusiveWrite() gives a right that keeps nobody else from writing.
//
// Errors: InvalidArgument for a key of more than kMaxHbaseKeySize bytes, for a value beyond
// HbaseStoreOptions::max_value_size, and for a commit beyond kMaxCommitBytes or kMaxCommitRows.
// StoreUnavailable if the cluster does not answer within HbaseStoreOptions::deadline; the message
// says whether a write may have happened all the same. DataLoss for a row that no varve wrote.
//
// Thread-safety: All functions are thread-safe. The blocking ones wait for the cluster; the
// asynchronous ones answer on a thread of the client, or on one that drives it, neither of which
// must be held up. What GetAsync reads and WriteAsync writes goes out with the next Push().
// Invariants: Every call is answered, soon after its deadline at the latest; a count, and a slice
// with many rows that are gone, have a deadline for each of their steps, and a read of many keys
// has a second one for the keys of other regions once a region has not answered.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/hbase/hbase_context.h"
#include "db/hbase/hbase_reader.h"
#include "db/hbase/hbase_writer.h"
#include "db/hbase/namespace_writer.h"
#include "db/hbase/periodic_thread.h"
#include "db/hbase/remover.h"
#include "db/hbase/server_roster.h"
#include "db/hbase/system_rows.h"
#include "varve/durable_store.h"
#include "varve/store.h"

namespace varve {

class HbaseStore final : public DurableStore {
 public:
  // Makes or checks the main table, and reads the namespaces. InvalidArgument: the options make no
  // sense. NotFound: the table is missing, and is not to be made. FailedPrecondition: the table is
  // not varve's, or of another format. Waits for the cluster.
  static absl::StatusOr<std::unique_ptr<HbaseStore>> Open(std::unique_ptr<HbaseClient> client,
                                                          const HbaseStoreOptions& options);
  ~HbaseStore() override;

  // --- Reads
  absl::StatusOr<ReadResult> Get(const ReadOptions& options, std::string_view key,
                                 std::string* value) override;
  absl::Status MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys,
                        absl::Span<MultiGetResult> results) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower,
                                        std::string_view upper,
                                        SequenceNumber* durable_after) override;
  std::shared_ptr<const Snapshot> GetSnapshot() override;
  absl::StatusOr<CountResult> Count(const ReadOptions& options, std::string_view lower,
                                    std::string_view upper) override;
  absl::StatusOr<ExplainedRead> ExplainGet(const ReadOptions& options,
                                           std::string_view key) override;
  uint64_t NowMillis() const override { return context_.clock.NowMillis(); }
  bool IsAway(NamespaceId space, std::string_view key) const override;
  std::unique_ptr<StoreDriver> DriveOnThisThread(int descriptor) override {
    return context_.client->DriveOnThisThread(descriptor);
  }
  void GetAsync(const ReadOptions& options, std::string key, GetDone done) override;
  void MultiGetAsync(const ReadOptions& options, std::vector<std::string> keys,
                     MultiGetDone done) override;
  void CountAsync(const ReadOptions& options, std::string lower, std::string upper,
                  CountDone done) override;
  void ReadRangeAsync(const ReadOptions& options, RangeRequest range, RangeDone done) override;

  // --- Writes
  absl::StatusOr<CommitResult> Write(const WriteOptions& options, WriteBatch* batch) override;
  absl::StatusOr<CommitResult> Submit(const WriteOptions& options, WriteBatch* batch) override {
    return Write(options, batch);
  }
  void WriteAsync(const WriteOptions& options, WriteBatch* batch, WriteDone done) override;
  absl::StatusOr<CommitResult> Update(const WriteOptions& options,
                                      absl::Span<const std::string_view> keys,
                                      absl::FunctionRef<absl::Status(WriteBatch*)> decide) override;
  std::unique_ptr<ExclusiveWrite> BeginExclusiveWrite() override;
  absl::Status Push() override;

  // --- Namespaces
  absl::StatusOr<NamespaceList> Namespaces() const override;
  bool HasNamespace(NamespaceId space) const override;
  uint64_t UsualExpiry(NamespaceId space) const override;
  std::optional<KeyGrouping> GroupsOf(NamespaceId space) const override;
  StoreCapabilities capabilities() const override;

  // --- Upkeep
  absl::Status Flush() override { return absl::OkStatus(); }
  // Does nothing: HBase compacts its tables by itself.
  absl::Status Compact(std::string_view, std::string_view, NamespaceId) override {
    return absl::OkStatus();
  }
  Pressure pressure() const override;
  uint64_t ChangeCount() const override { return context_.changes.load(); }
  std::vector<std::pair<std::string, uint64_t>> Statistics() const override;
  StoreObservation Observe() const override;
  void SetExpiryListener(ExpiryListener listener) override {
    remover_.SetListener(std::move(listener));
  }
  void PauseExpiry(std::chrono::milliseconds how_long) override { remover_.Pause(how_long); }
  // Refuses all calls; a count, and a slice with many rows that are gone, end after their present
  // step.
  void BeginClose() override { context_.operations.Close(); }
  absl::Status Close() override;

  // --- For tests
  ServerRoster& roster() { return roster_; }
  Remover& remover() { return remover_; }

 private:
  HbaseStore(std::unique_ptr<HbaseClient> client, const HbaseStoreOptions& options,
             uint32_t writer);

  absl::Status Begin();
  // FailedPrecondition: a table of the namespaces' groups is another store's.
  absl::Status CheckTables();

  HbaseContext context_;
  SystemRows rows_;
  SystemRows background_rows_;
  ServerRoster roster_;
  NamespaceWriter namespaces_;
  Remover remover_;
  GatheredReads gathered_reads_;
  const HbaseReader reader_;
  HbaseWriter writer_;
  std::unique_ptr<PeriodicThread> beats_;
  std::unique_ptr<PeriodicThread> removals_;
  std::atomic<bool> is_closed_{false};  // Close() was called
};

}  // namespace varve
