// The order of one namespace or database: its entries in the access index, and the walk that finds
// the keys which have none yet.
//
// Writes leave no trace in the order. A walk reads the keys that were written since the last walk,
// by their versions, and gives each an entry; segments without newer versions are not looked at.
// So a write costs nothing when it is made, whoever makes it (a client, a primary, an ingest or a
// restore), and what the end of the process took from the order is found again.
//
// Keys that cannot be read have no entries. A walk passes them; then the index does not know of the
// walk, and after a minute, and less and less often, another one looks again at all of its keys.
//
// What is deleted or read leaves its entry behind, with a rank that is too low. The evictor mends
// such an entry when its turn comes. Where most of what it meets is gone (FLUSHDB, SWAPDB), it has
// the order begin anew: the next epoch, and a walk over all keys.
//
// Thread-safety: one thread at a time uses an object.
// Invariants: no entry lies before front_.
// Requires: the order is destroyed before the store and the index; a walk holds a snapshot.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/eviction/access_index.h"
#include "server/eviction/key_rank.h"
#include "server/eviction/walk_cursor.h"
#include "varve/store.h"

namespace varve {

// The instant of what never comes.
inline constexpr uint64_t kNeverSoon = ~uint64_t{0};

class SpaceOrder {
 public:
  // Goes on with the order that the index has, or begins a new one if that obeys another rule.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<SpaceOrder>> Load(Store* store,
                                                                        AccessIndex* index,
                                                                        NamespaceId space,
                                                                        EvictionRule rule);

  NamespaceId space() const { return space_; }
  const EvictionRule& rule() const { return record_.rule; }

  // Begins anew: all entries go, and the next walk looks at every key. Without accesses, it forgets
  // when keys were read, too, and goes by their versions.
  enum class Accesses : uint8_t { kStay, kGo };
  [[nodiscard]] absl::Status Reset(Accesses accesses = Accesses::kStay);
  // Begins anew where most entries must be of keys that are gone or were written again, which
  // nobody mends while nothing is evicted. The accesses stay unless they are many times the keys:
  // those of keys that are gone can't be told from the others.
  [[nodiscard]] absl::Status ResetIfStale();

  // Looks at the next keys of a walk, at most about `most`, and begins one if none is under way. An
  // error ends the walk, and the next one looks at all of its keys again.
  [[nodiscard]] absl::Status Walk(size_t most);
  bool walking() const { return walk_ != nullptr; }
  // Returns whether the walk that is under way, or due, is the first one of its epoch, over all
  // keys.
  bool is_first_walk() const { return walked_ == kNoSequence; }
  // Returns whether it takes long: it is the first one, or looks again at what walks have passed.
  bool is_long_walk() const {
    return is_first_walk() || (walking() ? walk_->newer_than() != walked_ : IsToLookAgain());
  }
  // Every key that was last written before this instant has an entry, but for those that walks have
  // passed.
  uint64_t walked_ms() const { return walked_ms_; }
  // Returns whether a walk is due: it goes on, or much was written since the last one.
  bool NeedsWalk() const;
  // Returns whether a key without an entry may come before one with the rank; the highest rank:
  // whether there may be any key without an entry.
  bool MayMissKeysBefore(uint64_t rank) const;

  // Notes that a key may have been written that expires at this instant.
  void NoteExpiry(uint64_t expiry_ms) {
    if (expiry_ms < soonest_expiry_ms_) soonest_expiry_ms_ = expiry_ms;
  }

  // Returns the first entries of the order; for kRandom, those from a random place on.
  [[nodiscard]] absl::StatusOr<std::vector<OrderEntry>> Front(size_t most, uint64_t* random) const;
  // Returns the entry of a key with the rank, as an index key.
  std::string EntryOf(uint64_t rank, std::string_view key) const {
    return AccessIndex::OrderKey(space_, record_.epoch, rank, key);
  }
  // Adds to the batch the entries to which those of keys move whose true ranks are others. Returns
  // how many of them are new, which NoteMended() is to be told once the batch is committed.
  [[nodiscard]] absl::StatusOr<uint64_t> Move(absl::Span<const std::string> entries,
                                              WriteBatch* batch);
  // Notes that so many entries were added and removed; `has_met_dead`: keys of some are gone.
  void NoteMended(uint64_t added, uint64_t removed, bool has_met_dead) {
    entries_ += added;
    entries_ -= std::min(entries_, removed);
    has_met_dead_ = has_met_dead_ || has_met_dead;
  }
  // Returns whether there may be keys that no walk finds: what the order knew has gone, and other
  // keys, of older versions, may have come in its place (SWAPDB).
  bool MayMissOldKeys() const { return has_met_dead_; }
  void NoteNoneMissed() { has_met_dead_ = false; }
  // Notes that no entry is left before the place.
  void Pass(std::string_view index_key) { front_ = index_key; }
  // Returns how many entries were made and not removed, since the order was loaded or reset.
  uint64_t entries() const { return entries_; }
  // Returns the rank of a key by its record and its last access.
  uint64_t Rank(SequenceNumber version, uint64_t expiry_ms, uint64_t hash, const KeyAccess& access);

 private:
  SpaceOrder(Store* store, AccessIndex* index, NamespaceId space)
      : store_(*store), index_(*index), space_(space), times_(*store) {}

  void BeginWalk();
  // Returns whether the next walk is to look at the keys again that others could not read.
  bool IsToLookAgain() const {
    return look_again_ms_ != kNeverSoon && store_.NowMillis() >= look_again_ms_;
  }
  absl::Status GoOn(size_t most);
  absl::Status EndWalk();
  absl::Status AddFound(std::vector<RankedKey>* found, const std::vector<std::string>& keys);
  void Insert(absl::Span<const std::string> entries, WriteBatch* batch);

  Store& store_;
  AccessIndex& index_;
  const NamespaceId space_;
  VersionTimes times_;
  SpaceRecord record_;  // as it is in the index
  // Walks have looked at every key of this version or an older one, and passed some of them if
  // record_ does not say so, too.
  SequenceNumber walked_ = kNoSequence;
  uint64_t look_again_ms_ = kNeverSoon;  // when a walk is to look at those again
  uint64_t look_again_after_ms_ = 0;     // so long after the last one that has
  std::string front_;                    // an index key; empty: the beginning
  bool has_met_dead_ = false;
  uint64_t entries_ = 0;  // those made and not removed, since it was loaded or reset
  // A walk may come to keys that have the entries which it would make.
  bool may_meet_entries_ = false;
  uint64_t walked_ms_ = 0;
  // When the first key expires of those that were written since the last walk began, and of those
  // before it that no walk has entered; 0: not known.
  uint64_t soonest_expiry_ms_ = 0;
  uint64_t soonest_before_walk_ms_ = kNeverSoon;
  uint64_t changes_at_walk_ = 0;  // Store::ChangeCount() when the last walk began

  // The walk that is under way.
  std::unique_ptr<WalkCursor> walk_;
  uint64_t began_ms_ = 0;
  uint64_t changes_at_begin_ = 0;
};

}  // namespace varve
