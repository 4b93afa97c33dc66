// HbaseClient against a cluster of HBase that runs: VARVE_TEST_HBASE_QUORUM names its ZooKeeper
// (scripts/hbase_cluster.sh up), and HBASE_TEST_MASTERS its masters. Without the first, the
// tests are left out and the program exits with 77.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>

#include "db/hbase_rpc/hbase_client.h"

namespace varve {
namespace {

using ::testing::HasSubstr;
using Kind = HbaseRowWrite::Kind;
using Values = std::vector<std::optional<std::string>>;

constexpr char kQuorum[] = "VARVE_TEST_HBASE_QUORUM";
constexpr char kMasters[] = "HBASE_TEST_MASTERS";

HbaseClient::Deadline In(std::chrono::seconds time) {
  return std::chrono::steady_clock::now() + time;
}

HbaseRowWrite Put(std::string row, std::string value) {
  HbaseRowWrite write;
  write.row = std::move(row);
  write.value = std::move(value);
  return write;
}

HbaseRowWrite PutIf(std::string row, std::optional<std::string> expected, std::string value) {
  HbaseRowWrite write = Put(std::move(row), std::move(value));
  write.is_checked = true;
  write.expected = std::move(expected);
  return write;
}

// One table for the program, with rows of a prefix of their own for each test.
class HbaseClusterTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* const quorum = std::getenv(kQuorum);
    if (quorum == nullptr) return;
    HbaseOptions options;
    options.quorum = quorum;
    auto opened = HbaseClient::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    client_ = opened->release();
    const absl::Status made =
        client_->EnsureTable({.name = kTable}, true, HbaseClient::Deadline::max());
    ASSERT_TRUE(made.ok()) << made;
  }
  static void TearDownTestSuite() { delete std::exchange(client_, nullptr); }

  void SetUp() override {
    if (client_ == nullptr) GTEST_SKIP() << kQuorum << " names no cluster";
    static const int64_t kStart = std::chrono::system_clock::now().time_since_epoch().count();
    static int tests = 0;
    prefix_ = fmt::format("{}-{}-", kStart, ++tests);
  }

  std::string Row(std::string_view name) const { return prefix_ + std::string(name); }

  absl::StatusOr<Values> Get(std::vector<std::string> rows) {
    std::promise<std::vector<HbaseClient::RowValue>> promise;
    client_->GetRows(kTable, std::move(rows), In(std::chrono::seconds(60)),
                     [&](auto values) { promise.set_value(std::move(values)); });
    return AllOrNone(promise.get_future().get());
  }
  absl::Status Commit(std::vector<HbaseRowWrite> writes) {
    std::promise<absl::Status> promise;
    client_->CommitRows(kTable, std::move(writes), In(std::chrono::seconds(60)),
                        [&](const absl::Status& status) { promise.set_value(status); });
    return promise.get_future().get();
  }
  std::vector<absl::Status> Each(std::vector<HbaseRowWrite> writes) {
    std::promise<std::vector<absl::Status>> promise;
    client_->CommitEach(kTable, std::move(writes), In(std::chrono::seconds(60)),
                        [&](std::vector<absl::Status> statuses) { promise.set_value(statuses); });
    return promise.get_future().get();
  }
  absl::StatusOr<HbaseScanSlice> Scan(HbaseScanRequest request) {
    std::promise<absl::StatusOr<HbaseScanSlice>> promise;
    client_->ScanRows(kTable, std::move(request), In(std::chrono::seconds(60)),
                      [&](absl::StatusOr<HbaseScanSlice> slice) { promise.set_value(slice); });
    return promise.get_future().get();
  }

  static constexpr char kTable[] = "varve-rpc-test";
  static HbaseClient* client_;
  std::string prefix_;
};

HbaseClient* HbaseClusterTest::client_ = nullptr;

TEST_F(HbaseClusterTest, WhatIsPutIsRead) {
  const std::string zeros("\0\xff\0", 3);
  ASSERT_TRUE(Commit({Put(Row("a"), "1")}).ok());
  ASSERT_TRUE(Commit({Put(Row(zeros), zeros), Put(Row("c"), std::string(1 << 20, 'v'))}).ok());
  const auto one = Get({Row("a")});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(*one, Values{"1"});
  const auto values = Get({Row("missing"), Row("c"), Row(zeros), Row("a"), Row("a")});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(*values, (Values{std::nullopt, std::string(1 << 20, 'v'), zeros, "1", "1"}));
  EXPECT_EQ(*Get({Row("missing")}), Values{std::nullopt});
}

TEST_F(HbaseClusterTest, ACommitIsAllOrNothing) {
  ASSERT_TRUE(Commit({Put(Row("a"), "1"), PutIf(Row("b"), std::nullopt, "2")}).ok());
  const absl::Status refused = Commit({PutIf(Row("a"), "1", "3"), PutIf(Row("b"), "wrong", "4")});
  EXPECT_TRUE(absl::IsAborted(refused)) << refused;
  EXPECT_TRUE(absl::IsAborted(Commit({PutIf(Row("a"), std::nullopt, "5")})));
  EXPECT_EQ(*Get({Row("a"), Row("b")}), (Values{"1", "2"}));
  HbaseRowWrite check = PutIf(Row("b"), "2", "");
  check.kind = Kind::kCheckOnly;
  EXPECT_TRUE(Commit({PutIf(Row("a"), "1", "6"), check}).ok());
  EXPECT_TRUE(Commit({check}).ok());
  check.expected = "7";
  EXPECT_TRUE(absl::IsAborted(Commit({PutIf(Row("a"), "6", "8"), check})));
  EXPECT_TRUE(absl::IsAborted(Commit({check})));
  EXPECT_EQ(*Get({Row("a")}), Values{"6"});
}

TEST_F(HbaseClusterTest, AConditionMayNameTheBeginningOfAValue) {
  ASSERT_TRUE(Commit({Put(Row("a"), "version1:value")}).ok());
  HbaseRowWrite write = PutIf(Row("a"), "version1", "version2");
  write.expects_prefix = true;
  EXPECT_TRUE(Commit({write}).ok());
  EXPECT_TRUE(absl::IsAborted(Commit({write})));
  write.expected = "version22";
  EXPECT_TRUE(absl::IsAborted(Commit({write})));
  write.expected = std::nullopt;
  EXPECT_TRUE(absl::IsAborted(Commit({write})));
}

TEST_F(HbaseClusterTest, TimestampsOrderTheCellsOfARow) {
  HbaseRowWrite write = PutIf(Row("a"), std::nullopt, "1");
  write.timestamp = uint64_t{1} << 60;
  ASSERT_TRUE(Commit({write}).ok());
  write = PutIf(Row("a"), "1", "2");
  ++(write.timestamp = uint64_t{1} << 60);
  ASSERT_TRUE(Commit({write}).ok());
  EXPECT_EQ(*Get({Row("a")}), Values{"2"});
  HbaseRowWrite removal = PutIf(Row("a"), "2", "");
  removal.kind = Kind::kDelete;
  removal.timestamp = write.timestamp;
  ASSERT_TRUE(Commit({removal}).ok());
  EXPECT_EQ(*Get({Row("a")}), Values{std::nullopt});
  write = PutIf(Row("a"), std::nullopt, "3");
  write.timestamp = removal.timestamp + 1;
  ASSERT_TRUE(Commit({write}).ok());
  EXPECT_EQ(*Get({Row("a")}), Values{"3"});
}

TEST_F(HbaseClusterTest, EachRowHasAStatusOfItsOwn) {
  std::vector<HbaseRowWrite> writes;
  for (int i = 0; i < 700; ++i) {
    writes.push_back(PutIf(Row(fmt::format("{:03}", i)), std::nullopt, fmt::format("v{}", i)));
  }
  for (const absl::Status& status : Each(writes)) ASSERT_TRUE(status.ok()) << status;
  // A second round in which every seventh row does not hold what is expected.
  for (int i = 0; i < 700; ++i) {
    writes[i].expected = i % 7 == 0 ? "other" : fmt::format("v{}", i);
    writes[i].value = "w";
  }
  const auto statuses = Each(writes);
  std::vector<std::string> rows;
  for (int i = 0; i < 700; ++i) {
    EXPECT_EQ(statuses[i].code(), i % 7 == 0 ? absl::StatusCode::kAborted : absl::StatusCode::kOk)
        << i << statuses[i];
    rows.push_back(writes[i].row);
  }
  const auto values = Get(rows);
  ASSERT_TRUE(values.ok()) << values.status();
  for (int i = 0; i < 700; ++i) {
    EXPECT_EQ((*values)[i], i % 7 == 0 ? fmt::format("v{}", i) : "w");
  }
}

TEST_F(HbaseClusterTest, ScansGoBothWaysInSlices) {
  std::vector<HbaseRowWrite> writes;
  std::vector<std::string> rows;
  for (int i = 0; i < 100; ++i) {
    rows.push_back(Row(fmt::format("s{:03}", i)));
    writes.push_back(Put(rows.back(), std::string(100, 'x')));
  }
  for (const absl::Status& status : Each(writes)) ASSERT_TRUE(status.ok()) << status;
  for (const bool is_descending : {false, true}) {
    HbaseScanRequest request{rows[10], rows[90], is_descending, 7, 1 << 20, true};
    std::vector<std::string> read;
    bool is_complete = false;
    while (!is_complete) {
      const auto slice = Scan(request);
      ASSERT_TRUE(slice.ok()) << slice.status();
      ASSERT_TRUE(slice->is_complete || slice->rows.size() == 7);
      for (const auto& [row, value] : slice->rows) {
        read.push_back(row);
        EXPECT_EQ(value, std::string(kHbaseKeysOnlyPrefix, 'x'));
      }
      is_complete = slice->is_complete;
      if (is_complete) break;
      (is_descending ? request.upper : request.lower) = read.back() + (is_descending ? "" : "!");
    }
    if (is_descending) std::reverse(read.begin(), read.end());
    EXPECT_EQ(read, std::vector<std::string>(rows.begin() + 10, rows.begin() + 90));
  }
  const auto by_size = Scan({rows[0], rows[99], false, 1000, 1000, false});
  ASSERT_TRUE(by_size.ok());
  EXPECT_FALSE(by_size->is_complete);
  EXPECT_LT(by_size->rows.size(), 12U);
  const auto all = Scan({"", "", true, 100'000, size_t{64} << 20, true});
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(all->is_complete);
  EXPECT_GE(all->rows.size(), 100U);
}

TEST_F(HbaseClusterTest, ASweepIsToldOfTheRowsThatPassItsTests) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"t0", "_X_1"}, {"t1", "_X_2large"}, {"t2", "_Y"},  {"t3", "_X_4"},
      {"t4", "_X_5"}, {"t5", "_Z"},        {"t6", "_X_3"}};
  std::vector<HbaseRowWrite> writes;
  for (const auto& [row, value] : rows) writes.push_back(Put(Row(row), value));
  for (const absl::Status& status : Each(writes)) ASSERT_TRUE(status.ok()) << status;
  // What a row held before passes no test.
  ASSERT_TRUE(Commit({PutIf(Row("t6"), "_X_3", "_Y")}).ok());
  HbaseScanRequest request{.lower = Row("t"), .upper = Row("u")};
  request.keys_only = true;
  request.is_sweep = true;
  request.tests = {{{1, "Z", "Z"}}, {{1, "X", "X"}, {3, "2", "4"}}};
  const auto slice = Scan(request);
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_TRUE(slice->is_complete);
  std::vector<std::string> told;
  for (const auto& [row, value] : slice->rows) told.push_back(row);
  EXPECT_EQ(told, (std::vector<std::string>{Row("t1"), Row("t3"), Row("t5")}));
  request.tests = {{{1, "W", "W"}}};
  const auto none = Scan(request);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->is_complete);
  EXPECT_TRUE(none->rows.empty());
}

TEST_F(HbaseClusterTest, WritersOfOneRowTakeTurns) {
  ASSERT_TRUE(Commit({Put(Row("n"), "0")}).ok());
  std::atomic<int> aborted = 0;
  const auto add = [&] {
    for (int i = 0; i < 25; ++i) {
      absl::Status status = absl::AbortedError("");
      while (absl::IsAborted(status)) {
        const auto values = Get({Row("n")});
        ASSERT_TRUE(values.ok()) << values.status();
        status = Commit(
            {PutIf(Row("n"), *values->front(), std::to_string(std::stoi(*values->front()) + 1))});
        aborted += absl::IsAborted(status) ? 1 : 0;
      }
      ASSERT_TRUE(status.ok()) << status;
    }
  };
  std::thread other(add);
  add();
  other.join();
  EXPECT_EQ(*Get({Row("n")}), Values{"50"});
}

TEST_F(HbaseClusterTest, TablesAreMadeOnceAndChecked) {
  const HbaseTableLayout layout{"varve-rpc-split", HbaseTableLayout::Split::kDelimited, 0, ':'};
  ASSERT_TRUE(client_->EnsureTable(layout, true, HbaseClient::Deadline::max()).ok());
  EXPECT_TRUE(client_->EnsureTable(layout, false, HbaseClient::Deadline::max()).ok());
  // HBase tells a delimiter of no visible character as it was given.
  const HbaseTableLayout zero{"varve-rpc-zero", HbaseTableLayout::Split::kDelimited, 0, '\0'};
  ASSERT_TRUE(client_->EnsureTable(zero, true, HbaseClient::Deadline::max()).ok());
  EXPECT_TRUE(client_->EnsureTable(zero, false, HbaseClient::Deadline::max()).ok());
  const absl::Status other =
      client_->EnsureTable({.name = layout.name}, true, HbaseClient::Deadline::max());
  EXPECT_TRUE(absl::IsFailedPrecondition(other)) << other;
  EXPECT_TRUE(absl::IsNotFound(
      client_->EnsureTable({.name = "varve-rpc-none"}, false, HbaseClient::Deadline::max())));
  EXPECT_TRUE(absl::IsInvalidArgument(
      client_->EnsureTable({.name = "a b"}, true, HbaseClient::Deadline::max())));
}

TEST_F(HbaseClusterTest, ATableThatIsMissingIsSaidToBe) {
  std::promise<std::vector<HbaseClient::RowValue>> promise;
  client_->GetRows("varve-rpc-none", {"a"}, In(std::chrono::seconds(30)),
                   [&](auto values) { promise.set_value(std::move(values)); });
  const auto values = AllOrNone(promise.get_future().get());
  EXPECT_TRUE(absl::IsNotFound(values.status())) << values.status();
  EXPECT_THAT(values.status().message(), HasSubstr("varve-rpc-none"));
}

TEST_F(HbaseClusterTest, MastersMayBeAskedInsteadOfZooKeeper) {
  const char* const masters = std::getenv(kMasters);
  if (masters == nullptr) GTEST_SKIP() << kMasters << " names no masters";
  ASSERT_TRUE(Commit({Put(Row("a"), "1")}).ok());
  HbaseOptions options;
  options.masters = fmt::format("127.0.0.1:1,{}", masters);  // nobody listens at the first one
  const auto opened = HbaseClient::Open(options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const absl::Status found =
      (*opened)->EnsureTable({.name = kTable}, /*may_create=*/false, HbaseClient::Deadline::max());
  EXPECT_TRUE(found.ok()) << found;
  std::promise<std::vector<HbaseClient::RowValue>> promise;
  (*opened)->GetRows(kTable, {Row("a")}, In(std::chrono::seconds(60)),
                     [&](auto values) { promise.set_value(std::move(values)); });
  const auto values = AllOrNone(promise.get_future().get());
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(*values, Values{"1"});
}

}  // namespace
}  // namespace varve

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  const int result = RUN_ALL_TESTS();
  const bool has_cluster = std::getenv(varve::kQuorum) != nullptr;
  return result == 0 && !has_cluster ? 77 : result;
}
