#include "util/os/file_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

TEST(FileWindowTest, ShowsWhatTheFileHolds) {
  testing::TempDir dir;
  std::string content;
  for (uint64_t i = 0; content.size() < 3 * FileWindow::kPiece; ++i)
    content += std::to_string(i * 7919);
  const std::unique_ptr<File> file =
      PosixFileSystem()->OpenForWrite(dir.File("f"), /*create=*/true).value();
  ASSERT_TRUE(file->Write(0, content).ok());

  FileWindow window(*file);
  const auto expect = [&](uint64_t offset, uint64_t wanted, uint64_t end) {
    const absl::StatusOr<std::string_view> bytes = window.Bytes(offset, wanted, end);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_GE(bytes->size(), std::min({wanted, end - offset, content.size() - offset}));
    EXPECT_LE(bytes->size(), end - offset);
    EXPECT_TRUE(*bytes == std::string_view(content).substr(offset, bytes->size()));
  };
  const uint64_t size = content.size();
  for (uint64_t offset = 0; offset < size; offset += 77'777) expect(offset, 100, size);
  expect(FileWindow::kPiece - 10, 20, size);  // across two pieces
  expect(5, 2 * FileWindow::kPiece, size);    // more than a piece
  expect(100, 10, 105);                       // from what is there, up to a nearer end
  expect(size - 10, 100, size + 100);         // beyond the end of the file
  expect(size, 100, size);
  expect(0, 1, size);  // and back
  EXPECT_EQ(window.Bytes(50, 0, 50)->size(), 0u);
}

}  // namespace
}  // namespace varve
