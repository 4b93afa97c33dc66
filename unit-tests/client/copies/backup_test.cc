// Backups that are fetched from a server_main.
#include "client/copies/backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unit-tests/client/copies/folder_target.h"
#include "unit-tests/client/restarting_server.h"

namespace varve {
namespace {

using ::testing::AllOf;
using testing::FolderTarget;
using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::string Words(const absl::Status& status) { return std::string(status.message()); }

class BackupTest : public testing::RestartingServer {
 protected:
  // Small values, and large ones that become value files of several pieces.
  void Fill() {
    const std::unique_ptr<Client> client = Connect();
    std::vector<std::string> keys;
    for (int i = 0; i < 2000; ++i) keys.push_back("key:" + std::to_string(i));
    std::vector<std::pair<std::string_view, std::string_view>> pairs;
    for (const std::string& key : keys) pairs.emplace_back(key, key);
    ASSERT_EQ(client->PutAll(pairs), absl::OkStatus());
    for (int i = 0; i < 3; ++i) {
      const std::string value(kMiB + 17, static_cast<char>('a' + i));
      ASSERT_EQ(client->Put("large:" + std::to_string(i), value), absl::OkStatus());
    }
  }
  absl::StatusOr<BackupResult> Copy(BackupTarget* target, const BackupCopyOptions& options = {},
                                    const BackupProgress& progress = nullptr) {
    ClientOptions connection = options_;
    connection.reconnect_for = std::chrono::seconds(1);
    const std::unique_ptr<Client> client = Connect(connection);
    return CopyBackup(client.get(), options, target, progress);
  }
  // What BACKUP STATUS says of a field.
  std::string Field(const std::string& name) {
    const absl::StatusOr<Reply> reply = Connect()->Call({"BACKUP", "STATUS"});
    EXPECT_EQ(reply.status(), absl::OkStatus());
    for (size_t i = 0; reply.ok() && i + 1 < reply->elements.size(); i += 2) {
      if (reply->elements[i].text == name) return reply->elements[i + 1].text;
    }
    return "";
  }
  uint64_t SizeOf(const std::string& name) const {
    return std::filesystem::file_size(dir_.File("copy/" + name));
  }
};

TEST_F(BackupTest, TheCopyIsAStoreWithEverythingInIt) {
  Fill();
  FolderTarget target(dir_.File("copy"));
  uint64_t last = 0;
  uint64_t total = 0;
  const absl::StatusOr<BackupResult> result = Copy(&target, {}, [&](uint64_t done, uint64_t of) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, of);
    last = done;
    total = of;
    return true;
  });
  ASSERT_EQ(result.status(), absl::OkStatus());
  EXPECT_EQ(result->released, absl::OkStatus());
  EXPECT_EQ(result->id, "sealed");
  EXPECT_EQ(result->files, target.names().size());
  EXPECT_EQ(result->version, target.source().version);
  EXPECT_GE(result->version, 2003u);
  EXPECT_NE(target.source().store_id, 0u);
  EXPECT_NE(target.source().history_id, 0u);
  EXPECT_GE(target.source().sealed_ms + 1000, target.source().instant_ms);
  uint64_t bytes = 0;
  for (const std::string& name : target.names()) bytes += SizeOf(name);
  EXPECT_EQ(result->new_bytes, bytes);
  EXPECT_EQ(result->shared_bytes, 0u);
  EXPECT_EQ(last, bytes);
  EXPECT_EQ(total, bytes);
  EXPECT_GT(bytes, 3 * kMiB);
  EXPECT_EQ(target.fetched().back(), "MANIFEST");
  EXPECT_EQ(Field("state"), "idle");

  const testing::ServerProcess copy(VARVE_SERVER_MAIN, dir_.File("copy"));
  ASSERT_NE(copy.port(), 0) << copy.log();
  const auto other = Client::Connect("127.0.0.1", copy.port());
  ASSERT_EQ(other.status(), absl::OkStatus());
  EXPECT_TRUE(*(*other)->Range("-", "+") == *Connect()->Range("-", "+"));
}

TEST_F(BackupTest, WhatAnEarlierBackupHasIsNotSent) {
  Fill();
  FolderTarget first(dir_.File("copy"));
  ASSERT_EQ(Copy(&first).status(), absl::OkStatus());
  FolderTarget second(dir_.File("copy"));
  std::set<std::string> shared = first.names();
  shared.erase("MANIFEST");
  second.ShareAll(shared);
  const absl::StatusOr<BackupResult> result = Copy(&second);
  ASSERT_EQ(result.status(), absl::OkStatus());
  EXPECT_GT(result->shared_bytes, 3 * kMiB);
  for (const std::string& name : second.fetched()) EXPECT_FALSE(shared.contains(name)) << name;
  EXPECT_EQ(second.fetched().back(), "MANIFEST");
}

TEST_F(BackupTest, ARateCutsPiecesSmall) {
  Fill();
  FolderTarget target(dir_.File("copy"));
  size_t pieces = 0;
  const BackupCopyOptions options{.bytes_per_second = 12 * kMiB};
  const absl::StatusOr<BackupResult> result = Copy(&target, options, [&](uint64_t, uint64_t) {
    ++pieces;
    return true;
  });
  ASSERT_EQ(result.status(), absl::OkStatus());
  EXPECT_GE(pieces, 4u);
  uint64_t bytes = 0;
  for (const std::string& name : target.names()) bytes += SizeOf(name);
  EXPECT_EQ(result->new_bytes, bytes);
}

TEST_F(BackupTest, WhereverTheTargetFailsTheServerHoldsNothing) {
  Fill();
  for (const std::string where : {"begin", "share", "begin file", "append", "end file", "seal"}) {
    SCOPED_TRACE(where);
    FolderTarget target(dir_.File("copy"), [&](const std::string& step) {
      return step == where ? absl::ResourceExhaustedError("the disk is full") : absl::OkStatus();
    });
    EXPECT_EQ(Copy(&target).status(), absl::ResourceExhaustedError("the disk is full"));
    EXPECT_EQ(Field("state"), "idle");
  }
  FolderTarget target(dir_.File("copy"));
  EXPECT_EQ(Copy(&target).status(), absl::OkStatus());
}

TEST_F(BackupTest, AnInterruptionEndsIt) {
  Fill();
  FolderTarget target(dir_.File("copy"));
  const absl::Status status = Copy(&target, {}, [](uint64_t, uint64_t) { return false; }).status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(Field("state"), "idle");
}

TEST_F(BackupTest, AnotherBackupIsLeftAlone) {
  Fill();
  const std::unique_ptr<Client> other = Connect();
  ASSERT_EQ(other->Call({"BACKUP", "START"}).status(), absl::OkStatus());
  FolderTarget target(dir_.File("copy"));
  const absl::Status status = Copy(&target).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Words(status), AllOf(HasSubstr("already in progress"), HasSubstr("BACKUP STATUS"),
                                   HasSubstr("BACKUP ABORT"), HasSubstr("BACKUP CLEANUP")));
  EXPECT_EQ(Field("state"), "incrementing");
  EXPECT_EQ(other->Call({"BACKUP", "SEAL"}).status(), absl::OkStatus());
}

TEST_F(BackupTest, ABackupThatSomebodyElseEndsIsAnError) {
  Fill();
  const std::unique_ptr<Client> other = Connect();
  FolderTarget target(dir_.File("copy"), [&](const std::string& step) {
    if (step != "begin") return absl::OkStatus();
    return other->Call({"BACKUP", "CLEANUP"}).status();
  });
  const absl::Status status = Copy(&target).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Words(status), HasSubstr("gave the backup up"));
}

TEST_F(BackupTest, ALostConnectionIsAnErrorThatSaysSo) {
  Fill();
  FolderTarget target(dir_.File("copy"), [&](const std::string& step) {
    if (step == "begin") Kill();
    return absl::OkStatus();
  });
  const absl::Status status = Copy(&target).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(Words(status), AllOf(HasSubstr("connection"), HasSubstr("run it again")));
  Restart();
  FolderTarget again(dir_.File("copy"));
  EXPECT_EQ(Copy(&again).status(), absl::OkStatus());
}

TEST_F(BackupTest, AServerThatWasStartedAgainKeepsTheBackupOfAnother) {
  Fill();
  bool is_first = true;
  FolderTarget target(dir_.File("copy"), [&](const std::string& step) {
    if (step != "begin" || !std::exchange(is_first, false)) return absl::OkStatus();
    Kill();
    Restart();
    return Connect()->Call({"BACKUP", "START"}).status();
  });
  EXPECT_FALSE(Copy(&target).ok());
  EXPECT_EQ(Field("state"), "incrementing");
}

TEST_F(BackupTest, AUserWithoutTheRightIsTold) {
  Fill();
  const std::unique_ptr<Client> client = Connect();
  ASSERT_EQ(
      client->Call({"ACL", "SETUSER", "guest", "on", ">word", "+@all", "~key:*", "&*"}).status(),
      absl::OkStatus());
  options_.user = "guest";
  options_.password = "word";
  FolderTarget target(dir_.File("copy"));
  const absl::Status status = Copy(&target).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(Words(status), HasSubstr("rights to all keys"));
}

}  // namespace
}  // namespace varve
