// An eviction step evicts keys from a pool of orders, lowest ranks first, until its need is met.
// The pool is one namespace, or all databases together.
//
//   1. It reads the front of each order, looks each key up, and computes its true rank.
//   2. Keys whose true rank is not above that of any entry behind the front may go; the entries of
//      the others are mended.
//   3. Where a key without an entry may come before them, the step walks first.
//
// A key that is damaged stays in the store, and its entry goes. Where a read fails otherwise the
// key may be whole, so its entry moves behind those of keys that can be read, and the true rank is
// found when its turn comes again.
//
// Thread-safety: one thread at a time uses an object.
// Requires: the parts outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/eviction/access_index.h"
#include "server/eviction/space_order.h"
#include "varve/store.h"

namespace varve {

struct EvictionNeed {
  uint64_t bytes = 0;  // of keys and values
  uint64_t keys = 0;
  // The write adds nothing that expires before this instant; kNeverSoon: nothing that expires, 0:
  // it is not known. Orders by expiry alone ask for it.
  uint64_t soonest_expiry_ms = 0;
};

struct EvictionParts {
  Store* store = nullptr;
  AccessIndex* index = nullptr;
  uint64_t* random = nullptr;
  // Returns the access to a key of which the index has `stored`, with what it does not know yet.
  std::function<KeyAccess(NamespaceId space, uint64_t hash, const KeyAccess& stored)> access_of;
  // Is told of each key that was evicted.
  std::function<void(NamespaceId space, std::string_view key, uint64_t bytes,
                     SequenceNumber durable_after)>
      evicted;
};

class EvictionStep {
 public:
  struct Result {
    uint64_t bytes = 0;
    uint64_t keys = 0;
    bool is_busy = false;  // another thread has the exclusive right to write
  };

  EvictionStep(const EvictionParts& parts, std::vector<SpaceOrder*> orders,
               const WriteOptions& options);

  // Evicts until the need is met, or nothing is left that may be evicted. An error ends it, too,
  // and takes back nothing of what was done; one of a walk does not, and one of reading a key only
  // where no key at the front can be read. Returns the error all the same.
  // Requires: it was not called before.
  [[nodiscard]] absl::Status Run(const EvictionNeed& need);
  // Returns what Run() has evicted.
  const Result& done() const { return done_; }

 private:
  struct Candidate {
    SpaceOrder* order = nullptr;
    OrderEntry entry;
    uint64_t hash = 0;
    ReadResult read;
    uint64_t rank = 0;       // the true one
    bool may_go = true;      // its rule allows it
    bool is_unread = false;  // it could not be read, and is not known to be damaged
    bool was_evicted = false;

    uint64_t bytes() const { return entry.key().size() + read.value_size; }
    bool is_dead() const { return !read.found; }
  };

  // A step changes so much in the entries of one order.
  struct Mending {
    std::set<std::string> moved;  // where they are now; two entries of a key move to one place
    uint64_t added = 0;           // of these
    uint64_t removed = 0;
    bool has_met_dead = false;
    std::string_view front;  // of the candidates, where the next front begins
    bool is_front_left = false;
  };

  absl::Status Gather();
  absl::Status Examine();
  absl::Status ExamineOf(SpaceOrder* order);
  // Notes of a candidate that a read of it has ended so.
  void NoteUnreadable(const absl::Status& failed, Candidate* candidate);
  // Walks where a key without an entry may come before the rank. Returns whether it did. A walk
  // that fails holds up no evictions, which may be what makes room for it.
  bool WalkBefore(uint64_t rank);
  // Returns the candidates that go next, lowest ranks first.
  std::vector<Candidate*> Choose(const EvictionNeed& need);
  absl::Status Delete(absl::Span<Candidate* const> chosen);
  absl::Status DeleteTogether(absl::Span<Candidate* const> chosen);
  absl::Status MendEntries();
  absl::Status ResetDead();
  // Has orders begin anew that have no entries left while there are keys which may go: no walk
  // finds these. Returns whether there were such orders.
  absl::StatusOr<bool> ResetWhereKeysMayBeMissed();
  bool IsMet(const EvictionNeed& need) const {
    return done_.bytes >= need.bytes && done_.keys >= need.keys;
  }

  const EvictionParts& parts_;
  const std::vector<SpaceOrder*> orders_;
  WriteOptions options_;
  Result done_;
  std::vector<Candidate> candidates_;
  uint64_t limit_ = 0;  // no entry behind the candidates has a lower rank
  std::set<const SpaceOrder*> walked_;
  bool has_begun_long_walk_ = false;
  size_t dead_in_a_row_ = 0;
  absl::Status trouble_;  // the first error that did not end the step
};

}  // namespace varve
