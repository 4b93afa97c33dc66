// The ingest table holds the bulk ingests that are under way, by the ids that clients gave them. An
// id belongs to the server: any connection may go on with it.
//
// An ingest that nobody has used for an hour ends, and all end with the server. There are 16 at
// most, which bounds their memory.
//
// Thread-safety: all functions may be called on any thread. The lock of one ingest is held while it
// writes; that of the table is not.
// Requires: the store outlives the table.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "varve/ingest.h"
#include "varve/store.h"

namespace varve {

// One ingest under way. Its users lock `mutex` for each step.
struct OpenIngest {
  using Time = std::chrono::steady_clock::time_point;

  std::string id;
  IngestOptions options;
  std::string space_name;  // of a named namespace; empty: a database
  std::string user;        // that began it
  const Time began = std::chrono::steady_clock::now();

  absl::Mutex mutex;
  std::unique_ptr<Ingest> ingest ABSL_GUARDED_BY(mutex);  // null: it has ended
  std::string first_key ABSL_GUARDED_BY(mutex);
  std::string last_key ABSL_GUARDED_BY(mutex);
  bool has_others_keys ABSL_GUARDED_BY(mutex) = false;  // another user added some
  Time last_use ABSL_GUARDED_BY(mutex) = began;
};

class IngestTable {
 public:
  static constexpr size_t kMostIngests = 16;
  static constexpr size_t kLongestId = 256;
  static constexpr std::chrono::hours kLongestRest{1};

  explicit IngestTable(Store* store) : store_(*store) {}

  // Begins the ingest that `opened` describes. AlreadyExists: the id is in use.
  // FailedPrecondition: there are as many as there may be. Other errors are the store's.
  [[nodiscard]] absl::Status Begin(std::shared_ptr<OpenIngest> opened) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns null if there is none of this id.
  std::shared_ptr<OpenIngest> Find(std::string_view id) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the ingest off the table; its files go with the last user.
  void Remove(const OpenIngest& opened) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns all, ascending by id.
  std::vector<std::shared_ptr<OpenIngest>> All() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends those that nobody has used for kLongestRest before `now`.
  void EndIdle(OpenIngest::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether there may be something for EndIdle().
  bool any() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Store& store_;
  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<OpenIngest>, std::less<>> ingests_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
