// The history: rates, percentiles, and its bound.
#include "server/http/history.h"

#include <gtest/gtest.h>

#include <string>

#include "server/status/server_health.h"
#include "unit-tests/server/command_fixture.h"

namespace varve {
namespace {

class HistoryTest : public testing::CommandTest {
 protected:
  void Tick() {
    ServerState& state = server_.server().state();
    const StoreObservation seen = state.store->Observe();
    history_.Add(state, seen, LookAtLoad(state, seen));
  }
  std::string Json(uint64_t since = 0) {
    std::string json;
    history_.WriteJson(since, &json);
    return json;
  }
  // The newest value of a series.
  uint64_t Newest(const std::string& name) {
    const std::string json = Json();
    const size_t at = json.find("\"" + name + "\":[");
    EXPECT_NE(at, std::string::npos) << name;
    const size_t end = json.find(']', at);
    return std::stoull(json.substr(json.find_last_of("[,", end) + 1));
  }

  History history_;
};

TEST_F(HistoryTest, BeginsWithTheSecondTick) {
  Tick();
  EXPECT_EQ(history_.size(), 0u);
  Tick();
  EXPECT_EQ(history_.size(), 1u);
}

TEST_F(HistoryTest, TellsWhatHappenedBetweenTwoTicks) {
  Tick();
  for (int i = 0; i < 200; ++i) Do({"set", "key" + std::to_string(i), "value"});
  for (int i = 0; i < 100; ++i) Do({"get", "key1"});
  Do({"incr", "key1"});  // an error
  Do({"ping"});
  Tick();
  EXPECT_GT(Newest("writes_rate"), 0u);
  EXPECT_GT(Newest("reads_rate"), 0u);
  EXPECT_GE(Newest("writes_rate"), Newest("reads_rate"));
  EXPECT_GE(Newest("read_p99_nanos"), Newest("read_p50_nanos"));
  EXPECT_GT(Newest("write_p50_nanos"), 0u);
  EXPECT_GT(Newest("syncs_rate"), 0u);
  EXPECT_GE(Newest("sync_longest_nanos"), Newest("sync_mean_nanos"));
  EXPECT_EQ(Newest("connections"), 1u);
  EXPECT_GT(Newest("resident_bytes"), 1'000'000u);
  EXPECT_GT(Newest("write_buffer_bytes"), 0u);
  EXPECT_EQ(Newest("undurable_writes"), 0u);
  Tick();
  EXPECT_EQ(Newest("writes_rate"), 0u) << "nothing came since";
  EXPECT_EQ(Newest("write_p50_nanos"), 0u);
}

TEST_F(HistoryTest, CountsThatAreSetBackDoNoHarm) {
  for (int i = 0; i < 100; ++i) Do({"set", "a", "b"});
  Tick();
  Do({"config", "resetstat"});
  Do({"set", "a", "b"});
  Tick();
  EXPECT_LT(Newest("net_input_rate"), 1'000'000'000u);
  EXPECT_LT(Newest("writes_rate"), 1'000'000u);
}

TEST_F(HistoryTest, KeepsTheNewestSamplesAlone) {
  for (size_t i = 0; i < History::kMostSamples + 11; ++i) Tick();
  EXPECT_EQ(history_.size(), History::kMostSamples);
  EXPECT_TRUE(Json().starts_with("{\"first\":10,\"next\":910,")) << Json().substr(0, 40);
  EXPECT_TRUE(Json(909).starts_with("{\"first\":909,\"next\":910,"));
  EXPECT_TRUE(Json(910).starts_with("{\"first\":910,\"next\":910,\"at\":[],"));
}

}  // namespace
}  // namespace varve
