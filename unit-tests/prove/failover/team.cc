#include "unit-tests/prove/failover/team.h"

#include <chrono>

#include "util/base/status.h"

namespace varve::prove {

Team::Team(size_t first_id, size_t callers, uint64_t seed, LastSeen* seen, CallerKind kind) {
  for (size_t i = 0; i < callers; ++i) callers_.emplace_back(first_id + i, seed, seen, kind);
}

absl::Status Team::Start(uint16_t port) {
  clients_.clear();
  for (size_t i = 0; i < callers_.size(); ++i) {
    VARVE_ASSIGN_OR_RETURN(clients_.emplace_back(),
                           Client::Connect("127.0.0.1", port, std::chrono::seconds(120)));
  }
  ends_.assign(callers_.size(), absl::OkStatus());
  for (size_t i = 0; i < callers_.size(); ++i)
    threads_.emplace_back([this, i] { ends_[i] = callers_[i].Run(clients_[i].get()); });
  return absl::OkStatus();
}

void Team::OnlySets() {
  for (Caller& caller : callers_) caller.OnlySets();
}

absl::Status Team::Join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  for (const absl::Status& end : ends_) VARVE_RETURN_IF_ERROR(end);
  return absl::OkStatus();
}

void Team::Died(int64_t death) {
  for (Caller& caller : callers_) caller.Died(death);
}

uint64_t Team::acknowledged() const {
  uint64_t acknowledged = 0;
  for (const Caller& caller : callers_) acknowledged += caller.acknowledged();
  return acknowledged;
}

}  // namespace varve::prove
