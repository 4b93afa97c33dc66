// The side of a connection that others see: what they left for it, and what they know of it.
#include <chrono>

#include "server/clients/client_modes.h"
#include "server/net/io_loop.h"
#include "server/net/session.h"
#include "spdlog/spdlog.h"

namespace varve {

void Session::TakeMail() {
  if (client_.link.mailbox.empty() || in_flight_ || executor_.inside_reply() ||
      client_.close_after_reply)
    return;
  if (OutputFull()) return;
  client_.link.mailbox.Take(&output_, client_.protocol,
                            server_->live.unsent_max_bytes - output_.size());
}

void Session::OnMail() {
  if (closed_) return;
  if (client_.link.mailbox.close_requested()) return Close();
  if (client_.link.mailbox.OverLimit(std::chrono::steady_clock::now())) {
    spdlog::warn(
        "Client {} at {} doesn't take its messages, {} bytes wait for it: its connection is closed",
        client_.id, client_.address, client_.link.mailbox.bytes());
    return Close();
  }
  loop_->Schedule(this);
}

bool Session::LeavesSlowly() const { return varve::LeavesSlowly(client_); }

void Session::LeaveOnWorker() { LeaveModes(&server_->clients, &client_); }

void Session::ShowFigures() {
  client_.link.protocol.store(client_.protocol, std::memory_order_relaxed);
  client_.link.output_bytes.store(output_.size(), std::memory_order_relaxed);
  client_.link.input_bytes.store(input_.size(), std::memory_order_relaxed);
  client_.link.input_room.store(input_.room(), std::memory_order_relaxed);
  CountMemory();
}

void Session::CountMemory() {
  const size_t names = client_.link.subscription_bytes.load(std::memory_order_relaxed);
  // A request of many tiny arguments takes more for them than for its bytes.
  const size_t arguments = parser_.memory() + batch_.arguments.size() * sizeof(std::string_view);
  const size_t transaction = client_.link.transaction_bytes.load(std::memory_order_relaxed);
  const size_t held = input_.size() + output_.size() + names + arguments + transaction;
  const size_t counted = held > ClientMemory::kNothing ? held : 0;
  if (const size_t before = client_.link.memory.load(std::memory_order_relaxed);
      counted != before) {
    client_.link.memory.store(counted, std::memory_order_relaxed);
    server_->clients.memory.Change(before, counted);
  }
  const size_t limit = server_->live.max_clients_memory.load(std::memory_order_relaxed);
  if (limit > 0 && server_->clients.memory.bytes() > limit)
    server_->clients.memory.Evict(limit, server_->clients.registry);
}

}  // namespace varve
