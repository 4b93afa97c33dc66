// A client core is one event loop of a client, and all that runs on it: the connections, the
// regions that it knows, and the calls under way. Cores of one client share settings, counters and
// the regions that do not answer.
//
// A core is run by a thread of its own (CoreThread), or by a thread that makes calls (StoreDriver).
//
// Thread-safety: Post(), Submit() and is_closing() may be called by any thread. The thread that
// runs io() alone uses the rest.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "asio/executor_work_guard.hpp"
#include "asio/post.hpp"
#include "db/hbase_rpc/client_context.h"
#include "db/hbase_rpc/cluster_registry.h"
#include "db/hbase_rpc/hbase_call.h"
#include "db/hbase_rpc/region_locator.h"
#include "db/hbase_rpc/server_pool.h"
#include "util/base/assert.h"

namespace varve {

class ClientCore {
 public:
  // `hosts` and `are_masters` as ClusterRegistry has them.
  ClientCore(std::shared_ptr<ClientCommons> commons, std::vector<std::string> hosts,
             bool are_masters)
      : context_(std::move(commons)),
        servers_(context_),
        registry_(context_, servers_, std::move(hosts), are_masters),
        locator_(context_, servers_, registry_),
        environment_{context_, servers_, locator_, {}},
        work_(asio::make_work_guard(context_.io)) {}
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;

  template <typename Task>
  void Post(Task task) {
    asio::post(context_.io, std::move(task));
  }
  void Submit(std::shared_ptr<HbaseCall> call) {
    Post([call = std::move(call)] { call->Begin(); });
  }

  // From now on no call is taken in any more.
  void BeginClosing() { is_closing_ = true; }
  bool is_closing() const { return is_closing_; }
  // Answers all calls with Cancelled, and ends the connections.
  void EndCalls() {
    const absl::Status closed = absl::CancelledError("the client of HBase is closed");
    while (!environment_.calls.empty()) {
      const std::shared_ptr<HbaseCall> call = *environment_.calls.begin();
      call->GiveUp(closed);
    }
    servers_.CloseAll(closed);
  }

  const ClientCommons& commons() const { return *context_.commons; }
  asio::io_context& io() { return context_.io; }
  ClusterRegistry& registry() { return registry_; }
  RegionLocator& locator() { return locator_; }
  CallEnvironment& environment() { return environment_; }

 private:
  ClientContext context_;
  ServerPool servers_;
  ClusterRegistry registry_;
  RegionLocator locator_;
  CallEnvironment environment_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::atomic<bool> is_closing_ = false;
};

// A core thread runs a core until it is destroyed, which answers all calls of the core.
class CoreThread {
 public:
  // Throws std::system_error where there is no thread to be had.
  explicit CoreThread(std::shared_ptr<ClientCore> core)
      : core_(std::move(core)), thread_([this] { core_->io().run(); }) {}
  ~CoreThread() {
    VARVE_ASSERT(!RunsHere());
    core_->BeginClosing();
    core_->Post([this] {
      core_->EndCalls();
      // Calls that callbacks made just before it closed stand in line before this.
      core_->Post([this] {
        core_->EndCalls();
        core_->io().stop();
      });
    });
    thread_.join();
  }
  CoreThread(const CoreThread&) = delete;
  CoreThread& operator=(const CoreThread&) = delete;

  ClientCore& core() { return *core_; }
  bool RunsHere() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  const std::shared_ptr<ClientCore> core_;
  std::thread thread_;
};

}  // namespace varve
