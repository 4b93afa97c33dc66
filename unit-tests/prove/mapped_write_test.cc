// Writes through mapped memory (util/os/mapped_window.h) on a real file system that shuts down.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "unit-tests/prove/loop_device.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/os/file_system.h"

namespace varve::prove {
namespace {

TEST(MappedWriteTest, AFileSystemThatShutDownTakesNoMappedWrite) {
  testing::TempDir directory;
  const absl::StatusOr<std::unique_ptr<LoopDevice>> device = LoopDevice::Mount(directory.path());
  if (absl::IsUnavailable(device.status())) GTEST_SKIP() << device.status();
  ASSERT_TRUE(device.ok()) << device.status();
  absl::StatusOr<std::unique_ptr<File>> file =
      PosixFileSystem()->OpenForWrite((*device)->path() + "/file", /*create=*/true);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Allocate(0, 1u << 20).ok());
  ASSERT_TRUE((*file)->WriteInPlace(0, "before").ok());
  ASSERT_TRUE((*device)->CutPower(LoopDevice::Cut::kNothing).ok());
  // On a page that is there, and on one that is not.
  EXPECT_TRUE(absl::IsInternal((*file)->WriteInPlace(6, "after")));
  EXPECT_TRUE(absl::IsInternal((*file)->WriteInPlace(100'000, "after")));
  file->reset();  // else it can't be unmounted
}

}  // namespace
}  // namespace varve::prove
