// All clients of a soak, each in a thread of its own.
//
// Thread-safety: one thread uses the object.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "unit-tests/prove/soak/exact_writer.h"
#include "unit-tests/prove/soak/key_owner.h"
#include "unit-tests/prove/soak/saved_copies.h"
#include "unit-tests/prove/soak/scene.h"
#include "unit-tests/prove/soak/witnesses.h"

namespace varve::prove {

// What the namespaces and the databases of a soak may hold, in bytes.
struct Shares {
  uint64_t zipped = 0;
  uint64_t quick = 0;
  uint64_t cache = 0;     // a quota
  uint64_t database = 0;  // what `maxmemory` leaves, about

  static Shares Of(uint64_t data_bytes) {
    return {data_bytes / 4, data_bytes / 8, data_bytes / 4, data_bytes / 4};
  }
};

class Load {
 public:
  // Requires: `scene` outlives the load.
  Load(const Shares& shares, uint64_t seed, Scene* scene);
  ~Load() { Join(); }

  // Has all of them call the servers until the scene has ended.
  void Start();
  void Join();
  // Holds what the primary has, or another server with the same data, against what each client
  // knows; not against a client whose last requests were not answered, which is a finding already.
  void Check(uint16_t port);
  // Holds what the feed told against what the clients were told. Requires: it has told everything.
  void CheckFeed();

  uint64_t requests() const;
  uint64_t oracle_checks() const;
  uint64_t vanished() const;
  const PastReader& past() const { return past_; }
  const FollowerReader& follower() const { return follower_; }
  TrackingReader& tracking() { return tracking_; }
  const Housekeeper& housekeeper() const { return housekeeper_; }

 private:
  void AddOwner(OwnerOptions options, uint64_t bytes);

  Scene& scene_;
  const uint64_t seed_;
  std::vector<std::unique_ptr<ExactWriter>> writers_;
  std::vector<std::unique_ptr<KeyOwner>> owners_;
  PastReader past_;
  FollowerReader follower_;
  TrackingReader tracking_;
  Housekeeper housekeeper_;
  std::vector<std::thread> threads_;
};

}  // namespace varve::prove
