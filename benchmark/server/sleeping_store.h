// A store that does nothing but answer after a delay, as a cluster does whose machines have nothing
// else to do. It keeps no keys: every key is there and has one value, and every write succeeds. So
// the rate of a server over it is the server's own.
//
// Thread-safety: all functions are thread-safe.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "varve/durable_store.h"
#include "varve/store.h"

namespace varve::bench {

class SleepingStore final : public DurableStore {
 public:
  SleepingStore(std::chrono::microseconds delay, size_t value_size);
  ~SleepingStore() override;

  StoreCapabilities capabilities() const override;

  // --- Reads
  absl::StatusOr<ReadResult> Get(const ReadOptions& options, std::string_view key,
                                 std::string* value) override;
  absl::Status MultiGet(const ReadOptions& options, absl::Span<const std::string_view> keys,
                        absl::Span<MultiGetResult> results) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower,
                                        std::string_view upper,
                                        SequenceNumber* durable_after) override;
  std::shared_ptr<const Snapshot> GetSnapshot() override;
  absl::StatusOr<CountResult> Count(const ReadOptions&, std::string_view,
                                    std::string_view) override;
  absl::StatusOr<ExplainedRead> ExplainGet(const ReadOptions&, std::string_view) override;
  uint64_t NowMillis() const override;
  void GetAsync(const ReadOptions& options, std::string key, GetDone done) override;
  void MultiGetAsync(const ReadOptions& options, std::vector<std::string> keys,
                     MultiGetDone done) override;

  // --- Writes
  absl::StatusOr<CommitResult> Write(const WriteOptions& options, WriteBatch* batch) override;
  absl::StatusOr<CommitResult> Submit(const WriteOptions& options, WriteBatch* batch) override;
  void WriteAsync(const WriteOptions& options, WriteBatch* batch, WriteDone done) override;
  absl::StatusOr<CommitResult> Update(const WriteOptions& options,
                                      absl::Span<const std::string_view> keys,
                                      absl::FunctionRef<absl::Status(WriteBatch*)> decide) override;
  std::unique_ptr<ExclusiveWrite> BeginExclusiveWrite() override;

  // --- Namespaces: the default one
  absl::StatusOr<NamespaceList> Namespaces() const override;
  bool HasNamespace(NamespaceId space) const override { return space == kDefaultNamespace; }
  uint64_t UsualExpiry(NamespaceId) const override { return kNoExpiry; }

  absl::Status Push() override { return absl::OkStatus(); }

  // --- Upkeep
  absl::Status Flush() override { return absl::OkStatus(); }
  absl::Status Compact(std::string_view, std::string_view, NamespaceId) override {
    return absl::OkStatus();
  }
  Pressure pressure() const override { return 0; }
  uint64_t ChangeCount() const override { return 0; }
  std::vector<std::pair<std::string, uint64_t>> Statistics() const override { return {}; }
  void SetExpiryListener(ExpiryListener) override {}
  absl::Status Close() override { return absl::OkStatus(); }

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Asked {
    Time due;
    std::function<void()> answer;
  };

  ReadResult Found() const { return {.found = true, .version = 1, .value_size = value_.size()}; }
  // Has the answering thread call `answer` after the delay.
  void Ask(std::function<void()> answer) ABSL_LOCKS_EXCLUDED(mutex_);
  void AnswerAll() ABSL_LOCKS_EXCLUDED(mutex_);
  void Sleep() const { std::this_thread::sleep_for(delay_); }

  const std::chrono::microseconds delay_;
  const std::string value_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::deque<Asked> asked_ ABSL_GUARDED_BY(mutex_);  // what is due ascends
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread answering_;
};

}  // namespace varve::bench
