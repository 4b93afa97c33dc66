// Writes where memory runs out (memory_fixture.h).
#include "unit-tests/memory/memory_fixture.h"

namespace varve::testing {
namespace {

TEST_F(MemoryTest, PutAndDelete) {
  Fill();
  int i = 0;
  std::string key, value;
  FailEachWrite("put", [&] {
    key = fmt::format("key{:04}", i++ % 300);
    value = fmt::format("value that doesn't fit into the string itself {}", i);
    absl::Status status = Call([&] { return store_->Put(key, value); });
    if (status.ok()) content_[key] = value;
    return status;
  });
  FailEachWrite("delete", [&] {
    key = content_.begin()->first;
    absl::Status status = Call([&] { return store_->Delete(key); });
    if (status.ok()) content_.erase(key);
    return status;
  });
}

// Of values that don't fit into what log and write buffer have at hand, and fill buffers on the
// way.
TEST_F(MemoryTest, PutOfLargeValues) {
  Fill();
  int i = 0;
  for (const size_t size : {9u << 10, 200u << 10}) {
    const std::string filling(size, 'x');
    FailEachWrite(fmt::format("put of {} bytes", size), [&] {
      const std::string key = fmt::format("large{:03}", i++ % 4);
      const std::string value = filling + std::to_string(i);
      absl::Status status = Call([&] { return store_->Put(key, value); });
      if (status.ok()) content_[key] = value;
      return status;
    });
  }
}

TEST_F(MemoryTest, DeleteRange) {
  Fill();
  int i = 0;
  FailEachWrite("delete of a range", [&] {
    const std::string begin = fmt::format("key{:04}-with-a-long-name", 3 * i);
    const std::string end = fmt::format("key{:04}-with-a-long-name", 3 * i + 2);
    ++i;
    absl::Status status = Call([&] { return store_->DeleteRange(begin, end); });
    if (status.ok()) content_.erase(content_.lower_bound(begin), content_.lower_bound(end));
    return status;
  });
}

// A commit that ran out of memory behind its log record ended the process. It takes its memory
// before it is in the log.
//
// All of it or none of it.
TEST_F(MemoryTest, Batch) {
  Fill();
  int i = 0;
  FailEachWrite("batch", [&] {
    ++i;
    WriteBatch batch;
    Content next = content_;
    for (int k = 0; k < 30; ++k) {
      const std::string key = fmt::format("batch{:03}", k),
                        value = fmt::format("{} of batch {} ------------", k, i);
      batch.Put(key, value);
      next[key] = value;
    }
    batch.Delete(fmt::format("key{:04}", i));
    next.erase(fmt::format("key{:04}", i));
    batch.DeleteRange("batch005", "batch010");
    next.erase(next.lower_bound("batch005"), next.lower_bound("batch010"));
    if (i % 10 == 0) {
      batch.ClearNamespace();
      next.clear();
    }
    batch.Put("a last key of the batch", std::to_string(i));
    next["a last key of the batch"] = std::to_string(i);
    absl::Status status = Call([&] { return store_->Write({}, &batch).status(); });
    if (status.ok()) content_.swap(next);
    return status;
  });
}

TEST_F(MemoryTest, Update) {
  Fill();
  const std::string key = "counter with a name of some length";
  const std::string_view keys[] = {key};
  int i = 0;
  FailEachWrite("update", [&] {
    const std::string next = fmt::format("{} --------------------------------", ++i);
    const std::string present = content_.contains(key) ? content_[key] : "";
    std::string value;
    absl::StatusOr<CommitResult> result = Call([&] {
      return store_->Update({}, keys, [&](WriteBatch* batch) -> absl::Status {
        absl::StatusOr<ReadResult> read = store_->Get({}, key, &value);
        if (!read.ok()) return read.status();
        EXPECT_TRUE((read->found ? value : "") == present);
        batch->RequireUnchanged(key, read->read_sequence);
        batch->Put(key, next);
        return absl::OkStatus();
      });
    });
    if (!result.ok()) return result.status();
    content_[key] = next;
    return Call([&] { return store_->WaitUntilDurable(result->sequence); });
  });
}

// An asynchronous write was committed before there was a place for its callback.
//
// A writer that waits for its write hears of it exactly once.
TEST_F(MemoryTest, WriteAsync) {
  Fill();
  int i = 0;
  FailEachWrite("asynchronous write", [&] {
    const std::string value = fmt::format("value {} -------------------------", ++i);
    WriteBatch batch;
    batch.Put("asynchronous", value);
    int calls = 0;
    absl::Status status;
    absl::Mutex mutex;
    const std::function<void(absl::StatusOr<CommitResult>)> done =
        [&](absl::StatusOr<CommitResult> result) {
          absl::MutexLock lock(&mutex);
          status = result.status();
          ++calls;
        };
    std::function<void(absl::StatusOr<CommitResult>)> given = done;
    Call([&] { store_->WriteAsync({}, &batch, std::move(given)); });
    const absl::Status synced = Call([&] { return store_->Sync(); });
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(
        +[](int* number) { return *number != 0; }, &calls));
    EXPECT_EQ(calls, 1);
    if (status.ok()) content_["asynchronous"] = value;
    return status.ok() ? synced : status;
  });
}

}  // namespace
}  // namespace varve::testing
