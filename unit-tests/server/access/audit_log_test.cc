#include "server/access/audit_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::TempDir;

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}
// The lines without their times.
std::string Lines(const std::string& path) {
  std::string lines = Contents(path);
  for (size_t at = lines.find("\"time\""); at != std::string::npos; at = lines.find("\"time\"", at))
    lines.erase(at, lines.find(',', at) + 1 - at);
  return lines;
}

class AuditLogTest : public ::testing::Test {
 protected:
  // Tasks that the log handed over wait here.
  AuditLog::Executor Later() {
    return [this](std::function<void()> task) {
      tasks_.push_back(std::move(task));
      return true;
    };
  }
  void RunTasks() {
    for (const std::function<void()>& task : std::exchange(tasks_, {})) task();
  }
  std::string Path(const char* name = "audit.log") const { return directory_.File(name); }

  const TempDir directory_;
  std::vector<std::function<void()>> tasks_;
};

TEST_F(AuditLogTest, LinesAreJsonWhateverTheNames) {
  AuditLog log(Path());
  ASSERT_TRUE(log.Open(Later()).ok());
  log.Add({.event = "denied",
           .reason = "key",
           .command = "get",
           .object = "a\"\\\n\xff",
           .context = "toplevel",
           .user = "app",
           .client = "127.0.0.1:5",
           .client_id = 7});
  log.Add({.event = "admin", .command = "config|set", .user = "default", .client = "c"});
  EXPECT_EQ(tasks_.size(), 1u) << "one writes at a time";
  EXPECT_EQ(Contents(Path()), "");
  RunTasks();
  EXPECT_EQ(Lines(Path()),
            "{\"event\":\"denied\",\"reason\":\"key\",\"command\":\"get\",\"object\":"
            "\"a\\\"\\\\\\u000a\\ufffd\",\"context\":\"toplevel\",\"user\":\"app\",\"client\":"
            "\"127.0.0.1:5\",\"id\":7}\n"
            "{\"event\":\"admin\",\"command\":\"config|set\",\"user\":\"default\",\"client\":\"c\","
            "\"id\":0}\n");
  EXPECT_EQ(Contents(Path()).find("{\"time\":\"2"), 0u);
}

TEST_F(AuditLogTest, WithoutAPathThereIsNone) {
  AuditLog log("");
  EXPECT_FALSE(log.on());
  EXPECT_TRUE(log.Open(Later()).ok());
  log.Add({.event = "admin"});
  log.Reopen();
  log.Stop();
  EXPECT_TRUE(tasks_.empty());
}

// The disk hangs: nobody waits, memory is bounded, and what is missing is told.
TEST_F(AuditLogTest, WhatFindsNoRoomIsCounted) {
  AuditLog log(Path());
  ASSERT_TRUE(log.Open(Later()).ok());
  const std::string object(1000, 'k');
  for (int i = 0; i < 3000; ++i) log.Add({.event = "denied", .object = object});
  RunTasks();
  const std::string before = Contents(Path());
  EXPECT_LE(before.size(), AuditLog::kMaxWaiting);
  EXPECT_GT(before.size(), AuditLog::kMaxWaiting - 2000);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  log.Add({.event = "admin", .command = "save"});
  RunTasks();
  EXPECT_EQ(Lines(Path()).substr(Lines(Path()).find("{\"event\":\"lost\"")),
            "{\"event\":\"lost\",\"lines\":" + std::to_string(3000 - lines) +
                "}\n{\"event\":\"admin\",\"command\":\"save\",\"id\":0}\n");
}

TEST_F(AuditLogTest, ItsFilesAreTheServersAlone) {
  const mode_t before = ::umask(0);
  const std::string path = Path("made/for/it.log");
  AuditLog log(path);
  ASSERT_TRUE(log.Open(Later()).ok());
  std::filesystem::rename(path, Path("old"));
  log.Reopen();
  RunTasks();
  log.Stop();
  ::umask(before);
  using std::filesystem::perms;
  for (const std::string& each : {path, Path("old")}) {
    EXPECT_EQ(std::filesystem::status(each).permissions(), perms::owner_read | perms::owner_write);
  }
}

TEST_F(AuditLogTest, AfterReopenLinesGoToANewFile) {
  AuditLog log(Path());
  ASSERT_TRUE(log.Open(Later()).ok());
  log.Add({.event = "admin", .command = "one"});
  RunTasks();
  std::filesystem::rename(Path(), Path("old"));
  log.Add({.event = "admin", .command = "two"});
  RunTasks();
  log.Reopen();
  RunTasks();
  EXPECT_TRUE(std::filesystem::exists(Path())) << "before there is a line for it";
  log.Add({.event = "admin", .command = "three"});
  log.Stop();
  EXPECT_NE(Contents(Path("old")).find("two"), std::string::npos);
  EXPECT_EQ(Contents(Path("old")).find("three"), std::string::npos);
  EXPECT_NE(Contents(Path()).find("three"), std::string::npos);
}

TEST_F(AuditLogTest, AFileThatCannotBeOpenedIsRefusedOrLeavesTheOldOneInUse) {
  AuditLog none(Path(""));
  EXPECT_TRUE(absl::IsInvalidArgument(none.Open(Later())));
  AuditLog log(Path());
  ASSERT_TRUE(log.Open(Later()).ok());
  std::filesystem::rename(Path(), Path("old"));
  std::filesystem::create_directory(Path());
  log.Reopen();
  log.Add({.event = "admin", .command = "one"});
  RunTasks();
  log.Add({.event = "admin", .command = "two"});
  RunTasks();
  EXPECT_NE(Contents(Path("old")).find("two"), std::string::npos);
}

TEST_F(AuditLogTest, ATaskThatIsNotTakenIsOfferedAgain) {
  AuditLog log(Path());
  bool takes = false;
  ASSERT_TRUE(log.Open([&](std::function<void()> task) {
                   if (takes) tasks_.push_back(std::move(task));
                   return takes;
                 })
                  .ok());
  log.Add({.event = "admin", .command = "one"});
  takes = true;
  log.Add({.event = "admin", .command = "two"});
  RunTasks();
  EXPECT_NE(Contents(Path()).find("one"), std::string::npos);
  EXPECT_NE(Contents(Path()).find("two"), std::string::npos);
}

}  // namespace
}  // namespace varve
