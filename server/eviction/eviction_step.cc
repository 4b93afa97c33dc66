#include "server/eviction/eviction_step.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "util/base/assert.h"
#include "util/base/hash.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kFront = 128;  // entries of each order that are read at a time
constexpr size_t kWalkSlice = 4096;
// So many entries whose keys are gone, or this part of the keys, have an order begin anew.
constexpr size_t kMostDead = 4096;
constexpr uint64_t kPartDead = 8;
constexpr uint64_t kHighest = std::numeric_limits<uint64_t>::max();
// Orders whose ranks lie ahead of the clock put off a key by so much that cannot be read.
constexpr uint64_t kPutOffMillis = 60'000;

// Returns the rank of a key that could not be read, behind keys that may go now. A random order
// begins elsewhere the next time.
uint64_t RankOfUnread(EvictionOrder order, uint64_t rank, uint64_t now_ms) {
  if (order == EvictionOrder::kRandom) return rank;
  return std::max(rank, now_ms) + (order == EvictionOrder::kLru ? 0 : kPutOffMillis);
}

}  // namespace

EvictionStep::EvictionStep(const EvictionParts& parts, std::vector<SpaceOrder*> orders,
                           const WriteOptions& options)
    : parts_(parts), orders_(std::move(orders)), options_(options) {
  options_.waits_for_exclusive_write = false;
  options_.independent_keys = true;
}

absl::Status EvictionStep::Run(const EvictionNeed& need) {
  while (!IsMet(need) && !done_.is_busy) {
    VARVE_RETURN_IF_ERROR(Gather());
    if (candidates_.empty()) {
      if (WalkBefore(kHighest)) continue;
      VARVE_ASSIGN_OR_RETURN(const bool reset, ResetWhereKeysMayBeMissed());
      if (!reset) break;
      continue;
    }
    VARVE_RETURN_IF_ERROR(Examine());
    std::vector<Candidate*> chosen = Choose(need);
    if (!chosen.empty()) {
      if (WalkBefore(chosen.back()->rank)) continue;
      VARVE_RETURN_IF_ERROR(Delete(chosen));
    }
    VARVE_RETURN_IF_ERROR(MendEntries());
    VARVE_RETURN_IF_ERROR(ResetDead());
    // The next front may be the same one.
    if (std::all_of(candidates_.begin(), candidates_.end(),
                    [](const Candidate& candidate) { return candidate.is_unread; }))
      break;
  }
  return trouble_;
}

absl::Status EvictionStep::Gather() {
  candidates_.clear();
  limit_ = kHighest;
  bool is_random = false;
  for (SpaceOrder* const order : orders_) {
    VARVE_ASSIGN_OR_RETURN(std::vector<OrderEntry> front, order->Front(kFront, parts_.random));
    is_random = order->rule().order == EvictionOrder::kRandom;
    if (front.size() == kFront && !is_random) limit_ = std::min(limit_, front.back().rank);
    for (OrderEntry& entry : front) {
      Candidate candidate;
      candidate.order = order;
      candidate.hash = HashKey(entry.key());
      candidate.entry = std::move(entry);
      candidates_.push_back(std::move(candidate));
    }
  }
  if (is_random) return absl::OkStatus();
  std::stable_sort(
      candidates_.begin(), candidates_.end(),
      [](const Candidate& a, const Candidate& b) { return a.entry.rank < b.entry.rank; });
  while (!candidates_.empty() && candidates_.back().entry.rank > limit_) candidates_.pop_back();
  return absl::OkStatus();
}

absl::Status EvictionStep::Examine() {
  for (SpaceOrder* const order : orders_) VARVE_RETURN_IF_ERROR(ExamineOf(order));
  return absl::OkStatus();
}

absl::Status EvictionStep::ExamineOf(SpaceOrder* order) {
  std::vector<Candidate*> own;
  std::vector<std::string_view> keys;
  std::vector<uint64_t> hashes;
  for (Candidate& candidate : candidates_) {
    if (candidate.order != order) continue;
    own.push_back(&candidate);
    keys.push_back(candidate.entry.key());
    hashes.push_back(candidate.hash);
  }
  if (own.empty()) return absl::OkStatus();
  ReadOptions options;
  options.space = order->space();
  options.wait_until_durable = false;
  options.without_value = true;
  std::vector<MultiGetResult> results(keys.size());
  VARVE_RETURN_IF_ERROR(parts_.store->MultiGet(options, keys, absl::MakeSpan(results)));
  std::vector<KeyAccess> accesses;
  VARVE_RETURN_IF_ERROR(parts_.index->FindAccesses(order->space(), hashes, &accesses));
  for (size_t i = 0; i < own.size(); ++i) {
    Candidate& candidate = *own[i];
    if (!results[i].status.ok()) {
      NoteUnreadable(results[i].status, &candidate);
      continue;
    }
    candidate.read = results[i].result;
    if (candidate.is_dead()) continue;
    accesses[i] = parts_.access_of(order->space(), candidate.hash, accesses[i]);
    const uint64_t expiry_ms = candidate.read.expiry_ms;
    candidate.may_go = !order->rule().volatile_only || expiry_ms != 0;
    candidate.rank = order->Rank(candidate.read.version, expiry_ms, candidate.hash, accesses[i]);
  }
  return absl::OkStatus();
}

void EvictionStep::NoteUnreadable(const absl::Status& failed, Candidate* candidate) {
  candidate->may_go = false;
  candidate->read.found = true;
  if (absl::IsDataLoss(failed)) return;  // it stays, and its entry goes
  candidate->is_unread = true;
  candidate->rank = RankOfUnread(candidate->order->rule().order, candidate->entry.rank,
                                 parts_.store->NowMillis());
  trouble_.Update(failed);
}

bool EvictionStep::WalkBefore(uint64_t rank) {
  bool walked = false;
  for (SpaceOrder* const order : orders_) {
    if (walked_.contains(order) || !order->MayMissKeysBefore(rank)) continue;
    // A walk over all keys takes long: what it has found so far will do.
    if (order->is_long_walk() && rank != kHighest && std::exchange(has_begun_long_walk_, true))
      continue;
    absl::Status status;
    do {
      status = order->Walk(kWalkSlice);
    } while (status.ok() && order->walking() && !order->is_long_walk());
    trouble_.Update(status);
    if (!order->walking()) walked_.insert(order);
    walked = true;
  }
  return walked;
}

std::vector<EvictionStep::Candidate*> EvictionStep::Choose(const EvictionNeed& need) {
  std::vector<Candidate*> able;
  for (Candidate& candidate : candidates_) {
    if (!candidate.is_dead() && candidate.may_go && candidate.rank <= limit_)
      able.push_back(&candidate);
  }
  std::stable_sort(able.begin(), able.end(),
                   [](const Candidate* a, const Candidate* b) { return a->rank < b->rank; });
  // A key that was written or read since its entry was made may have another one beside it.
  std::set<std::pair<const SpaceOrder*, std::string_view>> chosen;
  std::erase_if(able, [&chosen](const Candidate* each) {
    return !chosen.emplace(each->order, each->entry.key()).second;
  });
  Result sum = done_;
  size_t count = 0;
  for (; count < able.size(); ++count) {
    if (sum.bytes >= need.bytes && sum.keys >= need.keys) break;
    sum.bytes += able[count]->bytes();
    ++sum.keys;
  }
  able.resize(count);
  return able;
}

absl::Status EvictionStep::Delete(absl::Span<Candidate* const> chosen) {
  absl::Status status = DeleteTogether(chosen);
  if (absl::IsAborted(status)) {
    // Somebody wrote one of them meanwhile, which counts as a use.
    for (Candidate* const& each : chosen) {
      status = DeleteTogether({&each, 1});
      if (absl::IsAborted(status)) status = absl::OkStatus();
      if (!status.ok()) break;
    }
  }
  if (!absl::IsCancelled(status)) return status;
  done_.is_busy = true;
  return absl::OkStatus();
}

absl::Status EvictionStep::DeleteTogether(absl::Span<Candidate* const> chosen) {
  WriteBatch batch;
  for (const Candidate* const candidate : chosen) {
    const NamespaceId space = candidate->order->space();
    batch.RequireUnchanged(candidate->entry.key(), candidate->read, space);
    batch.Delete(candidate->entry.key(), space, WriteCause::kEvicted);
  }
  const absl::StatusOr<CommitResult> committed = parts_.store->Submit(options_, &batch);
  if (!committed.ok()) return committed.status();
  for (Candidate* const candidate : chosen) {
    const uint64_t bytes = candidate->bytes();
    done_.bytes += bytes;
    ++done_.keys;
    candidate->read.found = false;
    candidate->was_evicted = true;
    parts_.evicted(candidate->order->space(), candidate->entry.key(), bytes,
                   committed->durable_after);
  }
  return absl::OkStatus();
}

absl::Status EvictionStep::MendEntries() {
  WriteBatch batch;
  std::map<SpaceOrder*, Mending> mendings;
  for (const Candidate& candidate : candidates_) {
    SpaceOrder* const order = candidate.order;
    Mending& mending = mendings[order];
    const bool gone = candidate.is_dead() || (!candidate.may_go && !candidate.is_unread);
    const bool stays = !gone && candidate.rank == candidate.entry.rank;
    // The last entry of an order that is gone, or the first that is left, is where the next front
    // begins.
    if (!mending.is_front_left) mending.front = candidate.entry.index_key;
    mending.is_front_left = mending.is_front_left || stays;
    if (stays) continue;
    batch.Delete(candidate.entry.index_key);
    ++mending.removed;
    mending.has_met_dead |= candidate.is_dead() && !candidate.was_evicted;
    if (candidate.is_dead()) AccessIndex::DeleteAccess(order->space(), candidate.hash, &batch);
    if (!gone) mending.moved.insert(order->EntryOf(candidate.rank, candidate.entry.key()));
  }
  for (auto& [order, mending] : mendings) {
    const std::vector<std::string> moved(mending.moved.begin(), mending.moved.end());
    VARVE_ASSIGN_OR_RETURN(mending.added, order->Move(moved, &batch));
  }
  VARVE_RETURN_IF_ERROR(parts_.index->Commit(&batch));
  for (const auto& [order, mending] : mendings) {
    order->NoteMended(mending.added, mending.removed, mending.has_met_dead);
    if (order->rule().order == EvictionOrder::kRandom) continue;
    const bool has_moved_before = !mending.moved.empty() && *mending.moved.begin() < mending.front;
    order->Pass(has_moved_before ? *mending.moved.begin() : mending.front);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> EvictionStep::ResetWhereKeysMayBeMissed() {
  bool reset = false;
  for (SpaceOrder* const order : orders_) {
    if (!order->MayMissOldKeys()) continue;
    ReadOptions options;
    options.space = order->space();
    options.wait_until_durable = false;
    VARVE_ASSIGN_OR_RETURN(const CountResult count, parts_.store->Count(options, "", ""));
    if ((order->rule().volatile_only ? count.expiring : count.keys) == 0) {
      order->NoteNoneMissed();
      continue;
    }
    VARVE_RETURN_IF_ERROR(order->Reset());
    walked_.erase(order);
    reset = true;
  }
  return reset;
}

absl::Status EvictionStep::ResetDead() {
  const bool all_dead = done_.keys == 0 &&
                        std::all_of(candidates_.begin(), candidates_.end(),
                                    [](const Candidate& candidate) { return candidate.is_dead(); });
  dead_in_a_row_ = all_dead ? dead_in_a_row_ + candidates_.size() : 0;
  if (dead_in_a_row_ < kMostDead) return absl::OkStatus();
  for (SpaceOrder* const order : orders_) {
    const uint64_t keys = parts_.store->EstimateSize(order->space(), "", "").keys;
    if (dead_in_a_row_ < keys / kPartDead) continue;
    if (std::any_of(candidates_.begin(), candidates_.end(),
                    [order](const Candidate& candidate) { return candidate.order == order; })) {
      VARVE_RETURN_IF_ERROR(order->Reset());
      walked_.erase(order);
    }
  }
  return absl::OkStatus();
}

}  // namespace varve
