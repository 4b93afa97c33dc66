// BACKUP, through the port: its states and errors, what its files hold, who may use it, and how
// long they stay.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"

namespace varve {
namespace {

using testing::Ask;
using testing::TempDir;
using testing::TestServer;
using Words = std::vector<std::string>;

class BackupCommandTest : public ::testing::Test {
 protected:
  explicit BackupCommandTest(const ServerOptions& options = {},
                             const EngineOptions& engine = TestServer::SmallEngine())
      : server_(options, engine) {}

  std::string Do(const Words& arguments) { return Ask(*client_, arguments); }
  std::string BackupDirectory() const { return server_.data_directory() + "/backupdir"; }
  size_t Files() const {
    if (!std::filesystem::exists(BackupDirectory())) return 0;
    const std::filesystem::directory_iterator files(BackupDirectory());
    return static_cast<size_t>(std::distance(begin(files), end(files)));
  }
  std::string Status(const std::string& field) {
    const std::vector<std::string_view> request = {"BACKUP", "STATUS"};
    const absl::StatusOr<Reply> reply = client_->Call(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    for (size_t i = 0; reply.ok() && i + 1 < reply->elements.size(); i += 2) {
      if (reply->elements[i].text == field) return reply->elements[i + 1].text;
    }
    return "(no such field)";
  }
  std::string InProgress() {
    const std::string info = Do({"INFO", "persistence"});
    const size_t at = info.find("backup_in_progress:");
    return at == std::string::npos ? "(no such line)" : info.substr(at + 19, 1);
  }
  void FillSome(int from, int to) {
    for (int i = from; i < to; ++i)
      ASSERT_EQ(Do({"SET", fmt::format("key{}", i), std::string(i * 31 % 3000, 'v')}), "OK");
  }
  // Copies the sealed backup by FETCH, in pieces.
  void FetchTo(const std::string& directory) {
    const std::vector<std::string_view> list = {"BACKUP", "LIST", "SIZES"};
    const absl::StatusOr<Reply> files = client_->Call(list);
    ASSERT_TRUE(files.ok()) << files.status();
    for (const Reply& each : files->elements) {
      const std::string name = each.elements[0].text;
      std::string bytes;
      const auto size = static_cast<size_t>(each.elements[1].integer);
      while (bytes.size() < size) {
        const std::string piece =
            Do({"BACKUP", "FETCH", name, fmt::to_string(bytes.size()), "10000"});
        ASSERT_EQ(piece.size(), std::min<size_t>(10000, size - bytes.size())) << name;
        bytes += piece;
      }
      const auto copy = PosixFileSystem()->OpenForWrite(directory + "/" + name, /*create=*/true);
      ASSERT_TRUE((*copy)->Write(0, bytes).ok());
    }
  }

  TestServer server_;
  std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(BackupCommandTest, StatesFollowEachOtherAsInRedis) {
  EXPECT_EQ(Status("state"), "idle");
  EXPECT_EQ(Status("error"), "");
  EXPECT_EQ(Status("start_time"), "0");
  EXPECT_EQ(Status("end_time"), "0");
  EXPECT_EQ(InProgress(), "0");
  EXPECT_EQ(Do({"BACKUP", "LIST"}), "()");
  EXPECT_EQ(Do({"BACKUP", "CLEANUP"}), "OK");
  EXPECT_EQ(Do({"BACKUP", "SEAL"}).rfind("!ERR No backup ready to seal", 0), 0u);
  EXPECT_EQ(Do({"BACKUP", "ABORT"}).rfind("!ERR No backup in progress", 0), 0u);
  EXPECT_EQ(Do({"BACKUP", "FETCH", "MANIFEST", "0", "1"}).rfind("!ERR No sealed backup", 0), 0u);

  FillSome(0, 50);
  EXPECT_EQ(Do({"BACKUP", "START"}), "OK");
  EXPECT_EQ(Status("state"), "incrementing");
  EXPECT_NE(Status("start_time"), "0");
  EXPECT_EQ(InProgress(), "1");
  EXPECT_EQ(Do({"BACKUP", "START"}).rfind("!ERR Backup already in progress", 0), 0u);
  EXPECT_EQ(Do({"BACKUP", "CLEANUP"}).rfind("!ERR Backup in progress", 0), 0u);

  EXPECT_EQ(Do({"BACKUP", "SEAL"}), "OK");
  EXPECT_EQ(Status("state"), "sealed");
  EXPECT_GE(std::stoll(Status("end_time")), std::stoll(Status("start_time")));
  EXPECT_NE(Status("version"), "0");
  EXPECT_NE(Status("instant_ms"), "0");
  EXPECT_EQ(InProgress(), "0");
  const std::string first = Do({"BACKUP", "LIST"}).substr(1);
  EXPECT_EQ(first[0], '/') << first;
  EXPECT_TRUE(std::filesystem::exists(first.substr(0, first.find(' ')))) << first;
  EXPECT_EQ(Do({"BACKUP", "ABORT"}).rfind("!ERR No backup in progress", 0), 0u);
  EXPECT_EQ(Do({"BACKUP", "START"}).rfind("!ERR Backup already in progress", 0), 0u);
  EXPECT_EQ(Do({"BACKUP", "CLEANUP"}), "OK");
  EXPECT_EQ(Status("state"), "idle");
  EXPECT_EQ(Files(), 0u);

  EXPECT_EQ(Do({"BACKUP", "START"}), "OK");
  EXPECT_EQ(Do({"BACKUP", "ABORT"}), "OK");
  EXPECT_EQ(Status("state"), "failed");
  EXPECT_EQ(Status("error"), "aborted by user");
  EXPECT_EQ(Files(), 0u);
  EXPECT_EQ(Do({"BACKUP", "START"}), "OK") << "a failed one does not stand in the way";
}

TEST_F(BackupCommandTest, TheStatusDocumentTellsOfIt) {
  const auto shows = [&](const std::string& text) {
    const std::string document = Do({"STATUS"});
    return document.find(text) != std::string::npos ? "" : document;
  };
  EXPECT_EQ(shows("backup (state idle error  held_bytes 0 sealed 0 failed 0 "
                  "last_seal_unix_seconds 0 last_version 0)"),
            "");
  FillSome(0, 50);
  EXPECT_EQ(Do({"BACKUP", "START"}), "OK");
  EXPECT_EQ(shows("backup (state incrementing error "), "");
  EXPECT_EQ(Do({"BACKUP", "SEAL"}), "OK");
  const std::string version = Status("version");
  EXPECT_EQ(shows("held_bytes " + Status("bytes") + " sealed 1 failed 0 "), "");
  EXPECT_EQ(shows("last_version " + version + ")"), "");
  EXPECT_EQ(shows("(id backup sequence " + version + " "), "");
  EXPECT_EQ(Do({"BACKUP", "CLEANUP"}), "OK");
  EXPECT_EQ(shows("backup (state idle error  held_bytes 0 sealed 1 "), "");
}

TEST_F(BackupCommandTest, TheFilesAreTheStoreAsOfTheSeal) {
  FillSome(0, 200);
  EXPECT_EQ(Do({"BACKUP", "START"}), "OK");
  EXPECT_EQ(Do({"SET", "between", "1"}), "OK");
  FillSome(100, 300);
  EXPECT_EQ(Do({"BACKUP", "SEAL"}), "OK");
  EXPECT_EQ(Do({"SET", "behind", "1"}), "OK");
  FillSome(0, 300);
  EXPECT_EQ(Do({"DELPREFIX", "key1"}).find("!"), std::string::npos);
  EXPECT_EQ(Do({"COMPACT"}), "OK");
  TempDir copy;
  FetchTo(copy.path());
  const auto store = StorageEngine::Open(copy.path(), {});
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Count({}, {}, {})->keys, 301u);
  std::string value;
  EXPECT_TRUE((*store)->Get({}, "between", &value)->found);
  EXPECT_FALSE((*store)->Get({}, "behind", &value)->found);
  ASSERT_TRUE((*store)->Get({}, "key150", &value)->found);
  EXPECT_EQ(value, std::string(150 * 31 % 3000, 'v'));
}

TEST_F(BackupCommandTest, WrongRequestsAreRefused) {
  EXPECT_EQ(Do({"BACKUP", "START"}), "OK");
  EXPECT_EQ(Do({"BACKUP", "SEAL"}), "OK");
  EXPECT_EQ(Do({"BACKUP", "LIST", "WRONG"}), "!ERR syntax error");
  for (const std::string& name : {std::string("../LOCK"), std::string("LOCK"), std::string("")})
    EXPECT_EQ(Do({"BACKUP", "FETCH", name, "0", "1"}), "!ERR no such file in the backup") << name;
  EXPECT_EQ(Do({"BACKUP", "FETCH", "MANIFEST", "-1", "1"})[0], '!');
  EXPECT_EQ(Do({"BACKUP", "FETCH", "MANIFEST", "0", "x"})[0], '!');
  EXPECT_EQ(Do({"BACKUP", "FETCH", "MANIFEST", "0", "4194305"})[0], '!');
  EXPECT_EQ(Do({"BACKUP", "FETCH", "MANIFEST", "9223372036854775807", "4"}), "");
  EXPECT_EQ(Do({"BACKUP", "FETCH", "MANIFEST", "0", "8"}), "VARVEMAN");
  EXPECT_EQ(Do({"PURGE", "key"}).rfind("!ERR the files of a backup may hold the key", 0), 0u);
  EXPECT_EQ(Do({"BACKUP", "CLEANUP"}), "OK");
  EXPECT_EQ(Do({"PURGE", "key"}), "0");
}

TEST_F(BackupCommandTest, ForeignFilesStayAndAreInTheWay) {
  std::filesystem::create_directory(BackupDirectory());
  const std::string foreign = BackupDirectory() + "/stale";
  ASSERT_TRUE(PosixFileSystem()->OpenForWrite(foreign, /*create=*/true).ok());
  EXPECT_NE(Do({"BACKUP", "START"}).find("not empty"), std::string::npos);
  EXPECT_EQ(Status("state"), "failed");
  EXPECT_NE(Status("error").find("not empty"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(foreign));
  std::filesystem::remove(foreign);
  EXPECT_EQ(Do({"BACKUP", "START"}), "OK");
}

TEST_F(BackupCommandTest, ARestartRemovesTheFilesAndTheyDoNotStandInTheWay) {
  FillSome(0, 50);
  EXPECT_EQ(Do({"BACKUP", "START"}), "OK");
  EXPECT_EQ(Do({"BACKUP", "SEAL"}), "OK");
  EXPECT_GT(Files(), 0u);
  client_.reset();
  server_.Restart();
  client_ = server_.Connect();
  EXPECT_EQ(Status("state"), "idle");
  EXPECT_EQ(Files(), 0u);
  EXPECT_EQ(Do({"GET", "key1"}), std::string(31, 'v'));
  EXPECT_EQ(Do({"BACKUP", "START"}), "OK");
}

TEST_F(BackupCommandTest, ABackupThatNobodyAsksAboutGoes) {
  EXPECT_EQ(Do({"CONFIG", "GET", "backup-sealed-ttl"}), "(backup-sealed-ttl 3600)");
  EXPECT_EQ(Do({"BACKUP", "START"}), "OK");
  EXPECT_EQ(Do({"BACKUP", "SEAL"}), "OK");
  EXPECT_EQ(Do({"CONFIG", "SET", "backup-sealed-ttl", "1s"}), "OK");
  EXPECT_EQ(Do({"CONFIG", "GET", "backup-sealed-ttl"}), "(backup-sealed-ttl 1)");
  EXPECT_TRUE(testing::Eventually([&] { return Status("state") == "idle" && Files() == 0; }));
}

TEST_F(BackupCommandTest, AUserNeedsAllKeysOfAllPlaces) {
  EXPECT_EQ(Do({"ACL", "SETUSER", "part", "on", "nopass", "~app:*", "+@all"}), "OK");
  EXPECT_EQ(Do({"ACL", "SETUSER", "place", "on", "nopass", "~*", "+@all", "resetdbs", "db=0"}),
            "OK");
  EXPECT_EQ(Do({"ACL", "SETUSER", "reader", "on", "nopass", "%R~*", "+backup"}), "OK");
  for (const std::string& user : {std::string("part"), std::string("place")}) {
    EXPECT_EQ(Do({"AUTH", user, "x"}), "OK");
    for (const std::string& what : {"START", "SEAL", "LIST", "STATUS", "ABORT", "CLEANUP"})
      EXPECT_EQ(Do({"BACKUP", what}).rfind("!NOPERM", 0), 0u) << user << " " << what;
    EXPECT_EQ(Do({"BACKUP", "FETCH", "MANIFEST", "0", "1"}).rfind("!NOPERM", 0), 0u);
  }
  EXPECT_EQ(Do({"AUTH", "reader", "x"}), "OK");
  EXPECT_EQ(Do({"BACKUP", "START"}), "OK");
  EXPECT_EQ(Do({"BACKUP", "ABORT"}), "OK");
}

class FailingBackupTest : public BackupCommandTest {
 protected:
  FailingBackupTest() : BackupCommandTest({}, Options(&files())) {}
  static testing::FaultFileSystem& files() {
    static testing::FaultFileSystem files;
    return files;
  }
  static EngineOptions Options(FileSystem* files) {
    EngineOptions options = TestServer::SmallEngine();
    options.file_system = files;
    return options;
  }
};

TEST_F(FailingBackupTest, AStepThatFailsLeavesNoFiles) {
  FillSome(0, 50);
  const auto fail = [] {
    files().Fail(testing::FileOperation::kLink, 1, absl::ResourceExhaustedError("a test's fault"),
                 testing::FaultFileSystem::kUnlimited);
  };
  fail();
  EXPECT_NE(Do({"BACKUP", "START"}).find("a test's fault"), std::string::npos);
  EXPECT_EQ(Status("state"), "failed");
  EXPECT_EQ(Files(), 0u);
  files().ClearFaults();
  EXPECT_EQ(Do({"BACKUP", "START"}), "OK");
  fail();
  EXPECT_NE(Do({"BACKUP", "SEAL"}).find("a test's fault"), std::string::npos);
  EXPECT_EQ(Status("state"), "failed");
  EXPECT_NE(Status("error").find("a test's fault"), std::string::npos);
  EXPECT_EQ(Files(), 0u);
  EXPECT_FALSE(std::filesystem::exists(BackupDirectory() + ".sealing"));
  files().ClearFaults();
  EXPECT_EQ(Do({"BACKUP", "START"}), "OK");
  EXPECT_EQ(Do({"BACKUP", "SEAL"}), "OK");
}

}  // namespace
}  // namespace varve
