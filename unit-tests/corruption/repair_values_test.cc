// What a repair makes of stores with damaged value files: the values that can't be read are listed and given up, all others stay.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "db/repair.h"
#include "db/verify.h"
#include "unit-tests/corruption/store_image.h"

namespace varve {
namespace {

using testing::Content;
using testing::ContentOf;
using testing::DamageStep;
using testing::Killed;
using testing::kStoreDirectory;
using testing::MakeDenseStoreImage;
using testing::MemoryFileSystem;
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
  for (const auto& [path, bytes] : files) {
    const bool is_kept =
        std::any_of(repaired.begin(), repaired.end(), [&](const auto& file) { return file.second == bytes; });
    EXPECT_TRUE(is_kept || path.find("MANIFEST") != std::string::npos) << path;
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
  for (size_t offset = 5000; offset < size; offset += DamageStep() * std::max<size_t>(1, size / 40)) {
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

TEST(RepairValuesTest, AFlipInAFormerFileOfTheLog) { ExpectOneKeyLostAtMost(MakeDenseStoreImage()); }

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
