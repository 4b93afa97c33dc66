// Runs a writer (unit-tests/prove/writer.h) for as long as it takes: after every few hundred
// requests its keys are read and held against its oracle, which then begins anew, so that it takes
// no more memory than that.
//
// Thread-safety: one thread at a time uses an object.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "unit-tests/prove/soak/scene.h"
#include "unit-tests/prove/writer.h"

namespace varve::prove {

class ExactWriter {
 public:
  ExactWriter(int id, uint64_t seed) : writer_(id, seed) {}

  // Writes one request after the other until the scene has ended, and checks once more then.
  void Run(Scene* scene);
  // Reads all keys of the writer from the server at the port, by a scan and one by one.
  absl::Status Check(uint16_t port);

  uint64_t requests() const { return requests_; }
  uint64_t checks() const { return checks_; }
  // Returns whether every request was answered as it must be.
  bool knows_all() const { return knows_all_; }

 private:
  absl::Status Write(Client* client, Findings* findings);
  absl::Status CheckWith(Client* client);

  Writer writer_;
  std::atomic<uint64_t> requests_{0};
  uint64_t checks_ = 0;
  bool knows_all_ = false;
};

}  // namespace varve::prove
