#include "benchmark/server/background_work.h"

#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmark/process.h"
#include "benchmark/server/contenders.h"
#include "client/client.h"

namespace varve::bench {
namespace {

constexpr auto kRest =
    // So that a server which has nothing to do isn't asked all the time.
    std::chrono::milliseconds(5);

}  // namespace

BackgroundWork::BackgroundWork(const std::string& contender, uint16_t port) {
  const std::string command = contender == kVarve   ? "COMPACT"
                              : contender == kRedis ? "BGREWRITEAOF"
                                                    : "";
  if (!command.empty()) thread_ = std::thread([this, command, port] { Run(command, port); });
}

BackgroundWork::~BackgroundWork() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
}

void BackgroundWork::Run(const std::string& command, uint16_t port) {
  const auto client = Client::Connect("127.0.0.1", port);
  if (!client.ok()) Fail(client.status().ToString());
  const auto call = [&](std::vector<std::string_view> words) {
    absl::StatusOr<Reply> reply = (*client)->Call(words);
    if (!reply.ok()) Fail(reply.status().ToString());
    return std::move(reply->text);
  };
  const bool waits_itself = command == "COMPACT";  // Redis rewrites in a process of its own
  while (!ends_) {
    call({command});
    do {
      std::this_thread::sleep_for(kRest);
    } while (!waits_itself &&
             call({"INFO", "persistence"}).find("aof_rewrite_in_progress:0") == std::string::npos);
  }
}

}  // namespace varve::bench
