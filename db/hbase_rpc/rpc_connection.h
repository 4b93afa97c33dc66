// RpcConnection is one connection to one service of one server of HBase. It has many calls under
// way, up to a limit beyond which they wait here for their turn, and ends each one by its deadline.
// A connection that has broken ends all its calls and stays closed; whoever needs the server then
// makes another one. So does one on which a call misses its deadline while the server, although it
// was asked, has said nothing for about the time of an attempt.
//
// Thread-safety: The thread that runs the io_context alone uses an object.
// Invariants: Each call is answered exactly once, and never inside of Call().
// Requires: The context outlives the object and its pending handlers.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "asio/ip/tcp.hpp"
#include "db/hbase_rpc/client_context.h"
#include "db/hbase_rpc/hbase_failure.h"
#include "db/hbase_rpc/rpc_frame.h"

namespace varve {

// The answer to one request: a failure, or a message and cells that are there until `done` returns.
struct RpcResult {
  std::optional<HbaseFailure> failure;
  std::string_view message;
  std::string_view cells;
};

// Splits host:port; InvalidArgument where it is none.
absl::StatusOr<std::pair<std::string, uint16_t>> ParseServerAddress(std::string_view address);

using ResolveDone =
    std::function<void(const asio::error_code&, const asio::ip::tcp::resolver::results_type&)>;
// Finds out the addresses of a server, and calls `done` on the thread of the resolver's context. An
// address of numbers does not wait behind a name that the system is slow to answer for.
void ResolveServer(const std::pair<std::string, uint16_t>& server,
                   asio::ip::tcp::resolver* resolver, ResolveDone done);

class RpcConnection : public std::enable_shared_from_this<RpcConnection> {
 public:
  using Time = ClientContext::Time;
  using Done = std::function<void(const RpcResult& result)>;

  // `address` is host:port.
  RpcConnection(ClientContext& context, std::string address, std::string service)
      : context_(context),
        address_(std::move(address)),
        service_(std::move(service)),
        resolver_(context.io),
        socket_(context.io) {}

  // Connects. Calls are taken from here on.
  void Open();

  void Call(std::string_view method, const google::protobuf::MessageLite& parameter, Time deadline,
            Done done);
  // Ends all calls.
  void Close(const HbaseFailure& why);
  bool is_closed() const { return is_closed_; }

 private:
  struct PendingCall {
    Done done;
    TimerQueue::Id timer;
    // The request, until it is sent.
    std::string frame;
    Time sent_at = Time::min();
    bool is_sent() const { return sent_at != Time::min(); }
  };

  void Connect(const asio::ip::tcp::resolver::results_type& endpoints);
  void BeginSession();
  void SendWaiting();
  void Flush();
  void Read();
  void TakeFrames();
  // Takes one frame; returns false where the connection was closed over it.
  bool TakeFrame(std::string_view frame);
  void EndCall(uint32_t call_id);
  void MissDeadline(uint32_t call_id);
  void CloseOver(std::string_view what);

  ClientContext& context_;
  const std::string address_;
  const std::string service_;
  asio::ip::tcp::resolver resolver_;
  asio::ip::tcp::socket socket_;
  TimerQueue::Id connect_timer_;
  bool is_open_ = false;
  bool is_closed_ = false;

  std::unordered_map<uint32_t, PendingCall> calls_;
  // Calls that wait for their turn. Those that have ended meanwhile are passed over.
  std::deque<uint32_t> waiting_;
  size_t sent_calls_ = 0;
  uint32_t last_call_id_ = 0;

  std::string unsent_;
  std::string being_sent_;
  bool is_sending_ = false;
  bool flush_is_posted_ = false;

  // Bytes received and not taken yet are the first `received_` ones.
  std::vector<char> buffer_;
  size_t received_ = 0;
  Time last_received_ = Time::min();
  // When the first request went out that nothing was received after.
  Time asked_since_ = Time::min();
};

}  // namespace varve
