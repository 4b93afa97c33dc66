#include "server/access/acl_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "unit-tests/server/user_commands/test_catalog.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::Rules;
using testing::TempDir;
using testing::UserWith;

std::string FileErrorOf(std::string_view text) {
  const absl::StatusOr<std::vector<User>> users = ParseAclText(Rules(), "users.acl", text);
  const absl::string_view message = users.status().message();
  return {message.data(), message.size()};
}

std::vector<UserPointer> Users(const std::vector<std::string>& rules) {
  std::vector<UserPointer> users;
  for (const std::string& each : rules) {
    User user = UserWith(each);
    user.name = "user" + std::to_string(users.size());
    users.push_back(std::make_shared<const User>(std::move(user)));
  }
  return users;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(AclFileTest, WhatIsWrittenIsRead) {
  const TempDir directory;
  const std::string path = directory.File("users.acl");
  const std::vector<UserPointer> users =
      Users({"on >pw ~a* %R~b &c +get +@read", "off", "on nopass (~x +set) db=1 ns=app",
             "on nopass maxclients=3 cidr=10.0.0.0/8 cidr=fd00::/8 expires=1790000000"});
  ASSERT_TRUE(WriteAclFile(PosixFileSystem(), path, users).ok());
  const absl::StatusOr<std::vector<User>> read = ReadAclFile(Rules(), path);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), users.size());
  for (size_t i = 0; i < users.size(); ++i)
    EXPECT_EQ(DescribeUser((*read)[i]), DescribeUser(*users[i]));
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST(AclFileTest, BlanksAndEmptyLinesDoNotMatter) {
  const auto users =
      ParseAclText(Rules(), "f", "\n  user a  on   +get \r\n\n\tuser b off\n\nuser c on");
  ASSERT_TRUE(users.ok()) << users.status();
  ASSERT_EQ(users->size(), 3u);
  EXPECT_EQ(DescribeUser((*users)[0]), "user a on resetchannels -@all +get");
  EXPECT_TRUE(ParseAclText(Rules(), "f", "")->empty());
}

TEST(AclFileTest, ErrorsNameFileAndLine) {
  EXPECT_EQ(FileErrorOf("user a on\nfoo b\n"),
            "users.acl:2: should start with user keyword followed by the username.");
  EXPECT_EQ(FileErrorOf("user\n"),
            "users.acl:1: should start with user keyword followed by the username.");
  EXPECT_EQ(FileErrorOf("user a on\n\nuser a off\n"), "users.acl:3: Duplicate user 'a' found.");
  EXPECT_EQ(FileErrorOf("user a +nosuch\nuser b ~x\nuser c (+get\n"),
            "users.acl:1: Error in applying operation '+nosuch': Unknown command or category name "
            "in ACL. users.acl:3: Unmatched parenthesis in acl selector starting at '(+get'.");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "wrong\n";
  EXPECT_LT(FileErrorOf(many).size(), 1000u);
}

TEST(AclFileTest, WhatIsNoFileIsRefused) {
  const TempDir directory;
  EXPECT_TRUE(absl::IsNotFound(ReadAclFile(Rules(), directory.File("none")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadAclFile(Rules(), directory.File("")).status()));
  EXPECT_FALSE(WriteAclFile(PosixFileSystem(), directory.File("none/users"), Users({"on"})).ok());
}

TEST(AclFileTest, AFileKeepsItsModeAndALinkStaysOne) {
  const TempDir directory;
  const std::string path = directory.File("users.acl"), link = directory.File("link");
  ASSERT_TRUE(WriteAclFile(PosixFileSystem(), path, Users({"on"})).ok());
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  std::filesystem::create_symlink("users.acl", link);
  ASSERT_TRUE(WriteAclFile(PosixFileSystem(), link, Users({"off"})).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  EXPECT_EQ(Contents(path), "user user0 off resetchannels -@all\n");
}

TEST(AclFileTest, DamagedTextIsReadOrRefusedAndNeverHalfOfIt) {
  std::mt19937 random(11);
  std::string text;
  for (const UserPointer& user : Users({"on >pw ~a* +get (~b +@read)", "off &x -@all db=1"}))
    text += DescribeUser(*user) + "\n";
  for (int run = 0; run < 5000; ++run) {
    std::string damaged = text.substr(0, random() % 8 == 0 ? random() % text.size() : text.size());
    for (size_t i = random() % 4; i > 0 && !damaged.empty(); --i)
      damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    const auto users = ParseAclText(Rules(), "users.acl", damaged);
    if (!users.ok()) {
      EXPECT_TRUE(FileErrorOf(damaged).starts_with("users.acl:"));
      continue;
    }
    std::string again;
    for (const User& user : *users) again += DescribeUser(user) + "\n";
    EXPECT_TRUE(ParseAclText(Rules(), "users.acl", again).ok()) << damaged;
  }
}

// A process that is killed while it writes leaves a file that was whole once.
TEST(AclFileTest, AKillLeavesTheOldFileOrTheNewOne) {
  const TempDir directory;
  const std::string path = directory.File("users.acl");
  const std::vector<UserPointer> one = Users(std::vector<std::string>(400, "on ~one:* +get"));
  const std::vector<UserPointer> other = Users(std::vector<std::string>(300, "on ~other:* +set"));
  ASSERT_TRUE(WriteAclFile(PosixFileSystem(), path, one).ok());
  const std::string first = Contents(path);
  ASSERT_TRUE(WriteAclFile(PosixFileSystem(), path, other).ok());
  const std::string second = Contents(path);
  for (int run = 0; run < 20; ++run) {
    int progress[2];
    ASSERT_EQ(::pipe(progress), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0;; ++i) {
        if (!WriteAclFile(PosixFileSystem(), path, i % 2 == 0 ? one : other).ok()) ::_exit(1);
        (void)!::write(progress[1], "x", 1);
      }
    }
    char byte = 0;
    for (int i = 0; i <= run % 3; ++i) ASSERT_EQ(::read(progress[0], &byte, 1), 1);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(progress[0]);
    ::close(progress[1]);
    const std::string now = Contents(path);
    EXPECT_TRUE(now == first || now == second) << now.size();
    EXPECT_TRUE(ReadAclFile(Rules(), path).ok());
  }
}

}  // namespace
}  // namespace varve
