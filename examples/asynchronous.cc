// Requests without blocking, on an io_context that may serve much else: each reply comes to a
// callback.
//
//   example_asynchronous [port]
#include <cstdio>
#include <cstdlib>
#include <string>

#include "asio/io_context.hpp"
#include "client/async_client.h"

namespace {

// Counts to ten, one INCR after the other, then closes its connection, which lets io_context::run()
// return.
class Counter {
 public:
  Counter(asio::io_context& context, uint16_t port) : client_(context, {.port = port}) {}

  void Start() {
    client_.Call({"DEL", "example:counter"},
                 [this](absl::StatusOr<varve::Reply> reply) { Next(std::move(reply)); });
  }
  bool ok() const { return ok_; }

 private:
  void Next(absl::StatusOr<varve::Reply> reply) {
    if (!reply.ok() || reply->is_error()) {
      const std::string what = reply.ok() ? reply->text : reply.status().ToString();
      std::fprintf(stderr, "%s\n", what.c_str());
      return client_.Close();
    }
    if (reply->integer == 10) {
      std::printf("counted to %lld\n", static_cast<long long>(reply->integer));
      ok_ = true;
      return client_.Close();
    }
    client_.Call({"INCR", "example:counter"},
                 [this](absl::StatusOr<varve::Reply> next) { Next(std::move(next)); });
  }

  varve::AsyncClient client_;
  bool ok_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  asio::io_context context;
  Counter counter(context, static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 7777));
  counter.Start();
  context.run();
  return counter.ok() ? 0 : 1;
}
