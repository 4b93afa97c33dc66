#include "db/history/time_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "db/format/file_names.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::TempDir;
using namespace std::string_literals;

class TimeFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<TimeMark>> Read(const TimeFilePlace& place) {
    return ReadTimeFile(PosixFileSystem(), dir_.path(), place);
  }
  TimeFilePlace Create(const std::vector<TimeMark>& marks) {
    return CreateTimeFile(PosixFileSystem(), dir_.path(), 7, marks).value();
  }
  TimeFilePlace Append(const TimeFilePlace& place, const std::vector<TimeMark>& marks) {
    return AppendToTimeFile(PosixFileSystem(), dir_.path(), place, marks).value();
  }
  std::string Bytes() {
    std::ifstream file(TimeFilePath(dir_.path(), 7), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void Write(const std::string& bytes) {
    std::ofstream(TimeFilePath(dir_.path(), 7), std::ios::binary) << bytes;
  }

  TempDir dir_;
  const std::vector<TimeMark> marks_ = {{5, 10'000}, {8, 11'000}};
};

TEST_F(TimeFileTest, GivesBackWhatWasAppended) {
  TimeFilePlace place = Create(marks_);
  EXPECT_EQ(Read(place).value(), marks_);
  const TimeFilePlace before = place;
  place = Append(place, {{20, 15'000}});
  EXPECT_EQ(Read(place).value(), (std::vector<TimeMark>{{5, 10'000}, {8, 11'000}, {20, 15'000}}));
  EXPECT_EQ(Read(before).value(), marks_) << "the manifest of before still names them";
}

TEST_F(TimeFileTest, AnAppendThatWasNotInstalledIsWrittenOver) {
  const TimeFilePlace place = Create(marks_);
  Append(place, {{20, 15'000}, {21, 16'000}});
  EXPECT_EQ(Read(Append(place, {{30, 17'000}})).value(),
            (std::vector<TimeMark>{{5, 10'000}, {8, 11'000}, {30, 17'000}}));
}

TEST_F(TimeFileTest, TakesSixteenBytesAMark) {
  std::vector<TimeMark> hour;
  for (uint64_t i = 0; i < 3600; ++i) hour.push_back({i + 1, 1'000'000 + i * 1000});
  EXPECT_LE(Create(hour).size, 24u + 8u + 16u * 3600u);
}

TEST_F(TimeFileTest, TheBytesNeverChange) {
  Create({{0x0102, 0x0304}});
  const std::string bytes = Bytes();
  EXPECT_EQ(bytes.substr(0, 12), "VARVETIM\1\0\0\0"s);
  EXPECT_EQ(bytes.substr(16, 8), "\7\0\0\0\0\0\0\0"s);
  EXPECT_EQ(bytes.substr(28), "\1\0\0\0\2\1\0\0\0\0\0\0\4\3\0\0\0\0\0\0"s);
}

TEST_F(TimeFileTest, EveryFlippedByteIsFound) {
  const TimeFilePlace place = Append(Create(marks_), {{20, 15'000}});
  const std::string good = Bytes();
  ASSERT_EQ(good.size(), place.size);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    Write(bytes);
    const absl::Status status = Read(place).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << at << ' ' << status;
    EXPECT_NE(std::string(status.message()).find("000007.tim is damaged at offset"),
              std::string::npos)
        << status;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    Write(good.substr(0, size));
    EXPECT_TRUE(absl::IsDataLoss(Read(place).status())) << size;
  }
}

TEST_F(TimeFileTest, AMissingFileIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(Read({7, 24}).status()));
}

}  // namespace
}  // namespace varve
