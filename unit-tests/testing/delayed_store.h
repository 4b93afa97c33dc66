// A store that is on other machines as far as its callers can tell: each call that may wait is
// answered by another thread, or, blocking, once that thread has come to it. A test withholds the
// answers until it releases them, so that it waits for events and not for time, or has them fail as
// a missed deadline does. What is stored is an embedded store's.
//
// The store ends the process if a thread that must not wait calls what may wait
// (include/varve/store.h, "Answered locally").
//
// Thread-safety: all functions are thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "varve/store.h"

namespace varve::testing {

// The calls of a store that are answered locally: by the store around which it lies.
//
// Thread-safety: as the store's.
class LocalAnswers : public Store {
 public:
  // Requires: `store` outlives this.
  explicit LocalAnswers(Store* store) : store_(*store) {}

  uint64_t NowMillis() const override { return store_.NowMillis(); }
  bool HasNamespace(NamespaceId space) const override { return store_.HasNamespace(space); }
  uint64_t UsualExpiry(NamespaceId space) const override { return store_.UsualExpiry(space); }
  std::optional<KeyGrouping> GroupsOf(NamespaceId space) const override {
    return store_.GroupsOf(space);
  }
  SequenceNumber durable_sequence() const override { return store_.durable_sequence(); }
  absl::Status log_status() const override { return store_.log_status(); }
  void SetSync(Durability sync) override { store_.SetSync(sync); }
  absl::Status PushUnsynced() override { return store_.PushUnsynced(); }
  bool TrySync() override { return false; }
  uint64_t AddDurabilityListener(std::function<void()> listener) override {
    return store_.AddDurabilityListener(std::move(listener));
  }
  void RemoveDurabilityListener(uint64_t token) override { store_.RemoveDurabilityListener(token); }
  Pressure pressure() const override { return store_.pressure(); }
  uint64_t ChangeCount() const override { return store_.ChangeCount(); }
  void SetExpiryListener(ExpiryListener listener) override {
    store_.SetExpiryListener(std::move(listener));
  }
  void PauseExpiry(std::chrono::milliseconds how_long) override { store_.PauseExpiry(how_long); }
  void BeginClose() override {
    if (when_closing) when_closing();
  }

  // Called when the store is told that it will be closed.
  std::function<void()> when_closing;

 protected:
  Store& store_;
};

class DelayedStore final : public LocalAnswers {
 public:
  // `must_not_wait` says whether the calling thread is one of those. Requires: `store` outlives
  // this, and all who were promised answers.
  explicit DelayedStore(
      Store* store, std::function<bool()> must_not_wait = [] { return false; });
  ~DelayedStore() override;

  // --- For tests ---------------------------------------------------------------------------------
  // Answers take that long from now on.
  void SetDelay(std::chrono::microseconds delay) ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on nothing is answered until Release(). Calls that are named in `only`, if any, are
  // withheld alone: "get", "multiget", "count", "range", "write", "blocking count" (Count()),
  // "blocking" (all others that block). With a `prefix` it is reads and updates of keys that have
  // it alone.
  void Withhold(std::string only = "", std::string prefix = "") ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on keys with this prefix are away, and no others.
  void SetAway(std::string prefix) ABSL_LOCKS_EXCLUDED(mutex_);
  void Release() ABSL_LOCKS_EXCLUDED(mutex_);
  // Has the call answered that is withheld for the longest time. Requires: one is.
  void ReleaseFirst() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until so many calls are withheld.
  void AwaitWithheld(size_t calls) ABSL_LOCKS_EXCLUDED(mutex_);
  size_t withheld() const ABSL_LOCKS_EXCLUDED(mutex_);
  // All calls are answered with the failure from now on; OK ends that.
  void FailWith(absl::Status failure) ABSL_LOCKS_EXCLUDED(mutex_);
  // Asynchronous calls, and calls of Push(), so far.
  size_t asked() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t pushed() const ABSL_LOCKS_EXCLUDED(mutex_);

  StoreCapabilities capabilities() const override;
  bool IsAway(NamespaceId space, std::string_view key) const override;

  // --- Reads
  absl::StatusOr<ReadResult> Get(const ReadOptions& options, std::string_view key,
                                 std::string* value) override;
  absl::Status MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys,
                        absl::Span<MultiGetResult> results) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower,
                                        std::string_view upper,
                                        SequenceNumber* durable_after) override;
  std::shared_ptr<const Snapshot> GetSnapshot() override;
  absl::StatusOr<CountResult> Count(const ReadOptions& options, std::string_view lower,
                                    std::string_view upper) override;
  absl::StatusOr<ExplainedRead> ExplainGet(const ReadOptions& options,
                                           std::string_view key) override;
  void GetAsync(const ReadOptions& options, std::string key, GetDone done) override;
  void MultiGetAsync(const ReadOptions& options, std::vector<std::string> keys,
                     MultiGetDone done) override;
  void CountAsync(const ReadOptions& options, std::string lower, std::string upper,
                  CountDone done) override;
  void ReadRangeAsync(const ReadOptions& options, RangeRequest range, RangeDone done) override;

  // --- Writes
  absl::StatusOr<CommitResult> Write(const WriteOptions& options, WriteBatch* batch) override;
  absl::StatusOr<CommitResult> Submit(const WriteOptions& options, WriteBatch* batch) override;
  void WriteAsync(const WriteOptions& options, WriteBatch* batch, WriteDone done) override;
  absl::StatusOr<CommitResult> Update(const WriteOptions& options,
                                      absl::Span<const std::string_view> keys,
                                      absl::FunctionRef<absl::Status(WriteBatch*)> decide) override;
  std::unique_ptr<ExclusiveWrite> BeginExclusiveWrite() override;

  // --- Namespaces
  absl::StatusOr<NamespaceList> Namespaces() const override;

  // --- Durability
  absl::Status Push() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status WaitUntilDurable(SequenceNumber sequence) override;
  absl::Status Sync() override;

  // --- Upkeep
  absl::Status Flush() override;
  absl::Status Compact(std::string_view lower, std::string_view upper, NamespaceId space) override;
  std::vector<std::pair<std::string, uint64_t>> Statistics() const override;
  absl::Status Close() override;

 private:
  using Time = std::chrono::steady_clock::time_point;
  // Gets what the call fails with, OK as a rule.
  using Answer = std::function<void(absl::Status failure)>;
  struct Asked {
    Time due;
    bool withheld;
    Answer answer;
  };

  // Has the answering thread call `answer`. `keys`: those that the call is for, where it has any.
  void Ask(std::string_view what, absl::Span<const std::string_view> keys, Answer answer) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until a blocking call may be answered; returns what it fails with.
  absl::Status Await(absl::Span<const std::string_view> keys = {},
                     std::string_view what = "blocking") const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t CountWithheld() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the next call whose time has come. False: the store is closed.
  bool TakeDue(Asked* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<bool()> must_not_wait_;
  mutable absl::Mutex mutex_;
  mutable absl::CondVar changed_;
  mutable std::deque<Asked> asked_ ABSL_GUARDED_BY(mutex_);
  mutable size_t asked_so_far_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t pushed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::chrono::microseconds delay_ ABSL_GUARDED_BY(mutex_){0};
  bool withholds_ ABSL_GUARDED_BY(mutex_) = false;
  std::string only_ ABSL_GUARDED_BY(mutex_);
  std::string prefix_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::string> away_prefix_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread answering_;
};

}  // namespace varve::testing
