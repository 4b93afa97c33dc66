// Archives as people keep, check and restore them: client_main against server_main, both of which
// are killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "client/console/time_text.h"
#include "fmt/format.h"
#include "unit-tests/client/restarting_server.h"
#include "unit-tests/testing/eventually.h"
#include "util/os/clock.h"

namespace varve {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::Eventually;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Process;
using testing::ReadFile;
using testing::ServerProcess;

using Words = std::vector<std::string>;

class ArchivesTest : public testing::RestartingServer {
 protected:
  void SetUp() override {
    RestartingServer::SetUp();
    client_ = RestartingServer::Connect();
    ASSERT_NE(client_, nullptr);
  }

  Words WithPort(Words words) const {
    words.insert(words.begin(), "--port=" + std::to_string(options_.port));
    return words;
  }
  int Run(const Words& words) {
    const int code = Process(VARVE_CLIENT_MAIN, WithPort(words), dir_.File("out")).Wait();
    output_ = ReadFile(dir_.File("out"));
    return code;
  }
  std::string Dest() const { return dir_.File("archive"); }
  void StartArchiver() {
    archiver_.emplace(VARVE_CLIENT_MAIN, WithPort({"archive", Dest(), "--interval=50ms"}),
                      dir_.File("archiver.log"));
  }
  void KillArchiver() {
    archiver_->Kill(SIGKILL);
    archiver_->Wait();
  }
  int StopArchiver() {
    archiver_->Kill(SIGTERM);
    return archiver_->Wait();
  }
  std::string log() const { return ReadFile(dir_.File("archiver.log")); }
  // A figure of the file LAST; 0: it is not there.
  uint64_t Last(const std::string& name) const { return LastIn(Dest(), name); }
  static uint64_t LastIn(const std::string& directory, const std::string& name) {
    const std::string text = ReadFile(directory + "/LAST");
    const size_t at = text.find("\n" + name + " ");
    if (at == std::string::npos) return 0;
    return std::strtoull(text.c_str() + at + name.size() + 2, nullptr, 10);
  }
  // The first base may have been taken late.
  uint64_t FirstVersion() const {
    uint64_t first = UINT64_MAX, version = 0;
    for (const auto& entry : fs::directory_iterator(Dest() + "/base")) {
      const std::string name = entry.path().filename();
      if (absl::SimpleAtoi(name.substr(name.find('-') + 1), &version))
        first = std::min(first, version);
    }
    return first;
  }
  bool Reaches(uint64_t version) const {
    return Eventually([&] { return Last("version") >= version; });
  }

  // What was done, with the version that did it.
  struct Operation {
    uint64_t version = 0;
    std::string key;
    std::optional<std::string> value;
  };
  void Put(const std::string& key, const std::string& value) {
    ASSERT_EQ(client_->Put(key, value), absl::OkStatus());
    const auto read = client_->GetWithVersion(key);
    ASSERT_TRUE(read.ok() && read->has_value()) << read.status();
    done_.push_back({(*read)->version, key, value});
  }
  void Delete(const std::string& key) {
    const absl::StatusOr<int64_t> count = client_->Delete({key});
    ASSERT_TRUE(count.ok()) << count.status();
    if (*count == 0) return;
    // A mark of the clock may lie between the last commit and this one.
    const absl::StatusOr<Reply> version = client_->Call({"CLIENT", "VERSION"});
    ASSERT_TRUE(version.ok()) << version.status();
    done_.push_back({static_cast<uint64_t>(version->integer), key, std::nullopt});
  }
  void Write(std::mt19937* random, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string key = fmt::format("key:{}", (*random)() % 60);
      const bool deletes = !done_.empty() && (*random)() % 5 == 0;
      deletes ? Delete(key) : Put(key, fmt::format("{}-{}", (*random)(), std::string(100, 'v')));
    }
  }
  Client::Pairs Model(uint64_t version) const {
    std::map<std::string, std::string> model;
    for (const Operation& each : done_) {
      if (each.version > version) break;
      if (each.value)
        model[each.key] = *each.value;
      else
        model.erase(each.key);
    }
    return {model.begin(), model.end()};
  }
  // What a server has that is started on the directory.
  Client::Pairs StoredIn(const std::string& directory) {
    const ServerProcess server(VARVE_SERVER_MAIN, directory);
    EXPECT_NE(server.port(), 0) << server.log();
    const auto client = Client::Connect("127.0.0.1", server.port());
    EXPECT_EQ(client.status(), absl::OkStatus());
    return client.ok() ? *(*client)->Range("-", "+") : Client::Pairs();
  }
  // Restores, and compares with the model. Returns the version that it came to; 0: it failed.
  uint64_t Restored(const Words& point) {
    const std::string to = dir_.File("new");
    fs::remove_all(to);
    Words words = {"restore", Dest(), to, "--json"};
    words.insert(words.end(), point.begin(), point.end());
    EXPECT_EQ(Run(words), 0) << output_;
    const size_t at = output_.find("\"version\":");
    if (at == std::string::npos) return 0;
    const uint64_t version = std::strtoull(output_.c_str() + at + 10, nullptr, 10);
    EXPECT_EQ(StoredIn(to), Model(version)) << version;
    return version;
  }

  std::unique_ptr<Client> client_;
  std::optional<Process> archiver_;
  std::vector<Operation> done_;
  std::string output_;
};

TEST_F(ArchivesTest, WhatWasCommittedIsThereOnceTheArchiveReachesIt) {
  Put("a", "1");
  ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("taking a base: the archive is new"));
  Put("b", "2");
  Put("a", "3");
  ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  EXPECT_THAT(output_, Not(HasSubstr("taking a base")));
  EXPECT_EQ(Last("number"), 1u);
  EXPECT_EQ(Run({"archive-check", Dest()}), 0) << output_;
  EXPECT_THAT(output_,
              AllOf(HasSubstr("versions that would be lost now: 0"), HasSubstr("all is well")));
  Put("c", "4");
  EXPECT_EQ(Run({"archive-check", Dest(), "--json"}), 0) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("\"damaged\":false"), Not(HasSubstr("behind\":0"))));
  EXPECT_EQ(Run({"verify", Dest()}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("all is well"));
  EXPECT_EQ(Restored({}), done_[2].version);
  EXPECT_EQ(Restored({fmt::format("--at-version={}", done_[1].version)}), done_[1].version);
  EXPECT_THAT(output_, HasSubstr(fmt::format("\"next_version\":{}", done_[2].version)));
  EXPECT_EQ(Run({"restore", Dest(), dir_.File("x"), "--at-version=1"}), 2);
  EXPECT_THAT(output_, HasSubstr("the archive does not have version 1; it has versions"));
  EXPECT_EQ(Run({"restore", Dest(), dir_.File("x"), "--at-version=999999"}), 2);
  EXPECT_THAT(output_, HasSubstr("the archive does not have version 999999; it has versions"));
  EXPECT_EQ(Run({"restore", Dest(), dir_.File("x"), "--at-time=2020-01-01T00:00:00Z"}), 2);
  EXPECT_THAT(output_, HasSubstr("does not have 2020-01-01"));
  EXPECT_FALSE(fs::exists(dir_.File("x")));
}

TEST_F(ArchivesTest, MetadataExpiriesAndNamespacesComeOverTheWire) {
  Put("a", "1");
  ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  const std::vector<std::vector<std::string_view>> commands = {
      {"SET", "m", "v", "META", "of m"},
      {"SET", "mortal", "v", "PXAT", "9999999999999"},
      {"NAMESPACE", "CREATE", "one"},
      {"NAMESPACE", "USE", "one"},
      {"SET", "k", "in one"},
      {"NAMESPACE", "CLONE", "one", "two"},
      {"NAMESPACE", "USE", "two"},
      {"SET", "l", "in two"},
      {"SELECT", "7"},
      {"MSET", "p", "1", "q", "2"}};
  for (const auto& words : commands)
    ASSERT_EQ(client_->Call(words).status(), absl::OkStatus()) << words[0];
  ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  EXPECT_THAT(output_, Not(HasSubstr("taking a base")));
  ASSERT_EQ(Run({"restore", Dest(), dir_.File("new")}), 0) << output_;
  const ServerProcess server(VARVE_SERVER_MAIN, dir_.File("new"));
  const auto client = *Client::Connect("127.0.0.1", server.port());
  const Reply meta = *client->Call({"META", "GET", "m"});
  ASSERT_FALSE(meta.elements.empty());
  EXPECT_EQ(meta.elements.back().text, "of m");
  EXPECT_EQ(client->Call({"PEXPIRETIME", "mortal"})->integer, 9999999999999);
  ASSERT_EQ(client->Call({"SELECT", "7"}).status(), absl::OkStatus());
  EXPECT_EQ(*client->Get("q"), "2");
  ASSERT_EQ(client->Call({"NAMESPACE", "USE", "two"}).status(), absl::OkStatus());
  EXPECT_EQ(*client->Get("k"), "in one");
  EXPECT_EQ(*client->Get("l"), "in two");
}

TEST_F(ArchivesTest, KillsAtAnyMomentLoseNothing) {
  std::mt19937 random(20261125);
  std::vector<std::pair<uint64_t, uint64_t>> times;  // and the last version then
  StartArchiver();
  for (int round = 0; round < 25; ++round) {
    Write(&random, 20);
    if (HasFatalFailure()) return;
    times.emplace_back(RealClock().WallMillis(), done_.back().version);
    switch (random() % 4) {
      case 0:
        KillArchiver();
        StartArchiver();
        break;
      case 1:
        Kill();
        Restart();
        if (HasFatalFailure()) return;
        break;
      case 2:
        ASSERT_TRUE(Reaches(done_.back().version)) << log();
        break;
      default:
        break;
    }
  }
  Put("last", "one");
  ASSERT_TRUE(Reaches(done_.back().version)) << log();
  EXPECT_EQ(StopArchiver(), 0) << log();
  ASSERT_EQ(Run({"archive-check", Dest()}), 0) << output_;
  EXPECT_EQ(Restored({}), done_.back().version);
  const uint64_t first = FirstVersion();
  for (int i = 0; i < 6; ++i) {
    const Operation& at = done_[random() % done_.size()];
    if (at.version < first) continue;
    EXPECT_EQ(Restored({fmt::format("--at-version={}", at.version)}), at.version);
  }
  for (int i = 0; i < 3; ++i) {
    const auto& [ms, version] = times[random() % times.size()];
    if (version < first || ms > Last("instant_ms")) continue;
    EXPECT_GE(Restored({"--at-time=" + TimeText(ms)}), version);
  }
}

TEST_F(ArchivesTest, AKillWhileABaseIsTakenLeavesNothingBehindThatStopsTheNext) {
  Put("a", std::string(1 << 20, 'a'));
  // Wherever it was, the next one goes on.
  for (int i = 0; i < 8; ++i) {
    StartArchiver();
    const auto holds = [&] {
      const auto status = client_->Call({"BACKUP", "STATUS"});
      return i % 2 == 1 || log().find("has version") != std::string::npos ||
             (status.ok() && status->elements[1].text != "idle");
    };
    ASSERT_TRUE(Eventually(holds)) << log();
    KillArchiver();
  }
  Put("b", "2");
  StartArchiver();
  ASSERT_TRUE(Reaches(done_.back().version)) << log();
  EXPECT_EQ(StopArchiver(), 0) << log();
  // A backup of somebody else stays, and the archiver waits for its end.
  ASSERT_EQ(client_->Call({"BACKUP", "START"}).status(), absl::OkStatus());
  EXPECT_EQ(Run({"archive", dir_.File("other"), "--once"}), 2);
  EXPECT_THAT(output_, HasSubstr("already in progress"));
  EXPECT_EQ(Run({"archive", dir_.File("other"), "--once"}), 2);
  EXPECT_EQ(client_->Call({"BACKUP", "STATUS"})->elements[1].text, "incrementing");
  EXPECT_GE(Restored({}), done_.back().version);
}

TEST_F(ArchivesTest, AFileThatIsDeletedOrDamagedIsNamed) {
  for (int i = 0; i < 3; ++i) {
    Put("key", fmt::format("value {}", i));
    ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  }
  ASSERT_EQ(Last("number"), 2u);
  for (const std::string name : {"changes/0000000001.arc", "changes/0000000002.arc"}) {
    const std::string path = Dest() + "/" + name, bytes = ReadFile(path);
    fs::remove(path);
    for (const char* command : {"archive-check", "verify"}) {
      EXPECT_EQ(Run({command, Dest()}), 2) << output_;
      EXPECT_THAT(output_, AllOf(HasSubstr(name), HasSubstr("missing")));
    }
    EXPECT_EQ(Run({"restore", Dest(), dir_.File("x")}), 2);
    EXPECT_THAT(output_, HasSubstr(name));
    EXPECT_FALSE(fs::exists(dir_.File("x")));
    std::string damaged = bytes;
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 4);
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_EQ(Run({"archive-check", Dest()}), 2) << output_;
    EXPECT_THAT(output_, HasSubstr(name));
    std::ofstream(path, std::ios::binary) << bytes;
  }
  EXPECT_EQ(Run({"archive-check", Dest()}), 0) << output_;
}

TEST_F(ArchivesTest, ANewBaseHealsAGap) {
  Put("a", "1");
  ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  Put("b", "1");
  ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  ASSERT_EQ(Run({"call", "FEED", "LIST"}), 0);
  const std::string feed = output_.substr(output_.find("archive-"), 8 + 16);
  ASSERT_EQ(Run({"call", "FEED", "DROP", feed}), 0) << output_;
  Put("a", "2");
  const uint64_t in_gap = done_.back().version;
  Put("b", "2");
  ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("taking a base: there is a gap: TRIMMED"));
  Put("a", "3");
  ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  EXPECT_EQ(Run({"archive-check", Dest()}), 0) << output_;
  EXPECT_EQ(Run({"restore", Dest(), dir_.File("x"), fmt::format("--at-version={}", in_gap)}), 2);
  EXPECT_THAT(output_, HasSubstr(fmt::format("does not have version {}", in_gap)));
  EXPECT_EQ(Restored({}), done_.back().version);
  EXPECT_EQ(Restored({fmt::format("--at-version={}", done_[1].version)}), done_[1].version);
}

TEST_F(ArchivesTest, WhatChangesAloneCannotRepeatMakesABase) {
  Put("a", "1");
  ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  Put("b", "2");
  std::ofstream(dir_.File("keys.csv")) << "key,value\nm,1\nn,2\n";
  ASSERT_EQ(Run({"import", dir_.File("keys.csv"), "--atomic", "--format=csv"}), 0) << output_;
  ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("taking a base: version"), HasSubstr("INGEST")));
  EXPECT_EQ(Run({"archive-check", Dest()}), 0) << output_;
  EXPECT_EQ(Restored({fmt::format("--at-version={}", done_[1].version)}), done_[1].version);
  ASSERT_EQ(Run({"restore", Dest(), dir_.File("all")}), 0) << output_;
  EXPECT_EQ(StoredIn(dir_.File("all")), *client_->Range("-", "+"));
}

TEST_F(ArchivesTest, AnotherStoreBehindTheSamePortMakesABase) {
  Put("a", "1");
  ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  Kill();
  fs::remove_all(dir_.File("data"));
  Restart();
  done_.clear();
  Put("z", "of another store");
  ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("taking a base: the server has history"));
  EXPECT_EQ(Run({"archive-check", Dest()}), 0) << output_;
  ASSERT_EQ(Run({"restore", Dest(), dir_.File("all")}), 0) << output_;
  EXPECT_EQ(StoredIn(dir_.File("all")), *client_->Range("-", "+"));
}

// The value of a figure in metrics.prom.
double FigureIn(const std::string& text, const std::string& name) {
  const size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + name.size() + 2, nullptr);
}

TEST_F(ArchivesTest, FiguresTellOfGapsAndFiles) {
  const auto figure = [&](const std::string& name) {
    return FigureIn(ReadFile(Dest() + "/metrics.prom"), "varve_archive_" + name);
  };
  Put("a", "1");
  ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  EXPECT_EQ(figure("gap"), 0);
  EXPECT_EQ(figure("gaps_total"), 0);
  EXPECT_EQ(figure("bases_total"), 1);
  EXPECT_EQ(figure("files_total"), 0);
  Put("b", "1");
  ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  EXPECT_EQ(figure("files_total"), 1);
  EXPECT_EQ(figure("last_version"), static_cast<double>(done_.back().version));
  EXPECT_EQ(figure("last_instant_seconds"), static_cast<double>(Last("instant_ms")) / 1000);
  EXPECT_GE(figure("current_instant_seconds"), figure("last_instant_seconds"));
  EXPECT_GE(figure("lag_seconds"), 0);
  const double bytes = figure("bytes_total");
  EXPECT_GT(bytes, 0);
  ASSERT_EQ(Run({"call", "FEED", "LIST"}), 0);
  const std::string feed = output_.substr(output_.find("archive-"), 8 + 16);
  ASSERT_EQ(Run({"call", "FEED", "DROP", feed}), 0) << output_;
  Put("c", "2");
  // What comes next is gone from the server.
  EXPECT_EQ(Run({"archive-check", Dest()}), 2) << output_;
  EXPECT_THAT(output_, HasSubstr("there is a gap: "));
  EXPECT_EQ(Run({"archive-check", Dest(), "--json"}), 2) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("\"gap\":true"), HasSubstr("\"healed_gaps\":0")));
  EXPECT_EQ(Run({"verify", Dest()}), 0) << output_;
  // While another backup is under way, no base heals it.
  ASSERT_EQ(client_->Call({"BACKUP", "START"}).status(), absl::OkStatus());
  EXPECT_EQ(Run({"archive", Dest(), "--once"}), 2) << output_;
  EXPECT_EQ(figure("gap"), 1);
  EXPECT_EQ(figure("last_version"), -1);
  ASSERT_EQ(client_->Call({"BACKUP", "ABORT"}).status(), absl::OkStatus());
  ASSERT_EQ(client_->Call({"BACKUP", "CLEANUP"}).status(), absl::OkStatus());
  ASSERT_EQ(Run({"archive", Dest(), "--once"}), 0) << output_;
  EXPECT_EQ(figure("gap"), 0);
  EXPECT_EQ(figure("bases_total"), 2);
  EXPECT_GT(figure("bytes_total"), bytes);
  EXPECT_EQ(Run({"archive-check", Dest(), "--json"}), 0) << output_;
  EXPECT_THAT(output_, AllOf(HasSubstr("\"gap\":false"), HasSubstr("\"healed_gaps\":1")));
}

TEST_F(ArchivesTest, ATimeIsReachedThoughNothingIsWritten) {
  Put("a", "1");
  StartArchiver();
  ASSERT_TRUE(Reaches(done_.back().version)) << log();
  const uint64_t now = RealClock().WallMillis();
  EXPECT_EQ(Run({"restore", Dest(), dir_.File("x"), "--at-time=" + TimeText(now)}), 2) << output_;
  EXPECT_THAT(output_, HasSubstr("the archive does not have"));
  ASSERT_TRUE(Eventually([&] { return Last("current_ms") >= now; })) << log();
  EXPECT_GE(Restored({"--at-time=" + TimeText(now)}), done_.back().version);
  EXPECT_EQ(StopArchiver(), 0) << log();
}

TEST_F(ArchivesTest, AWrongPasswordEndsItWithAClearMessage) {
  UsePassword("secret");
  Kill();
  Restart();
  for (const std::string wrong : {"", "wrong"}) {
    Words words = {"archive", Dest(), "--once"};
    if (!wrong.empty()) words.insert(words.begin(), {"-a", wrong});
    EXPECT_EQ(Run(words), 2) << output_;
    EXPECT_THAT(output_, ::testing::ContainsRegex("NOAUTH|WRONGPASS|password")) << wrong;
  }
  EXPECT_FALSE(fs::exists(Dest() + "/LAST"));
}

TEST_F(ArchivesTest, BasesByTheClockLeaveNoGap) {
  std::mt19937 random(7);
  Put("a", "1");
  archiver_.emplace(
      VARVE_CLIENT_MAIN,
      WithPort({"archive", Dest(), "--interval=50ms", "--base-every=1s", "--rate=50MiB"}),
      dir_.File("archiver.log"));
  const auto bases = [&] {
    size_t count = 0;
    for (size_t at = 0; (at = log().find("another base has version", at)) != std::string::npos;
         ++at)
      ++count;
    return count;
  };
  ASSERT_TRUE(Eventually([&] {
    Write(&random, 10);
    return bases() >= 2;
  })) << log();
  Put("last", "one");
  ASSERT_TRUE(Reaches(done_.back().version)) << log();
  EXPECT_EQ(StopArchiver(), 0) << log();
  EXPECT_EQ(Run({"archive-check", Dest(), "--json"}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("\"healed_gaps\":0"));
  EXPECT_EQ(Restored({}), done_.back().version);
  const uint64_t first = FirstVersion();
  for (int i = 0; i < 6; ++i) {
    const Operation& at = done_[random() % done_.size()];
    if (at.version >= first)
      EXPECT_EQ(Restored({fmt::format("--at-version={}", at.version)}), at.version);
  }
  // The newest base stays, with what came behind it.
  ASSERT_EQ(Run({"archive", Dest(), "--once", "--keep=1ms"}), 0) << output_;
  EXPECT_EQ(Run({"archive-check", Dest()}), 0) << output_;
  EXPECT_GT(FirstVersion(), first);
  EXPECT_EQ(Restored({}), done_.back().version);
  EXPECT_EQ(Run({"archive", Dest(), "--once", "--keep=daily=7"}), 2) << output_;
  EXPECT_THAT(output_, HasSubstr("--keep of an archive is a time"));
}

TEST_F(ArchivesTest, AKillUnderABaseByTheClockLeavesTheServerNothingToHold) {
  Put("a", std::string(1 << 20, 'a'));
  const auto state = [&] {
    const auto status = client_->Call({"BACKUP", "STATUS"});
    return status.ok() ? status->elements[1].text : "";
  };
  const Words words = WithPort({"archive", Dest(), "--interval=20ms", "--base-every=1s"});
  bool was_killed = false;
  for (int i = 0; i < 20 && !was_killed; ++i) {
    archiver_.emplace(VARVE_CLIENT_MAIN, words, dir_.File("archiver.log"));
    ASSERT_TRUE(Eventually([&] { return Last("number") + Last("version") != 0; })) << log();
    ASSERT_TRUE(Eventually([&] {
      Put("key", "value");
      return state() != "idle" || log().find("another base") != std::string::npos;
    })) << log();
    KillArchiver();
    was_killed = state() != "idle";
  }
  ASSERT_TRUE(was_killed);
  Put("b", "2");
  StartArchiver();
  ASSERT_TRUE(Reaches(done_.back().version)) << log();
  EXPECT_EQ(state(), "idle");
  EXPECT_EQ(StopArchiver(), 0) << log();
  EXPECT_EQ(Run({"archive-check", Dest()}), 0) << output_;
}

TEST_F(ArchivesTest, EachFileGoesToACommand) {
  const std::string away = dir_.File("away"), local = dir_.File("local");
  const std::string command = fmt::format(
      "mkdir -p \"$(dirname {0}/{{}})\" && cat > {0}/{{}}.part && mv {0}/{{}}.part {0}/{{}}", away);
  const auto archive = [&](const std::string& exec) {
    return Run({"archive", local, "--once", "--exec=" + exec});
  };
  Put("a", std::string(5000, 'a'));
  ASSERT_EQ(archive(command), 0) << output_;
  Put("b", "2");
  ASSERT_EQ(archive(command), 0) << output_;
  EXPECT_THAT(output_, Not(HasSubstr("taking a base")));
  Put("c", "3");
  // A command that fails has archived nothing, and what it left is replaced.
  EXPECT_EQ(archive("cat > /dev/null {}; exit 3"), 2);
  EXPECT_THAT(output_, HasSubstr("ended with exit code 3 for changes/0000000002.arc"));
  std::ofstream(away + "/changes/0000000002.arc") << "half";
  ASSERT_EQ(archive(command), 0) << output_;
  EXPECT_EQ(Run({"archive-check", away}), 0) << output_;
  EXPECT_FALSE(fs::exists(local + "/changes/0000000001.arc"));
  for (const char* of_directory : {"archive-check", "verify"}) {
    EXPECT_EQ(Run({of_directory, local}), 2) << output_;
    EXPECT_THAT(output_, HasSubstr("were handed to a command"));
  }
  ASSERT_EQ(Run({"restore", away, dir_.File("new")}), 0) << output_;
  EXPECT_EQ(StoredIn(dir_.File("new")), Model(done_.back().version));
  // A base by the clock, and an archive with another place for its files.
  Put("d", "4");
  ASSERT_TRUE(Eventually([&] {
    EXPECT_EQ(Run({"archive", local, "--once", "--base-every=1s", "--exec=" + command}), 0)
        << output_;
    return output_.find("another base has version") != std::string::npos;
  }));
  EXPECT_EQ(Run({"archive-check", away}), 0) << output_;
  EXPECT_EQ(Run({"archive", local, "--once"}), 2) << output_;
  EXPECT_THAT(output_, HasSubstr("name it again (--exec)"));
  EXPECT_EQ(Run({"archive", away, "--once", "--exec=" + command}), 2) << output_;
  EXPECT_THAT(output_, HasSubstr("has its files here"));
  EXPECT_EQ(archive("cat > somewhere"), 2) << output_;
  EXPECT_THAT(output_, HasSubstr("needs {}"));
}

TEST_F(ArchivesTest, KillsWhileFilesGoToACommandLoseNothing) {
  std::mt19937 random(11);
  const std::string away = dir_.File("away"), local = dir_.File("local");
  const std::string command = fmt::format(
      "mkdir -p \"$(dirname {0}/{{}})\" && cat > {0}/{{}}.part && mv {0}/{{}}.part {0}/{{}}", away);
  const Words words =
      WithPort({"archive", local, "--interval=20ms", "--base-every=1s", "--exec=" + command});
  for (int round = 0; round < 12; ++round) {
    archiver_.emplace(VARVE_CLIENT_MAIN, words, dir_.File("archiver.log"));
    Write(&random, 15);
    if (HasFatalFailure()) return;
    if (round % 3 == 0) {
      const uint64_t version = done_.back().version;
      ASSERT_TRUE(Eventually([&] { return LastIn(local, "version") >= version; })) << log();
    }
    KillArchiver();
  }
  ASSERT_EQ(Run({"archive", local, "--once", "--exec=" + command}), 0) << output_;
  EXPECT_EQ(Run({"archive-check", away}), 0) << output_;
  ASSERT_EQ(Run({"restore", away, dir_.File("new")}), 0) << output_;
  EXPECT_EQ(StoredIn(dir_.File("new")), Model(done_.back().version));
}

// A limit on the size of files stands for a disk that is full, and can be lifted while it runs.
TEST_F(ArchivesTest, AFullDiskIsWaitedOut) {
  Put("a", "1");
  archiver_.emplace(
      "/bin/sh",
      Words{"-c", fmt::format("trap '' XFSZ; exec {} --port={} archive {} --interval=50ms",
                              VARVE_CLIENT_MAIN, options_.port, Dest())},
      dir_.File("archiver.log"));
  ASSERT_TRUE(Reaches(done_.back().version)) << log();
  const rlimit small{.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
  rlimit before{};
  ASSERT_EQ(prlimit(archiver_->id(), RLIMIT_FSIZE, &small, &before), 0);
  std::mt19937 random(3);
  std::string large(100'000, '\0');
  for (char& byte : large) byte = static_cast<char>(random());
  Put("large", large);
  ASSERT_TRUE(Eventually([&] { return log().find("trying again") != std::string::npos; }));
  EXPECT_EQ(Run({"archive-check", Dest()}), 0) << output_;
  EXPECT_THAT(output_, Not(HasSubstr("would be lost now: 0")));
  ASSERT_EQ(prlimit(archiver_->id(), RLIMIT_FSIZE, &before, nullptr), 0);
  ASSERT_TRUE(Reaches(done_.back().version)) << log();
  EXPECT_EQ(StopArchiver(), 0) << log();
  EXPECT_EQ(Run({"archive-check", Dest()}), 0) << output_;
  EXPECT_EQ(Restored({}), done_.back().version);
  EXPECT_THAT(log(), AllOf(HasSubstr("File too large"), Not(HasSubstr("gap"))));
}

TEST_F(ArchivesTest, ASignalEndsItAlsoWhileNoServerAnswers) {
  Put("a", "1");
  StartArchiver();
  ASSERT_TRUE(Reaches(done_.back().version)) << log();
  Kill();
  ASSERT_TRUE(Eventually([&] { return log().find("trying again") != std::string::npos; }));
  EXPECT_EQ(Run({"archive-check", Dest()}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("is not known: can't connect"));
  EXPECT_EQ(Run({"archive", Dest(), "--once"}), 2);
  EXPECT_THAT(output_, HasSubstr("another run writes this archive"));
  EXPECT_EQ(StopArchiver(), 0) << log();
  EXPECT_EQ(Run({"archive", Dest(), "--once"}), 2);
  EXPECT_THAT(output_, HasSubstr("can't connect"));
}

}  // namespace
}  // namespace varve
