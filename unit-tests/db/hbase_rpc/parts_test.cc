// The parts of HbaseClient that need no server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "db/hbase_rpc/cell_block.h"
#include "db/hbase_rpc/hbase_failure.h"
#include "db/hbase_rpc/region_cache.h"
#include "db/hbase_rpc/retry_pace.h"
#include "db/hbase_rpc/rpc_frame.h"
#include "db/hbase_rpc/table_maker.h"
#include "db/hbase_rpc/timer_queue.h"
#include "db/hbase_rpc/zookeeper_lookup.h"

namespace varve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text.push_back(static_cast<char>(value >> shift));
  }
  return text;
}

std::string EncodedCell(std::string_view row, std::string_view value) {
  std::string key = BigEndian(row.size(), 2);
  key.append(row).append(BigEndian(1, 1)).append("v").append(BigEndian(7, 8)).append("\4");
  const std::string body =
      BigEndian(key.size(), 4) + BigEndian(value.size(), 4) + key + std::string(value);
  return BigEndian(body.size(), 4) + body;
}

TEST(CellBlockTest, ReadsCells) {
  const std::string bytes = EncodedCell("a", "1") + EncodedCell("", "");
  CellBlock block(bytes);
  AnsweredCell cell;
  ASSERT_TRUE(block.Next(&cell));
  EXPECT_EQ(cell.row, "a");
  EXPECT_EQ(cell.qualifier, "");
  EXPECT_EQ(cell.value, "1");
  ASSERT_TRUE(block.Next(&cell));
  EXPECT_EQ(cell.row, "");
  EXPECT_TRUE(block.is_empty());
  EXPECT_FALSE(block.Next(&cell));
}

TEST(CellBlockTest, DamagedCellsAreNoneOrOthers) {
  const std::string whole = EncodedCell("row", "value");
  AnsweredCell cell;
  for (size_t size = 0; size < whole.size(); ++size) {
    CellBlock cut(std::string_view(whole).substr(0, size));
    EXPECT_FALSE(cut.Next(&cell)) << size;
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      CellBlock block(damaged);
      if (block.Next(&cell)) EXPECT_LE(cell.row.size() + cell.value.size(), whole.size());
    }
  }
}

TEST(RpcFrameTest, AnAnswerIsReadWholeOrNotAtAll) {
  hbase::pb::ResponseHeader header;
  header.set_call_id(7);
  header.mutable_cell_block_meta()->set_length(4);
  std::string frame;
  frame.push_back(static_cast<char>(header.ByteSizeLong()));
  header.AppendToString(&frame);
  frame.append("\3abcdefg");
  RpcResponse response;
  ASSERT_TRUE(ParseResponse(frame, &response));
  EXPECT_EQ(response.header.call_id(), 7U);
  EXPECT_EQ(response.result, "abc");
  EXPECT_EQ(response.cells, "defg");
  for (size_t size = 0; size < frame.size(); ++size) {
    EXPECT_FALSE(ParseResponse(std::string_view(frame).substr(0, size), &response)) << size;
  }
  EXPECT_FALSE(ParseResponse(frame + "h", &response));
}

RegionPtr MakeRegion(std::string start, std::string end) {
  return std::make_shared<Region>(Region{"t," + start, start, end, "s:1"});
}

TEST(RegionCacheTest, FindsTheRegionOfARow) {
  RegionCache cache;
  EXPECT_EQ(cache.Find("t", "a"), nullptr);
  const RegionPtr first = MakeRegion("", "c");
  const RegionPtr last = MakeRegion("m", "");
  cache.Insert("t", first);
  cache.Insert("t", last);
  EXPECT_EQ(cache.Find("t", ""), first);
  EXPECT_EQ(cache.Find("t", "bz"), first);
  EXPECT_EQ(cache.Find("t", "c"), nullptr);
  EXPECT_EQ(cache.Find("t", "m"), last);
  EXPECT_EQ(cache.Find("t", "\xff"), last);
  EXPECT_EQ(cache.Find("u", "m"), nullptr);
  EXPECT_EQ(cache.FindBefore("t", "c"), first);
  EXPECT_EQ(cache.FindBefore("t", "d"), nullptr);
  EXPECT_EQ(cache.FindBefore("t", "m"), nullptr);
  EXPECT_EQ(cache.FindBefore("t", "n"), last);
  EXPECT_EQ(cache.FindBefore("t", ""), last);
  cache.Remove("t", last);
  EXPECT_EQ(cache.FindBefore("t", ""), nullptr);
}

TEST(RegionCacheTest, WhatIsLookedUpTakesThePlaceOfThePast) {
  RegionCache cache;
  const RegionPtr parent = MakeRegion("b", "y");
  cache.Insert("t", MakeRegion("", "b"));
  cache.Insert("t", parent);
  cache.Insert("t", MakeRegion("y", ""));
  const RegionPtr left = MakeRegion("b", "m");
  cache.Insert("t", left);
  EXPECT_EQ(cache.Find("t", "c"), left);
  EXPECT_EQ(cache.Find("t", "n"), nullptr);
  // Whoever still held the parent for right does not take the daughter away.
  cache.Remove("t", parent);
  EXPECT_EQ(cache.Find("t", "c"), left);
  const RegionPtr merged = MakeRegion("a", "z");
  cache.Insert("t", merged);
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_EQ(cache.Find("t", "y"), merged);
}

TEST(HbaseFailureTest, ExceptionsHaveMeanings) {
  using Kind = HbaseFailure::Kind;
  const auto failure_of = [](std::string name, bool do_not_retry = false) {
    return FailureOfException("org.apache.hadoop.hbase." + name, "why\n at", do_not_retry, "s:1");
  };
  EXPECT_EQ(failure_of("NotServingRegionException").kind, Kind::kMoved);
  EXPECT_EQ(failure_of("exceptions.RegionMovedException").kind, Kind::kMoved);
  EXPECT_FALSE(failure_of("NotServingRegionException").may_have_happened);
  EXPECT_EQ(failure_of("CallQueueTooBigException").kind, Kind::kBusy);
  EXPECT_EQ(failure_of("ipc.RegionTooBusyException").kind, Kind::kBusy);
  EXPECT_EQ(failure_of("TableNotFoundException").status.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(failure_of("DoNotRetryIOException", true).is_final());
  const HbaseFailure other = failure_of("OtherException");
  EXPECT_EQ(other.kind, Kind::kBusy);
  EXPECT_TRUE(other.may_have_happened);
  EXPECT_THAT(other.status.message(), HasSubstr("OtherException: why"));
  EXPECT_EQ(
      FailureOfException("x.DoNotRetryIOException", "Requested row out of range 'a'", true, "s:1")
          .kind,
      Kind::kMoved);
}

TEST(TableMakerTest, ATableOfItsOwnLayoutWillDo) {
  using Split = HbaseTableLayout::Split;
  const std::vector<HbaseTableLayout> layouts = {{"t"},
                                                 {"t", Split::kKeyPrefix, 4},
                                                 {"t", Split::kKeyPrefix, 5},
                                                 {"t", Split::kDelimited, 0, ':'},
                                                 {"t", Split::kDelimited, 0, '/'}};
  for (const HbaseTableLayout& wanted : layouts) {
    for (const HbaseTableLayout& there : layouts) {
      EXPECT_EQ(CheckTableSchema(wanted, TableSchemaOf(there)).ok(), &wanted == &there);
    }
  }
  hbase::pb::TableSchema schema = TableSchemaOf({"t"});
  schema.mutable_column_families(0)->set_name("other");
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckTableSchema({"t"}, schema)));
  schema = TableSchemaOf({"t"});
  schema.clear_attributes();
  EXPECT_THAT(CheckTableSchema({"t"}, schema).message(), HasSubstr("coprocessor"));
}

TEST(TableMakerTest, NamesAndDelimitersAreThoseOfHbase) {
  using Split = HbaseTableLayout::Split;
  for (const char* name : {"t", "ns:t", "a-b_c.d", "T9"}) {
    EXPECT_TRUE(CheckTableLayout({name}).ok()) << name;
  }
  for (const char* name : {"", ":", ":t", "ns:", "a b", "a/b", "-a", ".a", "a:b:c", "\xc3\xa4"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckTableLayout({name}))) << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(CheckTableLayout({"t", Split::kKeyPrefix, 0})));
  EXPECT_TRUE(CheckTableLayout({"t", Split::kDelimited, 0, '\0'}).ok());
  EXPECT_TRUE(CheckTableLayout({"t", Split::kDelimited, 0, '\x7f'}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckTableLayout({"t", Split::kDelimited, 0, '\x80'})));
}

TEST(ZookeeperLookupTest, ListsOfHostsAreChecked) {
  EXPECT_THAT(*ParseServerList("a:1,b:65535", "quorum"), ElementsAre("a:1", "b:65535"));
  for (const char* list : {"", "a", "a:", ":1", "a:0", "a:65536", "a:1,,b:2", "a:1 ,b:2", "a:-1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseServerList(list, "quorum").status())) << list;
  }
}

TEST(TimerQueueTest, ActionsRunInTheOrderOfTheirTimes) {
  asio::io_context context;
  TimerQueue timers(context);
  std::vector<int> ran;
  const auto now = std::chrono::steady_clock::now();
  timers.At(now + std::chrono::milliseconds(3), [&] { ran.push_back(3); });
  timers.At(now + std::chrono::milliseconds(1), [&] {
    ran.push_back(1);
    timers.At(now, [&] { ran.push_back(2); });
  });
  timers.Cancel(timers.At(now, [&] { ran.push_back(0); }));
  context.run();
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
}

TEST(RetryPaceTest, PausesGrowUpToALimit) {
  RetryPace pace;
  auto longest = RetryPace::kFirst;
  for (int i = 0; i < 20; ++i) {
    const auto pause = pace.Next();
    EXPECT_GE(pause, longest / 2);
    EXPECT_LE(pause, longest);
    longest = std::min(longest * 2, RetryPace::kLast);
  }
}

}  // namespace
}  // namespace varve
