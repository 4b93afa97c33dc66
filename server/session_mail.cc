// The side of a connection that others see: what they left for it, and what they know of it.
#include <chrono>

#include "server/io_loop.h"
#include "server/session.h"
#include "spdlog/spdlog.h"

namespace varve {

void Session::TakeMail() {
  if (client_.link.mailbox.empty() || in_flight_ || executor_.inside_reply() || client_.close_after_reply) return;
  if (OutputFull()) return;
  client_.link.mailbox.Take(&output_, client_.protocol, server_->options.max_unsent_reply_bytes - output_.size());
}

void Session::OnMail() {
  if (closed_) return;
  if (client_.link.mailbox.close_requested()) return Close();
  if (client_.link.mailbox.OverLimit(std::chrono::steady_clock::now())) {
    spdlog::warn("Client {} at {} doesn't take its messages, {} bytes wait for it: its connection is closed",
                 client_.id, client_.address, client_.link.mailbox.bytes());
    return Close();
  }
  loop_->Schedule(this);
}

void Session::ShowFigures() {
  client_.link.protocol.store(client_.protocol, std::memory_order_relaxed);
  client_.link.output_bytes.store(output_.size(), std::memory_order_relaxed);
  client_.link.input_bytes.store(input_.size(), std::memory_order_relaxed);
  client_.link.input_room.store(input_.room(), std::memory_order_relaxed);
}

}  // namespace varve
