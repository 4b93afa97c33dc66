#include "benchmark/engine/ycsb.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmark/engine/engine_work.h"
#include "benchmark/engine/timed_threads.h"
#include "benchmark/workload.h"
#include "benchmark/zipfian.h"

namespace varve::bench {
namespace {

constexpr uint64_t kLongestScan = 100;

// The share of operations that only read (or scan), in percent.
uint64_t ReadPercent(char workload) {
  switch (workload) {
    case 'a':
    case 'f':
      return 50;
    case 'c':
      return 100;
    default:
      return 95;
  }
}

// What one thread does.
class Client {
 public:
  Client(const Row& row, const Zipfian* zipfian, int thread, Peer* peer)
      : row_(row),
        zipfian_(zipfian),
        thread_(static_cast<uint64_t>(thread)),
        random_(row.seed + thread_),
        peer_(peer),
        reader_(peer->NewReader()),
        value_(row.value_size) {}

  void Operate() {
    if (random_.Below(100) < ReadPercent(row_.workload)) {
      if (row_.workload == 'e') return Scan(Draw());
      return Get(row_.workload == 'd' ? DrawLate() : Draw());
    }
    switch (row_.workload) {
      case 'd':
      case 'e':
        return Put(Inserted(inserts_++));
      case 'f': {
        const uint64_t number = Draw();
        Get(number);
        return Put(number);
      }
      default:
        return Put(Draw());
    }
  }

 private:
  // Returns the number of the key that this thread inserted as its i-th.
  uint64_t Inserted(uint64_t i) const {
    return row_.first_insert + i * static_cast<uint64_t>(row_.threads) + thread_;
  }

  uint64_t Draw() {
    if (zipfian_ == nullptr) return random_.Below(row_.entries);
    return Spread(zipfian_->Draw(&random_), row_.entries);
  }

  // Of the keys that were filled and that this thread inserted, those of late rather.
  uint64_t DrawLate() {
    const uint64_t age =
        zipfian_ == nullptr ? random_.Below(row_.entries + inserts_) : zipfian_->Draw(&random_);
    return age < inserts_ ? Inserted(inserts_ - 1 - age) : row_.entries - 1 - (age - inserts_);
  }

  void Get(uint64_t number) { GetEntry(row_, number, &key_, reader_.get(), &read_); }
  void Put(uint64_t number) { peer_->Put(key_.Present(number), value_.Of(number)); }

  void Scan(uint64_t number) {
    SeekAndStep(row_, number, random_.Below(kLongestScan), &key_, reader_.get());
  }

  const Row& row_;
  const Zipfian* const zipfian_;  // null: keys are drawn evenly
  const uint64_t thread_;
  Random random_;
  Peer* const peer_;
  const std::unique_ptr<Reader> reader_;
  Key key_;
  Value value_;
  std::string read_;
  uint64_t inserts_ = 0;
};

}  // namespace

Timing RunYcsb(const Row& row, Peer* peer) {
  std::optional<Zipfian> zipfian;
  if (row.zipfian) zipfian.emplace(row.entries);
  std::vector<std::unique_ptr<Client>> clients;
  for (int thread = 0; thread < row.threads; ++thread) {
    clients.push_back(std::make_unique<Client>(row, zipfian ? &*zipfian : nullptr, thread, peer));
  }
  return TimeThreads(row.threads, row.operations, row.latency_every(),
                     [&](int thread, uint64_t begin, uint64_t end, Latencies* latencies) {
                       Client& client = *clients[static_cast<size_t>(thread)];
                       for (uint64_t i = begin; i < end; ++i)
                         latencies->Time([&] { client.Operate(); });
                     });
}

}  // namespace varve::bench
