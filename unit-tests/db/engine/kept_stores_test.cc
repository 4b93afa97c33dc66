// Every format that Varve ever wrote is read. unit-tests/kept_stores has a store of each, as the
// death of its server left it: format-N.tar.xz is one whose manifest has version N. A new format
// gets a store of its own there, and those that are there stay as they are.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "db/version/manifest.h"
#include "tools/verify.h"
#include "unit-tests/testing/temp_dir.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using testing::TempDir;

struct KeptStore {
  int format;
  bool has_expiry_values_and_clone;
};

class KeptStoreTest : public ::testing::TestWithParam<KeptStore> {
 protected:
  void SetUp() override {
    const std::string archive = std::string(VARVE_SOURCE_DIR) + "/unit-tests/kept_stores/format-" +
                                std::to_string(GetParam().format) + ".tar.xz";
    const std::string command =
        "tar -xJf '" + archive + "' -C '" + dir_.path() + "' --strip-components=1";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  void Open(bool finalize_upgrade) {
    store_.reset();
    EngineOptions options;
    options.create_if_missing = false;
    options.finalize_upgrade = finalize_upgrade;
    absl::StatusOr<std::unique_ptr<StorageEngine>> store =
        StorageEngine::Open(dir_.path(), options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  std::string Get(std::string_view key, NamespaceId space = kDefaultNamespace) {
    std::string value;
    const absl::StatusOr<ReadResult> read = store_->Get({.space = space}, key, &value);
    if (!read.ok()) return read.status().ToString();
    return read->found ? value : "(missing)";
  }
  void ExpectAll() {
    EXPECT_EQ(Get("key:1"), "value:1");
    EXPECT_EQ(Get("key:400"), "value:400");
    EXPECT_EQ(Get("key:7"), "(missing)") << "deleted";
    EXPECT_EQ(Get("key:20"), "(missing)") << "deleted with a range";
    EXPECT_EQ(Get("key:8"), "changed") << "in the log";
    EXPECT_EQ(Get("b"), "2") << "the second of a batch";
    const uint64_t extra = GetParam().has_expiry_values_and_clone ? 4 : 0;
    EXPECT_EQ(store_->Count({}, "", "")->keys, 390u + extra);
    const NamespaceList spaces = store_->Namespaces().value();
    EXPECT_NE(spaces.Find("users"), nullptr);
    if (!GetParam().has_expiry_values_and_clone) return;
    EXPECT_EQ(Get("session"), "y");
    EXPECT_EQ(Get("large"), std::string(3000, 'L'));
    ASSERT_NE(spaces.Find("branch"), nullptr);
    EXPECT_EQ(Get("key:8", spaces.Find("branch")->id), "changed");
    EXPECT_EQ(Get("after", spaces.Find("branch")->id), "(missing)") << "written behind the fork";
    EXPECT_EQ(Get("after"), "clone");
  }
  uint32_t VersionOnDisk() {
    return DecodeFixed32(
        EncodeManifest(ReadManifest(PosixFileSystem(), dir_.path()).value()).data() + 8);
  }

  TempDir dir_;
  std::unique_ptr<StorageEngine> store_;
};

TEST_P(KeptStoreTest, IsWholeAndStaysInItsFormatUntilItsUpgradeIsFinalized) {
  const absl::StatusOr<VerifyReport> report = VerifyStore(PosixFileSystem(), dir_.path(), {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->damaged_places, 0u);

  Open(/*finalize_upgrade=*/false);
  ExpectAll();
  ASSERT_TRUE(store_->Flush().ok());
  ASSERT_TRUE(store_->Compact("", "").ok());
  ExpectAll();
  ASSERT_TRUE(store_->Close().ok());
  EXPECT_LT(VersionOnDisk(), 5u) << "an earlier program can go on with it";

  Open(/*finalize_upgrade=*/true);
  ExpectAll();
  ASSERT_TRUE(store_->Close().ok());
  EXPECT_EQ(VersionOnDisk(), 5u);
  Open(/*finalize_upgrade=*/false);
  ExpectAll();
}

INSTANTIATE_TEST_SUITE_P(Formats, KeptStoreTest,
                         ::testing::Values(KeptStore{2, false}, KeptStore{4, true}),
                         [](const auto& info) {
                           return "Format" + std::to_string(info.param.format);
                         });

}  // namespace
}  // namespace varve
