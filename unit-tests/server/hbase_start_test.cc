// server_main over HBase where its settings or what they name cannot serve: it ends by itself, and
// says what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/silent_host.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class HbaseStartTest : public ::testing::Test {
 protected:
  // Starts a server, and returns its exit code. Nothing here gets better by waiting, so that the
  // server ends before its deadline for opening the store.
  int Start(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--dir=" + directory_.File("data"), "--port=0", "--http-port=0",
                                 "--store=hbase", "--store-deadline=60s"});
    const auto begin = std::chrono::steady_clock::now();
    const int code = testing::Process(VARVE_SERVER_MAIN, flags, directory_.File("log")).Wait();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
    said_ = testing::ReadFile(directory_.File("log"));
    return code;
  }

  testing::TempDir directory_;
  std::string said_;  // by the last server
};

TEST_F(HbaseStartTest, SettingsThatCannotServeAreNamed) {
  const std::string quorum = "--hbase-quorum=127.0.0.1:1";
  EXPECT_EQ(Start({quorum, "--hbase-security=kerberos"}), 2);
  EXPECT_THAT(said_, HasSubstr("hbase-security=kerberos: Kerberos is not supported"));
  EXPECT_EQ(Start({quorum, "--hbase-masters=127.0.0.1:1"}), 2);
  EXPECT_THAT(said_, HasSubstr("store=hbase takes one of hbase-quorum and hbase-masters"));
  EXPECT_EQ(Start({}), 2);
  EXPECT_THAT(said_, HasSubstr("store=hbase takes one of hbase-quorum and hbase-masters"));
  EXPECT_EQ(Start({"--store=embedded", quorum}), 2);
  EXPECT_THAT(said_, HasSubstr("hbase-quorum=127.0.0.1:1: settings of an HBase cluster take "
                               "store=hbase, and store is embedded"));
}

#if defined(VARVE_HAS_HBASE)

TEST_F(HbaseStartTest, AClusterThatIsNotThereIsToldOfAtOnce) {
  EXPECT_EQ(Start({"--hbase-quorum=127.0.0.1:1", "--hbase-table=t"}), 1);
  EXPECT_THAT(said_, AllOf(HasSubstr("The store in table t of the HBase cluster at 127.0.0.1:1 "
                                     "can't be opened: UNAVAILABLE: "),
                           HasSubstr("no host of the ZooKeeper quorum answers (127.0.0.1:1: "),
                           HasSubstr("--hbase-quorum")));
  EXPECT_EQ(Start({"--hbase-masters=127.0.0.1:1"}), 1);
  EXPECT_THAT(said_, AllOf(HasSubstr("no master of HBase answers (HBase's server 127.0.0.1:1: "),
                           HasSubstr("--hbase-masters")));
}

TEST_F(HbaseStartTest, HostsThatSayNothingAreNotWaitedForLong) {
  const testing::SilentHost host;
  EXPECT_EQ(Start({"--hbase-quorum=" + host.address()}), 1);
  EXPECT_THAT(said_, HasSubstr("quorum answers (" + host.address() + ": no answer in time)"));
  EXPECT_EQ(Start({"--hbase-masters=" + host.address()}), 1);
  EXPECT_THAT(said_, HasSubstr("no master of HBase answers (HBase's server " + host.address()));
}

TEST_F(HbaseStartTest, WhatIsNoListOfHostsIsNamed) {
  for (const std::string malformed : {"zookeeper", "127.0.0.1:", ":2181", "127.0.0.1:65536",
                                      "127.0.0.1:2181/hbase", "127.0.0.1:1,,127.0.0.1:1"}) {
    EXPECT_EQ(Start({"--hbase-quorum=" + malformed}), 1) << malformed;
    EXPECT_THAT(said_, AllOf(HasSubstr("INVALID_ARGUMENT: the quorum of ZooKeeper "
                                       "(--hbase-quorum): '"),
                             HasSubstr("' is no address: it takes host:port")));
  }
  EXPECT_EQ(Start({"--hbase-masters=master"}), 1);
  EXPECT_THAT(said_, HasSubstr("HBase's masters (--hbase-masters): 'master' is no address"));
}

#else

TEST_F(HbaseStartTest, ABuildThatHasNoClientOfHbaseSaysSo) {
  EXPECT_EQ(Start({"--hbase-quorum=127.0.0.1:1", "--hbase-table=t"}), 1);
  EXPECT_THAT(said_, HasSubstr("store=hbase with table t: this build of varve has no client of "
                               "HBase; it takes protobuf and HBase's protocol at build time "
                               "(docs/install.md)"));
}

#endif

}  // namespace
}  // namespace varve
