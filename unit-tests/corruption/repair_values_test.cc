// What a repair makes of stores with damaged value files: the values that can't be read are listed
// and given up, all others stay.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tools/repair/repair.h"
#include "tools/verify.h"
#include "unit-tests/corruption/store_image.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using testing::Content;
using testing::ContentOf;
using testing::DamageStep;
using testing::FooterOf;
using testing::ImageOptions;
using testing::Killed;
using testing::kStoreDirectory;
using testing::MakeDenseStoreImage;
using testing::MemoryFileSystem;
using testing::ReadDamagedStore;
using testing::Reading;
using testing::StoreImage;
using Files = MemoryFileSystem::Files;

std::string ValueFileOf(const StoreImage& image) {
  for (const auto& [path, bytes] : image.files) {
    if (path.ends_with(".val")) return path;
  }
  return "";
}

// Repairs the files, which are damaged; returns what the store holds then.
Content Repaired(const StoreImage& image, const Files& files, size_t* lost) {
  MemoryFileSystem file_system(files);
  const auto report = RepairStore(&file_system, std::string(kStoreDirectory), {});
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok()) return {};
  *lost = report->lost.size();
  const Files repaired = file_system.files();
  MemoryFileSystem again(repaired);
  const auto verified = VerifyStore(&again, std::string(kStoreDirectory), {});
  EXPECT_TRUE(verified.ok() && verified->damaged_places == 0) << verified.status();
  for (const auto& before : files) {
    const bool is_kept = std::any_of(repaired.begin(), repaired.end(), [&](const auto& after) {
      return after.second == before.second;
    });
    EXPECT_TRUE(is_kept || before.first.find("MANIFEST") != std::string::npos) << before.first;
  }
  Content content = ContentOf(repaired);
  for (const auto& [key, value] : content) {
    const auto expected = image.model.find(key);
    EXPECT_TRUE(expected != image.model.end() && expected->second == value) << key;
  }
  return content;
}

void ExpectOneKeyLostAtMost(const StoreImage& image) {
  const std::string path = ValueFileOf(image);
  ASSERT_NE(path, "");
  const size_t size = image.files.at(path).size();
  size_t keys_lost = 0;
  for (size_t offset = 5000; offset < size;
       offset += DamageStep() * std::max<size_t>(1, size / 40)) {
    SCOPED_TRACE(path + " with a flip at " + std::to_string(offset));
    Files files = image.files;
    files.at(path)[offset] ^= 4;
    size_t listed = 0;
    const size_t kept = Repaired(image, files, &listed).size();
    EXPECT_GE(kept + 1, image.model.size());
    if (kept < image.model.size()) {
      EXPECT_GT(listed, 0u);
      ++keys_lost;
    }
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(keys_lost, 0u);
}

TEST(RepairValuesTest, AFlipInAValueFile) { ExpectOneKeyLostAtMost(Killed()); }

TEST(RepairValuesTest, AFlipInAFormerFileOfTheLog) {
  ExpectOneKeyLostAtMost(MakeDenseStoreImage());
}

// A lookup goes from the offset table straight to the value. So it finds keys whose records are
// damaged, and a repair has to keep them.
TEST(RepairValuesTest, AFlipInARecordOfAValue) {
  const StoreImage image = MakeDenseStoreImage();
  size_t segments = 0;
  for (const auto& [path, bytes] : image.files) {
    if (!path.ends_with(".seg")) continue;
    ++segments;
    const uint64_t end = FooterOf(image.files, path).data_size;
    for (uint64_t offset = 0; offset < end; offset += 7 * DamageStep()) {
      SCOPED_TRACE(path + " with a flip at " + std::to_string(offset));
      Files files = image.files;
      files.at(path)[offset] ^= 4;
      const Reading before = ReadDamagedStore(image, files, path, offset);
      size_t listed = 0;
      const Content content = Repaired(image, files, &listed);
      EXPECT_GT(listed, 0u);
      for (const auto& [key, value] : image.model)
        EXPECT_TRUE(content.contains(key) || before.failed.contains(key));
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(segments, 0u);
}

// What is saved goes where it was in the order, before older versions of its key.
TEST(RepairValuesTest, AllRecordsOfASegmentAreGone) {
  StoreImage image;
  MemoryFileSystem file_system;
  {
    const auto store =
        StorageEngine::Open(std::string(kStoreDirectory), ImageOptions(&file_system)).value();
    const auto put = [&](const std::string& key, char letter) {
      image.model[key] = std::string(2000, letter);
      ASSERT_TRUE(store->Put(key, image.model[key]).ok());
    };
    for (const std::string key : {"one", "three", "two"}) put(key, 'a');
    const auto snapshot = store->GetSnapshot();
    for (const std::string key : {"one", "two"}) put(key, 'b');
    ASSERT_TRUE(store->Flush().ok() && store->Close().ok());
  }
  const Files whole = file_system.files();
  const auto segment = std::find_if(whole.begin(), whole.end(),
                                    [](const auto& file) { return file.first.ends_with(".seg"); });
  ASSERT_NE(segment, whole.end());
  const SegmentFooter footer = FooterOf(whole, segment->first);
  ASSERT_EQ(footer.info.entries, 5u) << "with those that the snapshot sees";
  for (const uint64_t end : {uint64_t{1}, footer.data_size / 2, footer.data_size}) {
    Files files = whole;
    std::fill_n(files.at(segment->first).begin(), end, 'x');
    size_t listed = 0;
    EXPECT_EQ(Repaired(image, files, &listed), image.model);
    EXPECT_GT(listed, 0u);
  }
}

TEST(RepairValuesTest, AMissingValueFile) {
  const StoreImage image = MakeDenseStoreImage();
  Files files = image.files;
  files.erase(ValueFileOf(image));
  size_t listed = 0;
  const Content content = Repaired(image, files, &listed);
  EXPECT_GT(listed, 0u);
  EXPECT_LT(content.size(), image.model.size());
  EXPECT_GT(content.size(), 0u);  // what the other file holds
}

}  // namespace
}  // namespace varve
