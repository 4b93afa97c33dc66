#include "util/os/mapped_reads.h"

#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

constexpr uint64_t kMi = uint64_t{1} << 20;
constexpr int kReadsUntilMapped = 20;

uint64_t ResidentFileBytes() {
  unsigned long long total = 0, resident = 0, of_files = 0;
  FILE* const file = ::fopen("/proc/self/statm", "re");
  EXPECT_EQ(std::fscanf(file, "%llu %llu %llu", &total, &resident, &of_files), 3);
  ::fclose(file);
  return of_files * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

class MappedReadsTest : public ::testing::Test {
 protected:
  // Makes a file whose page i is full of the letter i modulo 26.
  void Make(uint64_t pages) {
    auto file = PosixFileSystem()->OpenForWrite(path_, /*create=*/true);
    ASSERT_TRUE(file.ok());
    for (uint64_t i = 0; i < pages; ++i)
      ASSERT_TRUE((*file)->Write(i * 4096, std::string(4096, LetterOf(i))).ok());
  }
  // Opens it and reads its first bytes until it is mapped.
  std::unique_ptr<File> OpenMapped(uint64_t budget) {
    auto file = MappedFileSystem(budget)->OpenForRead(path_);
    EXPECT_TRUE(file.ok());
    char byte = 0;
    for (int i = 0; i < kReadsUntilMapped; ++i) EXPECT_EQ(*(*file)->Read(0, 1, &byte), 1u);
    return *std::move(file);
  }
  static char LetterOf(uint64_t page) { return static_cast<char>('a' + page % 26); }

  const testing::TempDir dir_;
  const std::string path_ = dir_.File("file");
};

TEST_F(MappedReadsTest, ReadsWhatIsInTheFile) {
  Make(10);
  const std::unique_ptr<File> file = OpenMapped(64 * kMi);
  std::string bytes(5000, 0);
  EXPECT_EQ(*file->Read(4096 * 3 - 100, bytes.size(), bytes.data()), bytes.size());
  EXPECT_EQ(bytes, std::string(100, 'c') + std::string(4096, 'd') + std::string(804, 'e'));
  EXPECT_EQ(*file->Read(4096 * 10 - 7, bytes.size(), bytes.data()), 7u) << "up to the end";
  EXPECT_EQ(*file->Read(4096 * 11, bytes.size(), bytes.data()), 0u) << "behind it";
}

// Without the guard the signal ends the process.
TEST_F(MappedReadsTest, APageThatIsGoneIsReadByCall) {
  Make(10);
  const std::unique_ptr<File> file = OpenMapped(64 * kMi);
  ASSERT_EQ(::truncate(path_.c_str(), 4096), 0);
  std::string bytes(4096, 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(*file->Read(4096 * 5, bytes.size(), bytes.data()), 0u);
    EXPECT_EQ(*file->Read(0, bytes.size(), bytes.data()), bytes.size());
    EXPECT_EQ(bytes, std::string(4096, 'a'));
  }
}

TEST_F(MappedReadsTest, ACopyThatFailsSaysSo) {
  InstallMappedReadGuard();
  Make(2);
  auto file = PosixFileSystem()->OpenForRead(path_);
  const char* const mapped = (*file)->Map(8192);
  ASSERT_NE(mapped, nullptr);
  char byte = 0;
  EXPECT_TRUE(GuardedCopy(mapped + 4096, 1, &byte));
  EXPECT_EQ(byte, 'b');
  ASSERT_EQ(::truncate(path_.c_str(), 4096), 0);
  EXPECT_FALSE(GuardedCopy(mapped + 4096, 1, &byte));
  EXPECT_TRUE(GuardedCopy(mapped, 1, &byte));
  ::munmap(const_cast<char*>(mapped), 8192);
}

// The guard is for guarded copies alone: what else fails ends the process as before.
TEST_F(MappedReadsTest, AnotherReadThatFailsEndsTheProcess) {
  Make(2);
  auto file = PosixFileSystem()->OpenForRead(path_);
  const volatile char* const mapped = (*file)->Map(8192);
  ASSERT_NE(mapped, nullptr);
  ASSERT_EQ(::truncate(path_.c_str(), 4096), 0);
  EXPECT_DEATH(
      {
        InstallMappedReadGuard();
        const char byte = mapped[4096];
        std::exit(byte);
      },
      "");
}

TEST_F(MappedReadsTest, PagesBeyondTheBudgetAreGivenBack) {
  constexpr uint64_t kPages = 48 * 256;
  Make(kPages);
  // Other tests of this process may have given a budget, and the largest counts.
  const uint64_t budget = 64 * kMi;
  const uint64_t before = ResidentFileBytes();  // of the program and its libraries
  const std::unique_ptr<File> file = OpenMapped(budget);
  const std::string other = dir_.File("other");
  ASSERT_TRUE(PosixFileSystem()->Link(path_, other).ok());
  std::vector<std::unique_ptr<File>> files;
  uint64_t most = 0;
  // The same pages in another mapping are resident once more.
  for (int i = 0; i < 6; ++i) {
    files.push_back(OpenMapped(budget));
    char byte = 0;
    for (uint64_t page = 0; page < kPages; ++page) {
      ASSERT_EQ(*files.back()->Read(page * 4096, 1, &byte), 1u);
      ASSERT_EQ(byte, LetterOf(page));
      if (page % 512 == 0) most = std::max(most, ResidentFileBytes());
    }
  }
  EXPECT_GT(most, before + 16 * kMi) << "they are mapped";
  EXPECT_LE(most, before + budget + 16 * kMi) << "six times 48 MiB have been read";
}

TEST_F(MappedReadsTest, OtherCallsGoToTheFileBeneath) {
  Make(1);
  FileSystem* const files = MappedFileSystem(64 * kMi);
  EXPECT_EQ((*files->OpenForRead(path_))->path(), path_);
  EXPECT_TRUE(absl::IsNotFound(files->OpenForRead(dir_.File("none")).status()));
  ASSERT_TRUE(files->Rename(path_, dir_.File("b")).ok());
  EXPECT_EQ(*files->List(dir_.File(".")), std::vector<std::string>{"b"});
  ASSERT_TRUE(files->Remove(dir_.File("b")).ok());
}

}  // namespace
}  // namespace varve
