#include "db/hbase_rpc/hbase_client.h"

#include <Filter.pb.h>
#include <MultiRowMutation.pb.h>
#include <Registry.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <thread>

#include "absl/synchronization/notification.h"
#include "db/hbase_rpc/client_core.h"
#include "db/hbase_rpc/read_call.h"
#include "db/hbase_rpc/table_maker.h"
#include "unit-tests/db/hbase_rpc/fake_hbase.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/silent_host.h"

namespace varve {
namespace {

using testing::FakeAnswer;
using testing::FakeHbase;
using testing::FakeRequest;
using ::testing::HasSubstr;
using testing::SilentHost;
using Values = std::vector<std::optional<std::string>>;

constexpr char kNotServing[] = "org.apache.hadoop.hbase.NotServingRegionException";
constexpr std::chrono::seconds kLong{60};
constexpr std::chrono::milliseconds kShort{50};

FakeAnswer Row(const std::string& row, const std::string& value) {
  hbase::pb::GetResponse response;
  hbase::pb::Cell* cell = response.mutable_result()->add_cell();
  cell->set_row(row);
  cell->set_value(value);
  return FakeAnswer::Message(response);
}

// Answers a Get with the row that it asks for.
FakeAnswer RowOf(const FakeRequest& request) {
  hbase::pb::GetRequest get;
  EXPECT_TRUE(get.ParseFromString(request.parameter));
  return Row(get.get().row(), "1");
}

FakeAnswer NoRow() {
  hbase::pb::GetResponse response;
  response.mutable_result();
  return FakeAnswer::Message(response);
}

FakeAnswer Mutated(bool processed) {
  hbase::pb::MutateRowsResponse mutated;
  mutated.set_processed(processed);
  hbase::pb::CoprocessorServiceResponse response;
  response.mutable_region()->set_type(hbase::pb::RegionSpecifier::REGION_NAME);
  response.mutable_region()->set_value("t");
  response.mutable_value()->set_name("");
  response.mutable_value()->set_value(mutated.SerializeAsString());
  return FakeAnswer::Message(response);
}

std::unique_ptr<HbaseClient> Open(const FakeHbase& cluster, HbaseOptions options = {}) {
  options.quorum = cluster.quorum();
  auto client = HbaseClient::Open(options);
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

absl::StatusOr<Values> Get(HbaseClient& client, std::vector<std::string> rows,
                           std::chrono::milliseconds time = kLong) {
  std::promise<std::vector<HbaseClient::RowValue>> promise;
  client.GetRows("t", std::move(rows), std::chrono::steady_clock::now() + time,
                 [&](auto values) { promise.set_value(std::move(values)); });
  return AllOrNone(promise.get_future().get());
}

HbaseRowWrite PutIf(std::string row, std::optional<std::string> expected, std::string value) {
  HbaseRowWrite write;
  write.row = std::move(row);
  write.is_checked = true;
  write.expected = std::move(expected);
  write.value = std::move(value);
  return write;
}

absl::Status Commit(HbaseClient& client, std::vector<HbaseRowWrite> writes) {
  std::promise<absl::Status> promise;
  client.CommitRows("t", std::move(writes), std::chrono::steady_clock::now() + kLong,
                    [&](const absl::Status& status) { promise.set_value(status); });
  return promise.get_future().get();
}

std::vector<absl::Status> Each(HbaseClient& client, std::vector<HbaseRowWrite> writes) {
  std::promise<std::vector<absl::Status>> promise;
  client.CommitEach("t", std::move(writes), std::chrono::steady_clock::now() + kLong,
                    [&](std::vector<absl::Status> statuses) { promise.set_value(statuses); });
  return promise.get_future().get();
}

TEST(HbaseClientTest, ARegionThatHasMovedIsLookedUpAgain) {
  FakeHbase* moved = nullptr;
  FakeHbase cluster(2, [&](const FakeRequest& request) {
    if (request.server == 1) return Row("a", "1");
    moved->SetRegions({{"", 1}});
    return FakeAnswer::Exception(kNotServing);
  });
  moved = &cluster;
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  EXPECT_EQ(*Get(*client, {"a"}), Values{"1"});
  EXPECT_EQ(cluster.meta_scans(), 2U);
  EXPECT_EQ(*Get(*client, {"a"}), Values{"1"});
  EXPECT_EQ(cluster.meta_scans(), 2U);
  EXPECT_GE(client->Statistics().retries, 1U);
}

TEST(HbaseClientTest, AServerThatHangsUpIsAskedAgain) {
  std::atomic<int> asked = 0;
  FakeHbase cluster(1, [&](const FakeRequest&) {
    switch (asked++) {
      case 0:
        return FakeAnswer::HangUp();
      case 1:  // half of an answer
        return FakeAnswer::Bytes(FakeHbase::Framed(std::string(100, 'x')).substr(0, 50));
      case 2:  // no message of HBase
        return FakeAnswer::Bytes(FakeHbase::Framed(std::string(100, '\xff')));
      case 3:  // an answer that would fill the memory
        return FakeAnswer::Bytes("\x7f\xff\xff\xff");
      case 4:  // a row that was not asked for
        return Row("b", "2");
      default:
        return Row("a", "1");
    }
  });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  const auto values = Get(*client, {"a"});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(*values, Values{"1"});
  EXPECT_EQ(asked, 6);
}

TEST(HbaseClientTest, ARegionThatIsOpenNowhereHoldsUpNoLookupOfAnother) {
  FakeHbase cluster(1, [](const FakeRequest&) { return Row("z", "1"); });
  cluster.SetRegions({{"", FakeHbase::kNowhere}, {"m", 0}});
  auto client = Open(cluster);
  std::promise<void> promise;
  client->GetRows("t", {"a"}, std::chrono::steady_clock::now() + kLong,
                  [&](const auto&) { promise.set_value(); });
  const auto values = Get(*client, {"z"}, kLong / 4);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(*values, Values{"1"});
  client.reset();
  promise.get_future().wait();
}

// Lookups are for regions in turn, and not for those who wait for one.
TEST(HbaseClientTest, ManyWhoWaitForARegionThatIsOpenNowhereHaveOneTurn) {
  constexpr size_t kWaiting = 100;
  FakeHbase cluster(1, RowOf);
  cluster.SetRegions({{"", FakeHbase::kNowhere}, {"m", 0}});
  std::vector<std::promise<void>> promises(kWaiting);
  auto client = Open(cluster);
  for (size_t i = 0; i < kWaiting; ++i) {
    client->GetRows("t", {"a" + std::to_string(i)}, std::chrono::steady_clock::now() + kLong,
                    [&promise = promises[i]](const auto&) { promise.set_value(); });
  }
  const size_t scans = cluster.meta_scans();
  const auto values = Get(*client, {"z"});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(*values, Values{"1"});
  EXPECT_LT(cluster.meta_scans() - scans, kWaiting / 2);
  client.reset();
  for (std::promise<void>& promise : promises) promise.get_future().wait();
}

// Nor does the region of one row hold up the other rows of a call. The lookup of either of the two
// that are open nowhere tells nothing of the one between them, which comes behind many others.
TEST(HbaseClientTest, ARegionThatIsOpenNowhereTakesNoRowsOfOthersWithIt) {
  std::vector<std::pair<std::string, size_t>> regions = {{"", FakeHbase::kNowhere}, {"m", 0}};
  for (int i = 100; i < 150; ++i)
    regions.emplace_back("n" + std::to_string(i), FakeHbase::kNowhere);
  FakeHbase cluster(1, [](const FakeRequest& request) {
    return request.method == "Get" ? RowOf(request) : Mutated(true);
  });
  cluster.SetRegions(regions);
  std::promise<std::vector<HbaseClient::RowValue>> read;
  std::promise<std::vector<absl::Status>> written;
  auto client = Open(cluster);
  client->GetRows("t", {"a", "m1", "z"}, std::chrono::steady_clock::now() + kLong,
                  [&](auto values) { read.set_value(std::move(values)); });
  client->CommitEach("t", {PutIf("a", "0", "1"), PutIf("m1", "0", "1"), PutIf("z", "0", "1")},
                     std::chrono::steady_clock::now() + kLong,
                     [&](std::vector<absl::Status> statuses) { written.set_value(statuses); });
  EXPECT_EQ(*Get(*client, {"m2"}, kLong / 4), Values{"1"});  // its answer comes behind theirs
  client.reset();
  const std::vector<HbaseClient::RowValue> values = read.get_future().get();
  const std::vector<absl::Status> statuses = written.get_future().get();
  ASSERT_EQ(values.size(), 3U);
  ASSERT_EQ(statuses.size(), 3U);
  ASSERT_TRUE(values[1].ok()) << values[1].status();
  EXPECT_EQ(*values[1], "1");
  EXPECT_TRUE(statuses[1].ok()) << statuses[1];
  for (const size_t nowhere : {0, 2}) {
    EXPECT_TRUE(absl::IsCancelled(values[nowhere].status())) << values[nowhere].status();
    EXPECT_TRUE(absl::IsCancelled(statuses[nowhere])) << statuses[nowhere];
  }
}

TEST(HbaseClientTest, AServerThatIsSilentCostsTheDeadline) {
  FakeHbase cluster(1, [](const FakeRequest&) { return FakeAnswer::Silence(); });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  const auto values = Get(*client, {"a", "b"}, kShort);
  EXPECT_TRUE(absl::IsUnavailable(values.status())) << values.status();
  EXPECT_THAT(values.status().message(), HasSubstr("within the time"));
  EXPECT_EQ(client->Statistics().missed_deadlines, 1U);
  EXPECT_EQ(client->Statistics().in_flight, 0U);
}

TEST(HbaseClientTest, AServerThatIsSilentIsLeftAfterAnAttempt) {
  FakeHbase* moved = nullptr;
  FakeHbase cluster(2, [&](const FakeRequest& request) {
    if (request.server == 1) return Row("a", "1");
    moved->SetRegions({{"", 1}});
    return FakeAnswer::Silence();
  });
  moved = &cluster;
  cluster.SetRegions({{"", 0}});
  HbaseOptions options;
  options.attempt_timeout = kShort;
  const auto client = Open(cluster, options);
  EXPECT_EQ(*Get(*client, {"a"}), Values{"1"});
}

TEST(HbaseClientTest, AServerThatWasSilentIsNotAskedByTheNextCall) {
  std::atomic<int> asked_in_vain = 0;
  FakeHbase cluster(2, [&](const FakeRequest& request) {
    if (request.server == 1) return Row("a", "1");
    ++asked_in_vain;
    return FakeAnswer::Silence();
  });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  EXPECT_TRUE(absl::IsUnavailable(Get(*client, {"a"}, kShort).status()));
  cluster.SetRegions({{"", 1}});
  EXPECT_EQ(*Get(*client, {"a"}), Values{"1"});
  EXPECT_EQ(asked_in_vain, 1);
}

// Nothing came for the time of an attempt, but for most of it nothing was asked.
TEST(HbaseClientTest, AConnectionThatWasIdleIsNotClosedOverOneLateAnswer) {
  std::atomic<int> asked_other = 0;
  FakeHbase cluster(2, [&](const FakeRequest& request) {
    hbase::pb::GetRequest get;
    EXPECT_TRUE(get.ParseFromString(request.parameter));
    const bool is_silent = request.server == 1 ? asked_other++ > 0 : get.get().row() == "b";
    return is_silent ? FakeAnswer::Silence() : RowOf(request);
  });
  cluster.SetRegions({{"", 0}, {"m", 1}});
  HbaseOptions options;
  options.attempt_timeout = std::chrono::milliseconds(2'000);
  const auto client = Open(cluster, options);
  EXPECT_EQ(*Get(*client, {"z"}), Values{"1"});
  EXPECT_EQ(*Get(*client, {"a"}), Values{"1"});
  // The other server takes all of its time, while the first one is asked nothing.
  EXPECT_TRUE(absl::IsUnavailable(Get(*client, {"z"}, options.attempt_timeout).status()));
  const uint64_t opened = client->Statistics().connections_opened;
  EXPECT_TRUE(absl::IsUnavailable(Get(*client, {"b"}, kShort).status()));
  EXPECT_EQ(*Get(*client, {"a"}), Values{"1"});
  EXPECT_EQ(client->Statistics().connections_opened, opened);
}

TEST(HbaseClientTest, NothingIsAskedAfterTheDeadline) {
  std::atomic<int> asked = 0;
  FakeHbase cluster(1, [&](const FakeRequest&) {
    ++asked;
    return Row("a", "1");
  });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  EXPECT_EQ(*Get(*client, {"a"}), Values{"1"});
  const auto values = Get(*client, {"a"}, std::chrono::milliseconds(-1));
  EXPECT_TRUE(absl::IsUnavailable(values.status())) << values.status();
  EXPECT_EQ(asked, 1);
}

TEST(HbaseClientTest, RowsAreSplitByTheRegionsThatAreKnown) {
  FakeHbase cluster(1, RowOf);
  cluster.SetRegions({{"", 0}, {"m", 0}});
  const auto client = Open(cluster);
  const auto split = [&] {
    std::promise<std::vector<HbaseClient::Part>> promise;
    client->SplitByRegion("t", {"a", "z", "b"}, [&](std::vector<HbaseClient::Part> parts) {
      std::sort(parts.begin(), parts.end());
      promise.set_value(std::move(parts));
    });
    return promise.get_future().get();
  };
  EXPECT_EQ(split(), (std::vector<HbaseClient::Part>{{0, 1, 2}}));
  EXPECT_EQ(*Get(*client, {"a"}), Values{"1"});
  EXPECT_EQ(*Get(*client, {"z"}), Values{"1"});
  EXPECT_EQ(split(), (std::vector<HbaseClient::Part>{{0, 2}, {1}}));
}

// Those who leave out the rows of a region that does not answer leave out no others.
TEST(HbaseClientTest, RowsOfARegionThatIsOpenNowhereAreAPartOfTheirOwn) {
  FakeHbase cluster(1, RowOf);
  cluster.SetRegions({{"", FakeHbase::kNowhere}, {"m", 0}, {"x", 0}});
  const auto client = Open(cluster);
  EXPECT_EQ(*Get(*client, {"n"}), Values{"1"});  // its lookup tells of those before it, too
  std::promise<std::vector<HbaseClient::Part>> promise;
  client->SplitByRegion("t", {"a", "n", "b", "y"}, [&](std::vector<HbaseClient::Part> parts) {
    std::sort(parts.begin(), parts.end());
    promise.set_value(std::move(parts));
  });
  EXPECT_EQ(promise.get_future().get(), (std::vector<HbaseClient::Part>{{0, 2}, {1}, {3}}));
}

TEST(HbaseClientTest, WhatCannotBeDoneIsNotTriedAgain) {
  std::atomic<int> asked = 0;
  FakeHbase cluster(1, [&](const FakeRequest&) {
    ++asked;
    return FakeAnswer::Exception("org.apache.hadoop.hbase.security.AccessDeniedException");
  });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  const auto values = Get(*client, {"a"});
  EXPECT_TRUE(absl::IsPermissionDenied(values.status())) << values.status();
  EXPECT_THAT(values.status().message(), HasSubstr("AccessDeniedException: why"));
  EXPECT_EQ(asked, 1);
}

TEST(HbaseClientTest, ARegionThatDoesNotAnswerTakesNoRowsOfOthersWithIt) {
  absl::Notification asked;
  FakeHbase cluster(2, [&](const FakeRequest& request) {
    if (request.server == 0) return RowOf(request);
    if (!asked.HasBeenNotified()) asked.Notify();
    return FakeAnswer::Silence();
  });
  cluster.SetRegions({{"", 0}, {"m", 1}});
  auto client = Open(cluster);
  std::promise<std::vector<HbaseClient::RowValue>> promise;
  client->GetRows("t", {"a", "z"}, std::chrono::steady_clock::now() + kLong,
                  [&](auto values) { promise.set_value(std::move(values)); });
  asked.WaitForNotification();
  EXPECT_EQ(*Get(*client, {"b"}), Values{"1"});  // its answer comes behind that for a
  client.reset();
  const std::vector<HbaseClient::RowValue> values = promise.get_future().get();
  ASSERT_EQ(values.size(), 2U);
  ASSERT_TRUE(values[0].ok()) << values[0].status();
  EXPECT_EQ(*values[0], "1");
  EXPECT_TRUE(absl::IsCancelled(values[1].status())) << values[1].status();
}

TEST(HbaseClientTest, ARegionThatRefusesForGoodTakesNoRowsOfOthersWithIt) {
  FakeHbase cluster(2, [](const FakeRequest& request) {
    if (request.server == 0) return RowOf(request);
    return FakeAnswer::Exception("org.apache.hadoop.hbase.security.AccessDeniedException");
  });
  cluster.SetRegions({{"", 0}, {"m", 1}});
  const auto client = Open(cluster);
  std::promise<std::vector<HbaseClient::RowValue>> promise;
  client->GetRows("t", {"z", "a"}, std::chrono::steady_clock::now() + kLong,
                  [&](auto values) { promise.set_value(std::move(values)); });
  const std::vector<HbaseClient::RowValue> values = promise.get_future().get();
  ASSERT_EQ(values.size(), 2U);
  EXPECT_TRUE(absl::IsPermissionDenied(values[0].status())) << values[0].status();
  ASSERT_TRUE(values[1].ok()) << values[1].status();
  EXPECT_EQ(*values[1], "1");
}

// One request asks three regions of a server, of which it has the last one alone.
TEST(HbaseClientTest, ARegionThatRefusesItsRowsOfARequestHasNotAnswered) {
  std::promise<void> asked_again;
  std::atomic<int> asked = 0;
  FakeHbase cluster(1, [&](const FakeRequest& request) {
    if (++asked == 2) asked_again.set_value();
    hbase::pb::MultiRequest multi;
    EXPECT_TRUE(multi.ParseFromString(request.parameter)) << request.method;
    if (asked > 1) return FakeAnswer::Silence();
    EXPECT_EQ(multi.regionaction_size(), 3);
    hbase::pb::MultiResponse response;
    for (const hbase::pb::RegionAction& action : multi.regionaction()) {
      hbase::pb::RegionActionResult* region = response.add_regionactionresult();
      if (action.region().value().starts_with("t,x")) {
        region->add_resultorexception()->set_index(0);
        region->mutable_resultorexception(0)->mutable_result();
      } else {
        region->mutable_exception()->set_name(kNotServing);
      }
    }
    return FakeAnswer::Message(response);
  });
  cluster.SetRegions({{"", 0}, {"m", 0}, {"x", 0}});
  const auto commons = std::make_shared<ClientCommons>(HbaseOptions());
  const AwayRegions::Time now = std::chrono::steady_clock::now();
  for (const auto& [start, end] : {std::pair("", "m"), std::pair("m", "x"), std::pair("x", "")})
    commons->away.NoteFailure("t", {"", start, end, ""}, now - AwayRegions::kPatience);
  for (const char* row : {"a1", "m1", "z"}) EXPECT_TRUE(commons->away.Holds("t", row, now)) << row;
  CoreThread thread(std::make_shared<ClientCore>(
      commons, std::vector<std::string>{cluster.quorum()}, /*are_masters=*/false));
  thread.core().Submit(std::make_shared<ReadCall>(
      thread.core().environment(), "t", std::vector<std::string>{"a1", "a2", "m1", "m2", "z"},
      now + kLong, [](const std::vector<HbaseClient::RowValue>&) {}));
  asked_again.get_future().wait();
  EXPECT_TRUE(commons->away.Holds("t", "a1", now));
  EXPECT_TRUE(commons->away.Holds("t", "m1", now));
  EXPECT_FALSE(commons->away.Holds("t", "z", now));
}

TEST(HbaseClientTest, RowsOfSeveralRegionsAreNoCommit) {
  FakeHbase cluster(1, [](const FakeRequest&) { return Mutated(true); });
  cluster.SetRegions({{"", 0}, {"m", 0}});
  const auto client = Open(cluster);
  const absl::Status status = Commit(*client, {PutIf("a", "0", "1"), PutIf("z", "0", "1")});
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(Commit(*client, {PutIf("a", "0", "1"), PutIf("b", "0", "1")}).ok());
}

// The outcomes of a commit whose server is lost, by what the row holds afterwards.
TEST(HbaseClientTest, ACommitThatWasDoneBeforeItsServerWasLostIsOk) {
  std::atomic<int> commits = 0;
  FakeHbase cluster(1, [&](const FakeRequest& request) {
    if (request.method == "Get") return Row("a", "new");
    ++commits;
    return FakeAnswer::HangUp();
  });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  EXPECT_TRUE(Commit(*client, {PutIf("a", "old", "new")}).ok());
  EXPECT_TRUE(Each(*client, {PutIf("a", "old", "new")}).front().ok());
  EXPECT_EQ(commits, 2);
}

TEST(HbaseClientTest, ACommitThatWasNotDoneIsTriedAgain) {
  std::atomic<int> commits = 0;
  FakeHbase cluster(1, [&](const FakeRequest& request) {
    if (request.method == "Get") return Row("a", "old");
    return commits++ % 2 == 0 ? FakeAnswer::HangUp() : Mutated(true);
  });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  EXPECT_TRUE(Commit(*client, {PutIf("a", "old", "new")}).ok());
  EXPECT_TRUE(Each(*client, {PutIf("a", "old", "new")}).front().ok());
  EXPECT_EQ(commits, 4);
}

TEST(HbaseClientTest, LargeValuesAreReadInStepsToFindOutWhatBecameOfACommit) {
  constexpr int kRows = 24, kMostAtATime = 16;
  const std::string old = "old" + std::string(1 << 20, 'v');
  std::atomic<int> commits = 0, read = 0;
  FakeHbase cluster(1, [&](const FakeRequest& request) {
    if (request.method == "ExecService")
      return commits++ % 2 == 0 ? FakeAnswer::HangUp() : Mutated(true);
    hbase::pb::MultiRequest multi;
    EXPECT_TRUE(multi.ParseFromString(request.parameter)) << request.method;
    hbase::pb::MultiResponse response;
    hbase::pb::RegionActionResult* region = response.add_regionactionresult();
    for (const hbase::pb::Action& action : multi.regionaction(0).action()) {
      hbase::pb::ResultOrException* one = region->add_resultorexception();
      one->set_index(action.index());
      hbase::pb::Cell* cell = one->mutable_result()->add_cell();
      cell->set_row(action.get().row());
      cell->set_value(old);
    }
    EXPECT_LE(region->resultorexception_size(), kMostAtATime);
    read += region->resultorexception_size();
    return FakeAnswer::Message(response);
  });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  std::vector<HbaseRowWrite> writes;
  for (int i = 0; i < kRows; ++i) {
    writes.push_back(PutIf("row" + std::to_string(i), "old", "new"));
    writes.back().expects_prefix = true;
  }
  EXPECT_TRUE(Commit(*client, writes).ok());
  EXPECT_EQ(read, kRows);
  for (const absl::Status& status : Each(*client, writes)) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(read, 2 * kRows);
  EXPECT_EQ(commits, 4);
}

TEST(HbaseClientTest, ACommitOfWhichNobodyKnowsIsSaidToBeOne) {
  FakeHbase cluster(1, [](const FakeRequest& request) {
    return request.method == "Get" ? Row("a", "another") : FakeAnswer::HangUp();
  });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  const absl::Status status = Commit(*client, {PutIf("a", "old", "new")});
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("may or may not have happened"));
  EXPECT_TRUE(absl::IsUnavailable(Each(*client, {PutIf("a", "old", "new")}).front()));
  // Nor is a write tried again that nothing guards against the first attempt coming late.
  HbaseRowWrite unguarded = PutIf("a", std::nullopt, "new");
  unguarded.is_checked = false;
  EXPECT_TRUE(absl::IsUnavailable(Commit(*client, {unguarded})));
}

// A row that is behind the commit and not as expected was overtaken before the commit came.
TEST(HbaseClientTest, ACommitThatWasOvertakenBeforeItsServerWasLostIsAborted) {
  std::string there;
  FakeHbase cluster(1, [&](const FakeRequest& request) {
    return request.method == "Get" ? Row("a", there) : FakeAnswer::HangUp();
  });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  HbaseRowWrite write = PutIf("a", "1old", "5new");
  write.ascending = 1;
  there = "3another";
  EXPECT_TRUE(absl::IsAborted(Commit(*client, {write})));
  EXPECT_TRUE(absl::IsAborted(Each(*client, {write}).front()));
  there = "7another";
  EXPECT_TRUE(absl::IsUnavailable(Commit(*client, {write})));
  EXPECT_TRUE(absl::IsUnavailable(Each(*client, {write}).front()));
}

TEST(HbaseClientTest, ACommitThatIsUnderWayAtItsDeadlineMayHaveHappened) {
  FakeHbase cluster(1, [](const FakeRequest&) { return FakeAnswer::Silence(); });
  cluster.SetRegions({{"", 0}});
  auto client = Open(cluster);
  const auto outcomes = [&](std::chrono::milliseconds time) {
    const auto deadline = std::chrono::steady_clock::now() + time;
    auto commit = std::make_shared<std::promise<absl::Status>>();
    auto each = std::make_shared<std::promise<absl::Status>>();
    client->CommitRows("t", {PutIf("a", "old", "new")}, deadline,
                       [commit](const absl::Status& status) { commit->set_value(status); });
    client->CommitEach("t", {PutIf("a", "old", "new")}, deadline,
                       [each](const auto& statuses) { each->set_value(statuses.front()); });
    return std::pair(commit->get_future(), each->get_future());
  };
  auto late = outcomes(kShort);
  EXPECT_THAT(late.first.get().message(), HasSubstr("may or may not have happened"));
  EXPECT_THAT(late.second.get().message(), HasSubstr("may or may not have happened"));
  auto never = outcomes(std::chrono::milliseconds(-1));
  EXPECT_THAT(never.first.get().message(), HasSubstr("nothing was written"));
  EXPECT_THAT(never.second.get().message(), HasSubstr("nothing was written"));
}

// A refused commit has surely not happened, so the caller learns that it lost a race.
TEST(HbaseClientTest, ACommitThatWasRefusedIsAbortedByItsCondition) {
  std::atomic<int> commits = 0;
  FakeHbase cluster(1, [&](const FakeRequest&) {
    return commits++ == 0 ? FakeAnswer::Exception(kNotServing) : Mutated(false);
  });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  const absl::Status status = Commit(*client, {PutIf("a", "old", "new")});
  EXPECT_TRUE(absl::IsAborted(status)) << status;
}

TEST(HbaseClientTest, RowsThatDoNotHoldWhatIsExpectedAreTakenOutOfTheirCommit) {
  std::vector<int> sizes;
  FakeHbase cluster(1, [&](const FakeRequest& request) {
    if (request.method == "Multi") {
      hbase::pb::MultiResponse response;
      hbase::pb::RegionActionResult* region = response.add_regionactionresult();
      for (uint32_t i = 0; i < 3; ++i) {
        hbase::pb::ResultOrException* one = region->add_resultorexception();
        one->set_index(i);
        hbase::pb::Cell* cell = one->mutable_result()->add_cell();
        cell->set_row(std::string(1, static_cast<char>('a' + i)));
        cell->set_value(i == 1 ? "another" : "old");
      }
      return FakeAnswer::Message(response);
    }
    hbase::pb::CoprocessorServiceRequest call;
    hbase::pb::MutateRowsRequest mutate;
    EXPECT_TRUE(call.ParseFromString(request.parameter));
    EXPECT_TRUE(mutate.ParseFromString(call.call().request()));
    sizes.push_back(mutate.condition_size());
    return Mutated(sizes.size() > 1);
  });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  const auto statuses =
      Each(*client, {PutIf("a", "old", "1"), PutIf("b", "old", "2"), PutIf("c", "old", "3")});
  ASSERT_EQ(statuses.size(), 3U);
  EXPECT_TRUE(statuses[0].ok());
  EXPECT_TRUE(absl::IsAborted(statuses[1])) << statuses[1];
  EXPECT_TRUE(statuses[2].ok());
  EXPECT_EQ(sizes, (std::vector<int>{3, 2}));
}

TEST(HbaseClientTest, ARowThatIsRefusedForGoodTakesNoOtherWithIt) {
  FakeHbase cluster(1, [&](const FakeRequest& request) {
    if (request.method != "ExecService") {
      ADD_FAILURE() << request.method;
      return FakeAnswer::Silence();
    }
    return request.parameter.find("poison") == std::string::npos
               ? Mutated(true)
               : FakeAnswer::Exception("org.apache.hadoop.hbase.ipc.RequestTooBigException");
  });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  const auto statuses =
      Each(*client, {PutIf("a", "old", "1"), PutIf("b", "old", "poison"), PutIf("c", "old", "3")});
  ASSERT_EQ(statuses.size(), 3U);
  EXPECT_TRUE(statuses[0].ok()) << statuses[0];
  EXPECT_TRUE(absl::IsInvalidArgument(statuses[1])) << statuses[1];
  EXPECT_TRUE(statuses[2].ok()) << statuses[2];
}

TEST(HbaseClientTest, ScansGoOverTheBordersOfRegions) {
  FakeHbase cluster(2, [](const FakeRequest& request) {
    hbase::pb::ScanResponse response;
    hbase::pb::Cell* cell = response.add_results()->add_cell();
    cell->set_row(request.server == 0 ? "b" : "n");
    cell->set_value(std::string(100, 'x'));
    return FakeAnswer::Message(response);
  });
  cluster.SetRegions({{"", 0}, {"m", 1}});
  const auto client = Open(cluster);
  for (const bool is_descending : {false, true}) {
    std::promise<absl::StatusOr<HbaseScanSlice>> promise;
    client->ScanRows("t", {"a", "z", is_descending, 10, 1 << 20, true},
                     std::chrono::steady_clock::now() + kLong,
                     [&](absl::StatusOr<HbaseScanSlice> slice) { promise.set_value(slice); });
    const auto slice = promise.get_future().get();
    ASSERT_TRUE(slice.ok()) << slice.status();
    EXPECT_TRUE(slice->is_complete);
    ASSERT_EQ(slice->rows.size(), 2U);
    EXPECT_EQ(slice->rows.front().first, is_descending ? "n" : "b");
    EXPECT_EQ(slice->rows.back().second.size(), kHbaseKeysOnlyPrefix);
  }
}

absl::StatusOr<HbaseScanSlice> Scan(HbaseClient& client, const HbaseScanRequest& request,
                                    std::chrono::milliseconds time = kLong) {
  std::promise<absl::StatusOr<HbaseScanSlice>> promise;
  client.ScanRows("t", request, std::chrono::steady_clock::now() + time,
                  [&](absl::StatusOr<HbaseScanSlice> slice) { promise.set_value(slice); });
  return promise.get_future().get();
}

// A sweep leaves out the region that ends with the row m, and reads the one behind it.
void ExpectThatASweepLeavesOutWhatIsBeforeM(HbaseClient& client, HbaseScanRequest request) {
  request.is_sweep = true;
  auto slice = Scan(client, request, kShort);
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_TRUE(slice->has_left_out);
  EXPECT_FALSE(slice->is_complete);
  EXPECT_EQ(slice->rest, "m");
  request.lower = slice->rest;
  slice = Scan(client, request);
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_TRUE(slice->is_complete);
  EXPECT_FALSE(slice->has_left_out);
}

// HBase tells a client whose scan is under way that its scanner is gone, and not to try again.
TEST(HbaseClientTest, AScanOfARegionThatClosesGoesOnWhereItOpens) {
  FakeHbase* moved = nullptr;
  FakeHbase cluster(2, [&](const FakeRequest& request) {
    if (request.server == 0) {
      moved->SetRegions({{"", 1}});
      return FakeAnswer::Exception("org.apache.hadoop.hbase.exceptions.ScannerResetException");
    }
    hbase::pb::ScanResponse response;
    hbase::pb::Cell* cell = response.add_results()->add_cell();
    cell->set_row("b");
    cell->set_value("1");
    return FakeAnswer::Message(response);
  });
  moved = &cluster;
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  const auto slice = Scan(*client, {.lower = "a", .upper = "z"});
  ASSERT_TRUE(slice.ok()) << slice.status();
  ASSERT_EQ(slice->rows.size(), 1U);
  EXPECT_EQ(slice->rows[0].first, "b");
}

TEST(HbaseClientTest, ASweepLeavesOutARegionThatIsSilent) {
  FakeHbase cluster(2, [](const FakeRequest& request) {
    if (request.method == "Get") return Row("a", "1");
    if (request.server == 0) return FakeAnswer::Silence();
    return FakeAnswer::Message(hbase::pb::ScanResponse());
  });
  cluster.SetRegions({{"", 0}, {"m", 1}});
  const auto client = Open(cluster);
  EXPECT_EQ(*Get(*client, {"a"}), Values{"1"});  // the region is known from now on
  const HbaseScanRequest request{.lower = "a", .upper = "z"};
  EXPECT_TRUE(absl::IsUnavailable(Scan(*client, request, kShort).status()));
  EXPECT_EQ(*Get(*client, {"a"}), Values{"1"});
  ExpectThatASweepLeavesOutWhatIsBeforeM(*client, request);
}

TEST(HbaseClientTest, ASweepLeavesOutARegionThatIsOpenNowhere) {
  FakeHbase cluster(
      1, [](const FakeRequest&) { return FakeAnswer::Message(hbase::pb::ScanResponse()); });
  cluster.SetRegions({{"", FakeHbase::kNowhere}, {"m", 0}});
  std::promise<void> read;
  auto client = Open(cluster);
  client->GetRows("t", {"a"}, std::chrono::steady_clock::now() + kLong,
                  [&](const auto&) { read.set_value(); });
  // A second lookup begins once the answer to the first one was taken.
  ASSERT_TRUE(testing::Eventually([&] { return cluster.meta_scans() > 1; }));
  EXPECT_TRUE(client->IsAnyAway());
  const HbaseScanRequest request{.lower = "a", .upper = "z"};
  EXPECT_TRUE(absl::IsUnavailable(Scan(*client, request, kShort).status()));
  ExpectThatASweepLeavesOutWhatIsBeforeM(*client, request);
  client.reset();
  read.get_future().wait();
}

TEST(HbaseClientTest, ASweepTellsHowFarItCameWhereNoRowPassesItsTests) {
  std::promise<void> asked_again;
  std::atomic<int> asked = 0;
  FakeHbase cluster(1, [&](const FakeRequest& request) {
    hbase::pb::ScanRequest scan;
    EXPECT_TRUE(scan.ParseFromString(request.parameter));
    EXPECT_FALSE(scan.scan().cache_blocks());
    hbase::pb::FilterList any, all;
    hbase::pb::ValueFilter first, last;
    EXPECT_EQ(scan.scan().filter().name(), "org.apache.hadoop.hbase.filter.FilterList");
    EXPECT_TRUE(any.ParseFromString(scan.scan().filter().serialized_filter()));
    EXPECT_EQ(any.operator_(), hbase::pb::FilterList::MUST_PASS_ONE);
    EXPECT_EQ(any.filters_size(), 2);
    EXPECT_TRUE(all.ParseFromString(any.filters(1).serialized_filter()));
    EXPECT_EQ(all.operator_(), hbase::pb::FilterList::MUST_PASS_ALL);
    EXPECT_EQ(all.filters_size(), 3);  // one for the byte, two for the range behind it
    EXPECT_TRUE(first.ParseFromString(all.filters(0).serialized_filter()));
    EXPECT_EQ(first.compare_filter().compare_op(), hbase::pb::EQUAL);
    EXPECT_TRUE(last.ParseFromString(all.filters(2).serialized_filter()));
    EXPECT_EQ(last.compare_filter().compare_op(), hbase::pb::LESS_OR_EQUAL);
    if (++asked == 2) {
      EXPECT_EQ(scan.scan().start_row(), "q");
      asked_again.set_value();
    }
    if (asked > 1) return FakeAnswer::Silence();
    hbase::pb::ScanResponse response;
    response.set_heartbeat_message(true);
    response.mutable_cursor()->set_row("q");
    return FakeAnswer::Message(response);
  });
  cluster.SetRegions({{"", 0}});
  auto client = Open(cluster);
  HbaseScanRequest request{.lower = "a", .upper = "z"};
  request.tests = {{{1, "x", "x"}}, {{1, "y", "y"}, {2, "a", "c"}}};
  request.is_sweep = true;
  std::promise<absl::StatusOr<HbaseScanSlice>> promise;
  client->ScanRows("t", request, std::chrono::steady_clock::now() + kLong,
                   [&](absl::StatusOr<HbaseScanSlice> slice) { promise.set_value(slice); });
  asked_again.get_future().wait();
  client.reset();
  const auto slice = promise.get_future().get();
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_TRUE(slice->rows.empty());
  EXPECT_FALSE(slice->is_complete);
  EXPECT_EQ(slice->rest, "q");
}

// Bounds that are longer than any row are cut, as HBase takes none of them.
TEST(HbaseClientTest, BoundsOfScansMayBeLongerThanRows) {
  const std::string longest(kHbaseMaxRowSize, 'r');
  std::vector<std::pair<bool, bool>> included;
  FakeHbase cluster(1, [&](const FakeRequest& request) {
    hbase::pb::ScanRequest scan;
    EXPECT_TRUE(scan.ParseFromString(request.parameter));
    EXPECT_LE(scan.scan().start_row().size(), kHbaseMaxRowSize);
    included.emplace_back(scan.scan().include_start_row(), scan.scan().include_stop_row());
    hbase::pb::ScanResponse response;
    return FakeAnswer::Message(response);
  });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  const auto scan = [&](const std::string& lower, const std::string& upper, bool is_descending) {
    std::promise<absl::StatusOr<HbaseScanSlice>> promise;
    client->ScanRows("t", {.lower = lower, .upper = upper, .is_descending = is_descending},
                     std::chrono::steady_clock::now() + kLong,
                     [&](absl::StatusOr<HbaseScanSlice> slice) { promise.set_value(slice); });
    const auto slice = promise.get_future().get();
    EXPECT_TRUE(slice.ok() && slice->is_complete) << slice.status();
  };
  for (const bool is_descending : {false, true}) {
    scan("a", "s", is_descending);
    scan(longest + '\0', "s", is_descending);
    scan("a", longest + "rest", is_descending);
  }
  EXPECT_EQ(included, (std::vector<std::pair<bool, bool>>{{true, false},
                                                          {false, false},
                                                          {true, true},  // ascending
                                                          {false, true},
                                                          {false, false},
                                                          {true, true}}));  // descending
}

TEST(HbaseClientTest, CallsBeyondTheLimitAreRefused) {
  FakeHbase cluster(1, [](const FakeRequest&) { return FakeAnswer::Silence(); });
  cluster.SetRegions({{"", 0}});
  HbaseOptions options;
  options.max_calls = 2;
  auto client = Open(cluster, options);
  std::vector<std::future<absl::Status>> waiting;
  for (int i = 0; i < 2; ++i) {
    auto promise = std::make_shared<std::promise<absl::Status>>();
    waiting.push_back(promise->get_future());
    client->GetRows("t", {"a"}, std::chrono::steady_clock::now() + kLong,
                    [promise](const auto& values) { promise->set_value(values[0].status()); });
  }
  EXPECT_TRUE(absl::IsUnavailable(Get(*client, {"a"}).status()));
  // A client that is closed answers what is under way.
  client.reset();
  for (auto& future : waiting) EXPECT_TRUE(absl::IsCancelled(future.get()));
}

TEST(HbaseClientTest, BytesThatWaitDoNotKeepSmallCallsOut) {
  FakeHbase cluster(1, [](const FakeRequest& request) {
    return request.method == "Get" ? NoRow() : FakeAnswer::Silence();
  });
  cluster.SetRegions({{"", 0}});
  HbaseOptions options;
  options.max_call_bytes = 20'000;
  auto client = Open(cluster, options);
  std::promise<absl::Status> waiting;
  const std::string large(15'000, 'v');
  client->CommitRows("t", {PutIf("a", std::nullopt, large)},
                     std::chrono::steady_clock::now() + kLong,
                     [&waiting](const absl::Status& status) { waiting.set_value(status); });
  EXPECT_TRUE(absl::IsUnavailable(Commit(*client, {PutIf("b", std::nullopt, large)})));
  EXPECT_TRUE(Get(*client, {"b"}).ok());
  client.reset();
  EXPECT_TRUE(absl::IsCancelled(waiting.get_future().get()));
}

TEST(HbaseClientTest, RowsAndValuesHaveLimits) {
  FakeHbase cluster(1, [](const FakeRequest&) { return NoRow(); });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  EXPECT_TRUE(absl::IsInvalidArgument(Get(*client, {""}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(Get(*client, {std::string(kHbaseMaxRowSize + 1, 'r')}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Commit(*client, {PutIf("a", "1", "")})));
  EXPECT_EQ(*Get(*client, {std::string(kHbaseMaxRowSize, 'r')}), Values{std::nullopt});
  EXPECT_EQ(Get(*client, {})->size(), 0U);
}

TEST(HbaseClientTest, ATableWithoutRegionsIsMissing) {
  FakeHbase cluster(1, [](const FakeRequest&) { return NoRow(); });
  const auto client = Open(cluster);
  const auto values = Get(*client, {"a"});
  EXPECT_TRUE(absl::IsNotFound(values.status())) << values.status();
}

TEST(HbaseClientTest, ATableThatIsDisabledIsToldAtOnce) {
  const HbaseTableLayout layout{.name = "t"};
  hbase::pb::TableState::State state = hbase::pb::TableState::DISABLED;
  FakeHbase cluster(1, [&](const FakeRequest& request) {
    if (request.method == "GetTableDescriptors") {
      hbase::pb::GetTableDescriptorsResponse response;
      *response.add_table_schema() = TableSchemaOf(layout);
      return FakeAnswer::Message(response);
    }
    EXPECT_EQ(request.method, "GetTableState");
    hbase::pb::GetTableStateResponse response;
    response.mutable_table_state()->set_state(state);
    return FakeAnswer::Message(response);
  });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  const absl::Status disabled =
      client->EnsureTable(layout, /*may_create=*/true, HbaseClient::Deadline::max());
  EXPECT_TRUE(absl::IsFailedPrecondition(disabled)) << disabled;
  EXPECT_THAT(disabled.message(), HasSubstr("is disabled"));
  state = hbase::pb::TableState::ENABLED;
  EXPECT_TRUE(client->EnsureTable(layout, /*may_create=*/true, HbaseClient::Deadline::max()).ok());
}

// Such a cluster refuses connections, and names no call.
TEST(HbaseClientTest, AClusterThatDemandsKerberosIsToldAtOnce) {
  FakeHbase cluster(1, [](const FakeRequest& request) {
    ADD_FAILURE() << request.method;
    return FakeAnswer::Silence();
  });
  cluster.SetRegions({{"", 0}});
  const auto client = Open(cluster);
  uint64_t connections = 0;
  const auto expect_refused = [&](const absl::Status& status, const std::string& text) {
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(cluster.server(0) + " refused a request: " + text));
    EXPECT_THAT(status.message(), HasSubstr("need no authentication (`simple`)"));
    EXPECT_EQ(client->Statistics().connections_opened, ++connections) << "it was tried again";
  };
  const auto expect_all_refused = [&](const std::string& text) {
    expect_refused(
        client->EnsureTable({.name = "t"}, /*may_create=*/true, HbaseClient::Deadline::max()),
        text);
    expect_refused(Get(*client, {"a", "b"}).status(), text);
    const absl::Status commit = Commit(*client, {PutIf("a", std::nullopt, "1")});
    expect_refused(commit, text);
    EXPECT_THAT(commit.message(), HasSubstr("nothing was written"));
  };
  cluster.RefuseConnections("org.apache.hadoop.hbase.security.AccessDeniedException",
                            "Authentication is required");
  expect_all_refused("AccessDeniedException: Authentication is required");
  cluster.RefuseConnections("org.apache.hadoop.hbase.ipc.BadAuthException",
                            "serverVersion=0, clientVersion=0, authMethod=80");
  expect_all_refused("BadAuthException: serverVersion=0, clientVersion=0, authMethod=80");
  EXPECT_EQ(cluster.meta_scans(), 0U);

  HbaseOptions options;
  options.masters = cluster.server(0);
  const auto by_masters = HbaseClient::Open(options);
  EXPECT_TRUE(absl::IsUnavailable(by_masters.status())) << by_masters.status();
  EXPECT_THAT(by_masters.status().message(), HasSubstr("not Kerberos"));
}

// Answers what masters are asked for by those who know none of the cluster's servers yet: the table
// of regions, and the active master, are at `server`.
FakeAnswer Registry(const FakeHbase& cluster, const FakeRequest& request, size_t server) {
  if (request.method == "GetActiveMaster") {
    hbase::pb::GetActiveMasterResponse response;
    *response.mutable_server_name() = cluster.NameOf(server);
    return FakeAnswer::Message(response);
  }
  EXPECT_EQ(request.method, "GetMetaRegionLocations");
  hbase::pb::GetMetaRegionLocationsResponse response;
  for (const int replica : {1, 0}) {
    hbase::pb::RegionLocation* location = response.add_meta_locations();
    location->mutable_region_info()->set_region_id(1);
    location->mutable_region_info()->mutable_table_name()->set_namespace_("hbase");
    location->mutable_region_info()->mutable_table_name()->set_qualifier("meta");
    location->mutable_region_info()->set_replica_id(replica);
    location->set_seq_num(0);
    // What a replica says may be old.
    *location->mutable_server_name() = cluster.NameOf(replica == 0 ? server : 0);
  }
  return FakeAnswer::Message(response);
}

TEST(HbaseClientTest, MastersMayBeAskedInsteadOfZooKeeper) {
  constexpr size_t kRefusing = 0, kStandby = 1, kActive = 2;
  const HbaseTableLayout layout{.name = "t"};
  FakeHbase* asked = nullptr;
  FakeHbase cluster(3, [&](const FakeRequest& request) {
    const bool is_registry =
        request.method == "GetMetaRegionLocations" || request.method == "GetActiveMaster";
    if (is_registry && request.server == kStandby) return Registry(*asked, request, kActive);
    if (is_registry && request.server == kRefusing)
      return FakeAnswer::Exception("org.apache.hadoop.hbase.ipc.ServerNotRunningYetException");
    EXPECT_EQ(request.server, kActive) << request.method;
    if (request.method == "Get") return RowOf(request);
    if (request.method == "GetTableDescriptors") {
      hbase::pb::GetTableDescriptorsResponse response;
      *response.add_table_schema() = TableSchemaOf(layout);
      return FakeAnswer::Message(response);
    }
    EXPECT_EQ(request.method, "GetTableState");
    hbase::pb::GetTableStateResponse response;
    response.mutable_table_state()->set_state(hbase::pb::TableState::ENABLED);
    return FakeAnswer::Message(response);
  });
  asked = &cluster;
  cluster.SetRegions({{"", kActive}});
  HbaseOptions options;
  options.masters = "127.0.0.1:1," + cluster.server(kRefusing) + "," + cluster.server(kStandby);
  const auto client = HbaseClient::Open(options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE(
      (*client)->EnsureTable(layout, /*may_create=*/false, HbaseClient::Deadline::max()).ok());
  EXPECT_EQ(*Get(**client, {"a"}), Values{"1"});
}

TEST(HbaseClientTest, MastersThatKnowOfNoMetaYetAreAskedAgain) {
  std::atomic<int> times = 0;
  FakeHbase* asked = nullptr;
  FakeHbase cluster(1, [&](const FakeRequest& request) {
    if (request.method == "Get") return RowOf(request);
    return ++times == 1 ? FakeAnswer::Message(hbase::pb::GetMetaRegionLocationsResponse())
                        : Registry(*asked, request, 0);
  });
  asked = &cluster;
  cluster.SetRegions({{"", 0}});
  HbaseOptions options;
  // What the second one says must not hide that the first one knows of none.
  options.masters = cluster.server(0) + ",127.0.0.1:1";
  const auto client = HbaseClient::Open(options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(times, 2);
  EXPECT_EQ(*Get(**client, {"a"}), Values{"1"});
}

TEST(HbaseClientTest, MastersThatAreNoneAreToldAtOnce) {
  FakeHbase cluster(2, [](const FakeRequest& request) {
    return request.server == 0
               ? FakeAnswer::Exception("org.apache.hadoop.hbase.ipc.UnknownServiceException")
               : FakeAnswer::Bytes(FakeHbase::Framed(std::string(100, '\xff')));
  });
  HbaseOptions options;
  options.masters = "127.0.0.1:1," + cluster.server(0) + "," + cluster.server(1);
  const auto refused = HbaseClient::Open(options);
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  for (const std::string& text : {"--hbase-masters", "127.0.0.1:1: it cannot be connected to",
                                  "UnknownServiceException", "is it one of HBase?"}) {
    EXPECT_THAT(refused.status().message(), HasSubstr(text));
  }
  for (const char* malformed : {"127.0.0.1", "127.0.0.1:x", "127.0.0.1:1,,127.0.0.1:2"}) {
    options.masters = malformed;
    const auto none = HbaseClient::Open(options);
    EXPECT_TRUE(absl::IsInvalidArgument(none.status())) << none.status();
    EXPECT_THAT(none.status().message(), HasSubstr("--hbase-masters"));
  }
  options.masters = cluster.server(0);
  options.quorum = cluster.quorum();
  EXPECT_TRUE(absl::IsInvalidArgument(HbaseClient::Open(options).status()));
}

TEST(HbaseClientTest, OpeningEndsWithItsDeadlineAndNamesEachHostThatIsSilent) {
  const SilentHost first, second;
  for (std::string HbaseOptions::*const hosts : {&HbaseOptions::quorum, &HbaseOptions::masters}) {
    HbaseOptions options;
    options.*hosts = first.address() + "," + second.address();
    options.connect_timeout = kLong;
    options.open_deadline = kShort;
    const auto begin = std::chrono::steady_clock::now();
    const auto client = HbaseClient::Open(options);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kLong);
    EXPECT_TRUE(absl::IsUnavailable(client.status())) << client.status();
    for (const SilentHost* host : {&first, &second})
      EXPECT_THAT(client.status().message(), HasSubstr(host->address()));
  }
}

TEST(HbaseClientTest, AQuorumThatIsNoneIsToldAtOnce) {
  HbaseOptions options;
  EXPECT_TRUE(absl::IsInvalidArgument(HbaseClient::Open(options).status()));
  options.quorum = "127.0.0.1";
  EXPECT_TRUE(absl::IsInvalidArgument(HbaseClient::Open(options).status()));
  options.quorum = "127.0.0.1:1";
  const auto refused = HbaseClient::Open(options);
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  EXPECT_THAT(refused.status().message(), HasSubstr("127.0.0.1:1"));

  FakeHbase cluster(1, [](const FakeRequest&) { return NoRow(); });
  options.quorum = "127.0.0.1:1," + cluster.quorum();
  EXPECT_TRUE(HbaseClient::Open(options).ok());
  cluster.SetNode(std::string(12, '\0') + "\xff\xff\xff\x9b");
  const auto missing = HbaseClient::Open(options);
  EXPECT_TRUE(absl::IsNotFound(missing.status())) << missing.status();
  EXPECT_THAT(missing.status().message(), HasSubstr("/hbase/meta-region-server"));
  for (const std::string& garbage :
       {std::string(), std::string(15, 'x'),
        std::string(16, '\0') + std::string("\x7f\xff\xff\xff"),
        std::string(16, '\0') + FakeHbase::Framed("PBUFxxxx"),
        std::string(16, '\0') + FakeHbase::Framed("\xff\x7f\xff\xff\xff")}) {
    cluster.SetNode(garbage);
    EXPECT_FALSE(HbaseClient::Open(options).ok());
  }
}

}  // namespace
}  // namespace varve
