// Tables in memory that answer as those of a cluster do, for tests of what stands on HbaseClient.
// They check what HBase leaves to its users: that the timestamps of a row ascend.
//
// Thread-safety: All functions are thread-safe. Answers come inside the calls, unless a test holds
// them back.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/hbase_rpc/hbase_client.h"

namespace varve::testing {

// The tables, which several clients may use.
class TablesInMemory {
 public:
  using Rows = std::map<std::string, std::string>;

  std::mutex mutex;
  std::map<std::string, Rows> tables;
  // The highest timestamp that each row of each table had.
  std::map<std::string, std::map<std::string, uint64_t>> timestamps;
  absl::Status failure;                               // of every call; OK: none fails
  absl::Status read_failure;                          // of every read of single rows
  std::map<std::string, absl::Status> scan_failures;  // of the scans of tables
  // Called once, without the lock, before rows are written, before rows are removed, and before
  // they are scanned.
  std::function<void()> before_scan;
  std::function<void()> before_commit;
  std::function<void()> before_delete;
  int reads = 0;          // calls
  size_t read_bytes = 0;  // of the values that they were told
  size_t scanned = 0;     // rows that the last scan asked for
  size_t scans = 0;       // calls
  size_t swept = 0;       // rows that sweeps were told of
  // The region of the rows from the first to before the second one does not answer scans.
  std::optional<std::pair<std::string, std::string>> silent;
  int commits = 0;  // that have written
  // What regions begin with each of these rows; one begins with the empty row.
  std::vector<std::string> borders;
  // The regions, by their places in the order of rows, that no server has. A call that reads or
  // writes a row of one waits for it until its deadline, so that nothing is read by that deadline
  // any more.
  std::set<size_t> dead_regions;
  std::set<HbaseClient::Deadline> missed;
  HbaseClient::Deadline latest;  // deadline that a call had
  size_t asked_in_vain = 0;      // rows of such regions

  size_t RegionOf(const std::string& row) const {
    const auto behind = std::upper_bound(borders.begin(), borders.end(), row);
    return static_cast<size_t>(behind - borders.begin());
  }
};

class ClientInMemory final : public HbaseClient {
 public:
  // Requires: the tables outlive the client.
  explicit ClientInMemory(TablesInMemory* tables) : tables_(*tables) {}

  void GetRows(std::string table, std::vector<std::string> rows, Deadline deadline,
               RowsDone done) override {
    std::vector<RowValue> values;
    {
      const std::lock_guard lock(tables_.mutex);
      ++tables_.reads;
      tables_.latest = std::max(tables_.latest, deadline);
      const bool is_late = tables_.missed.contains(deadline);
      for (const std::string& row : rows)
        values.push_back(is_late ? RowValue(NoAnswer()) : ReadLocked(table, row, deadline));
      for (const RowValue& value : values) {
        if (value.ok() && value->has_value()) tables_.read_bytes += (*value)->size();
      }
    }
    done(std::move(values));
  }

  void CommitRows(std::string table, std::vector<HbaseRowWrite> writes, Deadline deadline,
                  CommitDone done) override {
    CallBefore(writes);
    absl::Status status;
    {
      const std::lock_guard lock(tables_.mutex);
      tables_.latest = std::max(tables_.latest, deadline);
      status = CommitLocked(table, writes);
    }
    done(status);
  }

  void CommitEach(std::string table, std::vector<HbaseRowWrite> writes, Deadline deadline,
                  EachDone done) override {
    CallBefore(writes);
    std::vector<absl::Status> statuses;
    {
      const std::lock_guard lock(tables_.mutex);
      tables_.latest = std::max(tables_.latest, deadline);
      for (const HbaseRowWrite& write : writes) statuses.push_back(CommitLocked(table, {write}));
    }
    done(std::move(statuses));
  }

  void SplitByRegion(std::string, std::vector<std::string> rows, PartsDone done) override {
    std::map<size_t, Part> regions;
    {
      const std::lock_guard lock(tables_.mutex);
      for (uint32_t i = 0; i < rows.size(); ++i) regions[tables_.RegionOf(rows[i])].push_back(i);
    }
    std::vector<Part> parts;
    for (auto& [region, part] : regions) parts.push_back(std::move(part));
    done(std::move(parts));
  }

  void ScanRows(std::string table, HbaseScanRequest request, Deadline deadline,
                ScanDone done) override {
    CallOnce(&TablesInMemory::before_scan);
    HbaseScanSlice slice;
    absl::Status failure;
    {
      const std::lock_guard lock(tables_.mutex);
      tables_.latest = std::max(tables_.latest, deadline);
      failure = tables_.failure;
      const auto fails = tables_.scan_failures.find(table);
      if (failure.ok() && fails != tables_.scan_failures.end()) failure = fails->second;
      tables_.scanned = request.max_rows;
      ++tables_.scans;
      if (tables_.silent.has_value() && failure.ok()) {
        failure = PassSilent(*tables_.silent, &request, &slice);
        if (slice.has_left_out) return done(std::move(slice));
      }
      const TablesInMemory::Rows& rows = tables_.tables[table];
      const auto end = request.upper.empty() ? rows.end() : rows.lower_bound(request.upper);
      const auto begin = rows.lower_bound(request.lower);
      std::vector<std::pair<std::string, std::string>> all;
      if (request.upper.empty() || request.lower < request.upper) all.assign(begin, end);
      if (request.is_descending) std::reverse(all.begin(), all.end());
      slice.is_complete = slice.rest.empty();
      size_t bytes = 0;
      for (auto& [row, value] : all) {
        if (!Passes(request.tests, value)) continue;
        if (slice.rows.size() >= request.max_rows || bytes >= request.max_bytes) {
          slice.is_complete = false;
          slice.rest = slice.rows.back().first;
          if (!request.is_descending) slice.rest.push_back('\0');
          break;
        }
        bytes += row.size() + value.size();
        slice.rows.emplace_back(row,
                                request.keys_only ? value.substr(0, kHbaseKeysOnlyPrefix) : value);
      }
      if (request.is_sweep) tables_.swept += slice.rows.size();
    }
    failure.ok() ? done(std::move(slice)) : done(failure);
  }

  absl::Status EnsureTable(const HbaseTableLayout& layout, bool may_create,
                           Deadline deadline) override {
    const std::lock_guard lock(tables_.mutex);
    tables_.latest = std::max(tables_.latest, deadline);
    if (!tables_.tables.contains(layout.name) && !may_create)
      return absl::NotFoundError("there is no table " + layout.name);
    tables_.tables[layout.name];
    return tables_.failure;
  }

  HbaseStatistics Statistics() const override { return {}; }

 private:
  static bool Passes(const std::vector<HbaseValueTest>& tests, const std::string& value) {
    const auto holds = [&](const HbaseValueRange& range) {
      EXPECT_GE(value.size(), range.offset + range.least.size());
      const std::string bytes = value.substr(range.offset, range.least.size());
      return range.least <= bytes && bytes <= range.most;
    };
    return tests.empty() || std::any_of(tests.begin(), tests.end(), [&](const auto& test) {
             return std::all_of(test.begin(), test.end(), holds);
           });
  }

  // An ascending scan ends before a region that is silent, and one that begins there fails or, if
  // it is a sweep, leaves it out.
  static absl::Status PassSilent(const std::pair<std::string, std::string>& silent,
                                 HbaseScanRequest* request, HbaseScanSlice* slice) {
    if (request->lower >= silent.second || request->upper <= silent.first) return absl::OkStatus();
    if (request->lower < silent.first) {
      request->upper = slice->rest = silent.first;
      return absl::OkStatus();
    }
    slice->has_left_out = request->is_sweep;
    slice->is_complete = request->upper <= silent.second;
    slice->rest = silent.second;
    return absl::UnavailableError("a region does not answer");
  }

  void CallBefore(const std::vector<HbaseRowWrite>& writes) {
    const bool removes = std::any_of(writes.begin(), writes.end(), [](const HbaseRowWrite& write) {
      return write.kind == HbaseRowWrite::Kind::kDelete;
    });
    CallOnce(removes ? &TablesInMemory::before_delete : &TablesInMemory::before_commit);
  }

  void CallOnce(std::function<void()> TablesInMemory::*member) {
    std::function<void()> before;
    {
      const std::lock_guard lock(tables_.mutex);
      before.swap(tables_.*member);
    }
    if (before) before();
  }

  static absl::Status NoAnswer() {
    return absl::UnavailableError("HBase did not answer within the time that a command has");
  }

  RowValue ReadLocked(const std::string& table, const std::string& row, Deadline deadline) {
    if (!tables_.failure.ok()) return tables_.failure;
    if (!tables_.read_failure.ok()) return tables_.read_failure;
    if (tables_.dead_regions.contains(tables_.RegionOf(row))) {
      ++tables_.asked_in_vain;
      tables_.missed.insert(deadline);
      return NoAnswer();
    }
    const auto found = tables_.tables[table].find(row);
    return found == tables_.tables[table].end() ? std::nullopt : std::optional(found->second);
  }

  absl::Status CommitLocked(const std::string& table, const std::vector<HbaseRowWrite>& writes) {
    if (!tables_.failure.ok()) return tables_.failure;
    for (const HbaseRowWrite& write : writes) {
      if (tables_.dead_regions.contains(tables_.RegionOf(write.row))) return NoAnswer();
    }
    TablesInMemory::Rows& rows = tables_.tables[table];
    for (const HbaseRowWrite& write : writes) {
      if (!write.is_checked) continue;
      const auto found = rows.find(write.row);
      const bool holds = found == rows.end() ? !write.expected.has_value()
                                             : write.expected.has_value() &&
                                                   found->second.starts_with(*write.expected);
      if (!holds) return absl::AbortedError("a condition failed");
    }
    ++tables_.commits;
    for (const HbaseRowWrite& write : writes) {
      uint64_t& highest = tables_.timestamps[table][write.row];
      if (write.kind == HbaseRowWrite::Kind::kPut) {
        EXPECT_GT(write.timestamp, highest);
        rows[write.row] = write.value;
      } else if (write.kind == HbaseRowWrite::Kind::kDelete) {
        EXPECT_GE(write.timestamp, highest);
        rows.erase(write.row);
      }
      highest = std::max(highest, write.timestamp);
    }
    return absl::OkStatus();
  }

  TablesInMemory& tables_;
};

}  // namespace varve::testing
