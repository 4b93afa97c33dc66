// A caller of groups writes and reads all keys of a group together, and records when each operation
// was called, when it was done, and its result: lines for a checker of linearizability, to which a
// group is one key (prove/linearizability/check.go says how they read).
//
// Thread-safety: One thread at a time uses a caller.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "unit-tests/prove/caller.h"

namespace varve::prove {

class GroupCaller {
 public:
  // It has the option GROUP with ':'.
  static constexpr char kNamespace[] = "history";

  // Requires: no other caller of the history has the id, which is below 1000.
  GroupCaller(size_t id, uint64_t seed, size_t groups)
      : id_(id), groups_(groups), random_(seed * 1000 + id) {}

  // Calls until the connection is lost, when the operation under way stays without a result.
  // Internal: an answer that must not be, such as a group that is torn.
  absl::Status Run(Client* client);
  // Whatever was under way took effect before `death`, or never.
  void Died(int64_t death);
  void Write(std::vector<std::string>* lines) const;

 private:
  absl::Status CallOnce(Client* client, Operation* operation);
  // All of the group's values are the same one, or there are none.
  absl::StatusOr<std::string> Read(Client* client, const std::string& group);
  absl::Status Set(Client* client, const std::string& group, Operation* operation);
  // Replaces the group that it reads first, unless another writer comes between.
  absl::Status CompareAndSet(Client* client, const std::string& group, Operation* operation);

  const size_t id_;
  const size_t groups_;
  std::mt19937_64 random_;
  uint64_t last_number_ = 0;
  std::vector<Operation> operations_;
};

}  // namespace varve::prove
