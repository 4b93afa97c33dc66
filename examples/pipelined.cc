// A hundred thousand writes over one connection: sent ahead, their replies collected in order. A
// connection that is lost on the way is made again; a plain SET may be executed twice, so it is
// asked to be sent again.
//
//   example_pipelined [port]
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "client/pipeline.h"
#include "client/reply_status.h"

namespace {

constexpr int kWrites = 100000;
constexpr size_t kAhead = 1000;  // requests under way

absl::Status TakeOne(varve::Pipeline* pipeline) {
  absl::StatusOr<varve::Reply> reply = pipeline->Receive();
  if (!reply.ok()) return reply.status();
  return varve::StatusOf(*reply);
}

absl::Status Run(uint16_t port) {
  absl::StatusOr<std::unique_ptr<varve::Pipeline>> pipeline =
      varve::Pipeline::Connect({.port = port});
  if (!pipeline.ok()) return pipeline.status();
  for (int i = 0; i < kWrites; ++i) {
    (*pipeline)->Send({"SET", "example:" + std::to_string(i), std::to_string(i)},
                      varve::WhenLost::kResend);
    if ((*pipeline)->outstanding() < kAhead) continue;
    if (absl::Status written = TakeOne(pipeline->get()); !written.ok()) return written;
  }
  while ((*pipeline)->outstanding() > 0) {
    if (absl::Status written = TakeOne(pipeline->get()); !written.ok()) return written;
  }
  std::printf("%d keys written\n", kWrites);
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 7777));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
