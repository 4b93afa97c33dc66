#include "unit-tests/testing/delayed_store.h"

#include <algorithm>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "db/iterators/store_iterator.h"
#include "util/base/assert.h"

namespace varve::testing {
namespace {

// What a store answers whose writes are durable when they are done.
absl::StatusOr<CommitResult> Durable(absl::StatusOr<CommitResult> committed) {
  if (committed.ok()) committed->durable_after = kNoSequence;
  return committed;
}

}  // namespace

DelayedStore::DelayedStore(Store* store, std::function<bool()> must_not_wait)
    : LocalAnswers(store),
      must_not_wait_(std::move(must_not_wait)),
      answering_([this] { AnswerAll(); }) {}

DelayedStore::~DelayedStore() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    withholds_ = false;
    for (Asked& asked : asked_) asked.withheld = false;
    changed_.SignalAll();
  }
  answering_.join();
}

// --- For tests -----------------------------------------------------------------------------------

void DelayedStore::SetDelay(std::chrono::microseconds delay) {
  absl::MutexLock lock(&mutex_);
  delay_ = delay;
}

void DelayedStore::Withhold(std::string only, std::string prefix) {
  absl::MutexLock lock(&mutex_);
  withholds_ = true;
  only_ = std::move(only);
  prefix_ = std::move(prefix);
}

void DelayedStore::SetAway(std::string prefix) {
  absl::MutexLock lock(&mutex_);
  away_prefix_ = std::move(prefix);
}

bool DelayedStore::IsAway(NamespaceId, std::string_view key) const {
  absl::MutexLock lock(&mutex_);
  return away_prefix_.has_value() && key.starts_with(*away_prefix_);
}

void DelayedStore::Release() {
  absl::MutexLock lock(&mutex_);
  withholds_ = false;
  for (Asked& asked : asked_) asked.withheld = false;
  changed_.SignalAll();
}

void DelayedStore::ReleaseFirst() {
  absl::MutexLock lock(&mutex_);
  const auto first =
      std::find_if(asked_.begin(), asked_.end(), [](const Asked& asked) { return asked.withheld; });
  VARVE_ASSERT(first != asked_.end());
  first->withheld = false;
  changed_.SignalAll();
}

void DelayedStore::AwaitWithheld(size_t calls) {
  absl::MutexLock lock(&mutex_);
  while (CountWithheld() < calls) changed_.Wait(&mutex_);
}

size_t DelayedStore::CountWithheld() const {
  return static_cast<size_t>(std::count_if(asked_.begin(), asked_.end(),
                                           [](const Asked& asked) { return asked.withheld; }));
}

size_t DelayedStore::withheld() const {
  absl::MutexLock lock(&mutex_);
  return CountWithheld();
}

void DelayedStore::FailWith(absl::Status failure) {
  absl::MutexLock lock(&mutex_);
  failure_ = std::move(failure);
}

size_t DelayedStore::asked() const {
  absl::MutexLock lock(&mutex_);
  return asked_so_far_;
}

size_t DelayedStore::pushed() const {
  absl::MutexLock lock(&mutex_);
  return pushed_;
}

// --- The other machine ---------------------------------------------------------------------------

void DelayedStore::Ask(std::string_view what, absl::Span<const std::string_view> keys,
                       Answer answer) const {
  absl::MutexLock lock(&mutex_);
  ++asked_so_far_;
  bool withheld = withholds_ && prefix_.empty() && (only_.empty() || only_ == what);
  for (const std::string_view key : keys)
    withheld = withheld || (withholds_ && !prefix_.empty() && key.starts_with(prefix_));
  asked_.push_back({std::chrono::steady_clock::now() + delay_, withheld, std::move(answer)});
  changed_.SignalAll();
}

absl::Status DelayedStore::Await(absl::Span<const std::string_view> keys,
                                 std::string_view what) const {
  VARVE_ASSERT(!must_not_wait_());
  absl::Notification answered;
  absl::Status failed;
  Ask(what, keys, [&](absl::Status failure) {
    failed = std::move(failure);
    answered.Notify();
  });
  answered.WaitForNotification();
  return failed;
}

bool DelayedStore::TakeDue(Asked* next) {
  while (true) {
    const auto first = std::find_if(asked_.begin(), asked_.end(),
                                    [](const Asked& asked) { return !asked.withheld; });
    if (first == asked_.end()) {
      if (closed_) return false;
      changed_.Wait(&mutex_);
      continue;
    }
    const auto left = first->due - std::chrono::steady_clock::now();
    if (left <= left.zero()) {
      *next = std::move(*first);
      asked_.erase(first);
      return true;
    }
    changed_.WaitWithTimeout(&mutex_, absl::FromChrono(left));
  }
}

void DelayedStore::AnswerAll() {
  absl::MutexLock lock(&mutex_);
  Asked next;
  while (TakeDue(&next)) {
    const absl::Status failure = failure_;
    mutex_.Unlock();
    next.answer(failure);
    next.answer = nullptr;
    (void)store_.Push();
    mutex_.Lock();
  }
}

StoreCapabilities DelayedStore::capabilities() const {
  StoreCapabilities capabilities = store_.capabilities();
  capabilities.remote = true;
  capabilities.history = false;
  return capabilities;
}

// --- Calls that wait -----------------------------------------------------------------------------

absl::StatusOr<ReadResult> DelayedStore::Get(const ReadOptions& options, std::string_view key,
                                             std::string* value) {
  if (absl::Status failure = Await({&key, 1}); !failure.ok()) return failure;
  return store_.Get(options, key, value);
}

absl::Status DelayedStore::MultiGet(const ReadOptions& options,
                                    absl::Span<const std::string_view> keys,
                                    absl::Span<MultiGetResult> results) {
  if (absl::Status failure = Await(keys); !failure.ok()) return failure;
  return store_.MultiGet(options, keys, results);
}

std::unique_ptr<Iterator> DelayedStore::NewIterator(const ReadOptions& options,
                                                    std::string_view lower, std::string_view upper,
                                                    SequenceNumber* durable_after) {
  if (absl::Status failure = Await(); !failure.ok()) {
    if (durable_after != nullptr) *durable_after = kNoSequence;
    return NewErrorIterator(std::move(failure));
  }
  return store_.NewIterator(options, lower, upper, durable_after);
}

std::shared_ptr<const Snapshot> DelayedStore::GetSnapshot() {
  (void)Await();  // there is a snapshot in any case
  return store_.GetSnapshot();
}

absl::StatusOr<CountResult> DelayedStore::Count(const ReadOptions& options, std::string_view lower,
                                                std::string_view upper) {
  if (absl::Status failure = Await({}, "blocking count"); !failure.ok()) return failure;
  return store_.Count(options, lower, upper);
}

absl::StatusOr<ExplainedRead> DelayedStore::ExplainGet(const ReadOptions& options,
                                                       std::string_view key) {
  if (absl::Status failure = Await(); !failure.ok()) return failure;
  return store_.ExplainGet(options, key);
}

absl::StatusOr<CommitResult> DelayedStore::Write(const WriteOptions& options, WriteBatch* batch) {
  if (absl::Status failure = Await(); !failure.ok()) return failure;
  return Durable(store_.Write(options, batch));
}

absl::StatusOr<CommitResult> DelayedStore::Submit(const WriteOptions& options, WriteBatch* batch) {
  if (absl::Status failure = Await(); !failure.ok()) return failure;
  return Durable(store_.Write(options, batch));
}

absl::StatusOr<CommitResult> DelayedStore::Update(
    const WriteOptions& options, absl::Span<const std::string_view> keys,
    absl::FunctionRef<absl::Status(WriteBatch*)> decide) {
  if (absl::Status failure = Await(keys); !failure.ok()) return failure;
  const absl::StatusOr<CommitResult> committed = store_.Update(options, keys, decide);
  if (!committed.ok()) return committed;
  if (absl::Status synced = store_.WaitUntilDurable(committed->durable_after); !synced.ok())
    return synced;
  return Durable(committed);
}

std::unique_ptr<ExclusiveWrite> DelayedStore::BeginExclusiveWrite() {
  (void)Await();
  return store_.BeginExclusiveWrite();
}

absl::StatusOr<NamespaceList> DelayedStore::Namespaces() const {
  if (absl::Status failure = Await(); !failure.ok()) return failure;
  return store_.Namespaces();
}

absl::Status DelayedStore::WaitUntilDurable(SequenceNumber sequence) {
  if (absl::Status failure = Await(); !failure.ok()) return failure;
  return store_.WaitUntilDurable(sequence);
}

absl::Status DelayedStore::Sync() {
  if (absl::Status failure = Await(); !failure.ok()) return failure;
  return store_.Sync();
}

absl::Status DelayedStore::Flush() {
  if (absl::Status failure = Await(); !failure.ok()) return failure;
  return store_.Flush();
}

absl::Status DelayedStore::Compact(std::string_view lower, std::string_view upper,
                                   NamespaceId space) {
  if (absl::Status failure = Await(); !failure.ok()) return failure;
  return store_.Compact(lower, upper, space);
}

std::vector<std::pair<std::string, uint64_t>> DelayedStore::Statistics() const {
  (void)Await();
  return store_.Statistics();
}

absl::Status DelayedStore::Close() { return store_.Close(); }

// --- Asynchronous calls --------------------------------------------------------------------------

void DelayedStore::GetAsync(const ReadOptions& options, std::string key, GetDone done) {
  const std::string_view name = key;
  Ask("get", {&name, 1}, [this, options, key, done = std::move(done)](absl::Status failure) {
    if (!failure.ok()) return done(std::move(failure), "");
    store_.GetAsync(options, key, done);
  });
}

void DelayedStore::MultiGetAsync(const ReadOptions& options, std::vector<std::string> keys,
                                 MultiGetDone done) {
  const std::vector<std::string_view> names(keys.begin(), keys.end());
  Ask("multiget", names, [this, options, keys, done = std::move(done)](absl::Status failure) {
    if (!failure.ok()) return done(std::move(failure), {});
    store_.MultiGetAsync(options, keys, done);
  });
}

void DelayedStore::CountAsync(const ReadOptions& options, std::string lower, std::string upper,
                              CountDone done) {
  Ask("count", {},
      [this, options, lower = std::move(lower), upper = std::move(upper),
       done = std::move(done)](absl::Status failure) {
        if (!failure.ok()) return done(std::move(failure));
        store_.CountAsync(options, lower, upper, done);
      });
}

void DelayedStore::ReadRangeAsync(const ReadOptions& options, RangeRequest range, RangeDone done) {
  Ask("range", {},
      [this, options, range = std::move(range), done = std::move(done)](absl::Status failure) {
        if (!failure.ok()) return done(std::move(failure));
        store_.ReadRangeAsync(options, range, done);
      });
}

void DelayedStore::WriteAsync(const WriteOptions& options, WriteBatch* batch, WriteDone done) {
  const auto taken = std::make_shared<WriteBatch>(std::move(*batch));
  batch->Clear();
  Ask("write", {}, [this, options, taken, done = std::move(done)](absl::Status failure) {
    if (!failure.ok()) return done(std::move(failure));
    store_.WriteAsync(options, taken.get(), [done](absl::StatusOr<CommitResult> committed) {
      done(Durable(std::move(committed)));
    });
  });
}

absl::Status DelayedStore::Push() {
  absl::MutexLock lock(&mutex_);
  ++pushed_;
  return absl::OkStatus();
}

}  // namespace varve::testing
