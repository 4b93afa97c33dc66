#include "db/format/file_header.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

using namespace std::string_literals;

constexpr FileKind kKind = {.magic = "VARVECHG", .version = 1, .name = "change file"};
constexpr uint64_t kNumber = 0x0102030405;

TEST(FileHeaderTest, TheBytesNeverChange) {
  EXPECT_EQ(EncodeFileHeader(kKind, kNumber), "VARVECHG\1\0\0\0\xe7\xb1\x11\xcb\5\4\3\2\1\0\0\0"s);
  EXPECT_EQ(EncodeFileHeader({.magic = "VARVETIM", .version = 1}, 7),
            "VARVETIM\1\0\0\0\x57\xe6\x14\xc5\7\0\0\0\0\0\0\0"s);
  EXPECT_EQ(EncodeFileHeader({.magic = "VARVEVAL", .version = 1}, 7),
            "VARVEVAL\1\0\0\0\x35\xa1\x54\x43\7\0\0\0\0\0\0\0"s);
}

TEST(FileHeaderTest, EveryFlippedBitIsFound) {
  const std::string header = EncodeFileHeader(kKind, kNumber);
  EXPECT_TRUE(CheckFileHeader(kKind, header + "more", "f", kNumber).ok());
  for (size_t bit = 0; bit < 8 * header.size(); ++bit) {
    std::string damaged = header;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_TRUE(absl::IsDataLoss(CheckFileHeader(kKind, damaged, "f", kNumber))) << bit;
  }
  for (size_t size = 0; size < header.size(); ++size)
    EXPECT_TRUE(absl::IsDataLoss(CheckFileHeader(kKind, header.substr(0, size), "f", kNumber)));
}

TEST(FileHeaderTest, AnotherFileIsRefused) {
  const std::string header = EncodeFileHeader(kKind, kNumber);
  EXPECT_EQ(CheckFileHeader(kKind, header, "f", 7).message(),
            "f is damaged at offset 16: change file header: says that it is file 4328719365");
  FileKind other = kKind;
  other.magic = "VARVETIM";
  EXPECT_TRUE(absl::IsDataLoss(CheckFileHeader(other, header, "f", kNumber)));
  other = kKind;
  other.version = 2;
  const absl::Status status = CheckFileHeader(other, header, "f", kNumber);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(),
            "f: change file format version 1, but this program reads version 2; use the version of "
            "Varve that wrote it");
}

}  // namespace
}  // namespace varve
