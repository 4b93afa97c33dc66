// client_main's import and export against a server_main, with files of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "client/console/progress.h"
#include "unit-tests/client/import_export_fixture.h"
#include "unit-tests/client/redis_process.h"

namespace varve {
namespace {

using ::testing::HasSubstr;
using testing::ImportExportTest;
using testing::Pairs;
using testing::Process;
using testing::ReadFile;
using testing::RedisProcess;

// Keys and values that any text format stumbles over.
Pairs NastyPairs() {
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes += static_cast<char>(i);
  Pairs pairs = {{"", "empty key"},
                 {"empty value", ""},
                 {"quotes \" ' ,", "a,b\"\"c\r\nd\ne\r"},
                 {" blanks ", "  "},
                 {"key", "value"},
                 {std::string("\0", 1), std::string("\0\0", 2)},
                 {"Zürich", "日本語 \xf0\x9f\x8c\x8d"},
                 {"half \xc3", "\xed\xa0\x80"},
                 {all_bytes, all_bytes + all_bytes},
                 {"{\"key\":1}", "*3\r\n$3\r\nSET\r\n"},
                 {"#TS:1", "\\u0041\\n"},
                 {"large", std::string(3000000, 'x') + "\n"}};
  for (int i = 0; i < 1000; ++i) pairs["n" + std::to_string(i)] = std::to_string(i * 7919);
  return pairs;
}

TEST_F(ImportExportTest, NastyBytesComeBackInEachFormat) {
  const Pairs pairs = NastyPairs();
  for (const std::string name : {"all.resp", "all.csv", "all.jsonl"}) {
    Fill(pairs);
    ASSERT_EQ(Run({"export", dir_.File(name)}), 0) << Output();
    EXPECT_THAT(Output(), HasSubstr("exported 1012 keys"));
    Empty();
    ASSERT_EQ(Run({"import", dir_.File(name)}), 0) << Output();
    EXPECT_TRUE(Stored() == pairs) << name;
    EXPECT_FALSE(std::filesystem::exists(dir_.File(name) + ".import-state"));
    Empty();
    // The same through pipes.
    const std::string format = "--format=" + name.substr(4);
    ASSERT_EQ(Run({"import", "-", format}, dir_.File(name)), 0) << Output();
    EXPECT_TRUE(Stored() == pairs) << name;
    Empty();
  }
}

TEST_F(ImportExportTest, KeysExpireWhenTheyWouldHaveInEachFormat) {
  const std::unique_ptr<Client> client = Connect();
  const auto expires_at = [&](std::string_view key) {
    return client->Call({"PEXPIRETIME", key})->integer;
  };
  for (const std::string name : {"all.resp", "all.csv", "all.jsonl"}) {
    ASSERT_TRUE(client->Call({"SET", "late", "1", "PXAT", "4102444800123"}).ok());
    ASSERT_TRUE(client->Call({"SET", "stays", "2"}).ok());
    // The first one expires.
    ASSERT_EQ(Run({"export", dir_.File(name), "--limit=1"}), 0) << Output();
    ASSERT_EQ(Run({"export", dir_.File(name), "--resume"}), 0) << Output();
    Empty();
    ASSERT_EQ(Run({"import", dir_.File(name)}), 0) << Output();
    EXPECT_THAT(Output(), HasSubstr("keys with an expiry: 1"));
    EXPECT_EQ(expires_at("late"), 4102444800123) << name;
    EXPECT_EQ(expires_at("stays"), -1) << name;
    // What has expired meanwhile takes an earlier value with it.
    std::string text = ReadFile(dir_.File(name));
    text.replace(text.find("4102444800123"), 13, "1102444800123");
    Write(name, text);
    ASSERT_EQ(Run({"import", dir_.File(name)}), 0) << Output();
    EXPECT_THAT(Output(), HasSubstr("keys that have expired, left out: 1"));
    EXPECT_TRUE(Stored() == (Pairs{{"stays", "2"}})) << name;
    Empty();
  }
  Write("wrong.csv", "a,1,soon\nb,2,-5\nc,3,\n");
  EXPECT_EQ(Run({"import", dir_.File("wrong.csv")}), 2);
  EXPECT_THAT(
      Output(),
      HasSubstr("line 1 (offset 0): it expires at 'soon', which is no number of milliseconds"));
  EXPECT_TRUE(Stored() == (Pairs{{"c", "3"}}));
}

TEST_F(ImportExportTest, KeysKeepTheirMetadataInEachFormat) {
  const std::unique_ptr<Client> client = Connect();
  const std::string bytes = std::string("PX\0,\"\r\n\xff ", 10);
  const auto metadata_of = [&](std::string_view key) {
    return client->Call({"GET", key, "WITHMETA"})->elements.at(2).text;
  };
  for (const std::string name : {"all.resp", "all.csv", "all.jsonl"}) {
    ASSERT_TRUE(client->Call({"SET", "both", "1", "PXAT", "4102444800123", "META", bytes}).ok());
    ASSERT_TRUE(client->Call({"SET", "image", "2", "META", "image/png"}).ok());
    ASSERT_TRUE(client->Call({"SET", "plain", "3"}).ok());
    // The first one has metadata and expires.
    ASSERT_EQ(Run({"export", dir_.File(name), "--limit=1"}), 0) << Output();
    ASSERT_EQ(Run({"export", dir_.File(name), "--resume"}), 0) << Output();
    Empty();
    ASSERT_EQ(Run({"import", dir_.File(name)}), 0) << Output();
    EXPECT_TRUE(Stored() == (Pairs{{"both", "1"}, {"image", "2"}, {"plain", "3"}})) << name;
    EXPECT_EQ(metadata_of("both"), bytes) << name;
    EXPECT_EQ(client->Call({"PEXPIRETIME", "both"})->integer, 4102444800123) << name;
    EXPECT_EQ(metadata_of("image"), "image/png") << name;
    EXPECT_EQ(metadata_of("plain"), "") << name;
    Empty();
  }
  // Exports of earlier versions have no place for it.
  Write("old.csv", "key,value,expires_at_ms\na,1,\nb,2,4102444800123\n");
  Write("old.jsonl", "{\"key\":\"c\",\"value\":\"3\"}\n");
  ASSERT_EQ(Run({"import", dir_.File("old.csv")}), 0) << Output();
  ASSERT_EQ(Run({"import", dir_.File("old.jsonl")}), 0) << Output();
  EXPECT_TRUE(Stored() == (Pairs{{"a", "1"}, {"b", "2"}, {"c", "3"}}));
}

TEST_F(ImportExportTest, RedisCliLoadsWhatExportWrites) {
  if (!RedisProcess::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
  const Pairs pairs = NastyPairs();
  Fill(pairs);
  ASSERT_EQ(Run({"export", dir_.File("all.resp")}), 0) << Output();
  Empty();
  const std::string pipe = "redis-cli --pipe -p " + std::to_string(port_);
  ASSERT_EQ(Process("/bin/sh", {"-c", pipe}, dir_.File("out"), dir_.File("all.resp")).Wait(), 0)
      << Output();
  EXPECT_TRUE(Stored() == pairs) << Output();
}

TEST_F(ImportExportTest, ExportTakesBoundsAndLimitsAndOverwritesNothing) {
  Fill({{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}});
  ASSERT_EQ(Run({"export", dir_.File("some.csv"), "(a", "[c"}), 0) << Output();
  EXPECT_EQ(ReadFile(dir_.File("some.csv")), "key,value,expires_at_ms,metadata\nb,2,,\nc,3,,\n");
  EXPECT_EQ(Run({"export", dir_.File("some.csv")}), 2);
  EXPECT_THAT(Output(), HasSubstr("--force"));
  ASSERT_EQ(Run({"export", dir_.File("some.csv"), "--force", "--limit=1"}), 0) << Output();
  EXPECT_EQ(ReadFile(dir_.File("some.csv")), "key,value,expires_at_ms,metadata\na,1,,\n");
  EXPECT_EQ(Run({"export", dir_.File("x.rdb")}), 2);
}

TEST_F(ImportExportTest, ExportGoesOnInAFileThatWasCut) {
  Fill(NastyPairs());
  for (const std::string name : {"all.resp", "all.csv", "all.jsonl"}) {
    ASSERT_EQ(Run({"export", dir_.File(name)}), 0) << Output();
    const std::string whole = ReadFile(dir_.File(name));
    for (const size_t cut :
         {size_t{0}, size_t{11}, size_t{60}, whole.size() / 2, whole.size() - 1}) {
      Write(name, whole.substr(0, cut));
      ASSERT_EQ(Run({"export", dir_.File(name), "--resume"}), 0) << Output();
      EXPECT_TRUE(ReadFile(dir_.File(name)) == whole) << name << " cut at " << cut;
    }
  }
}

TEST_F(ImportExportTest, ExportGoesOnBehindAnEndOfZeros) {
  Fill(NastyPairs());
  ASSERT_EQ(Run({"export", dir_.File("all.resp")}), 0) << Output();
  const std::string whole = ReadFile(dir_.File("all.resp"));
  Write("all.resp", whole.substr(0, whole.size() / 2) + std::string(4096, '\0'));
  ASSERT_EQ(Run({"export", dir_.File("all.resp"), "--resume"}), 0) << Output();
  EXPECT_TRUE(ReadFile(dir_.File("all.resp")) == whole);
}

TEST_F(ImportExportTest, ExportGoesOnInNoFileOfOthers) {
  Fill({{"a", "1"}});
  for (const std::string name : {"notes.csv", "notes.jsonl", "notes.txt"}) {
    Write(name, "what somebody wrote, by hand\nand meant to keep\n");
    EXPECT_EQ(Run({"export", dir_.File(name), "--resume"}), 2);
    EXPECT_THAT(Output(), HasSubstr("was not written by export"));
    EXPECT_THAT(ReadFile(dir_.File(name)), HasSubstr("meant to keep"));
  }
}

TEST_F(ImportExportTest, CtrlCEndsAnExportThatCanBeResumed) {
  const std::unique_ptr<Client> client = Connect();
  for (int i = 0; i < 300000; ++i)
    client->pipeline().Send({"SET", "key" + std::to_string(i), std::string(100, 'v')});
  for (int i = 0; i < 300000; ++i) ASSERT_TRUE(client->Receive().ok());
  {
    Process export_all(VARVE_CLIENT_MAIN,
                       {"--port=" + std::to_string(port_), "export", dir_.File("all.csv")},
                       dir_.File("out"));
    while (export_all.Running() && ReadFile(dir_.File("all.csv")).size() < 2000000) continue;
    export_all.Kill(SIGINT);
    EXPECT_EQ(export_all.Wait(), 2);
  }
  EXPECT_THAT(Output(), HasSubstr("interrupted; --resume goes on behind the last key"));
  ASSERT_EQ(Run({"export", dir_.File("all.csv"), "--resume"}), 0) << Output();
  const std::string all = ReadFile(dir_.File("all.csv"));
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 300001);
}

TEST_F(ImportExportTest, WhatEditorsPutInFrontOfTextIsPassedOver) {
  Write("bom.csv", "\xEF\xBB\xBFkey,value\r\na,1\r\n");
  ASSERT_EQ(Run({"import", dir_.File("bom.csv")}), 0) << Output();
  Write("bom.jsonl", "\xEF\xBB\xBF{\"key\":\"b\",\"value\":\"2\"}\r\n");
  ASSERT_EQ(Run({"import", dir_.File("bom.jsonl")}), 0) << Output();
  EXPECT_EQ(Stored(), (Pairs{{"a", "1"}, {"b", "2"}}));
}

// A quote that is never closed makes all that follows one field.
TEST_F(ImportExportTest, AMissingQuoteDoesNotTakeAllMemory) {
  std::string csv = "a,1\n\"b,2\n";
  for (int i = 0; i < 1000000; ++i) csv += "key" + std::to_string(i) + ",value\n";
  Write("bad.csv", csv);
  EXPECT_EQ(Run({"import", dir_.File("bad.csv")}), 2);
  EXPECT_THAT(
      Output(),
      HasSubstr(
          "bad.csv: line 2 (offset 4): a key of more than 1 MiB; is a closing quote missing?"));
  EXPECT_EQ(Stored(), (Pairs{{"a", "1"}}));
}

TEST_F(ImportExportTest, WhereNoStateCanBeKeptTheImportGoesOn) {
  // In the way of the state.
  std::filesystem::create_directory(dir_.File("many.csv.import-state.tmp"));
  std::string csv;
  for (int i = 0; i < 300000; ++i) csv += "key" + std::to_string(i) + ",v\n";
  Write("many.csv", csv);
  Process import(VARVE_CLIENT_MAIN,
                 {"--port=" + std::to_string(port_), "import", dir_.File("many.csv")},
                 dir_.File("out"));
  server_->process().Stop();
  // So that it lasts longer than a second.
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  server_->process().Kill(SIGCONT);
  EXPECT_EQ(import.Wait(), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("warning: --resume will not be possible"));
  EXPECT_EQ(*Connect()->Count("-", "+"), 300000);
}

TEST_F(ImportExportTest, WrongRecordsAreCountedAndTheFirstIsShown) {
  Write("bad.jsonl",
        "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\"}\n\nnonsense\n{\"key\":\"c\",\"more\":[1,{"
        "\"x\":null}],"
        "\"value\":\"3\"}\n");
  EXPECT_EQ(Run({"import", dir_.File("bad.jsonl")}), 2);
  EXPECT_THAT(Output(), HasSubstr("2 errors, the first:"));
  EXPECT_THAT(Output(),
              HasSubstr("bad.jsonl: line 2 (offset 24): byte 12: the object has no \"value\""));
  EXPECT_EQ(Stored(), (Pairs{{"a", "1"}, {"c", "3"}}));
  Empty();
  Write("bad.csv", "a,1\nb\n\"c\"x,3\nd,\"4\n");
  EXPECT_EQ(Run({"import", dir_.File("bad.csv")}), 2);
  EXPECT_THAT(Output(), HasSubstr("3 errors, the first:"));
  EXPECT_THAT(Output(), HasSubstr("bad.csv: line 2 (offset 4): 1 columns instead of two to four"));
  EXPECT_EQ(Stored(), (Pairs{{"a", "1"}}));
  // A reply that is an error counts, too.
  Write("bad.resp",
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*3\r\n$"
        "3\r\nSET\r\n$1\r\nb\r\n$"
        "1\r\nx\r\n*2\r\n$4\r\n"
        "INCR\r\n$1\r\nb\r\n");
  EXPECT_EQ(Run({"import", dir_.File("bad.resp")}), 2);
  EXPECT_THAT(Output(), HasSubstr("1 errors, the first:"));
  EXPECT_THAT(Output(), HasSubstr("bad.resp: offset 75: ERR value is not an integer"));
  EXPECT_EQ(Stored(), (Pairs{{"a", "2"}, {"b", "x"}}));
  // Nothing is deleted unasked.
  Write("flush.resp", "*1\r\n$8\r\nFLUSHALL\r\n");
  EXPECT_EQ(Run({"import", dir_.File("flush.resp")}), 2);
  EXPECT_THAT(Output(), HasSubstr("--force"));
  EXPECT_EQ(Stored().size(), 2u);
  EXPECT_EQ(Run({"import", dir_.File("flush.resp"), "--force"}), 0);
  EXPECT_EQ(Stored().size(), 0u);
  Write("cut.resp", "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*3\r\n$3\r\nSE");
  EXPECT_EQ(Run({"import", dir_.File("cut.resp")}), 2);
  EXPECT_THAT(Output(), HasSubstr("the file is cut short; what it still holds was imported"));
  EXPECT_EQ(Stored(), (Pairs{{"a", "1"}}));
  EXPECT_THAT(Output(), HasSubstr("ends in the middle of a command that begins at offset 27"));
}

// Kills the server in the middle of an import.
TEST_F(ImportExportTest, AnInterruptedImportIsResumed) {
  constexpr int kKeys = 400000;
  std::string csv = "key,value\n";
  for (int i = 0; i < kKeys; ++i)
    csv += "key" + std::to_string(i) + ",value" + std::to_string(i) + "\n";
  Write("many.csv", csv);
  int resumed = 0;
  int code = 2;
  for (int round = 0; round < 20 && code != 0; ++round) {
    std::vector<std::string> arguments = {"--port=" + std::to_string(port_), "import",
                                          dir_.File("many.csv"), "--reconnect=1"};
    if (round > 0) arguments.push_back("--resume");
    Process import(VARVE_CLIENT_MAIN, arguments, dir_.File("out"));
    const std::string ahead = "key" + std::to_string((round + 1) * 100000);
    if (round < 2) {
      const std::unique_ptr<Client> client = Connect();
      while (import.Running() && !client->Get(ahead)->has_value()) continue;
      server_->process().Kill(SIGKILL);
      server_->process().Wait();
    }
    code = import.Wait();
    if (code == 0) break;
    EXPECT_THAT(Output(), HasSubstr("--resume goes on at offset"));
    EXPECT_TRUE(std::filesystem::exists(dir_.File("many.csv.import-state")));
    ++resumed;
    server_.reset();
    Start("--port=" + std::to_string(port_));
    ASSERT_EQ(server_->port(), port_) << server_->log();
  }
  EXPECT_EQ(code, 0) << Output();
  EXPECT_EQ(resumed, 2);
  EXPECT_EQ(*Connect()->Count("-", "+"), kKeys);
  EXPECT_FALSE(std::filesystem::exists(dir_.File("many.csv.import-state")));
  EXPECT_EQ(Run({"import", dir_.File("many.csv"), "--resume"}), 2);  // nothing to resume any more
}

TEST_F(ImportExportTest, ALostConnectionDoesNotEndAnImport) {
  std::string csv;
  for (int i = 0; i < 300000; ++i) csv += "key" + std::to_string(i) + ",v\n";
  Write("many.csv", csv);
  Process import(VARVE_CLIENT_MAIN,
                 {"--port=" + std::to_string(port_), "import", dir_.File("many.csv")},
                 dir_.File("out"));
  {
    const std::unique_ptr<Client> client = Connect();
    while (import.Running() && !client->Get("key50000")->has_value()) continue;
  }
  server_->process().Kill(SIGKILL);
  server_.reset();
  Start("--port=" + std::to_string(port_));
  ASSERT_EQ(server_->port(), port_) << server_->log();
  EXPECT_EQ(import.Wait(), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("the connection was lost, and made again: "));
  EXPECT_EQ(*Connect()->Count("-", "+"), 300000);
}

TEST_F(ImportExportTest, CommandsThatMustNotRunTwiceAreNotResumedBlindly) {
  std::string commands;
  for (int i = 0; i < 200000; ++i) commands += "*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n";
  Write("incr.resp", commands);
  Process import(
      VARVE_CLIENT_MAIN,
      {"--port=" + std::to_string(port_), "import", dir_.File("incr.resp"), "--reconnect=1"},
      dir_.File("out"));
  {
    const std::unique_ptr<Client> client = Connect();
    while (import.Running() && !client->Get("n")->has_value()) continue;
  }
  server_->process().Kill(SIGKILL);
  ASSERT_EQ(import.Wait(), 2) << Output();
  EXPECT_THAT(Output(), HasSubstr("may have taken effect or not"));
  EXPECT_EQ(Run({"import", dir_.File("incr.resp"), "--resume"}), 2);
  EXPECT_THAT(Output(), HasSubstr("--force"));
}

TEST_F(ImportExportTest, WhatWasExecutedBeforeADamagedPlaceIsNotExecutedAgain) {
  const std::string increment = "*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n";
  Write("damaged.resp", increment + increment + increment + "garbage");
  EXPECT_EQ(Run({"import", dir_.File("damaged.resp")}), 2);
  EXPECT_THAT(Output(), HasSubstr("--resume goes on at offset 63"));
  Write("damaged.resp", increment + increment + increment);  // mended, and shorter
  EXPECT_EQ(Run({"import", dir_.File("damaged.resp"), "--resume"}), 2);
  EXPECT_THAT(Output(), HasSubstr("when the import began"));
  // Cut, and as long as it was.
  Write("damaged.resp", increment + increment + increment + "*2\r\n$4\r");
  EXPECT_EQ(Run({"import", dir_.File("damaged.resp"), "--resume"}), 2);
  EXPECT_THAT(Output(), HasSubstr("the file is cut short"));
  EXPECT_EQ(*Connect()->Get("n"), "3");
}

TEST_F(ImportExportTest, BenchMeasuresBothWays) {
  Fill({{"bench:1", "mine"}});
  ASSERT_EQ(
      Run({"bench", "--seconds=1", "--connections=4", "--pipeline=8", "--keyspace=100", "--json"}),
      0)
      << Output();
  EXPECT_THAT(Output(), HasSubstr("{\"test\":\"SET\",\"requests_per_second\":"));
  EXPECT_THAT(Output(), HasSubstr("{\"test\":\"GET\",\"requests_per_second\":"));
  // What it wrote is gone, what was there is not.
  EXPECT_EQ(Stored(), (Pairs{{"bench:1", "mine"}}));
}

TEST(ProgressTest, TellsTheRateOfThisRun) {
  Progress progress("importing", 1000, false);
  progress.StartFrom(500, 50, 500);
  EXPECT_EQ(
      progress.Render(750, 75, 750, 5),
      "importing [##################......]  75%  75 keys  750 B  5 keys/s  50 B/s  5 s left");
}

TEST_F(ImportExportTest, ProgressIsShownWhenAskedFor) {
  std::string csv;
  for (int i = 0; i < 200000; ++i) csv += "key" + std::to_string(i) + ",v\n";
  Write("many.csv", csv);
  ASSERT_EQ(Run({"import", dir_.File("many.csv"), "--progress"}), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("keys/s"));
  EXPECT_THAT(Output(), HasSubstr("100%"));
}

TEST_F(ImportExportTest, AnExportThatWaitsForTheServerIsSeen) {
  server_->process().Stop();
  EXPECT_EQ(Run({"export", dir_.File("none.resp"), "--progress", "--timeout=200"}), 2);
  EXPECT_THAT(Output(), HasSubstr("exporting  0 B"));
}

}  // namespace
}  // namespace varve
