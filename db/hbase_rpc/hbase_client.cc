#include "db/hbase_rpc/hbase_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "asio/posix/stream_descriptor.hpp"
#include "db/hbase_rpc/client_core.h"
#include "db/hbase_rpc/commit_call.h"
#include "db/hbase_rpc/each_call.h"
#include "db/hbase_rpc/read_call.h"
#include "db/hbase_rpc/scan_call.h"
#include "db/hbase_rpc/table_maker.h"
#include "db/hbase_rpc/zookeeper_lookup.h"
#include "google/protobuf/stubs/logging.h"
#include "spdlog/spdlog.h"
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

// The core that this thread drives.
thread_local ClientCore* driven_here = nullptr;

// The driver runs a core on the thread that made it.
class CoreDriver final : public StoreDriver {
 public:
  // Takes over a core whose thread has ended.
  using Adopt = std::function<void(std::shared_ptr<ClientCore> core)>;

  CoreDriver(std::shared_ptr<ClientCore> core, int descriptor, Adopt adopt)
      : core_(std::move(core)), wake_(core_->io(), descriptor), adopt_(std::move(adopt)) {
    VARVE_ASSERT(driven_here == nullptr);
    driven_here = core_.get();
  }
  ~CoreDriver() override {
    VARVE_ASSERT(driven_here == core_.get());
    driven_here = nullptr;
    wake_.cancel();
    core_->io().poll();  // of the wait for the descriptor, which is not the core's
    wake_.release();
    adopt_(std::move(core_));
  }

  void Poll() override { core_->io().poll(); }

  void Wait(std::chrono::milliseconds most, absl::FunctionRef<bool()> is_done) override {
    const auto end = std::chrono::steady_clock::now() + most;
    if (!is_watched_) Watch();
    is_awake_ = false;
    while (!is_awake_ && !is_done()) {
      if (core_->io().run_one_until(end) == 0) break;
    }
  }

 private:
  void Watch() {
    is_watched_ = true;
    wake_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [this](const asio::error_code& /*ended*/) {
                       is_watched_ = false;
                       is_awake_ = true;
                     });
  }

  std::shared_ptr<ClientCore> core_;
  asio::posix::stream_descriptor wake_;
  const Adopt adopt_;
  bool is_watched_ = false;
  bool is_awake_ = false;
};

// The client itself. A thread of its own runs all that it does but for the calls of those threads
// that drive it.
class AsioHbaseClient final : public HbaseClient {
 public:
  AsioHbaseClient(const HbaseOptions& options, std::vector<std::string> hosts, bool are_masters)
      : commons_(std::make_shared<ClientCommons>(options)),
        hosts_(std::move(hosts)),
        are_masters_(are_masters),
        own_(NewCore()) {}

  // Waits until the cluster has said where its regions are listed, or for the deadline.
  absl::Status Connect(Deadline deadline) {
    std::promise<absl::Status> promise;
    own_.core().Post([this, &promise, deadline] {
      own_.core().registry().FindMeta(
          [&promise](const absl::StatusOr<std::string>& server) {
            promise.set_value(server.status());
          },
          deadline);
    });
    return promise.get_future().get();
  }

  void GetRows(std::string table, std::vector<std::string> rows, Deadline deadline,
               RowsDone done) override {
    const absl::Status checked = CheckRows(rows);
    const size_t bytes = SizeOf(rows);
    ClientCore& core = Core();
    const absl::Status admitted = checked.ok() ? Enter(core, bytes) : checked;
    if (!admitted.ok()) {
      std::vector<RowValue> refused(rows.size(), admitted);
      return Refuse(core, [done, refused] { done(refused); });
    }
    core.Submit(std::make_shared<ReadCall>(core.environment(), std::move(table), std::move(rows),
                                           deadline, Leaving(bytes, std::move(done))));
  }

  void CommitRows(std::string table, std::vector<HbaseRowWrite> writes, Deadline deadline,
                  CommitDone done) override {
    const absl::Status checked = CheckWrites(writes);
    const size_t bytes = SizeOf(writes);
    ClientCore& core = Core();
    const absl::Status admitted = checked.ok() && !writes.empty() ? Enter(core, bytes) : checked;
    if (!admitted.ok() || writes.empty()) return Refuse(core, [done, admitted] { done(admitted); });
    core.Submit(std::make_shared<CommitCall>(core.environment(), std::move(table),
                                             std::move(writes), deadline,
                                             Leaving(bytes, std::move(done))));
  }

  void CommitEach(std::string table, std::vector<HbaseRowWrite> writes, Deadline deadline,
                  EachDone done) override {
    const absl::Status checked = CheckWrites(writes);
    const size_t bytes = SizeOf(writes);
    ClientCore& core = Core();
    const absl::Status admitted = checked.ok() ? Enter(core, bytes) : checked;
    if (!admitted.ok()) {
      std::vector<absl::Status> statuses(writes.size(), admitted);
      return Refuse(core, [done, statuses] { done(statuses); });
    }
    core.Submit(std::make_shared<EachCall>(core.environment(), std::move(table), std::move(writes),
                                           deadline, Leaving(bytes, std::move(done))));
  }

  void ScanRows(std::string table, HbaseScanRequest request, Deadline deadline,
                ScanDone done) override {
    const size_t bytes = request.lower.size() + request.upper.size();
    ClientCore& core = Core();
    const absl::Status admitted = Enter(core, bytes);
    if (!admitted.ok()) return Refuse(core, [done, admitted] { done(admitted); });
    core.Submit(std::make_shared<ScanCall>(core.environment(), std::move(table), std::move(request),
                                           deadline, Leaving(bytes, std::move(done))));
  }

  void SplitByRegion(std::string table, std::vector<std::string> rows, PartsDone done) override {
    ClientCore& core = Core();
    if (core.is_closing()) {
      Part all(rows.size());
      std::iota(all.begin(), all.end(), 0);
      return done({std::move(all)});
    }
    core.Post([&core, table = std::move(table), rows = std::move(rows), done = std::move(done)] {
      std::map<RegionPtr, Part> regions;
      for (uint32_t i = 0; i < rows.size(); ++i)
        regions[core.locator().FindTold(table, rows[i])].push_back(i);
      std::vector<Part> parts;
      for (auto& [region, part] : regions) parts.push_back(std::move(part));
      done(std::move(parts));
    });
  }

  absl::Status EnsureTable(const HbaseTableLayout& layout, bool may_create,
                           Deadline deadline) override {
    VARVE_ASSERT(!own_.RunsHere());
    if (absl::Status status = CheckTableLayout(layout); !status.ok()) return status;
    std::promise<absl::Status> promise;
    ClientCore& core = own_.core();
    core.Submit(std::make_shared<TableMaker>(
        core.environment(), core.registry(), layout, may_create,
        std::min(deadline, std::chrono::steady_clock::now() + commons_->options.open_deadline),
        [&promise](const absl::Status& status) { promise.set_value(status); }));
    return promise.get_future().get();
  }

  std::unique_ptr<StoreDriver> DriveOnThisThread(int descriptor) override {
    return std::make_unique<CoreDriver>(
        NewCore(), descriptor,
        [this](std::shared_ptr<ClientCore> core) { Adopt(std::move(core)); });
  }

  bool IsAnyAway() const override { return commons_->away.has_any(); }

  bool IsAway(std::string_view table, std::string_view row) const override {
    return commons_->away.Holds(table, row, std::chrono::steady_clock::now());
  }

  HbaseStatistics Statistics() const override {
    const HbaseCounters& counters = commons_->counters;
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
  std::shared_ptr<ClientCore> NewCore() const {
    return std::make_shared<ClientCore>(commons_, hosts_, are_masters_);
  }

  // Returns the core of the calls that this thread makes.
  ClientCore& Core() {
    const bool is_driven =
        driven_here != nullptr && !Undriven::is_on() && &driven_here->commons() == commons_.get();
    return is_driven ? *driven_here : own_.core();
  }

  // Goes on with the calls of a thread that drives no longer.
  void Adopt(std::shared_ptr<ClientCore> core) {
    try {
      auto thread = std::make_unique<CoreThread>(core);
      const absl::MutexLock lock(&mutex_);
      adopted_.push_back(std::move(thread));
    } catch (const std::system_error& error) {
      spdlog::warn("Calls of HBase were given up, as there is no thread for them: {}",
                   error.what());
      core->BeginClosing();
      core->EndCalls();
      core->io().poll();
      core->EndCalls();
    }
  }

  // Takes a call in, unless there are too many.
  absl::Status Enter(const ClientCore& core, size_t bytes) {
    HbaseCounters& counters = commons_->counters;
    if (core.is_closing()) return absl::CancelledError("the client of HBase is closed");
    const HbaseOptions& options = commons_->options;
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
    commons_->counters.in_flight.fetch_sub(1);
    commons_->counters.in_flight_bytes.fetch_sub(bytes);
  }

  template <typename Argument>
  std::function<void(Argument)> Leaving(size_t bytes, std::function<void(Argument)> done) {
    return [this, bytes, done = std::move(done)](Argument answer) {
      Leave(bytes);
      done(std::move(answer));
    };
  }

  // Answers a call that is none. A core that closes has nobody left to answer later.
  static void Refuse(ClientCore& core, std::function<void()> answer) {
    if (core.is_closing()) return answer();
    core.Post(std::move(answer));
  }

  const std::shared_ptr<ClientCommons> commons_;
  const std::vector<std::string> hosts_;
  const bool are_masters_;
  CoreThread own_;
  absl::Mutex mutex_;
  // The cores of threads that have ended. Their answers may make calls of the core above.
  std::vector<std::unique_ptr<CoreThread>> adopted_ ABSL_GUARDED_BY(mutex_);
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
  absl::Status status = client->Connect(end);
  // A cluster that is there and recovers at the moment is waited for.
  constexpr RetryPace::Milliseconds kPause = RetryPace::kLast / 4;
  while (absl::IsFailedPrecondition(status) && std::chrono::steady_clock::now() + kPause < end) {
    std::this_thread::sleep_for(kPause);
    absl::Status next = client->Connect(end);
    // An attempt that the deadline cut off says less than the one before it.
    if (next.ok() || std::chrono::steady_clock::now() < end) status = std::move(next);
  }
  if (!status.ok()) return status;
  return client;
}

}  // namespace varve
