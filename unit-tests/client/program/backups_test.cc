// Backups as people take, list, verify and restore them: client_main against server_main.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "unit-tests/client/restarting_server.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Process;
using testing::ReadFile;
using testing::ServerProcess;

using Words = std::vector<std::string>;

// A backup, as a line of `backups --raw` has it.
struct Listed {
  std::string id;
  uint64_t version = 0;
  std::string time;
  uint64_t files = 0;
  uint64_t new_bytes = 0;
  uint64_t shared_bytes = 0;
};

class BackupsTest : public testing::RestartingServer {
 protected:
  void SetUp() override {
    RestartingServer::SetUp();
    client_ = Connect();
    ASSERT_NE(client_, nullptr);
  }

  int Run(Words words) {
    words.insert(words.begin(), "--port=" + std::to_string(options_.port));
    const int code = Process(VARVE_CLIENT_MAIN, words, dir_.File("out")).Wait();
    output_ = ReadFile(dir_.File("out"));
    return code;
  }
  std::string Dest() const { return dir_.File("backups"); }
  void Backup(Words options = {}) {
    options.insert(options.begin(), {"backup", Dest()});
    ASSERT_EQ(Run(options), 0) << output_;
    EXPECT_THAT(output_, HasSubstr("verified"));
  }
  std::vector<Listed> List() {
    EXPECT_EQ(Run({"backups", Dest(), "--raw"}), 0) << output_;
    std::vector<Listed> backups;
    std::istringstream lines(output_);
    Listed each;
    while (lines >> each.id >> each.version >> each.time >> each.files >> each.new_bytes >>
           each.shared_bytes) {
      backups.push_back(each);
    }
    return backups;
  }

  void Put(int first, int last, const std::string& word, size_t size = 200) {
    const std::string value = word + std::string(size, 'x');
    std::vector<std::string> keys;
    for (int i = first; i < last; ++i) keys.push_back("key:" + std::to_string(100000 + i));
    std::vector<std::pair<std::string_view, std::string_view>> pairs;
    for (const std::string& key : keys) pairs.emplace_back(key, value);
    ASSERT_EQ(client_->PutAll(pairs), absl::OkStatus());
  }
  Client::Pairs Stored() { return *client_->Range("-", "+"); }
  // What a server has that is started on the directory.
  Client::Pairs StoredIn(const std::string& directory) {
    const ServerProcess server(VARVE_SERVER_MAIN, directory);
    EXPECT_NE(server.port(), 0) << server.log();
    const auto client = Client::Connect("127.0.0.1", server.port());
    EXPECT_EQ(client.status(), absl::OkStatus());
    return client.ok() ? *(*client)->Range("-", "+") : Client::Pairs();
  }
  uint64_t VersionOf(const std::string& key) { return (*client_->GetWithVersion(key))->version; }

  // Flips a bit in the middle of the largest file of a backup. Returns the file's name.
  std::string Damage(const std::string& backup) const {
    fs::path largest;
    for (const auto& entry : fs::directory_iterator(Dest() + "/" + backup)) {
      if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
    }
    std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
    const auto middle = static_cast<std::streamoff>(fs::file_size(largest) / 2);
    file.seekg(middle);
    const char byte = static_cast<char>(file.get() ^ 0x10);
    file.seekp(middle);
    file.put(byte);
    return largest.filename();
  }

  std::unique_ptr<Client> client_;
  std::string output_;
};

TEST_F(BackupsTest, WhatWasTakenIsListedVerifiedAndRestored) {
  Put(0, 500, "first ");
  const Client::Pairs first = Stored();
  Backup();
  Put(400, 900, "second ");
  const Client::Pairs second = Stored();
  Backup({"--incremental", "--rate=100MiB"});
  Put(0, 10, "later ");

  const std::vector<Listed> backups = List();
  ASSERT_EQ(backups.size(), 2u);
  EXPECT_LT(backups[0].version, backups[1].version);
  EXPECT_EQ(backups[0].shared_bytes, 0u);
  EXPECT_GT(backups[1].shared_bytes, 0u);
  EXPECT_EQ(Run({"backups", Dest(), "--json"}), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr("{\"id\":\"" + backups[0].id + "\",\"version\":"),
                             HasSubstr("\"shared_bytes\":0}")));
  EXPECT_EQ(Run({"backups", Dest(), "--table"}), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr("shared"), HasSubstr(backups[1].id)));
  EXPECT_EQ(Run({"verify", Dest()}), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr("2 backups"), HasSubstr("all is well")));
  EXPECT_EQ(Run({"verify", Dest() + "/" + backups[0].id}), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr("1 backup,"), HasSubstr("all is well")));

  ASSERT_EQ(Run({"restore", Dest(), dir_.File("newest")}), 0) << output_;
  EXPECT_EQ(Run({"verify", dir_.File("newest")}), 0) << output_;
  EXPECT_TRUE(StoredIn(dir_.File("newest")) == second);
  ASSERT_EQ(Run({"restore", Dest(), dir_.File("older"), "--backup", backups[0].id}), 0) << output_;
  EXPECT_TRUE(StoredIn(dir_.File("older")) == first);
}

TEST_F(BackupsTest, VersionsGoOnBeyondAllOfTheOldStore) {
  Put(0, 100, "value ");
  Backup();
  Put(0, 100, "later ");
  const uint64_t before = VersionOf("key:100099");
  ASSERT_EQ(Run({"restore", Dest(), dir_.File("restored")}), 0) << output_;
  const ServerProcess server(VARVE_SERVER_MAIN, dir_.File("restored"));
  ASSERT_NE(server.port(), 0) << server.log();
  const auto client = Client::Connect("127.0.0.1", server.port());
  ASSERT_EQ(client.status(), absl::OkStatus());
  ASSERT_EQ((*client)->Put("new", "value"), absl::OkStatus());
  EXPECT_GT((*(*client)->GetWithVersion("new"))->version, before);
}

TEST_F(BackupsTest, AFlippedBitIsFoundAndNotRestored) {
  Put(0, 2000, "value ");
  Backup({"--json"});
  const std::string id = List()[0].id;
  const std::string name = Damage(id);
  EXPECT_EQ(Run({"verify", Dest()}), 2);
  EXPECT_THAT(output_, AllOf(HasSubstr(id + "/" + name), HasSubstr("damaged")));
  EXPECT_EQ(Run({"verify", Dest() + "/" + id}), 2);
  EXPECT_THAT(output_, HasSubstr(name));
  EXPECT_EQ(Run({"restore", Dest(), dir_.File("restored")}), 2);
  EXPECT_THAT(output_, HasSubstr(name));
  EXPECT_FALSE(fs::exists(dir_.File("restored/MANIFEST")));
  // A backup that shares nothing with it is whole.
  Backup();
  ASSERT_EQ(Run({"restore", Dest(), dir_.File("restored")}), 0) << output_;
  EXPECT_TRUE(StoredIn(dir_.File("restored")) == Stored());
}

TEST_F(BackupsTest, AMissingFileIsNamed) {
  Put(0, 100, "value ");
  Backup();
  const std::string id = List()[0].id;
  const std::string name = Damage(id);
  fs::remove(Dest() + "/" + id + "/" + name);
  EXPECT_EQ(Run({"verify", Dest()}), 2);
  EXPECT_THAT(output_, AllOf(HasSubstr(id + "/" + name), HasSubstr("missing")));
}

TEST_F(BackupsTest, AnIncrementCopiesWhatChanged) {
  for (int i = 0; i < 5000; i += 500) Put(i, i + 500, "value " + std::to_string(i), 2000);
  Backup();
  Put(0, 50, "changed ");
  Backup({"--incremental"});
  const std::vector<Listed> backups = List();
  ASSERT_EQ(backups.size(), 2u);
  EXPECT_GT(backups[1].shared_bytes, 5000u * 2000);
  EXPECT_LT(backups[1].new_bytes * 20, backups[1].shared_bytes + backups[1].new_bytes);
}

TEST_F(BackupsTest, ThePastIsRestored) {
  Use("--keep=1h");
  Kill();
  Restart();
  client_ = Connect();
  ASSERT_EQ(client_->Put("key", "one"), absl::OkStatus());
  const std::string one = std::to_string(VersionOf("key"));
  ASSERT_EQ(client_->Put("key", "two"), absl::OkStatus());
  Backup();
  ASSERT_EQ(Run({"restore", Dest(), dir_.File("past"), "--at-version", one}), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("as of version " + one));
  EXPECT_EQ(StoredIn(dir_.File("past")), (Client::Pairs{{"key", "one"}}));
  const std::string sealed = List()[0].time;
  ASSERT_EQ(Run({"restore", Dest(), dir_.File("then"), "--at-time", sealed, "--dry-run"}), 0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("would be restored"));
  EXPECT_FALSE(fs::exists(dir_.File("then")));
  ASSERT_EQ(Run({"restore", Dest(), dir_.File("then"), "--at-time", sealed}), 0) << output_;
  EXPECT_EQ(StoredIn(dir_.File("then")), (Client::Pairs{{"key", "two"}}));
  // What cannot be had is said, and nothing is written.
  EXPECT_EQ(Run({"restore", Dest(), dir_.File("none"), "--at-time=2001-01-01T00:00:00Z"}), 2);
  EXPECT_EQ(Run({"restore", Dest(), dir_.File("none"), "--at-version=4000000000"}), 2);
  EXPECT_FALSE(fs::exists(dir_.File("none"))) << output_;
}

TEST_F(BackupsTest, ANamespaceIsRestoredAlone) {
  ASSERT_EQ(client_->Put("key", "of database 0"), absl::OkStatus());
  ASSERT_EQ(client_->Call({"NAMESPACE", "CREATE", "users"}).status(), absl::OkStatus());
  ASSERT_EQ(Run({"--namespace=users", "put", "user", "value"}), 0);
  Backup();
  ASSERT_EQ(Run({"restore", Dest(), dir_.File("users"), "--namespace=users"}), 0) << output_;
  EXPECT_TRUE(StoredIn(dir_.File("users")).empty());
  const ServerProcess server(VARVE_SERVER_MAIN, dir_.File("users"));
  ClientOptions options;
  options.port = server.port();
  options.namespace_name = "users";
  const auto client = Client::Connect(options);
  ASSERT_EQ(client.status(), absl::OkStatus());
  EXPECT_EQ(*(*client)->Range("-", "+"), (Client::Pairs{{"user", "value"}}));
  EXPECT_EQ(Run({"backup", Dest(), "--namespace=users"}), 2);
  EXPECT_THAT(output_, HasSubstr("a backup has all namespaces"));
  EXPECT_EQ(Run({"restore", Dest(), dir_.File("no"), "--namespace=nobody"}), 2);
  EXPECT_THAT(output_, HasSubstr("nobody"));
}

TEST_F(BackupsTest, ARuleSaysWhichOnesStay) {
  for (int i = 0; i < 4; ++i) {
    Put(i * 10, i * 10 + 10, "value ");
    Backup({"--incremental"});
  }
  ASSERT_EQ(List().size(), 4u);
  const std::string last = List()[3].id;
  Backup({"--incremental", "--keep=last=2"});
  EXPECT_THAT(output_, HasSubstr("removed"));
  const std::vector<Listed> backups = List();
  ASSERT_EQ(backups.size(), 2u);
  EXPECT_EQ(backups[0].id, last);
  EXPECT_EQ(Run({"verify", Dest()}), 0) << output_;
  ASSERT_EQ(Run({"restore", Dest(), dir_.File("restored")}), 0) << output_;
  EXPECT_TRUE(StoredIn(dir_.File("restored")) == Stored());
}

TEST_F(BackupsTest, AKilledRunLeavesNothingBehind) {
  Put(0, 2000, "value ");
  Backup();
  {
    Process run(VARVE_CLIENT_MAIN,
                {"--port=" + std::to_string(options_.port), "backup", Dest(), "--rate=1"},
                dir_.File("killed"));
    // The first piece has come, and the next one is due in an hour.
    ASSERT_TRUE(testing::Eventually([this] {
      for (const auto& entry : fs::directory_iterator(Dest())) {
        if (entry.path().filename().string().starts_with(".incomplete-") &&
            !fs::is_empty(entry.path()))
          return true;
      }
      return false;
    }));
    run.Kill(SIGKILL);
    run.Wait();
  }
  EXPECT_EQ(List().size(), 1u);
  EXPECT_EQ(Run({"verify", Dest()}), 0) << output_;
  EXPECT_EQ(Run({"backup", Dest()}), 2);
  EXPECT_THAT(output_, AllOf(HasSubstr("already in progress"), HasSubstr("BACKUP CLEANUP")));
  ASSERT_EQ(Run({"call", "BACKUP", "CLEANUP"}), 0) << output_;
  Backup({"--incremental"});
  EXPECT_EQ(List().size(), 2u);
  for (const auto& entry : fs::directory_iterator(Dest()))
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("incomplete")));
}

// Counters of one writer, all of which it writes in one batch again and again.
class BatchWriter {
 public:
  static constexpr size_t kKeys = 16;

  BatchWriter(std::unique_ptr<Client> client, int number)
      : client_(std::move(client)), prefix_("writer:" + std::to_string(number) + ":") {
    for (size_t i = 0; i < kKeys; ++i) keys_.push_back(prefix_ + std::to_string(100 + i));
    thread_ = std::thread([this] { Run(); });
  }
  ~BatchWriter() {
    stops_ = true;
    thread_.join();
  }
  BatchWriter(const BatchWriter&) = delete;
  BatchWriter& operator=(const BatchWriter&) = delete;

  const std::string& prefix() const { return prefix_; }
  uint64_t sent() const { return sent_; }
  uint64_t acknowledged() const { return acknowledged_; }
  // Not OK: a write failed, and the writer has ended.
  bool failed() const { return failed_; }

 private:
  void Run() {
    while (!stops_ && !failed_) {
      const std::string value = std::to_string(++sent_);
      std::vector<std::pair<std::string_view, std::string_view>> pairs;
      for (const std::string& key : keys_) pairs.emplace_back(key, value);
      if (client_->PutAll(pairs).ok()) {
        acknowledged_ = sent_.load();
      } else {
        failed_ = true;
      }
    }
  }

  const std::unique_ptr<Client> client_;
  const std::string prefix_;
  std::vector<std::string> keys_;
  std::atomic<uint64_t> sent_{0};
  std::atomic<uint64_t> acknowledged_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

TEST_F(BackupsTest, UnderLoadEachOneIsOfOneVersion) {
  Put(0, 1000, "value ");
  std::vector<std::unique_ptr<BatchWriter>> writers;
  for (int i = 0; i < 4; ++i) writers.push_back(std::make_unique<BatchWriter>(Connect(), i));
  for (int round = 0; round < 3; ++round) {
    std::vector<uint64_t> before;
    for (const auto& writer : writers) {
      ASSERT_TRUE(testing::Eventually([&] { return writer->acknowledged() > 0; }));
      before.push_back(writer->acknowledged());
    }
    Backup({"--incremental"});
    std::vector<uint64_t> after;
    for (const auto& writer : writers) after.push_back(writer->sent());
    const std::string directory = dir_.File("restored" + std::to_string(round));
    ASSERT_EQ(Run({"restore", Dest(), directory}), 0) << output_;
    std::map<std::string, std::set<uint64_t>> counters;
    for (const auto& [key, value] : StoredIn(directory)) {
      if (key.starts_with("writer:"))
        counters[key.substr(0, key.rfind(':') + 1)].insert(std::stoull(value));
    }
    for (size_t i = 0; i < writers.size(); ++i) {
      const std::set<uint64_t>& counter = counters[writers[i]->prefix()];
      ASSERT_EQ(counter.size(), 1u) << "a batch is there in part";
      EXPECT_GE(*counter.begin(), before[i]) << "an acknowledged write is missing";
      EXPECT_LE(*counter.begin(), after[i]);
    }
  }
  EXPECT_EQ(Run({"verify", Dest()}), 0) << output_;
  for (const auto& writer : writers) EXPECT_FALSE(writer->failed());
}

TEST_F(BackupsTest, WhereAFileCannotGrowTheEarlierBackupsStay) {
  Put(0, 10, "value ");
  Backup();
  Put(0, 2000, "value ");
  // The limit on a file's size stands for a full disk.
  const std::string command = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
  Process run("bash",
              {"-c", command, "bash", VARVE_CLIENT_MAIN, "--port=" + std::to_string(options_.port),
               "backup", Dest()},
              dir_.File("out"));
  EXPECT_EQ(run.Wait(), 2);
  EXPECT_THAT(ReadFile(dir_.File("out")), HasSubstr("File too large"));
  EXPECT_EQ(List().size(), 1u);
  for (const auto& entry : fs::directory_iterator(Dest()))
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("incomplete")));
  // The server gave its files up.
  Backup();
  EXPECT_EQ(List().size(), 2u);
}

TEST_F(BackupsTest, WhatMakesNoSenseIsRefused) {
  Put(0, 10, "value ");
  Backup();
  EXPECT_EQ(Run({"restore", Dest(), dir_.File("new"), "--at-time=2026-11-25"}), 2);
  EXPECT_THAT(output_, HasSubstr("such as 2026-11-25T19:33:00Z"));
  EXPECT_EQ(Run({"restore", Dest(), dir_.File("new"), "--at-version=1",
                 "--at-time=2026-11-25T19:33:00Z"}),
            2);
  EXPECT_THAT(output_, HasSubstr("exclude each other"));
  EXPECT_EQ(Run({"restore", Dest(), dir_.File("new"), "--backup=20010101T000000Z-1"}), 2);
  EXPECT_THAT(output_, HasSubstr("20010101T000000Z-1"));
  EXPECT_EQ(Run({"backup", Dest(), "--keep=sometimes=3"}), 2);
  EXPECT_THAT(output_, HasSubstr("sometimes"));
  EXPECT_EQ(Run({"backup", Dest(), "--rate=fast"}), 2);
  EXPECT_EQ(Run({"get", "key", "--incremental"}), 2);
  EXPECT_THAT(output_, HasSubstr("get does not take --incremental, which is for backup"));
  EXPECT_EQ(Run({"backup"}), 2);
  EXPECT_THAT(output_, HasSubstr("backup DEST"));
  EXPECT_EQ(Run({"restore", Dest()}), 2);
  EXPECT_THAT(output_, HasSubstr("restore DEST NEWDIR"));
  EXPECT_EQ(Run({"backups", dir_.File("nowhere")}), 2);
  // What is somebody else's stays as it is.
  EXPECT_EQ(Run({"backup", dir_.File("data")}), 2);
  fs::create_directory(dir_.File("full"));
  std::ofstream(dir_.File("full/file")) << "text";
  EXPECT_EQ(Run({"restore", Dest(), dir_.File("full")}), 2);
  EXPECT_EQ(ReadFile(dir_.File("full/file")), "text");
  EXPECT_EQ(List().size(), 1u);
}

}  // namespace
}  // namespace varve
