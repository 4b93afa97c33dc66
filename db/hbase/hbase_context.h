// The context is what the parts of a store over HBase share: the client, the clock of versions, the
// view of the namespaces, what rows are believed to hold, and the gate through which every call of
// the store goes.
//
// Thread-safety: The members are thread-safe; the plain ones do not change any more.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/hbase/guessed_versions.h"
#include "db/hbase/operation_gate.h"
#include "db/hbase/row_codec.h"
#include "db/hbase/space_view.h"
#include "db/hbase/version_clock.h"
#include "db/hbase_rpc/hbase_client.h"
#include "util/os/clock.h"

namespace varve {

// Returns the span in the nanoseconds of Clock::MonotonicNanos().
inline uint64_t NanosOf(std::chrono::milliseconds span) {
  return static_cast<uint64_t>(std::chrono::nanoseconds(span).count());
}

struct HbaseStoreOptions {
  std::string table = "varve";
  bool may_create = true;                      // whether tables that are missing are made
  size_t max_value_size = 1u << 20;            // bytes of a value; a longer one is refused
  std::chrono::milliseconds deadline{30'000};  // of one call of the store
  const Clock* clock = &RealClock();
  // How often this server looks at the namespaces and at the floor of versions, and how long it
  // goes on with what it saw while the cluster does not answer. A server that was not heard of for
  // longer than `dead_after` counts as dead, so `trust` is the shorter one.
  std::chrono::milliseconds beat{1'000};
  std::chrono::milliseconds trust{75'000};
  std::chrono::milliseconds dead_after{90'000};
  // How long rows of deleted and expired keys stay, and how often they are looked for.
  std::chrono::milliseconds kept_when_gone{3'600'000};
  std::chrono::milliseconds sweep{600'000};
  // The server keeps the versions of so many rows, so as to write them without reading them first.
  size_t guessed_rows = 1u << 20;
};

struct HbaseContext {
  HbaseContext(std::unique_ptr<HbaseClient> tables, const HbaseStoreOptions& given, uint32_t id)
      : options(given),
        client(std::move(tables)),
        clock(given.clock),
        writer(id),
        spaces(given.table, given.clock),
        guesses(given.guessed_rows) {}

  HbaseClient::Deadline NewDeadline() const {
    return std::chrono::steady_clock::now() + options.deadline;
  }
  // Returns the deadline of a call to which its caller has given one, too.
  HbaseClient::Deadline NewDeadline(HbaseClient::Deadline callers) const {
    return std::min(NewDeadline(), callers);
  }
  // Returns whether the deadline is so much earlier than that of a new call that the two are not
  // sent together.
  bool IsEarly(HbaseClient::Deadline deadline) const {
    return deadline < NewDeadline() - options.deadline / 8;
  }
  // Returns the deadline of work that is done again and again, with nobody who waits for it. It
  // holds up the end of the store for no longer than that.
  HbaseClient::Deadline BackgroundDeadline() const {
    const std::chrono::milliseconds longest(operations.IsClosed() ? 1'000 : 5'000);
    return std::chrono::steady_clock::now() + std::min(options.deadline, longest);
  }
  // The rows that one read asks for, so that its answer keeps to a bound.
  size_t RowsPerRead() const {
    constexpr size_t kBytes = 64u << 20;
    return std::clamp(kBytes / std::max<size_t>(options.max_value_size, 1), size_t{1}, size_t{256});
  }

  // The rows that a read asks for which keeps so many bytes of cells: no more than reach that, if
  // they are as large as those of late, as what comes beyond it has to be read again.
  size_t RowsPerRead(size_t kept_bytes) const {
    constexpr size_t kMostBytes = 16u << 20;
    const size_t rows = std::min(kept_bytes, kMostBytes) / std::max<size_t>(cell_size.load(), 1);
    return std::clamp(rows, size_t{1}, RowsPerRead());
  }
  // Takes in how large the cells of an answer were. Larger ones count at once, smaller ones slowly.
  void NoteCells(size_t cells, size_t bytes) {
    if (cells == 0) return;
    const size_t average = bytes / cells;
    const size_t before = cell_size.load();
    cell_size = average >= before ? average : before - (before - average) / 4;
  }

  const HbaseStoreOptions options;
  const std::unique_ptr<HbaseClient> client;
  VersionClock clock;
  const uint32_t writer;  // in every cell that this process writes
  std::string store;      // the id of the store, once it is open
  SpaceView spaces;
  GuessedVersions guesses;
  OperationGate operations;
  std::atomic<uint64_t> changes{0};         // operations that this process wrote
  std::atomic<size_t> cell_size{64 << 10};  // of late
};

// Reads the headers of cells, in several steps where they are many. `done` gets for each row the
// first kMaxCellHeader bytes of its cell, or why it could not be read.
void ReadHeaders(const HbaseContext& context, std::string table, std::vector<std::string> rows,
                 HbaseClient::Deadline deadline, HbaseClient::RowsDone done);

// Calls fail so while the store is being closed, where they would go on for long otherwise.
absl::Status IsBeingClosed();

// Returns the status as callers of a store are told of it: that the cluster did not answer is
// StoreUnavailable.
absl::Status AsStoreStatus(const absl::Status& status);

// Waits for the one answer of `start`, which is given a callback to pass on. For threads that may
// block.
template <typename Answer>
Answer AwaitAnswer(const std::function<void(std::function<void(Answer)>)>& start) {
  const HbaseClient::Undriven undriven;
  const auto answer = std::make_shared<std::promise<Answer>>();
  std::future<Answer> future = answer->get_future();
  start([answer](Answer given) { answer->set_value(std::move(given)); });
  return future.get();
}

}  // namespace varve
