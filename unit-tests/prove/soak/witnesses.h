// The witnesses look on while a soak goes on: a reader of the past, a reader of the follower, a
// client that caches values and is told what changes, and a housekeeper, which has ranges merged
// and makes branches.
//
// Thread-safety: one thread at a time runs a witness; its figures are asked for when it has ended.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "client/client.h"
#include "unit-tests/prove/soak/scene.h"

namespace varve::prove {

// Reads all of a namespace as it was at an earlier version, and holds it against what the feed had
// told up to there.
class PastReader {
 public:
  explicit PastReader(uint64_t seed) : random_(seed) {}
  void Run(Scene* scene);

  uint64_t reads() const { return reads_; }
  uint64_t trimmed() const { return trimmed_; }

 private:
  absl::Status Read(Scene* scene, Client* client);

  std::mt19937_64 random_;
  uint64_t reads_ = 0;
  uint64_t trimmed_ = 0;  // versions that were no longer kept
};

// Writes a number at the primary and reads it at the follower, once that has its version; and reads
// there a namespace, each value of which must be one that somebody wrote for its key.
class FollowerReader {
 public:
  void Run(Scene* scene);

  uint64_t reads() const { return reads_; }

 private:
  absl::Status Probe(Scene* scene, Client* primary, Client* follower);
  absl::Status ReadAll(Scene* scene);

  uint64_t number_ = 0;
  uint64_t reads_ = 0;
};

// Caches values by CLIENT TRACKING. At the end, what it was not told of is as it has it.
class TrackingReader {
 public:
  explicit TrackingReader(uint64_t seed) : random_(seed) {}
  void Run(Scene* scene);
  // Requires: nothing writes any more, and Run has ended.
  absl::Status Check(uint16_t port);

  uint64_t told() const { return told_; }

 private:
  absl::Status Read(Client* client);
  void TakePush(const Reply& message);

  std::mt19937_64 random_;
  std::unique_ptr<Client> client_;
  std::map<std::string, std::string> cache_;  // "" where a key is missing
  uint64_t told_ = 0;
};

// Has everything, or a range, merged, and makes a branch, which has to be what the feed says, and
// drops it.
class Housekeeper {
 public:
  explicit Housekeeper(uint64_t seed) : random_(seed) {}
  void Run(Scene* scene);

  uint64_t merges() const { return merges_; }
  uint64_t branches() const { return branches_; }

 private:
  absl::Status Merge(Scene* scene);
  absl::Status Branch(Scene* scene);

  std::mt19937_64 random_;
  uint64_t merges_ = 0;
  uint64_t branches_ = 0;
};

}  // namespace varve::prove
