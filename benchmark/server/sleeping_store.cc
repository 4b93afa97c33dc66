#include "benchmark/server/sleeping_store.h"

#include <utility>

#include "absl/time/time.h"
#include "db/iterators/store_iterator.h"

namespace varve::bench {
namespace {

absl::Status HasNone(const char* what) {
  return absl::FailedPreconditionError(std::string("a store that only sleeps has no ") + what);
}

class NoSnapshot final : public Snapshot {
 public:
  SequenceNumber sequence() const override { return kNoSequence; }
  uint64_t instant_ms() const override { return 0; }
  bool HasNamespace(NamespaceId) const override { return false; }
};

}  // namespace

SleepingStore::SleepingStore(std::chrono::microseconds delay, size_t value_size)
    : delay_(delay), value_(value_size, 'v'), answering_([this] { AnswerAll(); }) {}

SleepingStore::~SleepingStore() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    changed_.Signal();
  }
  answering_.join();
}

StoreCapabilities SleepingStore::capabilities() const {
  return {.snapshots = false,
          .atomicity = StoreCapabilities::Atomicity::kWithinGroup,
          .constant_time_clone = false,
          .constant_time_range_delete = false,
          .exact_counts = false,
          .size_estimates = false,
          .remote = true};
}

void SleepingStore::Ask(std::function<void()> answer) {
  absl::MutexLock lock(&mutex_);
  asked_.push_back({std::chrono::steady_clock::now() + delay_, std::move(answer)});
  if (asked_.size() == 1) changed_.Signal();
}

void SleepingStore::AnswerAll() {
  absl::MutexLock lock(&mutex_);
  while (!closed_ || !asked_.empty()) {
    if (asked_.empty()) {
      changed_.Wait(&mutex_);
      continue;
    }
    const auto left = asked_.front().due - std::chrono::steady_clock::now();
    if (left > left.zero()) {
      changed_.WaitWithTimeout(&mutex_, absl::FromChrono(left));
      continue;
    }
    const std::function<void()> answer = std::move(asked_.front().answer);
    asked_.pop_front();
    mutex_.Unlock();
    answer();
    mutex_.Lock();
  }
}

// --- Reads ---------------------------------------------------------------------------------------

absl::StatusOr<ReadResult> SleepingStore::Get(const ReadOptions&, std::string_view,
                                              std::string* value) {
  Sleep();
  *value = value_;
  return Found();
}

absl::Status SleepingStore::MultiGet(const ReadOptions&, absl::Span<const std::string_view>,
                                     absl::Span<MultiGetResult> results) {
  Sleep();
  for (MultiGetResult& result : results) result = {.result = Found(), .value = value_};
  return absl::OkStatus();
}

std::unique_ptr<Iterator> SleepingStore::NewIterator(const ReadOptions&, std::string_view,
                                                     std::string_view,
                                                     SequenceNumber* durable_after) {
  if (durable_after != nullptr) *durable_after = kNoSequence;
  return NewErrorIterator(HasNone("order"));
}

std::shared_ptr<const Snapshot> SleepingStore::GetSnapshot() {
  return std::make_shared<const NoSnapshot>();
}

absl::StatusOr<CountResult> SleepingStore::Count(const ReadOptions&, std::string_view,
                                                 std::string_view) {
  return HasNone("count");
}

absl::StatusOr<ExplainedRead> SleepingStore::ExplainGet(const ReadOptions&, std::string_view) {
  return HasNone("explanation");
}

uint64_t SleepingStore::NowMillis() const {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

void SleepingStore::GetAsync(const ReadOptions&, std::string, GetDone done) {
  Ask([this, done = std::move(done)] { done(Found(), value_); });
}

void SleepingStore::MultiGetAsync(const ReadOptions&, std::vector<std::string> keys,
                                  MultiGetDone done) {
  Ask([this, count = keys.size(), done = std::move(done)] {
    done(absl::OkStatus(),
         std::vector<MultiGetResult>(count, {.result = Found(), .value = value_}));
  });
}

// --- Writes --------------------------------------------------------------------------------------

absl::StatusOr<CommitResult> SleepingStore::Write(const WriteOptions&, WriteBatch* batch) {
  Sleep();
  batch->Clear();
  return CommitResult();
}

absl::StatusOr<CommitResult> SleepingStore::Submit(const WriteOptions& options, WriteBatch* batch) {
  return Write(options, batch);
}

void SleepingStore::WriteAsync(const WriteOptions&, WriteBatch* batch, WriteDone done) {
  batch->Clear();
  Ask([done = std::move(done)] { done(CommitResult()); });
}

absl::StatusOr<CommitResult> SleepingStore::Update(
    const WriteOptions& options, absl::Span<const std::string_view>,
    absl::FunctionRef<absl::Status(WriteBatch*)> decide) {
  WriteBatch batch;
  if (absl::Status decided = decide(&batch); !decided.ok()) return decided;
  return Write(options, &batch);
}

std::unique_ptr<ExclusiveWrite> SleepingStore::BeginExclusiveWrite() {
  return std::make_unique<ExclusiveWrite>();
}

absl::StatusOr<NamespaceList> SleepingStore::Namespaces() const {
  NamespaceList list;
  list.namespaces.push_back({.id = kDefaultNamespace});
  list.next_id = kFirstNamedNamespace;
  return list;
}

}  // namespace varve::bench
