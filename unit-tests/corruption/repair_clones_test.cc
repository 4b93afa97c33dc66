// What a repair makes of stores with clones: with a manifest they stay clones, without one they
// hold what was written to them alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "fmt/format.h"
#include "unit-tests/corruption/repair_store.h"
#include "unit-tests/testing/namespace_calls.h"
#include "unit-tests/testing/server_process.h"

namespace varve {
namespace {

using testing::Clone;
using testing::Create;
using testing::TestStore;

constexpr NamespaceId kClone = 5, kOther = 6;

class RepairClonesTest : public ::testing::Test {
 protected:
  void Fill(NamespaceId space, int keys, const std::string& value) {
    WriteBatch batch;
    for (int i = 0; i < keys; ++i)
      batch.Put(fmt::format("key{:04}", i), value + std::string(100, '.'), space);
    ASSERT_TRUE(store_->Write({}, &batch).ok());
  }
  // In the newest file of the kind that holds the value.
  void FlipIn(const std::string& kind, const std::string& value) {
    std::string newest;
    size_t offset = 0;
    for (const auto& file : std::filesystem::directory_iterator(store_.directory.path())) {
      const std::string path = file.path().string();
      const size_t found = path.ends_with(kind) && path > newest
                               ? testing::ReadFile(path).rfind(value)
                               : std::string::npos;
      if (found == std::string::npos) continue;
      newest = path;
      offset = found;
    }
    ASSERT_NE(newest, "");
    std::fstream(newest, std::ios::in | std::ios::out | std::ios::binary)
        .seekp(static_cast<std::streamoff>(offset))
        .write("!?", 2);
  }
  std::string Repair() { return testing::RepairAndOpen(&store_); }
  // Keys whose value begins so, which the count agrees with when all do.
  int Holding(NamespaceId space, const std::string& value) {
    int holding = 0;
    uint64_t all = 0;
    const auto iterator = store_->NewIterator({.space = space}, {}, {}, nullptr);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++all)
      holding += iterator->value().starts_with(value) ? 1 : 0;
    EXPECT_TRUE(iterator->status().ok()) << iterator->status();
    const absl::StatusOr<CountResult> count = store_->Count({.space = space}, {}, {});
    EXPECT_TRUE(count.ok() && count->keys == all) << space << " " << count.status();
    return holding;
  }

  TestStore store_;
};

TEST_F(RepairClonesTest, WithAManifestTheyStayClones) {
  for (const std::string damaged : {".seg", ".log"}) {
    Fill(0, 1000, "old");
    ASSERT_TRUE(store_->Flush().ok());
    const NamespaceId clone = damaged == ".seg" ? kClone : kOther;
    ASSERT_TRUE(Clone(store_, 0, clone).ok());
    Fill(0, 1000, "new");
    ASSERT_TRUE(store_->Flush().ok());
    Fill(clone, 500, "own");
    if (damaged == ".seg") ASSERT_TRUE(store_->Flush().ok());
    store_.Close();
    FlipIn(damaged, "own...");
    EXPECT_NE(Repair(), "") << damaged;
    EXPECT_EQ(Holding(0, "new"), 1000);
    const int own = Holding(clone, "own");
    EXPECT_LT(own, 500) << "the damage";
    EXPECT_EQ(Holding(clone, "old"), 1000 - own);
  }
}

// Which generation is the default namespace's is a guess then, here a wrong one.
TEST_F(RepairClonesTest, WithoutAManifestTheyHoldWhatWasWrittenToThemAlone) {
  Fill(0, 1000, "old");
  ASSERT_TRUE(store_->Flush().ok());
  ASSERT_TRUE(Clone(store_, 0, kClone).ok());
  Fill(kClone, 10, "own");
  ASSERT_TRUE(Create(store_, kOther).ok());
  Fill(kOther, 1000, "other");
  ASSERT_TRUE(store_->Flush().ok());
  store_.Close();
  FlipIn(".seg", "other...");
  std::filesystem::remove(store_.directory.path() + "/MANIFEST");
  std::filesystem::remove(store_.directory.path() + "/MANIFEST.copy");
  EXPECT_NE(Repair(), "");
  const absl::StatusOr<NamespaceList> list = store_->Namespaces();
  ASSERT_TRUE(list.ok());
  int old = 0, own = 0;
  for (const auto& space : list->namespaces) {
    old += Holding(space.id, "old");
    own += Holding(space.id, "own");
  }
  EXPECT_EQ(old, 1000) << "each key of the source once";
  EXPECT_LE(own, 10);
  store_.Reopen();
}

}  // namespace
}  // namespace varve
