#include "db/hbase_rpc/hbase_client.h"

#include <fmt/format.h>

#include <atomic>
#include <future>
#include <map>
#include <numeric>
#include <thread>
#include <utility>

#include "asio/executor_work_guard.hpp"
#include "asio/post.hpp"
#include "db/hbase_rpc/client_context.h"
#include "db/hbase_rpc/cluster_registry.h"
#include "db/hbase_rpc/commit_call.h"
#include "db/hbase_rpc/each_call.h"
#include "db/hbase_rpc/read_call.h"
#include "db/hbase_rpc/region_locator.h"
#include "db/hbase_rpc/scan_call.h"
#include "db/hbase_rpc/server_pool.h"
#include "db/hbase_rpc/table_maker.h"
#include "db/hbase_rpc/zookeeper_lookup.h"
#include "google/protobuf/stubs/logging.h"
#include "util/base/assert.h"

namespace varve {
namespace {

absl::Status CheckRow(const std::string& row) {
  if (!row.empty() && row.size() <= kHbaseMaxRowSize) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("a row of HBase has 1 to {} bytes, and this one {}",
                                                kHbaseMaxRowSize, row.size()));
}

absl::Status CheckRows(const std::vector<std::string>& rows) {
  for (const std::string& row : rows) {
    if (absl::Status status = CheckRow(row); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckWrites(const std::vector<HbaseRowWrite>& writes) {
  for (const HbaseRowWrite& write : writes) {
    if (absl::Status status = CheckRow(write.row); !status.ok()) return status;
    const bool is_empty = write.kind == HbaseRowWrite::Kind::kPut && write.value.empty();
    if (is_empty || (write.is_checked && write.expected.has_value() && write.expected->empty())) {
      return absl::InvalidArgumentError("a value of a row of HBase has one byte at least");
    }
  }
  return absl::OkStatus();
}

size_t SizeOf(const std::vector<std::string>& rows) {
  size_t size = 0;
  for (const std::string& row : rows) size += row.size() + sizeof(row);
  return size;
}

size_t SizeOf(const std::vector<HbaseRowWrite>& writes) {
  size_t size = 0;
  for (const HbaseRowWrite& write : writes) {
    size += sizeof(write) + write.row.size() + write.value.size();
    if (write.expected.has_value()) size += write.expected->size();
  }
  return size;
}

// The client itself. One thread of its own runs all that it does.
class AsioHbaseClient final : public HbaseClient {
 public:
  AsioHbaseClient(const HbaseOptions& options, std::vector<std::string> hosts, bool are_masters)
      : context_(options),
        servers_(context_),
        registry_(context_, servers_, std::move(hosts), are_masters),
        locator_(context_, servers_, registry_),
        environment_{context_, servers_, locator_, {}},
        work_(asio::make_work_guard(context_.io)),
        thread_([this] { context_.io.run(); }) {}

  ~AsioHbaseClient() override {
    VARVE_ASSERT(std::this_thread::get_id() != thread_.get_id());
    is_closing_ = true;
    asio::post(context_.io, [this] {
      EndCalls();
      // Calls that callbacks made just before it closed stand in line before this.
      asio::post(context_.io, [this] {
        EndCalls();
        context_.io.stop();
      });
    });
    thread_.join();
  }

  // Waits until the cluster has said where its regions are listed.
  absl::Status Connect() {
    std::promise<absl::Status> promise;
    asio::post(context_.io, [this, &promise] {
      registry_.FindMeta([&promise](const absl::StatusOr<std::string>& server) {
        promise.set_value(server.status());
      });
    });
    return promise.get_future().get();
  }

  void GetRows(std::string table, std::vector<std::string> rows, Deadline deadline,
               RowsDone done) override {
    const absl::Status checked = CheckRows(rows);
    const size_t bytes = SizeOf(rows);
    const absl::Status admitted = checked.ok() ? Enter(bytes) : checked;
    if (!admitted.ok()) {
      std::vector<RowValue> refused(rows.size(), admitted);
      return Refuse([done, refused] { done(refused); });
    }
    Submit(std::make_shared<ReadCall>(environment_, std::move(table), std::move(rows), deadline,
                                      Leaving(bytes, std::move(done))));
  }

  void CommitRows(std::string table, std::vector<HbaseRowWrite> writes, Deadline deadline,
                  CommitDone done) override {
    const absl::Status checked = CheckWrites(writes);
    const size_t bytes = SizeOf(writes);
    const absl::Status admitted = checked.ok() && !writes.empty() ? Enter(bytes) : checked;
    if (!admitted.ok() || writes.empty()) return Refuse([done, admitted] { done(admitted); });
    Submit(std::make_shared<CommitCall>(environment_, std::move(table), std::move(writes), deadline,
                                        Leaving(bytes, std::move(done))));
  }

  void CommitEach(std::string table, std::vector<HbaseRowWrite> writes, Deadline deadline,
                  EachDone done) override {
    const absl::Status checked = CheckWrites(writes);
    const size_t bytes = SizeOf(writes);
    const absl::Status admitted = checked.ok() ? Enter(bytes) : checked;
    if (!admitted.ok()) {
      std::vector<absl::Status> statuses(writes.size(), admitted);
      return Refuse([done, statuses] { done(statuses); });
    }
    Submit(std::make_shared<EachCall>(environment_, std::move(table), std::move(writes), deadline,
                                      Leaving(bytes, std::move(done))));
  }

  void ScanRows(std::string table, HbaseScanRequest request, Deadline deadline,
                ScanDone done) override {
    const size_t bytes = request.lower.size() + request.upper.size();
    const absl::Status admitted = Enter(bytes);
    if (!admitted.ok()) return Refuse([done, admitted] { done(admitted); });
    Submit(std::make_shared<ScanCall>(environment_, std::move(table), std::move(request), deadline,
                                      Leaving(bytes, std::move(done))));
  }

  void SplitByRegion(std::string table, std::vector<std::string> rows, PartsDone done) override {
    if (is_closing_) {
      Part all(rows.size());
      std::iota(all.begin(), all.end(), 0);
      return done({std::move(all)});
    }
    asio::post(context_.io,
               [this, table = std::move(table), rows = std::move(rows), done = std::move(done)] {
                 std::map<RegionPtr, Part> regions;
                 for (uint32_t i = 0; i < rows.size(); ++i)
                   regions[locator_.FindKnown(table, rows[i])].push_back(i);
                 std::vector<Part> parts;
                 for (auto& [region, part] : regions) parts.push_back(std::move(part));
                 done(std::move(parts));
               });
  }

  absl::Status EnsureTable(const HbaseTableLayout& layout, bool may_create) override {
    VARVE_ASSERT(std::this_thread::get_id() != thread_.get_id());
    if (absl::Status status = CheckTableLayout(layout); !status.ok()) return status;
    std::promise<absl::Status> promise;
    Submit(std::make_shared<TableMaker>(
        environment_, registry_, layout, may_create,
        std::chrono::steady_clock::now() + context_.options.open_deadline,
        [&promise](const absl::Status& status) { promise.set_value(status); }));
    return promise.get_future().get();
  }

  bool IsAnyAway() const override { return context_.away.has_any(); }

  bool IsAway(std::string_view table, std::string_view row) const override {
    return context_.away.Holds(table, row, std::chrono::steady_clock::now());
  }

  HbaseStatistics Statistics() const override {
    const HbaseCounters& counters = context_.counters;
    HbaseStatistics statistics;
    statistics.calls = counters.calls;
    statistics.requests = counters.requests;
    statistics.retries = counters.retries;
    statistics.region_lookups = counters.region_lookups;
    statistics.connections_opened = counters.connections_opened;
    statistics.bytes_sent = counters.bytes_sent;
    statistics.bytes_received = counters.bytes_received;
    statistics.missed_deadlines = counters.missed_deadlines;
    statistics.in_flight = counters.in_flight;
    statistics.in_flight_bytes = counters.in_flight_bytes;
    statistics.wait_nanos = counters.wait_nanos;
    return statistics;
  }

 private:
  // Takes a call in, unless there are too many.
  absl::Status Enter(size_t bytes) {
    HbaseCounters& counters = context_.counters;
    if (is_closing_) return absl::CancelledError("the client of HBase is closed");
    const HbaseOptions& options = context_.options;
    const uint64_t calls = counters.in_flight.fetch_add(1);
    const uint64_t held = counters.in_flight_bytes.fetch_add(bytes);
    const bool fits = bytes <= options.small_call_bytes || held + bytes <= options.max_call_bytes;
    if (calls < options.max_calls && fits) {
      counters.calls.fetch_add(1, std::memory_order_relaxed);
      return absl::OkStatus();
    }
    Leave(bytes);
    return absl::UnavailableError(
        fmt::format("{} calls with {} bytes wait for HBase, which is the limit: this one was not "
                    "made, and may be tried again",
                    calls, held));
  }

  void Leave(size_t bytes) {
    context_.counters.in_flight.fetch_sub(1);
    context_.counters.in_flight_bytes.fetch_sub(bytes);
  }

  template <typename Argument>
  std::function<void(Argument)> Leaving(size_t bytes, std::function<void(Argument)> done) {
    return [this, bytes, done = std::move(done)](Argument answer) {
      Leave(bytes);
      done(std::move(answer));
    };
  }

  void Submit(std::shared_ptr<HbaseCall> call) {
    asio::post(context_.io, [call = std::move(call)] { call->Begin(); });
  }

  // Answers a call that is none. A client that closes has nobody left to answer later.
  void Refuse(std::function<void()> answer) {
    if (is_closing_) return answer();
    asio::post(context_.io, std::move(answer));
  }

  void EndCalls() {
    const absl::Status closed = absl::CancelledError("the client of HBase is closed");
    while (!environment_.calls.empty()) {
      const std::shared_ptr<HbaseCall> call = *environment_.calls.begin();
      call->GiveUp(closed);
    }
    servers_.CloseAll(closed);
  }

  ClientContext context_;
  ServerPool servers_;
  ClusterRegistry registry_;
  RegionLocator locator_;
  CallEnvironment environment_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::atomic<bool> is_closing_ = false;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HbaseClient>> HbaseClient::Open(const HbaseOptions& options) {
  if (options.quorum.empty() == options.masters.empty()) {
    return absl::InvalidArgumentError(
        "one of the hosts of ZooKeeper (the quorum) and the masters of HBase is to be given");
  }
  if (!options.znode_parent.starts_with('/') || options.znode_parent.ends_with('/')) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no node of ZooKeeper: it begins with a '/' and does not end with one",
                    options.znode_parent));
  }
  const bool are_masters = options.quorum.empty();
  auto hosts = are_masters
                   ? ParseServerList(options.masters, "HBase's masters (--hbase-masters)")
                   : ParseServerList(options.quorum, "the quorum of ZooKeeper (--hbase-quorum)");
  if (!hosts.ok()) return hosts.status();
  // What cannot be parsed is told by a status, and not on standard error as well.
  google::protobuf::SetLogHandler(nullptr);
  const auto end = std::chrono::steady_clock::now() + options.open_deadline;
  auto client = std::make_unique<AsioHbaseClient>(options, *std::move(hosts), are_masters);
  absl::Status status = client->Connect();
  // A cluster that is there and recovers at the moment is waited for.
  while (absl::IsFailedPrecondition(status) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(RetryPace::kLast / 4);
    status = client->Connect();
  }
  if (!status.ok()) return status;
  return client;
}

}  // namespace varve
