#include "util/os/file_system.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/os/forwarding_file.h"

namespace varve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FileSystemTest : public ::testing::Test {
 protected:
  FileSystem* const fs_ = PosixFileSystem();
  testing::TempDir dir_;
};

std::string ReadAll(const File& file) {
  std::string content(file.Size().value(), '\0');
  EXPECT_EQ(file.Read(0, content.size(), content.data()).value(), content.size());
  return content;
}

TEST_F(FileSystemTest, AForwardingFileIsAsTheOneBeneathIt) {
  ForwardingFile file(fs_->OpenForWrite(dir_.File("a"), /*create=*/true).value());
  ASSERT_TRUE(file.Write(0, "head").ok());
  ASSERT_TRUE(file.Write(4, "tail").ok());
  file.StartWriteback(0, 8);
  ASSERT_TRUE(file.Sync().ok());
  file.Prefetch(0, 8);
  EXPECT_EQ(ReadAll(file), "headtail");
  ASSERT_TRUE(file.Truncate(3).ok());
  EXPECT_EQ(file.Size().value(), 3u);
  EXPECT_EQ(file.path(), dir_.File("a"));
}

TEST_F(FileSystemTest, AFileTellsWhatSeemsToBeInMemory) {
  const auto file = fs_->OpenForWrite(dir_.File("a"), /*create=*/true).value();
  ASSERT_TRUE(file->Write(0, std::string(64 << 10, 'v')).ok());
  EXPECT_EQ(ReadAll(*file).size(), 64u << 10);
  EXPECT_FALSE(file->Prefetch(1 << 20, 4096)) << "nothing is there";
  const int descriptor = ::open(dir_.File("a").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  char byte = 0;
  const iovec one{&byte, 1};
  const bool tells = ::preadv2(descriptor, &one, 1, 8192, RWF_NOWAIT) == 1;
  ::close(descriptor);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(file->Prefetch(8192, 4096), tells);
}

TEST_F(FileSystemTest, WritesLandAtTheirOffsetsAndGrowTheFile) {
  const auto file = fs_->OpenForWrite(dir_.File("a"), /*create=*/true).value();
  ASSERT_TRUE(file->Write(4, "tail").ok());
  ASSERT_TRUE(file->Write(0, "head").ok());
  ASSERT_TRUE(file->Write(10, "!").ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(ReadAll(*file), std::string("headtail\0\0!", 11));
  ASSERT_TRUE(file->Truncate(3).ok());
  EXPECT_EQ(ReadAll(*fs_->OpenForRead(dir_.File("a")).value()), "hea");
}

TEST_F(FileSystemTest, DurableWritesAreSeenAtOnceWhateverTheirAlignment) {
  struct alignas(kDirectAlignment) Pages {
    char bytes[3 * kDirectAlignment];
  };
  const auto pages = std::make_unique<Pages>();
  std::memset(pages->bytes, 'p', sizeof(pages->bytes));
  const std::string_view aligned(pages->bytes, 2 * kDirectAlignment);
  // A file system in memory may refuse direct writes.
  for (const std::string& path :
       {dir_.File("a"), fmt::format("/dev/shm/varve-file-system-test-{}", ::getpid())}) {
    const auto file = fs_->OpenForWrite(path, /*create=*/true).value();
    std::string expected(4 * kDirectAlignment, '\0');
    ASSERT_TRUE(file->Write(0, expected).ok());
    ASSERT_TRUE(fs_->Rename(path, path + ".renamed").ok());
    const auto write = [&](uint64_t offset, std::string_view data) {
      expected.replace(offset, data.size(), data);
      ASSERT_TRUE(file->WriteDurably(offset, data).ok());
      ASSERT_EQ(ReadAll(*file), expected);
    };
    write(kDirectAlignment, aligned);
    write(100, "no page");
    write(2 * kDirectAlignment, std::string_view(pages->bytes + 1, kDirectAlignment));
    ASSERT_TRUE(file->Write(kDirectAlignment + 7, "through the kernel's cache").ok());
    expected.replace(kDirectAlignment + 7, 26, "through the kernel's cache");
    write(3 * kDirectAlignment, aligned.substr(0, kDirectAlignment));
    ASSERT_TRUE(fs_->Remove(path + ".renamed").ok());
  }
}

TEST_F(FileSystemTest, AReadBehindTheEndIsShort) {
  const auto file = fs_->OpenForWrite(dir_.File("a"), true).value();
  ASSERT_TRUE(file->Write(0, "12345").ok());
  char buffer[8];
  EXPECT_EQ(file->Read(3, sizeof(buffer), buffer).value(), 2u);
  EXPECT_EQ(std::string(buffer, 2), "45");
  EXPECT_EQ(file->Read(5, sizeof(buffer), buffer).value(), 0u);
}

TEST_F(FileSystemTest, CreateEmptiesAndOpenKeeps) {
  ASSERT_TRUE(fs_->OpenForWrite(dir_.File("a"), true).value()->Write(0, "kept").ok());
  EXPECT_EQ(ReadAll(*fs_->OpenForWrite(dir_.File("a"), false).value()), "kept");
  EXPECT_EQ(fs_->OpenForWrite(dir_.File("a"), true).value()->Size().value(), 0u);
  EXPECT_TRUE(absl::IsNotFound(fs_->OpenForWrite(dir_.File("b"), false).status()));
}

TEST_F(FileSystemTest, FilesAndDirectoriesAreTheOwnersAlone) {
  ASSERT_TRUE(fs_->CreateDirectory(dir_.File("d")).ok());
  ASSERT_TRUE(fs_->OpenForWrite(dir_.File("d/f"), true).ok());
  struct stat info;
  ASSERT_EQ(::stat(dir_.File("d").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat(dir_.File("d/f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(FileSystemTest, DirectoriesAreCreatedWithTheirParentsAndListedSorted) {
  ASSERT_TRUE(fs_->CreateDirectory(dir_.File("x/y/z")).ok());
  ASSERT_TRUE(fs_->CreateDirectory(dir_.File("x/y/z")).ok());
  for (const char* name : {"b", "a", "c"})
    ASSERT_TRUE(fs_->OpenForWrite(dir_.File("x/y/") + name, true).ok());
  EXPECT_THAT(fs_->List(dir_.File("x/y")).value(), ElementsAre("a", "b", "c", "z"));
  EXPECT_TRUE(absl::IsNotFound(fs_->List(dir_.File("nowhere")).status()));
  EXPECT_FALSE(fs_->CreateDirectory(dir_.File("x/y/a")).ok())
      << "a file of that name is in the way";
}

TEST_F(FileSystemTest, AnEmptyDirectoryIsRenamedAndRemoved) {
  const std::string directory = dir_.File("d");
  ASSERT_TRUE(fs_->CreateDirectory(directory).ok());
  ASSERT_TRUE(fs_->OpenForWrite(directory + "/a", /*create=*/true).ok());
  EXPECT_FALSE(fs_->Remove(directory).ok());
  ASSERT_TRUE(fs_->CreateDirectory(dir_.File("empty")).ok());
  ASSERT_TRUE(fs_->Rename(directory, dir_.File("empty")).ok());
  EXPECT_THAT(fs_->List(dir_.File("empty")).value(), ElementsAre("a"));
  ASSERT_TRUE(fs_->Remove(dir_.File("empty/a")).ok());
  ASSERT_TRUE(fs_->Remove(dir_.File("empty")).ok());
  EXPECT_THAT(fs_->List(dir_.path()).value(), ::testing::IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(fs_->Remove(directory)));
}

TEST_F(FileSystemTest, RenameReplacesAndRemoveRemoves) {
  ASSERT_TRUE(fs_->OpenForWrite(dir_.File("a"), true).value()->Write(0, "new").ok());
  ASSERT_TRUE(fs_->OpenForWrite(dir_.File("b"), true).value()->Write(0, "old").ok());
  ASSERT_TRUE(fs_->Rename(dir_.File("a"), dir_.File("b")).ok());
  ASSERT_TRUE(fs_->SyncDirectory(dir_.path()).ok());
  EXPECT_THAT(fs_->List(dir_.path()).value(), ElementsAre("b"));
  EXPECT_EQ(ReadAll(*fs_->OpenForRead(dir_.File("b")).value()), "new");
  ASSERT_TRUE(fs_->Remove(dir_.File("b")).ok());
  EXPECT_TRUE(fs_->List(dir_.path()).value().empty());
}

TEST_F(FileSystemTest, ALinkIsASecondNameOfTheFile) {
  const auto file = fs_->OpenForWrite(dir_.File("a"), true).value();
  EXPECT_EQ(file->CountLinks().value(), 1u);
  ASSERT_TRUE(fs_->Link(dir_.File("a"), dir_.File("b")).ok());
  EXPECT_EQ(file->CountLinks().value(), 2u);
  ASSERT_TRUE(file->Write(0, "both").ok());
  EXPECT_EQ(ReadAll(*fs_->OpenForRead(dir_.File("b")).value()), "both");
  const absl::Status taken = fs_->Link(dir_.File("a"), dir_.File("b"));
  EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
  ASSERT_TRUE(fs_->Remove(dir_.File("a")).ok());
  EXPECT_EQ(ReadAll(*fs_->OpenForRead(dir_.File("b")).value()), "both");
  EXPECT_TRUE(absl::IsNotFound(fs_->Link(dir_.File("a"), dir_.File("c"))));
}

TEST_F(FileSystemTest, ErrorsNameOperationAndPath) {
  const absl::Status missing = fs_->OpenForRead(dir_.File("gone")).status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()), HasSubstr("open " + dir_.File("gone")));
  EXPECT_TRUE(absl::IsNotFound(fs_->Remove(dir_.File("gone"))));
  const absl::Status rename = fs_->Rename(dir_.File("gone"), dir_.File("b"));
  EXPECT_TRUE(absl::IsNotFound(rename));
  EXPECT_THAT(std::string(rename.message()), HasSubstr(dir_.File("b")));
  EXPECT_TRUE(absl::IsNotFound(fs_->SyncDirectory(dir_.File("gone"))));
  // A file that was opened for reading alone refuses writes.
  ASSERT_TRUE(fs_->OpenForWrite(dir_.File("a"), true).ok());
  const absl::Status write = fs_->OpenForRead(dir_.File("a")).value()->Write(7, "x");
  EXPECT_FALSE(write.ok());
  EXPECT_THAT(std::string(write.message()), HasSubstr("at offset 7"));
}

TEST_F(FileSystemTest, ADirectoryIsLockedOnceAndGivenBack) {
  auto lock = fs_->Lock(dir_.File("LOCK"));
  ASSERT_TRUE(lock.ok());
  const absl::Status second = fs_->Lock(dir_.File("LOCK")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
  EXPECT_THAT(std::string(second.message()), HasSubstr("LOCK"));
  lock->reset();
  EXPECT_TRUE(fs_->Lock(dir_.File("LOCK")).ok());
}

}  // namespace
}  // namespace varve
