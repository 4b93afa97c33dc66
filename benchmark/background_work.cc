#include "benchmark/background_work.h"

#include <chrono>
#include <string_view>

#include "benchmark/contenders.h"
#include "benchmark/process.h"
#include "client/client.h"

namespace varve::bench {
namespace {

constexpr auto kRest =
    std::chrono::milliseconds(5);  // so that a server which has nothing to do isn't asked all the time

}  // namespace

BackgroundWork::BackgroundWork(const std::string& contender, uint16_t port) {
  const std::string command = contender == kVarve ? "COMPACT" : contender == kRedis ? "BGREWRITEAOF" : "";
  if (!command.empty()) thread_ = std::thread([this, command, port] { Run(command, port); });
}

BackgroundWork::~BackgroundWork() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
}

void BackgroundWork::Run(const std::string& command, uint16_t port) {
  const auto client = Client::Connect("127.0.0.1", port);
  if (!client.ok()) Fail(client.status().ToString());
  const std::string_view words[] = {command};
  while (!ends_) {
    // Redis answers an error while the one before is still under way.
    if (const auto reply = (*client)->Call(words); !reply.ok() && absl::IsUnavailable(reply.status())) {
      Fail(reply.status().ToString());
    }
    std::this_thread::sleep_for(kRest);
  }
}

}  // namespace varve::bench
