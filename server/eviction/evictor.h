// The evictor makes room where a bound is reached: in a namespace with a quota and an eviction rule
// (NAMESPACE ... EVICT), and in the databases together (maxmemory, maxmemory-policy).
//
//   - A writer writes through WriteWithRoom(): where its write is refused for want of room, it
//     makes room and writes again. It pays for the bytes that it needs; the evictor's thread frees
//     about a hundredth of the bound more in time left over.
//   - A read notes its key (NotedReads). The read journal hands what was noted to the kernel four
//     times a second, so that a read which is a second old survives the end of the process; the
//     thread enters it into the access index within some seconds.
//   - The keys with the lowest ranks go (server/eviction/key_rank.h). The access index holds the
//     order (access_index.h), and walks find keys without an entry (space_order.h).
//   - An eviction is a delete of this store with the cause WriteCause::kEvicted, on the condition
//     that nobody wrote the key since it was chosen. Feeds, followers and keyspace events tell it.
//
// For kLru it holds: while no walk over all keys is under way, no key that was read or written
// within the last T is evicted while one idle for longer than T + 1 s is there; T + 1 min for keys
// that were written more than an hour ago and not read since (VersionTimes).
//
// A follower evicts nothing: it receives the deletes of its primary. When it becomes a primary
// itself it walks over all keys.
//
// Where no rule is in force a read costs one load, and there is no index: an order is removed when
// its rule is switched off, and with the last rule all of the index. The thread begins with the
// first rule, or at the start where the disk has a bound, and sleeps without a rule; it and the
// memory of the noted reads stay until Stop().
//
// Thread-safety: all functions but Start() and Stop() may be called on any thread. mutex_ is held
// over calls of the store and of the index, and while clients are told of evictions, but not while
// all keys of a namespace are counted, unless its order has lost all of its entries. The evictor's
// thread lets threads of clients in between its steps.
// Invariants: reads are noted only while touched_ has its memory.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/clients/clients.h"
#include "server/eviction/access_index.h"
#include "server/eviction/eviction_step.h"
#include "server/eviction/key_rank.h"
#include "server/eviction/noted_reads.h"
#include "server/eviction/owed.h"
#include "server/eviction/read_journal.h"
#include "server/eviction/space_order.h"
#include "server/replication/replication_state.h"
#include "structure/turn_mutex.h"
#include "util/os/bounded_file_system.h"
#include "util/os/steady_condition.h"
#include "varve/namespace.h"
#include "varve/store.h"
#include "varve/write_batch.h"

namespace varve {

// The directory, within the store's, of the access index.
inline constexpr std::string_view kAccessDirectory = "access";

// Returns when the first of the batch's puts that expire does; kNeverSoon: none of them expires.
uint64_t SoonestExpiry(const WriteBatch& batch);

class Evictor {
 public:
  static constexpr std::chrono::milliseconds kRound{800};

  // Requires: all outlive the evictor.
  Evictor(Store* store, Clients* clients, const ReplicationState* replication)
      : store_(*store), clients_(*clients), replication_(*replication) {}
  ~Evictor() { Stop(); }

  // A thread works in time left over, or nobody but the callers of RunRound() and WorkOn(): then
  // what is done when depends on them alone.
  enum class Work : uint8_t { kByThread, kByCallers };
  // Has the evictor keep its index in `directory`, within `memory` bytes, which are more than
  // NotedReads::kBytes. `disk`: the bound of the data directory; null: there is none. Where a rule
  // is in force, reads are noted from then on.
  // Requires: no other thread uses it yet; the disk outlives it.
  void Start(std::string directory, uint64_t memory, BoundedFileSystem* disk,
             Work work = Work::kByThread);
  // Ends the thread and closes the index. Nothing is evicted any more.
  // Requires: no thread of a client runs any more.
  void Stop() ABSL_LOCKS_EXCLUDED(wake_mutex_, mutex_);

  // Sets the rule of the databases, and the bound of all data.
  void SetDatabases(EvictionRule rule, uint64_t limit) ABSL_LOCKS_EXCLUDED(wake_mutex_);
  // Notes that rules or quotas of namespaces may have changed.
  void NoteNamespaces() ABSL_LOCKS_EXCLUDED(wake_mutex_);

  // Notes that two databases have exchanged what they hold.
  void NoteSwap(NamespaceId one, NamespaceId other) ABSL_LOCKS_EXCLUDED(mutex_);

  // Notes a read of a key that was found, with a value of this version.
  void NoteRead(NamespaceId space, std::string_view key, SequenceNumber version) {
    if (flags_.notes_reads.load(std::memory_order_acquire)) [[unlikely]]
      touched_.Add(space, key, version);
  }

  // Returns whether evictions may relieve a disk that is short of room, and has the thread look at
  // it at once. Evictions give space back only once merges have removed what was evicted.
  bool RelieveDisk() ABSL_LOCKS_EXCLUDED(wake_mutex_);

  // Returns whether MakeRoom() may help after such a refusal.
  bool MayMakeRoom(const absl::Status& refused) const;
  // Evicts what a write needs that ended as `refused`. Returns whether the write may succeed if it
  // is tried again: something was evicted, by this thread or another one.
  [[nodiscard]] bool MakeRoom(const absl::Status& refused, const EvictionNeed& need,
                              const WriteOptions& options) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns what the operations of the batch need, were they all puts of new keys.
  EvictionNeed NeedOf(const WriteBatch& batch) const {
    EvictionNeed need{.bytes = batch.bytes(), .keys = batch.size()};
    if (flags_.goes_by_expiry.load(std::memory_order_acquire)) [[unlikely]]
      need.soonest_expiry_ms = SoonestExpiry(batch);
    return need;
  }
  // Does `write`, which has these options, and makes room and does it again as long as it is
  // refused for want of room. All writes that add data for clients go through this function. `need`
  // is what the write adds; `write` may change it. A thread that does not wait for an exclusive
  // write does not wait for room either: then the result is Cancelled.
  [[nodiscard]] absl::StatusOr<CommitResult> WriteWithRoom(
      const EvictionNeed& need, const WriteOptions& options,
      absl::FunctionRef<absl::StatusOr<CommitResult>()> write) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns what OBJECT tells of a key that was read as `read`, by the rule that is in force now.
  // Where none is in force for the namespace, reads are not known, and the write counts alone. The
  // call may wait for a step of evictions, and for the opening of the index.
  struct Use {
    EvictionOrder order = EvictionOrder::kNone;
    uint64_t idle_ms = 0;
    uint8_t frequency = 0;
  };
  [[nodiscard]] Use LookUp(NamespaceId space, std::string_view key, const ReadResult& read)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Does what the thread does every kRound, and also when RelieveDisk() asks for it. The thread
  // enters reads into the index if they are due.
  enum class Reads : uint8_t { kAll, kIfDue };
  enum class Round : uint8_t { kRegular, kForDisk };
  void RunRound(Reads which = Reads::kAll, Round round = Round::kRegular)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes over what was changed of rules and quotas, and goes on with walks that are due and with
  // what is owed, for a moment. Returns whether more is to do; if not, what was evicted is in
  // segments where the disk is short of room.
  absl::StatusOr<bool> WorkOn() ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t evicted_keys() const { return counts_.keys.load(std::memory_order_relaxed); }
  uint64_t evicted_bytes() const { return counts_.bytes.load(std::memory_order_relaxed); }
  // Returns how many reads the order has taken. Those of one key within a round count once.
  uint64_t noted_reads() const { return counts_.reads.load(std::memory_order_relaxed); }
  uint64_t dropped_reads() const { return touched_.dropped(); }
  // Has the four counts above begin anew.
  void ResetStatistics() {
    counts_.keys = counts_.bytes = counts_.reads = 0;
    touched_.ResetDropped();
  }

 private:
  // The evictor was started with this, and nothing of it changes any more.
  struct Setup {
    std::string directory;  // empty: it was not started yet
    uint64_t memory = 0;
    BoundedFileSystem* disk = nullptr;
    Work work = Work::kByThread;
    SequenceNumber newest = kNoSequence;  // the store's newest version then
  };
  // A namespace with a rule, or a database.
  struct Space {
    std::unique_ptr<SpaceOrder> order;
    NamespaceOptions options;
    Owed owed;
    bool is_checked = false;  // it was counted since its quota was set
  };
  // A bound refuses a write; its orders may make room for it.
  struct Bound {
    std::vector<SpaceOrder*> orders;
    uint64_t bytes = 0;  // 0: no limit
    uint64_t keys = 0;
    bool of_keys = false;  // the limit of keys refuses it; else that of bytes does
    Owed* owed = nullptr;

    // Returns whether nothing makes room for so much.
    bool IsBelow(const EvictionNeed& need) const;
    // Returns whether the write adds so much that it is worth to count what is there.
    bool IsWorthCounting(const EvictionNeed& need) const;
    // Returns what is to be evicted for the write. `used`: what is there; null: it was not counted.
    EvictionNeed Missing(const EvictionNeed& need, const CountResult* used) const;
    // Returns how much a writer frees at least, of what is refused.
    uint64_t Ahead() const;
  };
  // There is no room for a write, there is some, or there may be once what is there was counted.
  enum class Room : uint8_t { kNone, kMade, kAfterCount };

  // Noted reads wait here for the index.
  struct NotedReadsToEnter {
    std::unique_ptr<ReadJournal> journal;  // there while index_ is
    bool is_under_way = false;             // a thread enters them
  };

  // The rules in force. They are changed before flags_.is_stale is set.
  struct Rules {
    std::atomic<EvictionRule> databases{EvictionRule()};
    std::atomic<uint64_t> data_limit{0};  // the bound of all data
    std::atomic<bool> has_own{false};     // a namespace has a rule of its own

    bool any() const { return databases.load().on() || has_own.load(); }
  };
  struct Openings {
    int failed = 0;          // in a row, as the index could not be read
    SteadyTime failed_at{};  // the last one that failed, whatever the reason
  };
  // A round tells what went wrong while evictions went on.
  struct Trouble {
    absl::Status met;                               // the first error since the last round
    absl::StatusCode told = absl::StatusCode::kOk;  // by the last round
  };
  struct Flags {
    std::atomic<bool> notes_reads{false};
    std::atomic<bool> goes_by_expiry{false};       // an order does
    std::atomic<bool> is_stale{true};              // rules have changed since the last Refresh()
    std::atomic<bool> has_notes{false};            // touched_ has its memory
    std::atomic<bool> disk_is_short{false};        // since the last round
    std::atomic<bool> writers_are_refused{false};  // for the disk, since the last regular round
  };
  struct Counts {
    std::atomic<uint64_t> keys{0}, bytes{0};  // evicted
    std::atomic<uint64_t> reads{0};           // that the index has taken
    std::atomic<uint64_t> rounds{0};          // evictions, each of many keys
    std::atomic<uint64_t> flushed_rounds{0};  // `rounds` at the last flush for the disk
  };

  // Notes reads from now on, as a rule is in force.
  void BeginNotes() ABSL_LOCKS_EXCLUDED(wake_mutex_);
  // Takes the memory of touched_, once. Throws std::bad_alloc.
  void StartNotes() ABSL_LOCKS_EXCLUDED(wake_mutex_);
  void Wake() ABSL_LOCKS_EXCLUDED(wake_mutex_);
  void Loop() ABSL_LOCKS_EXCLUDED(wake_mutex_, mutex_);
  // Opens the index; if one is open already, which is damaged, makes an empty one in its place, as
  // where the index could not be read at several openings in a row.
  absl::Status OpenIndex(const NamespaceList& list, EvictionRule databases)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseIndex() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  EvictionParts PartsOfStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellEvicted(NamespaceId space, std::string_view key, uint64_t bytes,
                   SequenceNumber durable_after);
  // Has the orders be those of the rules in force. Whoever changes these sets flags_.is_stale after
  // it, so that a later call finds what this one has not seen.
  absl::Status Refresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes all orders, as no rule is in force: closes the index, and leaves an empty one on disk.
  // While reads are entered it leaves that to the next Refresh().
  absl::Status RemoveOrders() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status LoadOrders(const NamespaceList& list, EvictionRule databases)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status DropOrders(const NamespaceList& list, EvictionRule databases)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the orders how soon what was written meanwhile expires.
  void NoteExpiries() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Bound> BoundOf(const absl::Status& refused) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes back what the databases owe for another rule or bound.
  Bound BoundOfDatabases() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes room, or asks for a count of what is in the bound: `used` is then to be given.
  Room MakeRoomNow(const absl::Status& refused, const EvictionNeed& need,
                   const WriteOptions& options, const CountResult* used)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Enters what clients have read into the index.
  absl::Status EnterReads(Reads which) ABSL_LOCKS_EXCLUDED(mutex_);
  // Enters the first of the reads, and removes them from the span.
  absl::Status EnterSome(absl::Span<const WaitingRead>* reads)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts where what is there may be above a bound that was lowered, and notes what has to go.
  absl::Status LookForExcess() ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes what has to go for the disk. Where writers were refused since the last regular round
  // although all that had to go has gone, a regular round has a little more go.
  absl::Status LookForExcessOnDisk(Round round) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<bool> WalkAndPay() ABSL_LOCKS_EXCLUDED(mutex_);

  Store& store_;
  Clients& clients_;
  const ReplicationState& replication_;
  Setup setup_;

  Rules rules_;
  Flags flags_;
  NotedReads touched_;
  Counts counts_;

  TurnMutex mutex_ ABSL_ACQUIRED_BEFORE(wake_mutex_);
  std::unique_ptr<AccessIndex> index_ ABSL_GUARDED_BY(mutex_);
  Openings openings_ ABSL_GUARDED_BY(mutex_);  // of the index
  std::map<NamespaceId, Space> spaces_ ABSL_GUARDED_BY(mutex_);
  DatabasesOwed owed_by_databases_ ABSL_GUARDED_BY(mutex_);
  NotedReadsToEnter entering_ ABSL_GUARDED_BY(mutex_);
  // Clients have written nothing that expires before it since NoteExpiries() took it.
  std::atomic<uint64_t> soonest_expiry_ms_{kNeverSoon};
  uint64_t random_ ABSL_GUARDED_BY(mutex_) = 0x9e3779b97f4a7c15;
  bool has_followed_ ABSL_GUARDED_BY(mutex_) = false;
  Trouble trouble_ ABSL_GUARDED_BY(mutex_);

  absl::Mutex wake_mutex_;
  SteadyCondition wake_;
  bool is_awake_ ABSL_GUARDED_BY(wake_mutex_) = false;
  bool is_stopped_ ABSL_GUARDED_BY(wake_mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(wake_mutex_);
};

}  // namespace varve
