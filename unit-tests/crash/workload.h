// A user of a store who does a bit of everything, and remembers what he was told: puts, deletes,
// batches, range deletes, emptyings, keys that expire and have metadata, namespaces that come, go,
// change and are swapped, quotas, conditional writes, transactions, what was removed and comes
// back, clones of the past and dropped namespaces that return, in all durability modes, with reads,
// counts, flushes, merges, rests, restarts, and a clock that goes on, leaps and is set back in
// between. The seed decides.
//
// Every answer is held against what was written; the first that is wrong ends the run. Errors of
// the store are no wrong answers: what was refused was not written, what was not acknowledged may
// be there or not. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "unit-tests/crash/contents.h"
#include "unit-tests/crash/feed_reader.h"
#include "unit-tests/crash/history.h"
#include "unit-tests/crash/past.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/simulated_file_system.h"
#include "varve/storage_engine.h"
#include "varve/transaction.h"

namespace varve::testing {

inline const std::string kStoreDirectory = "/disk/store";

// A disk on which a store may be made in kStoreDirectory.
SimulatedDisk EmptyDisk();
// Libraries measure and set up things when they are first used, which takes turns and time from a
// simulation: the first one in a process would not be like the others. Call it before each; it does
// something once.
void SetUpLibraries();
// Everything small, so that flushes, merges and changes of files come often; how small, the seed
// decides.
EngineOptions SmallOptions(uint64_t seed, FileSystem* file_system, const Clock* clock = nullptr);

// The store's figure of this name.
uint64_t StatisticOf(const StorageEngine& store, std::string_view name);

class Workload {
 public:
  // `history` may hold earlier runs.
  Workload(uint64_t seed, SimulatedFileSystem* file_system, History* history, ManualClock* clock);
  ~Workload();

  // From now on it ingests, too, and reads the change feed, where it has a place. An ingest whose
  // commit fails may be there after the next start, which the history cannot say, and a failing
  // disk may cost readers of changes their place, so this is for disks that do not fail.
  void UseIngestsAndChanges() { uses_ingests_and_changes_ = true; }
  // Opens the store: at first, and after everything that closed it. What it holds then must be in
  // the history.
  [[nodiscard]] absl::Status Open();
  // Does `count` things. An error is a wrong answer, and says which; a store that refuses
  // everything is none.
  [[nodiscard]] absl::Status Run(int count);
  // One acknowledged write, or why not.
  [[nodiscard]] absl::Status Put();
  // Reads everything. FailedPrecondition: it isn't what it should be.
  [[nodiscard]] absl::Status Check();
  // Does the same, and again if the log has failed without anybody's notice: what was not durable
  // is gone then.
  [[nodiscard]] absl::Status CheckAndNotice();
  // The clock goes on.
  void PassTime(uint64_t millis);
  [[nodiscard]] absl::Status Close();
  // Null while it could not be opened.
  StorageEngine* store() { return store_.get(); }
  // Errors that the store gave.
  uint64_t errors() const { return errors_; }
  const absl::Status& last_error() const { return last_error_; }
  // How often what was done that isn't part of every run.
  const std::map<std::string, uint64_t>& done() const { return done_; }

 private:
  // A batch, and what the store holds after it, and after each of its operations.
  struct Write {
    WriteBatch batch;
    Contents next;
    std::vector<Contents> steps = {};
    bool changes_namespaces = false;
  };

  uint64_t Dice(uint64_t sides) { return random_() % sides; }
  std::string Key() { return "key" + std::to_string(Dice(60)); }
  Value NewValue();
  std::string NewMetadata();
  uint64_t NewExpiry();
  Durability Mode();
  Known KnownNow() const { return history_->KnownAt(file_system_->trace_size()); }
  Write NewWrite() const { return {.batch = {}, .next = contents_}; }
  // Call it after each operation.
  static void Mark(Write* write) {
    if (write->steps.size() + 1 == write->batch.size()) write->steps.push_back(write->next);
  }

  // --- workload_writes.cc
  NamespaceId AnySpace(const Contents& contents);
  void AddRandom(Write* write);
  void AddPut(Write* write, NamespaceId space);
  void AddDelete(Write* write, NamespaceId space);
  void AddRangeDelete(Write* write, NamespaceId space);
  void AddChangeOfNamespaces(Write* write);
  void AddCreation(Write* write);
  void AddClone(Write* write);  // alone; where there are many, another write
  void AddDrop(Write* write);
  void AddSwap(Write* write);
  void AddAlteration(Write* write);
  NamespaceOptions NewOptions();
  // Of keys: at least that many are there, at most that many may be.
  uint64_t CountOf(const SpaceContents& space, bool at_most) const;
  absl::Status CheckAccepted(const Write& write) const;
  absl::Status CheckRefused(const Write& write, size_t operations) const;
  // Commits it. An error of the store's is noted.
  absl::Status Commit(Write* write, Durability mode);
  // What was submitted is sent, and acknowledged when it is as durable as its mode promises.
  // `steps`: as those of a Write; none: they are not known.
  absl::Status Remember(absl::StatusOr<CommitResult> sent, size_t operations, Contents next,
                        Durability mode, uint64_t sent_at, std::vector<Contents> steps = {});
  absl::Status IngestSome();
  absl::Status ConditionalWrite();
  absl::Status ChangeExtras();
  absl::Status RunTransaction();
  absl::Status ReadInTransaction(Transaction* transaction, std::string* key, NamespaceId* space);
  void WriteInTransaction(Transaction* transaction, Contents* next);

  // --- workload_past.cc
  KnownPast Past(const Known& known) const { return {*history_, last_, known}; }
  absl::Status LookBack();
  absl::StatusOr<RemovedKeys> FindRemoved(NamespaceId space, const std::string& lower,
                                          const std::string& upper);
  absl::Status Undelete();
  absl::Status Drop();
  absl::Status ClonePast();
  absl::Status Undrop();
  absl::Status CommitClone(NamespaceId source, SequenceNumber version,
                           const NamespaceDescription& space);
  absl::Status UseChanges();
  absl::Status MoveFeed();
  absl::Status GoOnWithChanges(SequenceNumber recovered);

  // --- workload.cc
  absl::Status Read();
  absl::Status ReadOne();
  absl::Status Rest();
  absl::Status Restart(bool killed);
  absl::Status OpenUnlessRefused();
  absl::Status Step();
  void SetClock();
  void ClockIs();
  // Counts an error of the store's.
  void Note(const absl::Status& status);
  // After the log has failed, only what is durable is there.
  void ForgetWhatWasLost();
  void NoteFigures();

  std::mt19937_64 random_;
  const uint64_t seed_;
  SimulatedFileSystem* const file_system_;
  History* const history_;
  ManualClock* const clock_;
  std::unique_ptr<StorageEngine> store_;
  Contents contents_;
  SequenceNumber last_ = kNoSequence;
  SequenceNumber last_every_second_ = kNoSequence;
  uint64_t values_ = 0;
  uint64_t errors_ = 0;
  absl::Status last_error_;
  std::map<std::string, uint64_t> done_;
  bool uses_ingests_and_changes_ = false;
  FeedReader reader_;
  bool has_feed_ = false;
};

}  // namespace varve::testing
