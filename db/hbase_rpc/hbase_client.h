// HbaseClient asks the servers of an HBase cluster for rows, over HBase's own remote calls. It
// finds the server of a row by itself, keeps what it found, and tries again within the deadline of
// a call where a region has moved or split, where a server is busy, and where one has died.
//
// A table has one column family, `v`, with one empty qualifier and one version; the value of that
// cell is the value of its row. The client knows nothing of what values hold, with one exception: a
// writer tells its own value from others, as the value that it writes differs from what the row
// held before and from what any other writer writes.
//
// Thread-safety: Every function may be called by any thread. Answers come on a thread of the
// client, which runs all of them, or on the calling thread if that drives the client
// (DriveOnThisThread); so whoever is called there may not block.
// Invariants: Every call is answered exactly once, at the latest soon after its deadline, and
// before the destructor returns.
// Requires: Rows have 1 to 32,767 bytes and values one at least, as HBase's conditions do not tell
// an empty value from a row that is not there.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "varve/store_driver.h"

namespace varve {

// The longest row that HBase takes, in bytes.
inline constexpr size_t kHbaseMaxRowSize = 32'767;

struct HbaseOptions {
  // Hosts of ZooKeeper as host:port,host:port. One of `quorum` and `masters` is given.
  std::string quorum;
  // Masters of HBase as host:port,host:port, which are asked where no quorum is given.
  std::string masters;
  // The node of ZooKeeper below which HBase keeps what it says of itself.
  std::string znode_parent = "/hbase";
  // The user in whose name calls are made. HBase believes it (authentication `simple`).
  std::string user = "varve";
  // How long Open and EnsureTable take at most.
  std::chrono::milliseconds open_deadline{30'000};
  // How long one attempt to connect, and one call that a server does not answer, take at most
  // before the client looks for the region anew. A server gives up a call that has waited for so
  // long in its queue or for a row.
  std::chrono::milliseconds connect_timeout{3'000};
  std::chrono::milliseconds attempt_timeout{10'000};
  // Requests that one server gets at a time, from the client's thread and from each thread that
  // drives it; further ones wait in the client, so that a server that is slow or away takes nothing
  // from the others. HBase itself refuses more than ten for each of its handlers.
  size_t max_in_flight = 128;
  // Calls that are not answered yet, and the bytes that they hold; a call beyond either is refused
  // at once (Unavailable). The bytes do not count against small calls, so that large values which
  // wait for one region keep nobody from reading the others, nor a server from telling the others
  // that it lives.
  size_t max_calls = 65'536;
  size_t max_call_bytes = size_t{512} << 20;
  size_t small_call_bytes = 4'096;
  // The largest answer that a server may send, in bytes.
  size_t max_answer_size = size_t{128} << 20;
};

// How one row is written, and what it has to hold at that moment.
struct HbaseRowWrite {
  enum class Kind : uint8_t { kCheckOnly, kPut, kDelete };

  std::string row;
  // The row has to hold `expected`, all of it or, with `expects_prefix`, at its beginning; nullopt:
  // there is no such row.
  bool is_checked = false;
  bool expects_prefix = false;
  std::optional<std::string> expected;
  Kind kind = Kind::kPut;
  std::string value;
  // HBase orders the cells of a row by it: the largest is the one that is read, and a delete
  // hides all up to its own. It has to ascend with every write of a row, and a delete has that of
  // what it deletes or more. 0 takes the clock of the server, which may hide a write behind an
  // earlier one once a region has moved to a server whose clock is behind.
  uint64_t timestamp = 0;
  // So many first bytes of what the row holds ascend with every write of it, and are never those of
  // an earlier state again. A row that is behind what an attempt would have written shows by them
  // that the attempt has not happened, and never will if the row has not what was expected.
  size_t ascending = 0;
};

// The bytes of a value from `offset` on have to lie from `least` to `most`, which are equally long.
struct HbaseValueRange {
  size_t offset;
  std::string least;
  std::string most;
};
// All ranges hold. A range is looked at only if those before it hold: then the value has to reach
// as far as the range does.
using HbaseValueTest = std::vector<HbaseValueRange>;

// Rows of [lower, upper), in the order of their bytes or, descending, against it. An empty `upper`
// is the end of the table.
struct HbaseScanRequest {
  std::string lower;
  std::string upper;
  bool is_descending = false;
  // The slice ends after so many rows, or after the row that reaches so many bytes.
  size_t max_rows = 1'000;
  size_t max_bytes = size_t{1} << 20;
  // Values are cut to their first kHbaseKeysOnlyPrefix bytes.
  bool keys_only = false;
  // Only rows whose values pass one of the tests, or all rows if there is none. The servers of
  // regions test them; where none passes for long, slices have no rows.
  std::vector<HbaseValueTest> tests = {};
  // The scan is one of everything, for which nobody waits: what it reads takes no place in the
  // caches of the cluster, and it leaves out a region that does not answer until the deadline, or
  // that is open nowhere.
  bool is_sweep = false;
};

inline constexpr size_t kHbaseKeysOnlyPrefix = 32;

struct HbaseScanSlice {
  std::vector<std::pair<std::string, std::string>> rows;
  // The range holds nothing beyond `rows`. Otherwise a slice has one row at least, but for those of
  // a sweep or with tests.
  bool is_complete = false;
  // The bound at which a scan goes on that is not complete: behind the last row, or further on.
  std::string rest;
  // A sweep has left out a region before `rest`.
  bool has_left_out = false;
};

// HbaseTableLayout says where regions of a table may end, so that a split never tears apart what
// belongs together.
struct HbaseTableLayout {
  enum class Split : uint8_t { kNoRestriction, kKeyPrefix, kDelimited };

  std::string name;
  Split split = Split::kNoRestriction;
  // Rows that share so many first bytes stay in one region (kKeyPrefix).
  int prefix_length = 0;
  // Rows that share what stands before the first such byte stay in one region (kDelimited).
  char delimiter = 0;
};

struct HbaseStatistics {
  // Calls of the client's user, and calls to servers that they took.
  uint64_t calls = 0;
  uint64_t requests = 0;
  uint64_t retries = 0;
  uint64_t region_lookups = 0;
  uint64_t connections_opened = 0;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t missed_deadlines = 0;
  // Calls of the client's user that are not answered yet, and the bytes that they hold.
  uint64_t in_flight = 0;
  uint64_t in_flight_bytes = 0;
  // The sum of the times that answered calls took.
  uint64_t wait_nanos = 0;
};

class HbaseClient {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  // The outcome of reading one row: its value, nullopt where there is no such row.
  using RowValue = absl::StatusOr<std::optional<std::string>>;
  using RowsDone = std::function<void(std::vector<RowValue> values)>;
  using CommitDone = std::function<void(absl::Status status)>;
  using EachDone = std::function<void(std::vector<absl::Status> statuses)>;
  using ScanDone = std::function<void(absl::StatusOr<HbaseScanSlice> slice)>;

  // Looks for the cluster and its servers. Unavailable, with the names of the hosts: none of them
  // answers. Blocks, for HbaseOptions::open_deadline at most and until the system has answered for
  // the names of the hosts.
  static absl::StatusOr<std::unique_ptr<HbaseClient>> Open(const HbaseOptions& options);

  virtual ~HbaseClient() = default;

  // Reads one value for each row. The rows may lie in any regions. Each value is what its row held
  // at some moment of the call; two rows have two moments, also within one region. A row whose
  // region does not answer within the deadline is Unavailable, and takes no other with it.
  virtual void GetRows(std::string table, std::vector<std::string> rows, Deadline deadline,
                       RowsDone done) = 0;

  // Writes all or nothing. All rows have to lie in one region (FailedPrecondition otherwise).
  // Aborted: a row does not hold what is expected, and nothing was written. Unavailable: the
  // deadline passed or the cluster is away; the message says whether the write may have happened.
  // Where an attempt's outcome is unknown, the client reads the rows: one that holds what was to be
  // put says that the write happened, and where all hold what is expected, it tries again. A write
  // without any condition is not tried again then, as the first attempt could still come late.
  virtual void CommitRows(std::string table, std::vector<HbaseRowWrite> writes, Deadline deadline,
                          CommitDone done) = 0;

  // Writes each row by itself, although those of a region share one sync of its log. Each row has a
  // status of its own: OK, Aborted or Unavailable as above. Each row is given once.
  virtual void CommitEach(std::string table, std::vector<HbaseRowWrite> writes, Deadline deadline,
                          EachDone done) = 0;

  // Tells which of the rows lie in one region each, as far as regions are known, be they open or
  // not; the others are a part as well. It asks nobody, and answers soon.
  using Part = std::vector<uint32_t>;  // numbers of rows
  using PartsDone = std::function<void(std::vector<Part> parts)>;
  virtual void SplitByRegion(std::string table, std::vector<std::string> rows, PartsDone done) = 0;

  // Reads the first rows of a range, over the borders of regions.
  virtual void ScanRows(std::string table, HbaseScanRequest request, Deadline deadline,
                        ScanDone done) = 0;

  // Makes the table where it is missing and `may_create`, and waits until it is there. Fails where
  // a table of this name has other settings (FailedPrecondition) or is missing (NotFound). Blocks,
  // until the deadline or for HbaseOptions::open_deadline at most.
  virtual absl::Status EnsureTable(const HbaseTableLayout& layout, bool may_create,
                                   Deadline deadline) = 0;

  // Returns whether the region of the row has not answered for a while, so that a call may take as
  // long as its deadline. The first one says whether that is so of any region, at less cost. They
  // ask nobody.
  virtual bool IsAnyAway() const { return false; }
  virtual bool IsAway(std::string_view table, std::string_view row) const { return false; }

  // Has the calling thread drive the calls that it makes (varve/store_driver.h), over connections
  // of its own, and drive them also where `descriptor` can be read. Null: this client does not let
  // others drive it.
  // Requires: a thread drives one client at a time. The descriptor outlives the driver.
  virtual std::unique_ptr<StoreDriver> DriveOnThisThread(int descriptor) { return nullptr; }
  // While the object lives, calls of this thread are driven by the client. For threads that wait
  // for an answer, and so could not drive it.
  class Undriven {
   public:
    Undriven() : was_on_(std::exchange(is_on_, true)) {}
    ~Undriven() { is_on_ = was_on_; }
    Undriven(const Undriven&) = delete;
    Undriven& operator=(const Undriven&) = delete;

    static bool is_on() { return is_on_; }

   private:
    static inline thread_local bool is_on_ = false;
    const bool was_on_;
  };

  virtual HbaseStatistics Statistics() const = 0;

 protected:
  HbaseClient() = default;
};

// Returns the values if all rows were read, and else the first error.
inline absl::StatusOr<std::vector<std::optional<std::string>>> AllOrNone(
    std::vector<HbaseClient::RowValue> rows) {
  std::vector<std::optional<std::string>> values;
  values.reserve(rows.size());
  for (HbaseClient::RowValue& row : rows) {
    if (!row.ok()) return row.status();
    values.push_back(*std::move(row));
  }
  return values;
}

}  // namespace varve
