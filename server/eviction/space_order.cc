#include "server/eviction/space_order.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "util/base/assert.h"
#include "util/base/hash.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kChunk = 256;  // keys that are entered together
// So many changes have to be made before a walk is due, or this part of the keys.
constexpr uint64_t kChangesPerWalk = 250'000;
constexpr uint64_t kPartPerWalk = 16;
// For orders in which a new key may be the first one, a walk is due much sooner.
constexpr uint64_t kChangesTolerated = 16;
constexpr uint64_t kPartTolerated = 8;
// So many entries more than twice the keys make an order begin anew.
constexpr uint64_t kEntriesTolerated = 500'000;
// So many accesses more than four times the keys go with it.
constexpr uint64_t kAccessesTolerated = 4'000'000;
// What walks have passed is looked at again after this time, and after twice the last time if it
// still cannot be read.
constexpr uint64_t kLookAgainMillis = 60'000, kMostLookAgainMillis = 86'400'000;

}  // namespace

absl::StatusOr<std::unique_ptr<SpaceOrder>> SpaceOrder::Load(Store* store, AccessIndex* index,
                                                             NamespaceId space, EvictionRule rule) {
  std::unique_ptr<SpaceOrder> order(new SpaceOrder(store, index, space));
  VARVE_ASSIGN_OR_RETURN(order->record_, index->ReadSpace(space));
  const bool is_new = order->record_.rule != rule;
  order->record_.rule = rule;
  if (is_new) VARVE_RETURN_IF_ERROR(order->Reset());
  order->walked_ = order->record_.walked;
  order->walked_ms_ = order->is_first_walk() ? 0 : order->times_.MillisOf(order->walked_);
  return order;
}

absl::Status SpaceOrder::Reset(Accesses accesses) {
  walk_.reset();
  WriteBatch batch;
  AccessIndex::DeleteOrder(space_, record_.epoch, &batch);
  if (accesses == Accesses::kGo) AccessIndex::DeleteAccesses(space_, &batch);
  ++record_.epoch;
  record_.walked = walked_ = kNoSequence;
  look_again_ms_ = kNeverSoon;
  look_again_after_ms_ = 0;
  AccessIndex::PutSpace(space_, record_, &batch);
  front_.clear();
  entries_ = 0;
  may_meet_entries_ = false;
  has_met_dead_ = false;
  walked_ms_ = 0;
  changes_at_walk_ = 0;
  return index_.Commit(&batch);
}

absl::Status SpaceOrder::ResetIfStale() {
  if (entries_ <= kEntriesTolerated) return absl::OkStatus();
  const uint64_t keys = store_.EstimateSize(space_, "", "").keys;
  if (entries_ <= kEntriesTolerated + 2 * keys) return absl::OkStatus();
  return Reset(index_.EstimateAccesses(space_) <= kAccessesTolerated + 4 * keys ? Accesses::kStay
                                                                                : Accesses::kGo);
}

bool SpaceOrder::NeedsWalk() const {
  if (walking() || is_first_walk() || IsToLookAgain()) return true;
  const uint64_t keys = store_.EstimateSize(space_, "", "").keys;
  const uint64_t changes = store_.ChangeCount();
  return changes - std::min(changes, changes_at_walk_) >=
         std::max(kChangesPerWalk, keys / kPartPerWalk);
}

bool SpaceOrder::MayMissKeysBefore(uint64_t rank) const {
  if (is_first_walk() || (rank == kNeverSoon && IsToLookAgain())) return true;
  if (record_.rule.order == EvictionOrder::kLru) return rank > walked_ms_;
  if (record_.rule.order == EvictionOrder::kTtl && rank != kNeverSoon)
    return rank > std::min(soonest_expiry_ms_, soonest_before_walk_ms_);
  if (record_.rule.order == EvictionOrder::kLfu &&
      rank <= walked_ms_ + kUsesOfNewKey * kMillisPerUse)
    return false;  // what was written since the walk has the uses of a new key at least
  const uint64_t changes = store_.ChangeCount();
  const uint64_t since = changes - std::min(changes, changes_at_walk_);
  if (rank == std::numeric_limits<uint64_t>::max()) return since > 0;
  const uint64_t keys = store_.EstimateSize(space_, "", "").keys;
  return since >= std::max(kChangesTolerated, std::max(keys, entries_) / kPartTolerated);
}

void SpaceOrder::BeginWalk() {
  // Before the snapshot, which then shows all that was written before this instant.
  began_ms_ = store_.NowMillis();
  changes_at_begin_ = store_.ChangeCount();
  // Until the walk has entered them, what was written before it is missed still.
  soonest_before_walk_ms_ =
      std::min(soonest_before_walk_ms_, std::exchange(soonest_expiry_ms_, kNeverSoon));
  const bool looks_again = IsToLookAgain();
  may_meet_entries_ = may_meet_entries_ || looks_again;
  walk_ = std::make_unique<WalkCursor>(&store_, space_, looks_again ? record_.walked : walked_);
}

absl::Status SpaceOrder::EndWalk() {
  VARVE_RETURN_IF_ERROR(walk_->status());
  const std::unique_ptr<WalkCursor> walk = std::move(walk_);
  walked_ = walk->sequence();
  soonest_before_walk_ms_ = kNeverSoon;
  walked_ms_ = began_ms_;
  changes_at_walk_ = changes_at_begin_;
  if (walk->newer_than() != record_.walked) return absl::OkStatus();  // others have passed keys
  if (walk->has_passed_keys()) {
    look_again_after_ms_ =
        std::clamp(2 * look_again_after_ms_, kLookAgainMillis, kMostLookAgainMillis);
    look_again_ms_ = store_.NowMillis() + look_again_after_ms_;
    return absl::OkStatus();
  }
  look_again_ms_ = kNeverSoon;
  look_again_after_ms_ = 0;
  record_.walked = walked_;
  WriteBatch batch;
  AccessIndex::PutSpace(space_, record_, &batch);
  return index_.Commit(&batch);
}

absl::Status SpaceOrder::Walk(size_t most) {
  if (!walking()) BeginWalk();
  absl::Cleanup abandon = [this] {  // also where memory runs out
    walk_.reset();
    may_meet_entries_ = true;
  };
  VARVE_RETURN_IF_ERROR(GoOn(most));
  std::move(abandon).Cancel();
  return absl::OkStatus();
}

absl::Status SpaceOrder::GoOn(size_t most) {
  std::vector<RankedKey> found;
  std::vector<std::string> keys;
  for (size_t looked = 0; walk_->Valid() && looked < most; walk_->Next(), ++looked) {
    const uint64_t expiry_ms = walk_->expiry_ms();
    if (record_.rule.volatile_only && expiry_ms == 0) continue;
    keys.emplace_back(walk_->key());
    found.push_back({.written_ms = times_.MillisOf(walk_->version()),
                     .expiry_ms = expiry_ms,
                     .hash = HashKey(keys.back()),
                     .access = {}});
    if (found.size() < kChunk) continue;
    VARVE_RETURN_IF_ERROR(AddFound(&found, keys));
    keys.clear();
  }
  VARVE_RETURN_IF_ERROR(AddFound(&found, keys));
  return walk_->Valid() ? absl::OkStatus() : EndWalk();
}

absl::Status SpaceOrder::AddFound(std::vector<RankedKey>* found,
                                  const std::vector<std::string>& keys) {
  VARVE_ASSERT(found->size() == keys.size());
  // The rank of a key for kLru is not below that of its write, which will do for an entry.
  if (record_.rule.order == EvictionOrder::kLfu && !found->empty()) {
    std::vector<uint64_t> hashes;
    for (const RankedKey& key : *found) hashes.push_back(key.hash);
    std::vector<KeyAccess> accesses;
    VARVE_RETURN_IF_ERROR(index_.FindAccesses(space_, hashes, &accesses));
    for (size_t i = 0; i < found->size(); ++i) (*found)[i].access = accesses[i];
  }
  std::vector<std::string> entries;
  entries.reserve(found->size());
  for (size_t i = 0; i < found->size(); ++i)
    entries.push_back(EntryOf(RankOf(record_.rule.order, (*found)[i]), keys[i]));
  found->clear();
  uint64_t added = entries.size();
  if (may_meet_entries_) {
    VARVE_ASSIGN_OR_RETURN(added, index_.CountMissing(entries));
  }
  WriteBatch batch;
  Insert(entries, &batch);
  VARVE_RETURN_IF_ERROR(index_.Commit(&batch));
  entries_ += added;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OrderEntry>> SpaceOrder::Front(size_t most, uint64_t* random) const {
  if (record_.rule.order != EvictionOrder::kRandom)
    return index_.ReadOrder(space_, record_.epoch, front_, most);
  *random = *random * 6364136223846793005u + 1442695040888963407u;
  const std::string from = AccessIndex::OrderKey(space_, record_.epoch, *random, "");
  VARVE_ASSIGN_OR_RETURN(std::vector<OrderEntry> entries,
                         index_.ReadOrder(space_, record_.epoch, from, most));
  if (!entries.empty()) return entries;
  return index_.ReadOrder(space_, record_.epoch, "", most);
}

void SpaceOrder::Insert(absl::Span<const std::string> entries, WriteBatch* batch) {
  for (const std::string& entry : entries) {
    batch->Put(entry, "");
    if (!front_.empty() && entry < front_) front_ = entry;
  }
}

absl::StatusOr<uint64_t> SpaceOrder::Move(absl::Span<const std::string> entries,
                                          WriteBatch* batch) {
  VARVE_ASSIGN_OR_RETURN(const uint64_t added, index_.CountMissing(entries));
  // The next walk finds those of these keys that were written since the last one.
  may_meet_entries_ = may_meet_entries_ || !entries.empty();
  Insert(entries, batch);
  return added;
}

uint64_t SpaceOrder::Rank(SequenceNumber version, uint64_t expiry_ms, uint64_t hash,
                          const KeyAccess& access) {
  return RankOf(record_.rule.order, {.written_ms = times_.MillisOf(version),
                                     .expiry_ms = expiry_ms,
                                     .hash = hash,
                                     .access = access});
}

}  // namespace varve
