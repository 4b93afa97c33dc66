#include "server/eviction/evictor.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "server/tracking/written_keys.h"
#include "spdlog/spdlog.h"
#include "util/base/hash.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/thread_setup.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

// A writer frees at least this part of the bound, so that the next writers find room, but never
// more than kMostAhead.
constexpr uint64_t kPartAhead = 256;
constexpr uint64_t kMostAhead = 256u << 10;
// The thread frees this part more, and no more than kMostOwed at a time.
constexpr uint64_t kPartOwed = 128;
constexpr uint64_t kMostOwed = 64u << 20, kMostKeysOwed = 100'000;
// Evictions begin this part of the bound of the disk before its reserve.
constexpr uint64_t kPartOfDisk = 8;
constexpr uint64_t kPaidAtOnce = 256u << 10, kKeysPaidAtOnce = 2048;
constexpr size_t kWalkedAtOnce = 4096;
// Reads that wait for the index take this part of the memory, and as much while they are entered.
constexpr uint64_t kPartWaiting = 4, kMostWaiting = 256u << 10;
constexpr size_t kEnteredAtOnce = 2048;
// An index begins anew that so many openings in a row could not read, as where it lies on a bad
// block.
constexpr int kMostFailedOpenings = 3;

// Returns whether the namespace makes room when it reaches a quota of its own.
bool HasOwnRule(const NamespaceOptions& options) {
  return options.eviction.on() && options.has_quota();
}

bool AnyHasOwnRule(const NamespaceList& list) {
  return std::any_of(list.namespaces.begin(), list.namespaces.end(),
                     [](const NamespaceDescription& space) { return HasOwnRule(space.options); });
}

// Returns the rule that is in force for the namespace, where the databases have this one.
EvictionRule RuleOf(NamespaceId space, const NamespaceOptions& options, EvictionRule databases) {
  if (HasOwnRule(options)) return options.eviction;
  return space < kFirstNamedNamespace ? databases : EvictionRule();
}

// Removes from an index the orders that no rule asks for any more, such as those of namespaces that
// were dropped while it was closed.
absl::Status RemoveOthers(const NamespaceList& list, EvictionRule databases, AccessIndex* index) {
  VARVE_ASSIGN_OR_RETURN(const std::vector<NamespaceId> recorded, index->ReadSpaces());
  WriteBatch batch;
  for (const NamespaceId id : recorded) {
    const NamespaceDescription* const there = list.Find(id);
    if (there == nullptr || !RuleOf(id, there->options, databases).on())
      AccessIndex::DeleteSpace(id, &batch);
  }
  return index->Commit(&batch);
}

// Finds the soonest expiry of a batch.
class ExpiryFinder final : public WriteBatch::OperationVisitor {
 public:
  absl::Status Put(NamespaceId, std::string_view, std::string_view,
                   const PutExtras& extras) override {
    if (extras.expiry_ms != kNoExpiry) soonest_ = std::min(soonest_, extras.expiry_ms);
    return absl::OkStatus();
  }
  absl::Status Delete(NamespaceId, std::string_view, WriteCause) override { return {}; }
  absl::Status DeleteRange(NamespaceId, std::string_view, std::string_view) override { return {}; }
  absl::Status ClearNamespace(NamespaceId) override { return {}; }
  absl::Status CreateNamespace(const NamespaceDescription&) override { return {}; }
  absl::Status CloneNamespace(NamespaceId, const NamespaceDescription&) override { return {}; }
  absl::Status AlterNamespace(const NamespaceDescription&) override { return {}; }
  absl::Status DropNamespace(NamespaceId) override { return {}; }
  absl::Status SwapNamespaces(NamespaceId, NamespaceId) override { return {}; }

  uint64_t soonest() const { return soonest_; }

 private:
  uint64_t soonest_ = kNeverSoon;
};

using SpaceCount = std::pair<NamespaceId, CountResult>;

absl::StatusOr<CountResult> CountSpace(Store* store, NamespaceId space) {
  ReadOptions options;
  options.space = space;
  options.wait_until_durable = false;
  return store->Count(options, "", "");
}

// Counts what is in these namespaces, as far as they are still there. A namespace may have many
// keys to count, so that no lock is held meanwhile.
absl::StatusOr<std::vector<SpaceCount>> CountEach(Store* store,
                                                  const std::vector<NamespaceId>& spaces) {
  std::vector<SpaceCount> counted;
  for (const NamespaceId id : spaces) {
    const absl::StatusOr<CountResult> count = CountSpace(store, id);
    if (IsNoSuchNamespace(count.status())) continue;
    VARVE_RETURN_IF_ERROR(count.status());
    counted.emplace_back(id, *count);
  }
  return counted;
}

// Counts what is in the bound that has refused a write so.
absl::StatusOr<CountResult> CountUsed(Store* store, const absl::Status& refused) {
  const std::optional<NamespaceQuota> quota = FullQuota(refused);
  if (!quota) {
    CountResult used;
    VARVE_ASSIGN_OR_RETURN(used.bytes, store->CountData());
    return used;
  }
  return CountSpace(store, quota->space);
}

// Returns by how much a count with `more` is above `most`; 0 is no limit.
uint64_t Beyond(uint64_t is, uint64_t more, uint64_t most) {
  return most == 0 || is + more <= most ? 0 : is + more - most;
}

// Returns how much the thread evicts ahead of the writers to a bound.
Owed::Amount AheadOf(const Owed::Amount& bound) {
  return {.bytes = std::min(bound.bytes / kPartOwed, kMostOwed),
          .keys = std::min(bound.keys / kPartOwed, kMostKeysOwed)};
}

// Notes what was counted in a bound.
void NoteCount(const CountResult& count, const Owed::Amount& bound, Owed* owed) {
  const Owed::Amount ahead = AheadOf(bound);
  owed->KeepWithin(
      {.bytes = Beyond(count.bytes, 0, bound.bytes), .keys = Beyond(count.keys, 0, bound.keys)},
      {.bytes = Beyond(count.bytes, ahead.bytes, bound.bytes),
       .keys = Beyond(count.keys, ahead.keys, bound.keys)});
}

Owed::Amount QuotaOf(const NamespaceOptions& options) {
  return {.bytes = options.max_bytes, .keys = options.max_keys};
}

// Tells how long ago versions were written.
void NoteAges(const Store& store, NotedReads* noted) {
  static_assert(NotedReads::kAges == kUsesOfNewKey);
  const uint64_t now_ms = store.NowMillis();
  NotedReads::Ages ages;
  for (size_t minutes = 0; minutes < ages.size(); ++minutes) {
    const uint64_t before_ms = now_ms - std::min(now_ms, (minutes + 1) * kMillisPerUse);
    ages[minutes] = store.VersionAt(before_ms).value_or(kNoSequence);
  }
  noted->SetAges(ages);
}

void Report(const absl::Status& status) {
  if (!status.ok()) spdlog::warn("The order of evictions: {}", status.ToString());
}

void TellFailedOpenings(const absl::Status& last) {
  spdlog::warn(
      "The access index begins anew, as it could not be read at {} openings in a row; no data is "
      "lost: {}",
      kMostFailedOpenings, last.ToString());
}

// Reports an error once, although each round may meet it, in other words perhaps. `*told` is the
// code of what was reported last.
void ReportOnce(const absl::Status& status, absl::StatusCode* told) {
  if (std::exchange(*told, status.code()) != status.code()) Report(status);
}

}  // namespace

uint64_t SoonestExpiry(const WriteBatch& batch) {
  ExpiryFinder finder;
  // A kind of operation that the finder does not know may hold anything.
  return batch.ForEachOperation(&finder).ok() ? finder.soonest() : 0;
}

void Evictor::Start(std::string directory, uint64_t memory, BoundedFileSystem* disk, Work work) {
  setup_ = {std::move(directory), memory, disk, work, store_.GetSnapshot()->sequence()};
  if (rules_.databases.load().on()) BeginNotes();
  if (rules_.databases.load().on() || setup_.disk != nullptr) Wake();
  NoteNamespaces();
}

void Evictor::Stop() {
  std::thread thread;
  {
    absl::MutexLock lock(&wake_mutex_);
    is_stopped_ = true;
    wake_.SignalAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
  absl::MutexLock lock(&mutex_);
  flags_.notes_reads.store(false, std::memory_order_release);
  CloseIndex();
  Report(trouble_.met);  // there is no further round
}

void Evictor::CloseIndex() {
  spaces_.clear();
  entering_.journal.reset();
  if (index_ != nullptr) trouble_.met.Update(index_->Close());
  index_.reset();
}

void Evictor::SetDatabases(EvictionRule rule, uint64_t limit) {
  rules_.data_limit.store(limit);
  const EvictionRule before = rules_.databases.exchange(rule);
  flags_.is_stale.store(true);
  if (rule.on()) BeginNotes();
  if (rule.on() || before.on()) Wake();
}

void Evictor::NoteNamespaces() {
  const absl::StatusOr<NamespaceList> list = store_.Namespaces();
  const bool has_own = list.ok() ? AnyHasOwnRule(*list) : rules_.has_own.load();
  rules_.has_own.store(has_own);
  flags_.is_stale.store(true);
  // A Refresh() that read an older list may say otherwise until the next one.
  if (has_own) BeginNotes();
  if (has_own || flags_.notes_reads.load(std::memory_order_acquire)) Wake();
}

void Evictor::NoteSwap(NamespaceId one, NamespaceId other) {
  if (!flags_.notes_reads.load(std::memory_order_acquire)) return;
  flags_.is_stale.store(true);  // one of them may be new
  const TurnLock lock(&mutex_);
  for (const NamespaceId id : {one, other}) {
    const auto found = spaces_.find(id);
    if (found == spaces_.end()) continue;
    // The accesses are those to keys that are in the other database now.
    trouble_.met.Update(found->second.order->Reset(SpaceOrder::Accesses::kGo));
  }
}

// The index, which takes longer to open, finds what was noted until then.
void Evictor::BeginNotes() {
  {
    absl::MutexLock lock(&wake_mutex_);
    if (is_stopped_ || setup_.directory.empty()) return;
  }
  // Without memory the thread tries again.
  if (TryWithMemory([this] { StartNotes(); }))
    flags_.notes_reads.store(true, std::memory_order_release);
}

void Evictor::StartNotes() {
  absl::MutexLock lock(&wake_mutex_);
  if (flags_.has_notes.load()) return;
  touched_.Start();
  flags_.has_notes.store(true);
}

void Evictor::Wake() {
  absl::MutexLock lock(&wake_mutex_);
  if (is_stopped_ || setup_.directory.empty()) return;
  is_awake_ = true;
  wake_.SignalAll();
  if (thread_.joinable() || setup_.work == Work::kByCallers) return;
  try {
    thread_ = std::thread([this] {
      NameThread("varve-evict");
      Loop();
    });
  } catch (const std::system_error& failed) {
    // A writer evicts all the same what its own bytes need.
    spdlog::warn("The system gives no thread for evictions: {}", failed.what());
  }
}

void Evictor::Loop() {
  SteadyTime next = SteadyNow();
  for (;;) {
    const bool was_noting = flags_.notes_reads.load();
    {
      absl::MutexLock lock(&wake_mutex_);
      // Also where the index could not be opened: the next round tries again. A rule that comes
      // after this look at them is told by Wake(), which waits for wake_mutex_.
      const bool has_rounds =
          was_noting || rules_.any() || setup_.disk != nullptr || flags_.is_stale.load();
      while (!is_stopped_ && !is_awake_) {
        if (wake_.WaitWithDeadline(&wake_mutex_, has_rounds ? next : kEndOfTime)) break;
      }
      if (is_stopped_) return;
      is_awake_ = false;
    }
    const bool disk_is_short = flags_.disk_is_short.exchange(false);
    // Writers that ask for room on the disk, one after the other, do not put off regular rounds.
    const bool is_due = SteadyNow() >= next || !was_noting;
    if (is_due) next = SteadyNow() + absl::FromChrono(kRound);
    if (is_due || disk_is_short) {
      TryWithMemory([&] { RunRound(Reads::kIfDue, is_due ? Round::kRegular : Round::kForDisk); });
    }
    const absl::StatusOr<bool> more = GuardMemory("evicting", [this] { return WorkOn(); });
    if (more.ok() && *more) Wake();
    absl::MutexLock lock(&mutex_);
    trouble_.met.Update(more.status());
  }
}

void Evictor::RunRound(Reads which, Round round) {
  // It may have failed for want of memory, and an opening of the index that failed has ended it.
  if (rules_.any()) BeginNotes();
  NoteAges(store_, &touched_);
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = Refresh();
  }
  // A part that fails holds up none of the others: without an index the disk is measured all the
  // same.
  status.Update(EnterReads(which));
  status.Update(LookForExcess());
  status.Update(LookForExcessOnDisk(round));
  absl::MutexLock lock(&mutex_);
  status.Update(std::exchange(trouble_.met, absl::OkStatus()));
  ReportOnce(status, &trouble_.told);
}

EvictionParts Evictor::PartsOfStep() {
  return {
      .store = &store_,
      .index = index_.get(),
      .random = &random_,
      .access_of =
          [this](NamespaceId space, uint64_t hash, const KeyAccess& stored) {
            mutex_.AssertHeld();
            return entering_.journal->With(stored, space, hash);
          },
      .evicted =
          [this](NamespaceId space, std::string_view key, uint64_t bytes,
                 SequenceNumber durable_after) { TellEvicted(space, key, bytes, durable_after); }};
}

void Evictor::TellEvicted(NamespaceId space, std::string_view key, uint64_t bytes,
                          SequenceNumber durable_after) {
  counts_.keys.fetch_add(1, std::memory_order_relaxed);
  counts_.bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (clients_.events.Tells(kEvictedEvent))
    (void)clients_.events.Send("evicted", space, key, durable_after);
  if (clients_.tracking.Any()) {
    WrittenKeys evicted;
    evicted.AddKey(space, key);
    clients_.tracking.Invalidate(&evicted, /*writer=*/0);
  }
}

absl::Status Evictor::OpenIndex(const NamespaceList& list, EvictionRule databases) {
  FileSystem* const files = BoundedOrPlain(setup_.disk);
  const uint64_t left = setup_.memory - std::min<uint64_t>(setup_.memory, NotedReads::kBytes);
  const uint64_t most_waiting =
      std::min<uint64_t>(left / kPartWaiting / sizeof(WaitingRead), kMostWaiting);
  const uint64_t memory = left - 2 * most_waiting * sizeof(WaitingRead);
  std::unique_ptr<AccessIndex> index;
  bool begins_anew = index_ != nullptr;
  CloseIndex();
  if (!begins_anew) {
    absl::StatusOr<std::unique_ptr<AccessIndex>> opened =
        AccessIndex::Open(setup_.directory, memory, files);
    absl::Status status = opened.status();
    if (opened.ok()) {
      index = *std::move(opened);
      status = index->ForgetOrdersBehind(setup_.newest);
      status.Update(RemoveOthers(list, databases, index.get()));
    }
    if (status.ok()) openings_.failed = 0;
    if (absl::IsInternal(status) && ++openings_.failed == kMostFailedOpenings)
      TellFailedOpenings(status);
    begins_anew =
        openings_.failed >= kMostFailedOpenings || (index != nullptr && index->is_damaged());
    if (!begins_anew) VARVE_RETURN_IF_ERROR(status);
  }
  if (begins_anew) {
    index.reset();
    VARVE_ASSIGN_OR_RETURN(index, AccessIndex::OpenAnew(setup_.directory, memory, files));
  }
  openings_.failed = 0;
  VARVE_ASSIGN_OR_RETURN(
      entering_.journal,
      ReadJournal::Open(
          setup_.directory, files, &touched_, [this] { return store_.NowMillis(); }, most_waiting));
  StartNotes();
  if (setup_.work == Work::kByThread) entering_.journal->StartThread();
  index_ = std::move(index);
  return absl::OkStatus();
}

absl::Status Evictor::Refresh() {
  flags_.is_stale.store(false);
  const EvictionRule databases = rules_.databases.load();
  owed_by_databases_.KeepUnder(databases, rules_.data_limit.load());
  VARVE_ASSIGN_OR_RETURN(const NamespaceList list, store_.Namespaces());
  const bool has_own = AnyHasOwnRule(list);
  rules_.has_own.store(has_own);
  if (!databases.on() && !has_own) return RemoveOrders();
  // An order that is made anew owes for the disk what the last one did.
  std::map<NamespaceId, uint64_t> owed_for_disk;
  for (const auto& [id, space] : spaces_) owed_for_disk[id] = space.owed.for_disk;
  // While reads are entered into a damaged index, it stays.
  if (index_ == nullptr || (index_->is_damaged() && !entering_.is_under_way)) {
    const absl::Status opened = OpenIndex(list, databases);
    if (index_ == nullptr) {
      openings_.failed_at = SteadyNow();
      flags_.notes_reads.store(false, std::memory_order_release);  // nobody would take them
      return opened;
    }
  }
  VARVE_RETURN_IF_ERROR(DropOrders(list, databases));
  VARVE_RETURN_IF_ERROR(LoadOrders(list, databases));
  for (auto& [id, space] : spaces_) {
    if (HasOwnRule(space.options)) space.owed.for_disk = owed_for_disk[id];
  }
  if (replication_.follows()) {
    has_followed_ = true;
  } else if (has_followed_) {
    owed_by_databases_ = {};
    for (auto& [id, space] : spaces_) {
      space.owed = {};
      VARVE_RETURN_IF_ERROR(space.order->Reset());
    }
    has_followed_ = false;  // else the next call resets them all
  }
  const bool goes_by_expiry = std::any_of(spaces_.begin(), spaces_.end(), [](const auto& space) {
    return space.second.order->rule().order == EvictionOrder::kTtl;
  });
  // What was written before has not been noted, and the first walk has not begun.
  flags_.goes_by_expiry.store(goes_by_expiry, std::memory_order_release);
  const bool notes_reads = !spaces_.empty();
  // The thread enters what is noted, and sleeps where nobody has told it of a rule.
  if (!flags_.notes_reads.exchange(notes_reads) && notes_reads) Wake();
  return absl::OkStatus();
}

absl::Status Evictor::RemoveOrders() {
  // First, so that the memory of touched_, which stays, is all that a read still uses.
  flags_.notes_reads.store(false, std::memory_order_release);
  flags_.goes_by_expiry.store(false, std::memory_order_release);
  spaces_.clear();
  if (index_ == nullptr) return absl::OkStatus();
  if (entering_.is_under_way) {
    // Another thread uses the index and the journal, between two of its holds of mutex_.
    flags_.is_stale.store(true);
    return absl::OkStatus();
  }
  CloseIndex();
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<AccessIndex> empty,
                         AccessIndex::OpenAnew(setup_.directory, AccessIndex::kLeastMemory,
                                               BoundedOrPlain(setup_.disk)));
  return empty->Close();
}

void Evictor::NoteExpiries() {
  const uint64_t soonest = soonest_expiry_ms_.exchange(kNeverSoon);
  if (soonest == kNeverSoon) return;
  for (auto& [id, space] : spaces_) space.order->NoteExpiry(soonest);
}

absl::Status Evictor::DropOrders(const NamespaceList& list, EvictionRule databases) {
  for (auto space = spaces_.begin(); space != spaces_.end();) {
    const NamespaceDescription* const there = list.Find(space->first);
    const EvictionRule rule =
        there == nullptr ? EvictionRule() : RuleOf(there->id, there->options, databases);
    if (rule == space->second.order->rule()) {
      ++space;
      continue;
    }
    WriteBatch batch;
    // Under another rule the same accesses count.
    if (!rule.on()) AccessIndex::DeleteSpace(space->first, &batch);
    space = spaces_.erase(space);
    VARVE_RETURN_IF_ERROR(index_->Commit(&batch));
  }
  return absl::OkStatus();
}

absl::Status Evictor::LoadOrders(const NamespaceList& list, EvictionRule databases) {
  for (const NamespaceDescription& there : list.namespaces) {
    const EvictionRule rule = RuleOf(there.id, there.options, databases);
    if (!rule.on()) continue;
    auto found = spaces_.find(there.id);
    if (found == spaces_.end()) {
      VARVE_ASSIGN_OR_RETURN(std::unique_ptr<SpaceOrder> order,
                             SpaceOrder::Load(&store_, index_.get(), there.id, rule));
      found = spaces_.emplace(there.id, Space{.order = std::move(order), .options = {}, .owed = {}})
                  .first;
    }
    Space& space = found->second;
    if (space.options == there.options) continue;
    space.is_checked = false;
    // The quota may have been raised; the disk is as short of room as before.
    space.owed.for_bound = {};
    if (!HasOwnRule(there.options)) space.owed = {};
    space.options = there.options;
  }
  return absl::OkStatus();
}

Evictor::Bound Evictor::BoundOfDatabases() {
  const EvictionRule rule = rules_.databases.load();
  Bound bound;
  bound.bytes = rules_.data_limit.load();
  owed_by_databases_.KeepUnder(rule, bound.bytes);
  bound.owed = &owed_by_databases_.owed;
  for (auto& [id, space] : spaces_) {
    // The ranks of another rule can't be compared.
    if (id < kFirstNamedNamespace && space.order->rule() == rule)
      bound.orders.push_back(space.order.get());
  }
  return bound;
}

std::optional<Evictor::Bound> Evictor::BoundOf(const absl::Status& refused) {
  Bound bound;
  if (const std::optional<NamespaceQuota> full = FullQuota(refused)) {
    const auto found = spaces_.find(full->space);
    if (found == spaces_.end() || !HasOwnRule(found->second.options)) return std::nullopt;
    Space& space = found->second;
    bound = {.orders = {space.order.get()},
             .bytes = space.options.max_bytes,
             .keys = space.options.max_keys,
             .of_keys = full->of == NamespaceQuota::Of::kKeys,
             .owed = &space.owed};
  } else if (IsStoreFull(refused)) {
    bound = BoundOfDatabases();
  }
  if (bound.orders.empty()) return std::nullopt;
  return bound;
}

bool Evictor::RelieveDisk() {
  if (setup_.disk == nullptr || replication_.follows() ||
      !flags_.notes_reads.load(std::memory_order_acquire))
    return false;
  flags_.writers_are_refused.store(true);
  if (!flags_.disk_is_short.exchange(true)) Wake();
  return true;
}

bool Evictor::MayMakeRoom(const absl::Status& refused) const {
  if (replication_.follows()) return false;
  return IsStoreFull(refused) ? rules_.databases.load().on()
                              : IsNamespaceFull(refused) && rules_.has_own.load();
}

bool Evictor::MakeRoom(const absl::Status& refused, const EvictionNeed& need,
                       const WriteOptions& options) {
  if (!MayMakeRoom(refused)) return false;
  const uint64_t rounds = counts_.rounds.load();
  absl::StatusOr<CountResult> counted;
  for (const CountResult* used = nullptr;; used = &*counted) {
    {
      const TurnLock lock(&mutex_);
      if (used == nullptr && counts_.rounds.load() != rounds) return true;
      if (flags_.is_stale.load()) trouble_.met.Update(Refresh());
      Room room = MakeRoomNow(refused, need, options, used);
      // An opening of the index may take long, and each writer would wait for it.
      const bool may_open = index_ != nullptr || SteadyNow() - openings_.failed_at >= kRound;
      if (room == Room::kNone && may_open) {
        // A database that was used for the first time may have an order now.
        trouble_.met.Update(Refresh());
        room = MakeRoomNow(refused, need, options, used);
      }
      if (room != Room::kAfterCount) return room == Room::kMade;
    }
    counted = CountUsed(&store_, refused);
    if (!counted.ok()) {
      const TurnLock lock(&mutex_);
      trouble_.met.Update(counted.status());
      return false;
    }
  }
}

absl::StatusOr<CommitResult> Evictor::WriteWithRoom(
    const EvictionNeed& need, const WriteOptions& options,
    absl::FunctionRef<absl::StatusOr<CommitResult>()> write) {
  absl::StatusOr<CommitResult> written = write();
  while (!written.ok() && MayMakeRoom(written.status())) {
    if (!options.waits_for_exclusive_write)
      return absl::CancelledError("room has to be made on another thread");
    if (!MakeRoom(written.status(), need, options)) break;
    written = write();
  }
  if (written.ok() && flags_.goes_by_expiry.load(std::memory_order_acquire)) [[unlikely]] {
    // Once it is visible, so that a walk which finds the note finds the key.
    uint64_t soonest = soonest_expiry_ms_.load();
    while (need.soonest_expiry_ms < soonest &&
           !soonest_expiry_ms_.compare_exchange_weak(soonest, need.soonest_expiry_ms)) {
    }
  }
  return written;
}

bool Evictor::Bound::IsBelow(const EvictionNeed& need) const {
  return (bytes != 0 && need.bytes > bytes) || (keys != 0 && need.keys > keys);
}

uint64_t Evictor::Bound::Ahead() const {
  return std::max<uint64_t>(of_keys ? keys / kPartAhead : std::min(bytes / kPartAhead, kMostAhead),
                            1);
}

bool Evictor::Bound::IsWorthCounting(const EvictionNeed& need) const {
  return of_keys ? need.keys > Ahead() : need.bytes > kMostAhead;
}

// The limit that refuses the write counts alone: the other one has room, or refuses it next. A
// write of much needs no more than what is missing.
EvictionNeed Evictor::Bound::Missing(const EvictionNeed& need, const CountResult* used) const {
  if (of_keys) {
    const uint64_t missing = used != nullptr ? Beyond(used->keys, need.keys, keys) : need.keys;
    return {.keys = std::max(missing, Ahead())};
  }
  const uint64_t missing = used != nullptr ? Beyond(used->bytes, need.bytes, bytes) : need.bytes;
  return {.bytes = std::max(missing, Ahead())};
}

Evictor::Room Evictor::MakeRoomNow(const absl::Status& refused, const EvictionNeed& need,
                                   const WriteOptions& options, const CountResult* used) {
  const std::optional<Bound> bound = BoundOf(refused);
  if (!bound || bound->IsBelow(need)) return Room::kNone;
  if (used == nullptr && bound->IsWorthCounting(need)) return Room::kAfterCount;
  NoteExpiries();
  const EvictionParts parts = PartsOfStep();
  EvictionStep step(parts, bound->orders, options);
  trouble_.met.Update(step.Run(bound->Missing(need, used)));
  // What was evicted before an error makes room, too.
  const EvictionStep::Result& evicted = step.done();
  if (evicted.keys > 0) {
    ++counts_.rounds;
    bound->owed->Pay({.bytes = evicted.bytes, .keys = evicted.keys});
    bound->owed->RaiseTo(bound->of_keys ? AheadOf({.keys = bound->keys})
                                        : AheadOf({.bytes = bound->bytes}));
    Wake();
  }
  return evicted.keys > 0 || evicted.is_busy ? Room::kMade : Room::kNone;
}

absl::Status Evictor::EnterReads(Reads which) {
  absl::MutexLock lock(&mutex_);
  // Another thread may be at it: what was noted before this call is in the index once it returns.
  mutex_.Await(absl::Condition(
      +[](bool* under_way) { return !*under_way; }, &entering_.is_under_way));
  if (index_ == nullptr) return absl::OkStatus();
  ReadJournal& journal = *entering_.journal;
  absl::Status status = journal.TakeReads();
  counts_.reads.store(journal.taken(), std::memory_order_relaxed);
  if (which == Reads::kIfDue && !journal.IsDue()) return status;
  entering_.is_under_way = true;
  absl::Cleanup end = [&] {  // where memory runs out
    mutex_.AssertHeld();
    journal.EndEntering().IgnoreError();
    entering_.is_under_way = false;
  };
  absl::Span<const WaitingRead> reads = journal.BeginEntering();
  for (absl::Status entered; !reads.empty() && entered.ok();) {
    entered = EnterSome(&reads);
    status.Update(entered);
    mutex_.LetOthersIn();
  }
  std::move(end).Cancel();
  // What can't be entered is lost, as the next reads want the room.
  status.Update(journal.EndEntering());
  entering_.is_under_way = false;
  return status;
}

absl::Status Evictor::EnterSome(absl::Span<const WaitingRead>* reads) {
  const NamespaceId space = reads->front().space;
  std::vector<uint64_t> hashes;
  for (const WaitingRead& read : reads->subspan(0, kEnteredAtOnce)) {
    if (read.space == space) hashes.push_back(read.hash);
  }
  const absl::Span<const WaitingRead> entered = reads->subspan(0, hashes.size());
  reads->remove_prefix(hashes.size());
  const auto found = spaces_.find(space);
  if (found == spaces_.end()) return absl::OkStatus();
  std::vector<KeyAccess> accesses(hashes.size());
  // Only the count of uses depends on what was before.
  if (found->second.order->rule().order == EvictionOrder::kLfu)
    VARVE_RETURN_IF_ERROR(index_->FindAccesses(space, hashes, &accesses));
  WriteBatch batch;
  for (size_t i = 0; i < hashes.size(); ++i) {
    AccessIndex::PutAccess(space, hashes[i], entered[i].After(accesses[i]), &batch);
  }
  return index_->Commit(&batch);
}

absl::Status Evictor::LookForExcess() {
  if (replication_.follows()) return absl::OkStatus();
  std::optional<absl::StatusOr<uint64_t>> data;
  if (rules_.databases.load().on() && store_.CheckData(0) != DataCheck::kWithin)
    data = store_.CountData();
  std::vector<NamespaceId> to_count;
  absl::Cleanup count_later = [&] {  // also where memory runs out
    absl::MutexLock lock(&mutex_);
    for (const NamespaceId id : to_count) {
      const auto space = spaces_.find(id);
      if (space != spaces_.end()) space->second.is_checked = false;
    }
  };
  {
    absl::MutexLock lock(&mutex_);
    if (data && data->ok()) {
      // The bound may have been raised during the count.
      const Bound bound = BoundOfDatabases();
      NoteCount({.bytes = **data}, {.bytes = bound.bytes}, bound.owed);
    }
    for (auto& [id, space] : spaces_) {
      if (!HasOwnRule(space.options)) continue;
      // Clients may have made the room themselves that the thread was to make.
      if (!space.is_checked || space.owed.IsAbove(AheadOf(QuotaOf(space.options))))
        to_count.push_back(id);
      space.is_checked = true;
    }
  }
  const absl::StatusOr<std::vector<SpaceCount>> counted = CountEach(&store_, to_count);
  absl::Status status = data ? data->status() : absl::OkStatus();
  status.Update(counted.status());
  if (!counted.ok()) return status;
  std::move(count_later).Cancel();
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, count] : *counted) {
    const auto space = spaces_.find(id);
    if (space == spaces_.end() || !HasOwnRule(space->second.options)) continue;
    NoteCount(count, QuotaOf(space->second.options), &space->second.owed);
  }
  return status;
}

absl::Status Evictor::LookForExcessOnDisk(Round round) {
  if (setup_.disk == nullptr) return absl::OkStatus();
  BoundedFileSystem& disk = *setup_.disk;
  const bool refused = round == Round::kRegular && flags_.writers_are_refused.exchange(false);
  VARVE_RETURN_IF_ERROR(disk.Measure());
  const BoundedFileSystem::Bound bound = disk.bound();
  std::vector<NamespaceId> evicting;
  double part = 0;
  uint64_t relieved_before = 0;
  absl::Cleanup count_later = [&] {  // also where memory runs out
    if (evicting.empty()) return;
    absl::MutexLock lock(&mutex_);
    owed_by_databases_.relieved_disk = relieved_before;
  };
  {
    absl::MutexLock lock(&mutex_);
    const uint64_t used = disk.needed(), most = bound.unreserved() - bound.limit / kPartOfDisk;
    Owed* const databases = BoundOfDatabases().owed;
    uint64_t& relieved = owed_by_databases_.relieved_disk;
    if (used <= most || spaces_.empty()) {
      // There is room again, and what has not been evicted for it stays.
      relieved = databases->for_disk = 0;
      for (auto& [id, space] : spaces_) space.owed.for_disk = 0;
      return absl::OkStatus();
    }
    owed_by_databases_.NoteMostOnDisk(most);
    relieved_before = relieved;
    const bool owes =
        databases->any() || std::any_of(spaces_.begin(), spaces_.end(),
                                        [](const auto& space) { return space.second.owed.any(); });
    // Writers are refused although merges see all that was evicted. They may need more room than
    // there is, and the less is left of the data, the less they need.
    if (refused && relieved != 0 && disk.IsTight() && !owes &&
        counts_.flushed_rounds.load() == counts_.rounds.load())
      relieved = std::min(relieved, used - bound.limit / kPartOwed);
    const uint64_t answered = std::max(most, relieved);
    if (replication_.follows() || used < answered + bound.limit / kPartOwed)
      return absl::OkStatus();
    // Each namespace gives the part of its data by which the directory is too large.
    part = static_cast<double>(used - answered) / static_cast<double>(used);
    for (const auto& [id, space] : spaces_) evicting.push_back(id);
    relieved = used;
  }
  const absl::StatusOr<std::vector<SpaceCount>> counted = CountEach(&store_, evicting);
  if (!counted.ok()) return counted.status();
  absl::MutexLock lock(&mutex_);
  Owed* const databases = BoundOfDatabases().owed;
  std::move(count_later).Cancel();
  if (relieved_before == 0) {
    databases->for_disk = 0;
    for (auto& [id, space] : spaces_) space.owed.for_disk = 0;
  }
  for (const auto& [id, count] : *counted) {
    const auto space = spaces_.find(id);
    if (space == spaces_.end()) continue;
    Owed* const owed = HasOwnRule(space->second.options) ? &space->second.owed : databases;
    owed->for_disk += static_cast<uint64_t>(part * static_cast<double>(count.bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Evictor::WorkOn() {
  const absl::StatusOr<bool> more = WalkAndPay();
  if (more.ok() && *more) return more;
  const uint64_t rounds = counts_.rounds.load();
  if (setup_.disk == nullptr || !setup_.disk->IsTight() || counts_.flushed_rounds.load() == rounds)
    return more;
  // Merges see what was evicted once it is in segments, and writers wait for them.
  const absl::Status flushed = store_.Flush();
  if (flushed.ok()) counts_.flushed_rounds.store(rounds);
  return more.ok() && !flushed.ok() ? flushed : more;
}

absl::StatusOr<bool> Evictor::WalkAndPay() {
  absl::MutexLock lock(&mutex_);
  mutex_.LetOthersIn();  // the thread may have come from the step before at once
  // A walk that fails holds up neither the others nor evictions: it may be these that make room for
  // the index.
  absl::Status status;
  // What is owed by a quota that was changed is not paid any more.
  if (flags_.is_stale.load()) status = Refresh();
  if (index_ == nullptr || replication_.follows()) {
    VARVE_RETURN_IF_ERROR(status);
    return false;
  }
  NoteExpiries();
  bool more = false;
  for (auto& [id, space] : spaces_) {
    status.Update(space.order->ResetIfStale());
    if (!space.order->NeedsWalk()) continue;
    status.Update(space.order->Walk(kWalkedAtOnce));
    more = more || space.order->walking();
  }
  const EvictionParts parts = PartsOfStep();
  const auto pay = [&](const Bound& bound) -> absl::Status {
    mutex_.AssertHeld();
    if (!bound.owed->any() || bound.orders.empty()) return absl::OkStatus();
    const EvictionNeed need{.bytes = std::min(bound.owed->bytes(), kPaidAtOnce),
                            .keys = std::min(bound.owed->for_bound.keys, kKeysPaidAtOnce)};
    EvictionStep step(parts, bound.orders, WriteOptions());
    const absl::Status run = step.Run(need);
    const EvictionStep::Result& evicted = step.done();
    if (evicted.keys == 0) {
      // Nothing may be evicted; while another thread writes alone it stays owed until later.
      if (run.ok() && !evicted.is_busy) *bound.owed = {};
      return run;
    }
    ++counts_.rounds;
    bound.owed->Pay({.bytes = evicted.bytes, .keys = evicted.keys});
    more = more || bound.owed->any();
    trouble_.met.Update(run);
    return store_.Push();
  };
  const Bound databases = BoundOfDatabases();
  const Owed::Amount ahead = AheadOf({.bytes = databases.bytes});
  if (store_.CheckData(ahead.bytes) == DataCheck::kWithin) {
    databases.owed->KeepWithin({}, {});
  } else if (store_.CheckData(0) == DataCheck::kWithin) {
    databases.owed->KeepWithin({}, ahead);
  }
  status.Update(pay(databases));
  for (auto& [id, space] : spaces_) {
    if (!HasOwnRule(space.options)) continue;
    status.Update(pay({.orders = {space.order.get()}, .owed = &space.owed}));
  }
  if (!more) VARVE_RETURN_IF_ERROR(status);
  trouble_.met.Update(status);
  return more;
}

Evictor::Use Evictor::LookUp(NamespaceId space, std::string_view key, const ReadResult& read) {
  const uint64_t hash = HashKey(key);
  const uint64_t now_ms = store_.NowMillis();
  VersionTimes times(store_);
  Use use;
  RankedKey ranked{.written_ms = times.MillisOf(read.version),
                   .expiry_ms = read.expiry_ms,
                   .hash = hash,
                   .access = {}};
  const EvictionRule databases = rules_.databases.load();
  bool has_order = false;
  if (rules_.any()) {
    const TurnLock lock(&mutex_);
    // A database may be used for the first time.
    const bool may_be_new = space < kFirstNamedNamespace && databases.on() && index_ != nullptr &&
                            !spaces_.contains(space);
    if (flags_.is_stale.load() || may_be_new) trouble_.met.Update(Refresh());
    const auto found = spaces_.find(space);
    has_order = found != spaces_.end();
    if (has_order) {
      use.order = RuleOf(space, found->second.options, databases).order;
      std::vector<KeyAccess> accesses;
      if (index_->FindAccesses(space, {&hash, 1}, &accesses).ok()) ranked.access = accesses[0];
      ranked.access = entering_.journal->With(ranked.access, space, hash);
    }
  }
  if (!has_order && rules_.any()) {  // as where the index can't be opened
    const absl::StatusOr<NamespaceList> list = store_.Namespaces();
    const NamespaceDescription* const there = list.ok() ? list->Find(space) : nullptr;
    if (there != nullptr) use.order = RuleOf(space, there->options, databases).order;
  }
  const uint64_t last = LastUseOf(ranked);
  // Where the store does not know when the key was written, nothing is known.
  use.idle_ms = last == 0 || last >= now_ms ? 0 : now_ms - last;
  use.frequency = UsesAt(ranked, now_ms);
  return use;
}

}  // namespace varve
