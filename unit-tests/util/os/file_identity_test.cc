#include "util/os/file_identity.h"

#include <gtest/gtest.h>

#include "unit-tests/testing/temp_dir.h"
#include "util/os/file_system.h"

namespace varve {
namespace {

TEST(FileIdentityTest, TwoNamesOfOneFileAreTold) {
  const testing::TempDir dir;
  FileSystem* const files = PosixFileSystem();
  for (const char* name : {"a", "b"})
    ASSERT_TRUE(files->OpenForWrite(dir.File(name), /*create=*/true).ok());
  ASSERT_TRUE(files->Link(dir.File("a"), dir.File("c")).ok());
  EXPECT_TRUE(IdentityOf(dir.File("a")).has_value());
  EXPECT_EQ(IdentityOf(dir.File("a")), IdentityOf(dir.File("c")));
  EXPECT_NE(IdentityOf(dir.File("a")), IdentityOf(dir.File("b")));
  EXPECT_FALSE(IdentityOf(dir.File("d")).has_value());
}

}  // namespace
}  // namespace varve
