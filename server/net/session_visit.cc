// What a session does once a second, whether anything arrives or not.
#include <chrono>

#include "server/net/io_loop.h"
#include "server/net/session.h"
#include "spdlog/spdlog.h"

namespace varve {
namespace {

constexpr uint32_t kIdle = 1;  // seconds after which a connection's buffers are given back

}  // namespace

void Session::Visit() {
  if (closed_ || in_flight_) return;
  const std::chrono::seconds idle_timeout = server_->live.idle_timeout;
  const std::chrono::nanoseconds snapshot_max_age = server_->live.snapshot_max_age;
  const uint32_t silent = loop_->seconds() - active_at_;
  const bool waits_for_client = !has_batch_ || OutputFull();
  if (!client_.link.mailbox.empty()) OnMail();
  if (closed_) return;
  if (idle_timeout.count() > 0 && waits_for_client && !client_.Listens() &&
      silent > idle_timeout.count()) {
    spdlog::debug("Client {} at {} was idle for {} s, its connection is closed", client_.id,
                  client_.address, silent);
    return Close();
  }
  if (const std::chrono::seconds login_timeout = server_->live.login_timeout;
      login_timeout.count() > 0 && MustLogIn() &&
      std::chrono::steady_clock::now() - client_.connected > login_timeout) {
    spdlog::debug("Client {} at {} has not given the password, its connection is closed",
                  client_.id, client_.address);
    return Close();
  }
  if (const auto since = executor_.streaming_since();
      since && snapshot_max_age.count() > 0 && !output_.empty() &&
      std::chrono::steady_clock::now() - *since > snapshot_max_age) {
    spdlog::warn(
        "Client {} at {} has not taken its reply within --snapshot-max-age, its connection is "
        "closed",
        client_.id, client_.address);
    return Close();
  }
  if (output_gauge_.Over(output_.size(), server_->live.reply_limits.Get(),
                         std::chrono::steady_clock::now())) {
    spdlog::warn(
        "Client {} at {} leaves {} bytes of replies unread, more than --client-output-buffer-limit "
        "allows: its "
        "connection is closed",
        client_.id, client_.address, output_.size());
    return Close();
  }
  if (silent <= kIdle || has_batch_) return;
  input_.ShrinkAbove(input_.size());
  output_.ShrinkAbove(output_.size());
  worker_replies_.ShrinkAbove(0);
}

}  // namespace varve
