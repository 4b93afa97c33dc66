// Verifying a store of which some files are known to be good.
#include "tools/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "unit-tests/testing/temp_dir.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class VerifyKnownTest : public ::testing::Test {
 protected:
  VerifyKnownTest() {
    EngineOptions options;
    options.sync = Durability::kNone;
    options.value_separation_size = 1024;
    options.log_file_size = 64 << 10;
    auto store = StorageEngine::Open(dir_.path(), options);
    for (int i = 0; i < 100; ++i) {
      WriteBatch batch;
      batch.Put("key" + std::to_string(i), std::string(i % 2 == 0 ? 2000 : 20, 'v'));
      EXPECT_TRUE((*store)->Write({}, &batch).ok());
    }
    EXPECT_TRUE((*store)->Flush().ok());
    EXPECT_TRUE((*store)->Close().ok());
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(".seg")) segment_ = name;
      if (name.ends_with(".val")) values_ = name;
    }
    EXPECT_FALSE(segment_.empty());
  }

  std::vector<std::string> DamagedIfKnown(const std::set<std::string>& known) const {
    const auto report =
        VerifyStore(PosixFileSystem(), dir_.path(), {},
                    {.is_known = [&](const std::string& name) { return known.contains(name); }});
    EXPECT_TRUE(report.ok()) << report.status();
    std::set<std::string> files;
    for (const StoreFinding& finding : report->findings)
      if (finding.kind == StoreFinding::Kind::kDamage) files.insert(finding.file);
    return {files.begin(), files.end()};
  }
  void Damage(const std::string& name, uint64_t offset) const {
    std::fstream file(dir_.File(name), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put('\x55');
  }

  testing::TempDir dir_;
  std::string segment_;
  std::string values_;  // empty: they lie in a file that still has a log's name
};

TEST_F(VerifyKnownTest, AKnownSegmentIsReadNoFurtherThanItsFooter) {
  EXPECT_THAT(DamagedIfKnown({}), IsEmpty());
  EXPECT_THAT(DamagedIfKnown({segment_}), IsEmpty());
  Damage(segment_, 30);
  EXPECT_THAT(DamagedIfKnown({}), ElementsAre(segment_));
  EXPECT_THAT(DamagedIfKnown({segment_}), IsEmpty());
  Damage(segment_, std::filesystem::file_size(dir_.File(segment_)) - 2);
  EXPECT_THAT(DamagedIfKnown({segment_}), ElementsAre(segment_));
}

TEST_F(VerifyKnownTest, AKnownSegmentIsThereAndHasItsSize) {
  std::filesystem::resize_file(dir_.File(segment_),
                               std::filesystem::file_size(dir_.File(segment_)) + 1);
  EXPECT_THAT(DamagedIfKnown({segment_}), ElementsAre(segment_));
  std::filesystem::remove(dir_.File(segment_));
  EXPECT_THAT(DamagedIfKnown({segment_}), ElementsAre(segment_));
}

TEST_F(VerifyKnownTest, ValuesOfAKnownFileAreNotReadButLieInIt) {
  // The log gives the file its name as a value file when it is through with it; a copy has it.
  if (values_.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      const std::string name = entry.path().filename().string();
      if (name == "000001.log") std::filesystem::rename(entry.path(), dir_.File("000001.val"));
    }
    values_ = "000001.val";
  }
  const std::string path = dir_.File(values_);
  ASSERT_TRUE(std::filesystem::exists(path));
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Damage(values_, bytes.rfind(std::string(1500, 'v')));
  EXPECT_THAT(DamagedIfKnown({}), Contains(values_));
  EXPECT_THAT(DamagedIfKnown({values_}), Not(Contains(values_)));
  EXPECT_THAT(DamagedIfKnown({segment_}), Contains(values_));
  EXPECT_THAT(DamagedIfKnown({segment_, values_}), Not(Contains(values_)));
  std::filesystem::resize_file(path, bytes.rfind(std::string(1500, 'v')) - 100);
  EXPECT_THAT(DamagedIfKnown({values_}), Contains(values_));
  std::filesystem::remove(path);
  EXPECT_THAT(DamagedIfKnown({segment_, values_}), Contains(values_));
}

}  // namespace
}  // namespace varve
