#include "util/os/mapped_window.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>
#include <string>

#include "unit-tests/testing/temp_dir.h"
#include "util/os/file_system.h"

namespace varve {
namespace {

using Result = MappedWindow::Result;

class MappedWindowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    descriptor_ = ::open(dir_.File("file").c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_GE(descriptor_, 0);
    ASSERT_EQ(::ftruncate(descriptor_, kSize), 0);
    if (window_.Write(descriptor_, 0, "x") == Result::kNotMapped)
      GTEST_SKIP() << "not mapped on this file system";
  }
  void TearDown() override { ::close(descriptor_); }

  static constexpr size_t kSize = 3 * MappedWindow::kSize;
  testing::TempDir dir_;
  int descriptor_ = -1;
  MappedWindow window_;
};

TEST_F(MappedWindowTest, WhatIsWrittenIsReadByOthersAtOnce) {
  std::mt19937 random(1);
  std::string expected(kSize, '\0');
  for (int i = 0; i < 300; ++i) {
    const size_t size = random() % 20'000;
    const size_t offset = random() % (kSize - size);
    const std::string data(size, static_cast<char>('a' + i % 26));
    ASSERT_EQ(window_.Write(descriptor_, offset, data), Result::kWritten);
    expected.replace(offset, size, data);
    std::string read(size, '\0');
    ASSERT_EQ(::pread(descriptor_, read.data(), size, static_cast<off_t>(offset)),
              static_cast<ssize_t>(size));
    ASSERT_EQ(read, data);
  }
  const std::string across(2 * MappedWindow::kSize, 'w');
  ASSERT_EQ(window_.Write(descriptor_, MappedWindow::kSize / 2, across), Result::kWritten);
  expected.replace(MappedWindow::kSize / 2, across.size(), across);
  expected[0] = expected[0] == '\0' ? 'x' : expected[0];
  std::string all(kSize, '\0');
  ASSERT_EQ(::pread(descriptor_, all.data(), kSize, 0), static_cast<ssize_t>(kSize));
  EXPECT_TRUE(all == expected);
}

TEST_F(MappedWindowTest, APageThatCanNotBeHadIsAnError) {
  ASSERT_EQ(::ftruncate(descriptor_, 4096), 0);  // behind its end there are none
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(window_.Write(descriptor_, 3000, std::string(5000, 'x')), Result::kFailed);
    EXPECT_EQ(window_.Write(descriptor_, 100, "fits"), Result::kWritten);
  }
}

TEST_F(MappedWindowTest, AFileTellsWhatFailed) {
  const auto file = PosixFileSystem()->OpenForWrite(dir_.File("file"), /*create=*/false);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->WriteInPlace(5000, "small").ok());
  ASSERT_TRUE((*file)->WriteInPlace(100'000, std::string(100'000, 'l')).ok());  // by a system call
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_EQ(::ftruncate(descriptor_, 8192), 0);
  const absl::Status failed = (*file)->WriteInPlace(9000, "small");
  EXPECT_TRUE(absl::IsInternal(failed)) << failed;
  EXPECT_NE(failed.message().find("file at offset 9000"), std::string::npos) << failed;
}

// What is none of ours ends the process as it would have, or reaches the handler that was there
// before.
using MappedWindowDeathTest = MappedWindowTest;

TEST_F(MappedWindowDeathTest, OtherBusErrorsStayWhatTheyAre) {
  ASSERT_EQ(::ftruncate(descriptor_, 4096), 0);
  void* const memory = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  ASSERT_NE(memory, MAP_FAILED);
  volatile char* const behind = static_cast<char*>(memory) + 5000;
  EXPECT_DEATH(*behind = 1, "");
  EXPECT_DEATH(::raise(SIGBUS), "");
  ::munmap(memory, 8192);
}

}  // namespace
}  // namespace varve
