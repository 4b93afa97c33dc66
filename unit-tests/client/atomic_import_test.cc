// import --atomic: everything in one step, sorted on the way if need be.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "client/transfer/pair_sorter.h"
#include "fmt/format.h"
#include "unit-tests/client/import_export_fixture.h"

namespace varve {
namespace {

using testing::Pairs;

TEST(PairSorterTest, RunsAreMergedAndTheLastOfEqualKeysStays) {
  PairSorter sorter(/*run_bytes=*/2000);
  std::mt19937 random(7);
  Pairs wanted;
  for (int i = 0; i < 2000; ++i) {
    const std::string key = fmt::format("{}", random() % 700);
    wanted[key] = std::string(random() % 30, 'v') + fmt::to_string(i);
    ASSERT_TRUE(sorter.Add(key, wanted[key]).ok());
  }
  ASSERT_TRUE(sorter.Add("", "empty").ok());
  wanted[""] = "empty";
  ASSERT_TRUE(sorter.Finish().ok());
  EXPECT_GT(sorter.runs(), 10u);
  std::vector<std::pair<std::string, std::string>> sorted;
  for (std::string key, value; *sorter.Next(&key, &value);) sorted.emplace_back(key, value);
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
  EXPECT_EQ(sorted.size(), wanted.size());
  EXPECT_EQ(Pairs(sorted.begin(), sorted.end()), wanted);
}

class AtomicImportTest : public testing::ImportExportTest {
 protected:
  std::string Version(const std::string& key) {
    return Connect()->Call({"GET", key, "WITHVERSION"})->elements[1].text +
           std::to_string(Connect()->Call({"GET", key, "WITHVERSION"})->elements[1].integer);
  }
};

TEST_F(AtomicImportTest, AllKeysHaveOneVersion) {
  Fill({{"a", "old"}, {"z", "stays"}});
  std::string csv;
  for (int i = 0; i < 3000; ++i) csv += fmt::format("key{:05},value{}\n", i, i);
  Write("in.csv", "a,new\n" + csv);
  EXPECT_EQ(Run({"import", dir_.File("in.csv"), "--atomic"}), 0) << Output();
  const Pairs stored = Stored();
  EXPECT_EQ(stored.size(), 3002u);
  EXPECT_EQ(stored.at("a"), "new");
  EXPECT_EQ(stored.at("z"), "stays");
  EXPECT_EQ(stored.at("key02999"), "value2999");
  EXPECT_EQ(Version("a"), Version("key02999"));
}

TEST_F(AtomicImportTest, KeysOfSeveralGroupsAreImported) {
  ASSERT_EQ(Connect()->Call({"NAMESPACE", "CREATE", "users", "GROUP", ":"}).status(),
            absl::OkStatus());
  std::string csv;
  for (int i = 0; i < 500; ++i) csv += fmt::format("user{:05}:name,value{}\n", i, i);
  Write("in.csv", csv);
  for (const bool atomic : {false, true}) {
    std::vector<std::string> import = {"--namespace=users", "import", dir_.File("in.csv")};
    if (atomic) import.emplace_back("--atomic");
    EXPECT_EQ(Run(import), 0) << Output();
    if (atomic) {
      import.emplace_back("--replace-prefix=user");
      EXPECT_EQ(Run(import), 0) << Output();
    }
    const std::unique_ptr<Client> client = Connect();
    ASSERT_TRUE(client->Call({"NAMESPACE", "USE", "users"}).ok());
    EXPECT_EQ(client->Call({"DBSIZE"})->integer, 500);
    const std::string file = dir_.File(atomic ? "atomic.csv" : "plain.csv");
    EXPECT_EQ(Run({"--namespace=users", "export", file}), 0) << Output();
    EXPECT_EQ(client->Call({"MSET", "a:1", "1", "b:1", "1"}).status().code(),
              absl::StatusCode::kFailedPrecondition);
    ASSERT_TRUE(client->Call({"FLUSHDB"}).ok());
    EXPECT_EQ(Run({"--namespace=users", "import", file}), 0) << Output();
    EXPECT_EQ(client->Call({"DBSIZE"})->integer, 500);
    EXPECT_EQ(client->Call({"GET", "user00499:name"})->text, "value499");
    ASSERT_TRUE(client->Call({"FLUSHDB"}).ok());
  }
}

TEST_F(AtomicImportTest, KeysInNoOrderAreSortedOrRefused) {
  Fill({{"old", "1"}});
  std::string csv;
  for (int i = 0; i < 3000; ++i) csv += fmt::format("key{:05},value{}\n", i * 7919 % 3000, i);
  Write("in.csv", csv + "key00000,last\n");
  EXPECT_EQ(Run({"import", dir_.File("in.csv"), "--atomic"}), 2);
  EXPECT_EQ(Stored().size(), 1u) << "nothing was imported";
  EXPECT_EQ(Connect()->Call({"INGEST", "LIST"})->elements.size(), 0u) << "and nothing is left";
  EXPECT_EQ(Run({"import", dir_.File("in.csv"), "--atomic", "--sort"}), 0) << Output();
  EXPECT_EQ(Stored().size(), 3001u);
  EXPECT_EQ(Stored().at("key00000"), "last");
}

TEST_F(AtomicImportTest, APrefixIsReplaced) {
  Fill({{"p", "1"}, {"p:1", "old"}, {"p:2", "old"}, {"q", "1"}});
  Write("in.csv", "p:2,new\np:3,new\n");
  EXPECT_EQ(Run({"import", dir_.File("in.csv"), "--atomic", "--replace-prefix=p:"}), 0) << Output();
  EXPECT_EQ(Stored(), (Pairs{{"p", "1"}, {"p:2", "new"}, {"p:3", "new"}, {"q", "1"}}));
  Write("out.csv", "p:2,new\nr,new\n");
  EXPECT_EQ(Run({"import", dir_.File("out.csv"), "--atomic", "--replace-prefix=p:"}), 2);
  Write("whole.csv", "x,1\n");
  EXPECT_EQ(Run({"import", dir_.File("whole.csv"), "--atomic", "--replace-prefix="}), 0);
  EXPECT_EQ(Stored(), (Pairs{{"x", "1"}}));
}

TEST_F(AtomicImportTest, WhatItCannotKeepIsRefusedAsAWhole) {
  Write("expiring.csv", "a,1\nb,2,99999999999999\n");
  EXPECT_EQ(Run({"import", dir_.File("expiring.csv"), "--atomic"}), 2);
  Write("wrong.csv", "a,1\nb\n");
  EXPECT_EQ(Run({"import", dir_.File("wrong.csv"), "--atomic"}), 2);
  EXPECT_EQ(Stored(), Pairs());
  EXPECT_EQ(Run({"import", dir_.File("wrong.csv"), "--sort"}), 2);
  EXPECT_EQ(Run({"import", dir_.File("wrong.csv"), "--atomic", "--resume"}), 2);
  EXPECT_EQ(Run({"export", dir_.File("x.csv"), "--atomic"}), 2);
}

}  // namespace
}  // namespace varve
