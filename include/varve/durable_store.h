// DurableStore is the base of a store whose writes are durable once they are answered: there is
// nothing to wait for and nothing to sync.
//
// Thread-safety: All functions are thread-safe.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "varve/store.h"

namespace varve {

class DurableStore : public Store {
 public:
  SequenceNumber durable_sequence() const override { return kNoSequence; }
  absl::Status log_status() const override { return absl::OkStatus(); }
  // Every write is as durable as the most cautious mode asks for.
  void SetSync(Durability) override {}
  absl::Status PushUnsynced() override { return absl::OkStatus(); }
  absl::Status WaitUntilDurable(SequenceNumber) override { return absl::OkStatus(); }
  bool TrySync() override { return false; }
  absl::Status Sync() override { return absl::OkStatus(); }
  // Nobody is ever told: durable_sequence() and log_status() stay the same.
  uint64_t AddDurabilityListener(std::function<void()>) override { return 1; }
  void RemoveDurabilityListener(uint64_t) override {}
};

}  // namespace varve
