// What a repair makes of a segment with compressed values: it writes the values plain, finds the
// dictionary without the footer, and gives up what nothing can decompress.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include "db/segment/segment_dictionary.h"
#include "fmt/format.h"
#include "tools/verify.h"
#include "unit-tests/corruption/repair_store.h"
#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::RepairAndOpen;
using testing::TestStore;

constexpr int kKeys = 3000;

std::string PaddedKey(int number) { return fmt::format("key:{:06}", number); }

// Every tenth value is random and so stays plain.
std::string Value(int number) {
  std::mt19937_64 random(static_cast<uint64_t>(number));
  if (number % 10 == 9) {
    std::string bytes(200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  }
  return fmt::format(
      R"({{"id":{},"token":"{:016x}","name":"customer number {}","country":"Germany","tags":)"
      R"(["regular","newsletter"],"address":{{"city":"Hamburg","street":"Long Street {}"}}}})",
      number, random(), number, random() % 100);
}

class RepairCompressedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteBatch batch;
    for (int i = 0; i < kKeys; ++i) batch.Put(PaddedKey(i), Value(i));
    ASSERT_TRUE(store_->Write({}, &batch).ok());
    ASSERT_TRUE(store_->Flush().ok());
    ASSERT_TRUE(store_->Compact("", "").ok());
    store_.Close();
    for (const auto& entry : std::filesystem::directory_iterator(store_.directory.path())) {
      if (entry.path().string().ends_with(".seg")) path_ = entry.path().string();
    }
    ASSERT_NE(path_, "");
  }

  static EngineOptions Options() {
    EngineOptions options;
    options.sync = Durability::kNone;
    options.compression = {CompressionMethod::kZstd, kDefaultZstdLevel};
    return options;
  }

  // Flips a bit of the byte that `place` returns for the content of the segment.
  void Damage(const std::function<size_t(const std::string& bytes)>& place) {
    std::ifstream in(path_, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    in.close();
    const size_t at = place(bytes);
    ASSERT_LT(at, bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  // Returns how many keys are there; each has its value.
  int Count() {
    int found = 0;
    for (int i = 0; i < kKeys; ++i) {
      const std::string value = store_.Get(PaddedKey(i));
      if (value == "(missing)") continue;
      ++found;
      EXPECT_EQ(value, Value(i));
    }
    return found;
  }

  void ExpectSound() {
    store_.Close();
    const auto report = VerifyStore(PosixFileSystem(), store_.directory.path(), {});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->damaged_places, 0u);
    store_.Open();
  }

  TestStore store_{Options()};
  std::string path_;
};

TEST_F(RepairCompressedTest, WithoutTheFooterTheDictionaryIsFound) {
  Damage([](const std::string& bytes) { return bytes.size() - 30; });
  const std::string lost = RepairAndOpen(&store_);
  EXPECT_NE(lost, "");
  EXPECT_EQ(Count(), kKeys) << lost;
  ExpectSound();
  // What was written plain is compressed again.
  ASSERT_TRUE(store_->Compact("", "").ok());
  const RangeSize size = store_->EstimateSize(kDefaultNamespace, "", "");
  EXPECT_LT(size.stored_value_bytes * 2, size.plain_value_bytes);
  EXPECT_EQ(Count(), kKeys);
}

TEST_F(RepairCompressedTest, WithoutTheDictionaryPlainValuesStay) {
  Damage([](const std::string& bytes) { return bytes.find(kDictionaryMagic) + 100; });
  const std::string lost = RepairAndOpen(&store_);
  EXPECT_NE(lost.find("can't be decompressed"), std::string::npos) << lost;
  EXPECT_EQ(Count(), kKeys / 10);
  ExpectSound();
}

TEST_F(RepairCompressedTest, ADamagedRecordCostsOneKey) {
  // The record leaves "key:00", which it shares with the first one, to the key base.
  Damage([](const std::string& bytes) { return bytes.find(PaddedKey(1500).substr(6)) + 24; });
  EXPECT_NE(RepairAndOpen(&store_), "");
  EXPECT_EQ(Count(), kKeys - 1);
  EXPECT_EQ(store_.Get(PaddedKey(1500)), "(missing)");
  ExpectSound();
}

}  // namespace
}  // namespace varve
