// A user of a store who does a bit of everything, and remembers what he was told: puts, deletes, batches, range deletes, emptyings,
// namespaces that come, go and are swapped, conditional writes, in all durability modes, with reads, counts, flushes, merges, rests and restarts in between. The seed decides.
//
// Every answer is held against what was written; the first that is wrong ends the run. Errors of the store are no wrong answers: what
// was refused was not written, what was not acknowledged may be there or not. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/storage_engine.h"
#include "unit-tests/crash/history.h"
#include "unit-tests/testing/simulated_file_system.h"

namespace varve::testing {

inline const std::string kStoreDirectory = "/disk/store";

// A disk on which a store may be made in kStoreDirectory.
SimulatedDisk EmptyDisk();
// Libraries measure and set up things when they are first used, which takes turns and time from a simulation: the first one in a process
// would not be like the others. Call it before each; it does something once.
void SetUpLibraries();
// Everything small, so that flushes, merges and changes of files come often; how small, the seed decides.
EngineOptions SmallOptions(uint64_t seed, FileSystem* file_system);

// Beside the default namespace there may be one other. Contents hold both: the keys of the other one, and itself, behind a mark.
inline constexpr NamespaceId kOtherNamespace = 1;
inline constexpr std::string_view kOtherNamespaceMark = "other:";
Contents ContentsOf(const Contents& contents, NamespaceId space);
// `other` may be null: there is none.
Contents JoinedContents(const Contents& first, const Contents* other);

// OK: everything that a user can see is `contents`. Reads it in all ways there are.
absl::Status CheckContents(StorageEngine* store, const Contents& contents);
// The store's figure of this name.
uint64_t StatisticOf(const StorageEngine& store, std::string_view name);

class Workload {
 public:
  // `history` may hold earlier runs.
  Workload(uint64_t seed, SimulatedFileSystem* file_system, History* history);
  ~Workload();

  // Opens the store: at first, and after everything that closed it. What it holds then must be in the history.
  [[nodiscard]] absl::Status Open();
  // Does `count` things. An error is a wrong answer, and says which; a store that refuses everything is none.
  [[nodiscard]] absl::Status Run(int count);
  // One acknowledged write, or why not.
  [[nodiscard]] absl::Status Put();
  [[nodiscard]] absl::Status Close();
  // Null while it could not be opened.
  StorageEngine* store() { return store_.get(); }
  // What the store should show now.
  const Contents& contents() const { return contents_; }
  // Errors that the store gave.
  uint64_t errors() const { return errors_; }
  const absl::Status& last_error() const { return last_error_; }

 private:
  std::string Key() { return "key" + std::to_string(random_() % 60); }
  std::shared_ptr<const std::string> Value();
  Durability Mode();
  void AddRandom(WriteBatch* batch, Contents* next);
  void AddPut(WriteBatch* batch, Contents* next);
  void AddDelete(WriteBatch* batch, Contents* next);
  void AddRangeDelete(WriteBatch* batch, Contents* next);
  void AddToOther(WriteBatch* batch, Contents* next);
  void AddChangeOfNamespaces(WriteBatch* batch, Contents* next);
  // Commits it. An error is the store's, not a wrong answer.
  absl::Status Commit(WriteBatch* batch, Contents next, Durability mode);
  absl::Status ConditionalWrite();
  absl::Status Read();
  absl::Status Rest();
  absl::Status Restart(bool killed);
  absl::Status OpenUnlessRefused();
  absl::Status Step();
  // Counts an error of the store's.
  void Note(const absl::Status& status);
  // After the log has failed, only what is durable is there.
  void ForgetWhatWasLost();

  std::mt19937_64 random_;
  const uint64_t seed_;
  SimulatedFileSystem* const file_system_;
  History* const history_;
  std::unique_ptr<StorageEngine> store_;
  Contents contents_;
  SequenceNumber last_ = kNoSequence;
  SequenceNumber last_every_second_ = kNoSequence;
  uint64_t values_ = 0;
  uint64_t errors_ = 0;
  absl::Status last_error_;
};

}  // namespace varve::testing
